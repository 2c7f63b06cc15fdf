"""Epsilon-greedy on a softmax model, learnt from hits by importance weights (inverse propensity scores)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._base import KernelAgent
from banditlab.agents._scores import LinearScores, argmax, padded, scores, zero_weights
from banditlab.forecasters._quadratic import softmax_into
from banditlab.forecasters._settings import resolve
from banditlab.kernels import by_context, draw_uniform, njit
from banditlab.problem import Problem
from banditlab.validation import probability

AUTO_RATE = 1.0
"""learning_rate = "auto" in units of 1/R."""
FLOOR = 1e-12
"""What the sums of squared gradients start at, in units of R^2: keeps 0/0 out."""


class State(NamedTuple):
    """V, the transpose of W, and G, the sums of its squared gradients: (d, Kp), padded with columns without meaning.

    settings (2,): gamma, learning rate; z, r (Kp,) scratch.
    """

    V: NDArray[np.float64]
    G: NDArray[np.float64]
    settings: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]


@njit
def act_kernel(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    gamma, z, K = state.settings[0], state.z, p.shape[0]
    scores(state.V, x, z)
    best = argmax(z, K)
    p[:] = gamma / K
    p[best] += 1.0 - gamma
    for k in range(K):
        payload[k] = z[k]
    if u[0] < gamma:
        return draw_uniform(K, u[1]), True
    return best, False


def _adagrad(V, G, r, x, rate):  # type: ignore[no-untyped-def]
    """V -= rate g / sqrt(sum of g^2), entry by entry, for the gradient g = x r', x (d,), r (Kp,)."""
    for j in range(x.shape[0]):
        a = x[j]
        if a != 0.0:
            for k in range(r.shape[0]):
                g = a * r[k]
                G[j, k] += g * g
                V[j, k] -= rate * g / math.sqrt(G[j, k])


def _sparse_adagrad(V, G, r, x, rate):  # type: ignore[no-untyped-def]
    for i in range(x.indices.shape[0]):
        j, a = x.indices[i], x.values[i]
        if a != 0.0:
            for k in range(r.shape[0]):
                g = a * r[k]
                G[j, k] += g * g
                V[j, k] -= rate * g / math.sqrt(G[j, k])


adagrad = by_context(_adagrad, _sparse_adagrad)


@njit
def learn_kernel(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    if not correct:  # the estimated gradient is 0
        return
    r, K = state.r, p.shape[0]
    softmax_into(payload, r[:K])
    r[action] -= 1.0
    for k in range(K):
        r[k] /= p[action]
    adagrad(state.V, state.G, r, x, state.settings[1])


class EpsilonGreedy(LinearScores, KernelAgent):
    """Play the class a softmax regression likes best, now and then any; learn from hits, weighted by 1/probability.

    Problem: bandit multiclass.

    Update rule: best = argmax_k (W x)_k (the first of equals); play from P = (1 - gamma) e_best + gamma/K, drawn as a
    coin and a uniform class. On a hit (action y) the logistic loss's gradient (softmax(W x) - e_y) x', divided by P(y),
    is descended; on a miss nothing is. So g has the full information gradient as its mean, whatever the label.
    Steps are AdaGrad's with a size for every entry: G_kj += g_kj^2, W_kj -= learning_rate g_kj / sqrt(G_kj).

    Guarantee: the gradient estimates are unbiased, with a second moment of up to K/gamma times the true gradient's, so
    on a ball of radius B the logistic losses of W have regret O(B sqrt(K T / gamma)) up to factors of d and K, for a
    learning rate of the order of B (AdaGrad's theorem, with a projection this agent leaves out). The greedy class
    minimises no logistic loss: its mistakes are only bounded by that loss / ln 2, plus gamma T. `bound` answers None.

    Cost: O(K nnz(x)) a round where contexts come sparse, O(K d) where they come dense; 2 K d numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1] (epsilon elsewhere). At 0 hits of the greedy class are all it ever learns from.
    learning_rate
        AdaGrad's step size, above 0. "auto" is 1/R.

    Raises
    ------
    UsageError
        gamma outside [0, 1], learning_rate not above 0.

    References
    ----------
    M. Dudík, J. Langford, L. Li. Doubly robust policy evaluation and learning. ICML 2011 (the inverse propensity score).
    J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods for online learning. JMLR 12, 2011.
    """

    id = "epsilon-greedy"
    group = "practice"
    summary = "greedy softmax regression with uniform exploration, learnt from importance-weighted hits"
    reference = "Dudík, Langford and Li, ICML 2011 (inverse propensity score); AdaGrad, JMLR 2011"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        gamma: float = 0.1,
        learning_rate: float | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.gamma = probability("gamma", gamma)
        self.learning_rate = resolve("learning_rate", learning_rate, {"auto": AUTO_RATE / R})
        self.payload_size = K
        self.state = State(
            V=zero_weights(d, K),
            G=np.full((d, padded(K)), FLOOR * R**2),
            settings=np.array([self.gamma, self.learning_rate]),
            z=np.zeros(padded(K)),
            r=np.zeros(padded(K)),
        )
