"""OBAMA-lite: OBAMA (Foster, Kale, Luo, Mohri and Sridharan, COLT 2018) with a Laplace posterior."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._base import KernelAgent
from banditlab.agents._dense import cholesky_psd
from banditlab.agents._posterior import Posterior, learn_label, logit_law, posterior_state
from banditlab.bounds.obama import obama_gamma
from banditlab.errors import UsageError
from banditlab.kernels import draw, draw_uniform, njit
from banditlab.problem import Problem
from banditlab.validation import at_least, number, one_of, positive, probability


class State(NamedTuple):
    """The posterior and the average over it.

    nodes (samples/2, K); R (K, K), n, v, qbar (K,) scratch; rates (2,) = (gamma, eta); hits (2,): hits learnt from, and
    those whose weight was cut to 1.
    """

    posterior: Posterior
    nodes: NDArray[np.float64]
    R: NDArray[np.float64]
    n: NDArray[np.float64]
    v: NDArray[np.float64]
    qbar: NDArray[np.float64]
    rates: NDArray[np.float64]
    hits: NDArray[np.int64]


@njit
def add_softmax(z, n, sign, v, total):  # type: ignore[no-untyped-def]
    """total += softmax(z + sign n), (K,) each; v is overwritten."""
    K = z.shape[0]
    top = -math.inf
    for k in range(K):
        v[k] = z[k] + sign * n[k]
        top = max(top, v[k])
    whole = 0.0
    for k in range(K):
        v[k] = math.exp(v[k] - top)
        whole += v[k]
    for k in range(K):
        total[k] += v[k] / whole


@njit
def mean_softmax(z, Sigma, nodes, R, n, v, qbar):  # type: ignore[no-untyped-def]
    """qbar = average of softmax(z + R n) over the nodes n and their mirror images -n, R R' = Sigma."""
    K = z.shape[0]
    cholesky_psd(Sigma, R)
    for k in range(K):
        qbar[k] = 0.0
    for i in range(nodes.shape[0]):
        for k in range(K):
            n[k] = 0.0
            for c in range(k + 1):
                n[k] += R[k, c] * nodes[i, c]
        add_softmax(z, n, 1.0, v, qbar)
        add_softmax(z, n, -1.0, v, qbar)
    for k in range(K):
        qbar[k] /= 2.0 * nodes.shape[0]


@njit
def act_kernel(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    gamma, qbar = state.rates[0], state.qbar
    K = p.shape[0]
    logit_law(state.posterior, x)
    mean_softmax(state.posterior.z0, state.posterior.Sigma, state.nodes, state.R, state.n, state.v, qbar)
    for k in range(K):
        p[k] = (1.0 - gamma) * qbar[k] + gamma / K  # q_t = (1 - mu) E[softmax(W x_t)] + mu/K
    if u[0] < gamma:
        return draw_uniform(K, u[1]), True
    return draw(qbar, u[1]), False


@njit
def learn_kernel(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    if not correct:  # L_t = 0
        return
    w = state.rates[1] / p[action]  # eta L_t = w loss, w = eta/q_t(y_t)
    state.hits[0] += 1
    if w > 1.0:
        state.hits[1] += w > 1.0 + 1e-12  # gamma = 0 only
        w = 1.0
    learn_label(state.posterior, x, action, w)


class ObamaLite(KernelAgent):
    """Exponential weights on importance-weighted logistic losses, the posterior approximated by a Gaussian.

    Problem: bandit multiclass, adversarial stream, comparators {||W_k||_2 <= B for all k}.

    Update rule (OBAMA, mu = gamma): q_t = (1 - mu) E_{W ~ P_t}[softmax(W x_t)] + mu/K; play yh from q_t (a coin of
    probability mu chooses a uniform draw over one from the average). On a hit L_t(W) = loss(W x_t, y_t)/q_t(y_t), else
    L_t = 0; P_{t+1}(W) is proportional to P_t(W) exp(-eta L_t(W)). With eta = mu/K every factor is a tempered
    likelihood softmax(W x)_y^{w_t}, w_t = eta/q_t(y_t) in (0, 1]. The prior is N(0, B^2/d I): E||W_k||^2 = B^2.

    Lite, sampler "laplace": P_t is replaced by a Gaussian N(M, C) that takes each factor by an implicit (proximal)
    step of the mean and a Laplace step of the covariance (an extended Kalman filter, exact algebra in `_posterior.py`).
    The average is over `samples` logit vectors M x + R n, R R' = J C J', with standard normal nodes n, antithetic,
    drawn once in the constructor from a child stream. Permuting the classes therefore permutes the law of the answers
    over the draw of the nodes, and the answers themselves up to the nodes' Monte Carlo error.

    At mu = 0 the paper's choice for small norms is taken, eta = e^{-2BR}/K. Matrices of the ball give every class at
    least that probability; a Gaussian reaches outside, and where q_t(y_t) < eta the weight is cut to 1. Such a hit
    has probability below eta; `diagnostics` counts them.

    Guarantee: none for this approximation, `bound` answers None. For the exact posterior, in expectation and with
    s^2 = B^2/d, mistakes are at most

        sum loss(U) + (K/mu)[||U||^2/(2 s^2) + (Kd/2) ln(1 + s^2 R^2 (1-1/K) mu T/(K^2 d))] + mu (1-1/K) T:

    `banditlab.bounds.obama.obama_gaussian_prior`, our constants (the paper's Theorem 6 has a uniform prior and O(.)).

    Cost: K(K-1)/2 quadratic forms of size d a round, O(K^2 d^2), and O(samples K^2); on a hit O(K^3 d^2) as a matrix
    product, delayed. K^2 d^2/2 numbers.

    Parameters
    ----------
    norm_bound
        B, the row bound of the comparators.
    gamma
        Exploration rate in [0, 1] (the smoothing mu in the paper); "theory" balances the two terms of the guarantee.
    samples
        Logit samples of the average, an even number (m in the specification).
    sampler
        How the posterior is approximated: "laplace".

    Raises
    ------
    UsageError
        A setting outside its range.
    HorizonRequiredError
        gamma = "theory" where the horizon is unknown.

    References
    ----------
    D. J. Foster, S. Kale, H. Luo, M. Mohri, K. Sridharan. Logistic regression: the importance of being improper. COLT
    2018.
    """

    id = "obama-lite"
    group = "theory"
    summary = "importance-weighted exponential weights with a Gaussian (Laplace) posterior"
    reference = "Foster, Kale, Luo, Mohri and Sridharan, COLT 2018; Laplace posterior: ours"
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        gamma: float | Literal["theory"] = "theory",
        samples: int = 100,
        sampler: Literal["laplace"] = "laplace",
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = B = positive("norm_bound", number("norm_bound", norm_bound))
        if gamma == "theory":
            T = problem.known_horizon("gamma = 'theory'", "give gamma as a number")
            self.gamma = obama_gamma(T, d, K, B, R)
        else:
            self.gamma = probability("gamma", number("gamma", gamma, "theory"))
        self.samples = at_least("samples", samples, 2)
        if samples % 2:
            raise UsageError(f"samples must be an even integer (mirrored pairs), got {samples}")
        self.sampler = one_of("sampler", sampler, ("laplace",))
        eta = self.gamma / K if self.gamma > 0.0 else math.exp(-2.0 * B * R) / K
        nodes = self.rng.spawn(1)[0].standard_normal((self.samples // 2, K))
        self.state = State(
            posterior=posterior_state(K, d, B / math.sqrt(d)),
            nodes=nodes,
            R=np.zeros((K, K)),
            n=np.zeros(K),
            v=np.zeros(K),
            qbar=np.zeros(K),
            rates=np.array([self.gamma, eta]),
            hits=np.zeros(2, np.int64),
        )

    def diagnostics(self) -> dict[str, Any]:
        """Return the hits learnt from, the weights cut to 1, and the implicit steps whose root was not found."""
        tally = self.state.posterior.tally
        return {
            "hits": int(self.state.hits[0]),
            "cut": int(self.state.hits[1]),
            "unsolved": int(tally[2]),
        }
