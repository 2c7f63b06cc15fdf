"""Epsilon-greedy on a softmax model, updated on hits with importance weights (inverse propensity scores)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import greedy_or_uniform
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.simd import fma
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import entry, matrix, scores, size
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import probability, resolve

AUTO_RATE = 1.0
"""`learning_rate = "auto"` in units of :math:`1/R`."""
FLOOR = 1e-12
"""Initial value of the sums of squared gradients, in units of :math:`R^2`, so all sums are normal numbers."""
GUESS = 0x5FE6EB50C7B537A9
"""The bits of a float64 number s, halved and subtracted from this, are those of 1/sqrt(s) to 3.5 %."""
LEAST = 1e-50
"""The smallest probability by which a gradient is divided, so no square overflows for R up to 1e100. Such a gradient
dominates the sum of squares, so the step is the same."""


class State(NamedTuple):
    r"""The state: V, which is W divided by the learning rate, and G, the sums of squared gradients (K, d), padded.

    `settings` (2,) contains :math:`\gamma` and the learning rate; `z` (K,) is a work array.
    """

    V: NDArray[np.float64]
    G: NDArray[np.float64]
    settings: NDArray[np.float64]
    z: NDArray[np.float64]


@inline
def act_kernel(state, x, u, p, payload):
    gamma, z, K = state.settings[0], state.z, p.shape[0]
    scores(state.V, x, z)
    best = argmax(z, K)  # best = argmax_k (W x)_k
    payload[K] = exponentials(z, state.settings[1], z[best], K, payload)  # e^v and its sum
    return greedy_or_uniform(best, gamma, u, p)  # P = (1 - gamma) e_best + gamma/K


@njit
def inverse_root(s):
    r"""Return :math:`1/\sqrt{s}` of a normal number above 0, to a few units in the last place.

    Newton's iteration from a guess that halves the exponent. Processors have one slow unit for roots and divisions.
    """
    y = np.int64(GUESS - (np.float64(s).view(np.int64) >> 1)).view(np.float64)
    for _ in range(4):  # the relative error e becomes 3/2 e^2
        y *= fma(-0.5 * s * y, y, 1.5)
    return y


@njit
def adagrad(V, G, k, r, x):
    r"""Update :math:`G_k \mathrel{+}= g^2` and :math:`V_k \mathrel{-}= g / \sqrt{G_k}`, entry by entry.

    :math:`g = r x` is the gradient of row k; :math:`g = 0` changes nothing.
    """
    for i in range(size(x)):
        j, xj = entry(x, i)
        g = r * xj
        G[k, j] += g * g
        V[k, j] -= g * inverse_root(G[k, j])


# payload (K + 1,) stores e^v for v = W x - max_k (W x)_k, followed by the sum of its entries.


@inline
def learn_kernel(state, x, action, p, payload, correct):
    if not correct:  # the estimated gradient is 0
        return
    K = p.shape[0]
    weight = 1.0 / max(p[action], LEAST)
    share = weight / payload[K]
    for k in range(K):  # the gradient is (softmax - e_y) x' / P(y)
        adagrad(state.V, state.G, k, payload[k] * share - (weight if k == action else 0.0), x)


class EpsilonGreedy(KernelAgent):
    r"""Play the most likely class of a softmax regression, or a uniform class with probability :math:`\gamma`; update
    on hits.

    Problem: bandit multiclass.

    Update rule: :math:`\text{best} = \arg\max_k (W x)_k` (ties go to the first class). The agent draws its action from
    :math:`P = (1 - \gamma) e_{\text{best}} + \gamma/K`: a uniform class with probability :math:`\gamma`, otherwise the
    best. The gradient estimate g is :math:`(\mathrm{softmax}(W x) - e_y) x' / P(y)` on a hit (action y) and 0 on a
    miss. Its mean is the gradient of the logistic loss. The steps are those of AdaGrad:
    :math:`G_{kj} \mathrel{+}= g_{kj}^2`, :math:`W_{kj} \mathrel{-}= \mathrm{learning\_rate}\, g_{kj} / \sqrt{G_{kj}}`.

    Guarantee: the gradient estimates are unbiased, and their second moment is up to :math:`K/\gamma` times that of the
    true gradient. On a ball of radius B, the logistic losses of W have regret :math:`O(B \sqrt{K T / \gamma})` up to
    factors of d and K, for a learning rate of the order of B (AdaGrad's theorem, with a projection that this agent
    omits). The mistakes have a weaker bound only: their expected number is at most the expected logistic loss of the W
    in use, divided by :math:`\ln 2`, plus :math:`\gamma T`. `bound` returns None.

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones. Memory:
    :math:`2 K d` numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1], often called :math:`\epsilon`. At 0, only hits of the greedy class lead to updates.
    learning_rate
        AdaGrad's step size, above 0. "auto" is :math:`1/R`.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1], or `learning_rate` is not above 0.

    References
    ----------
    M. Dudík, J. Langford, L. Li. Doubly robust policy evaluation and learning. ICML 2011 (the inverse propensity score).
    J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods for online learning. JMLR 12, 2011.
    """

    id = "epsilon-greedy"
    group = "practice"
    summary = "greedy softmax regression with uniform exploration, updated by importance-weighted hits"
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
        self.payload_size = K + 1
        self.state = State(
            V=matrix(K, d),
            G=matrix(K, d, FLOOR * R**2),
            settings=np.array([self.gamma, self.learning_rate]),
            z=np.zeros(K),
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d)."""
        return self.learning_rate * self.state.V[:, : self.problem.n_features]
