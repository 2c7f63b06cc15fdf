"""Epsilon-greedy on a softmax model, updated on hits with importance weights (inverse propensity scores)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import greedy_or_uniform
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import entry, matrix, scores, size
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import probability, resolve

AUTO_RATE = 1.0
"""`learning_rate = "auto"` in units of :math:`1/R`."""
FLOOR = 1e-12
"""Initial value of the sums of squared gradients, in units of :math:`R^2`; avoids 0/0."""
LEAST = 1e-50
"""Smaller probabilities weigh as much: with R up to 1e100 no square overflows, and the step, which outweighs all before it,
is the same."""


class State(NamedTuple):
    r"""The state: V, which is W divided by the learning rate, and G, the sums of squared gradients (K, d).

    settings (2,) has :math:`\gamma` and the learning rate; z, r (K,) are work arrays.
    """

    V: NDArray[np.float64]
    G: NDArray[np.float64]
    settings: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]


@inline
def act_kernel(state, x, u, p, payload):
    gamma, z, K = state.settings[0], state.z, p.shape[0]
    scores(state.V, x, z)
    best = argmax(z, K)  # best = argmax_k (W x)_k
    payload[K] = exponentials(z, state.settings[1], z[best], K, payload)  # e^v and its sum
    return greedy_or_uniform(best, gamma, u, p)  # P = (1 - gamma) e_best + gamma/K


@njit
def adagrad(V, G, k, r, x):
    r"""Update :math:`G_k \mathrel{+}= g^2` and :math:`V_k \mathrel{-}= g / \sqrt{G_k}`, entry by entry.

    :math:`g = r x` is the gradient of row k; :math:`g = 0` changes nothing.
    """
    for i in range(size(x)):
        j, xj = entry(x, i)
        g = r * xj
        G[k, j] += g * g
        V[k, j] -= g / math.sqrt(G[k, j])


# payload (K + 1,) carries e^v, v = W x - max_k (W x)_k, and their sum behind them.


@inline
def learn_kernel(state, x, action, p, payload, correct):
    if not correct:  # the estimated gradient is 0
        return
    r, K = state.r, p.shape[0]
    weight = 1.0 / max(p[action], LEAST)
    share = weight / payload[K]
    for k in range(K):
        r[k] = payload[k] * share
    r[action] -= weight  # (softmax - e_y) / P(y)
    for k in range(K):
        adagrad(state.V, state.G, k, r[k], x)


class EpsilonGreedy(KernelAgent):
    r"""Play the most likely class of a softmax regression, sometimes a uniform class; update on hits.

    Problem: bandit multiclass.

    Update rule: :math:`\text{best} = \arg\max_k (W x)_k` (ties go to the first class). The agent plays from
    :math:`P = (1 - \gamma) e_{\text{best}} + \gamma/K`, drawn by a coin flip and a uniform class. On a hit (action y)
    the gradient is that of the logistic loss, :math:`(\mathrm{softmax}(W x) - e_y) x'`, divided by :math:`P(y)`. On a
    miss it is
    0. The mean of this estimate g is the gradient under full information, whatever the label. The steps are those of
    AdaGrad, with a step size for every entry: :math:`G_{kj} \mathrel{+}= g_{kj}^2`,
    :math:`W_{kj} \mathrel{-}= \mathrm{learning\_rate}\, g_{kj} / \sqrt{G_{kj}}`.

    Guarantee: the gradient estimates are unbiased, and their second moment is up to :math:`K/\gamma` times that of the
    true gradient. On a ball of radius B, the logistic losses of W have regret :math:`O(B \sqrt{K T / \gamma})` up to
    factors of d and K, for a learning rate of the order of B (AdaGrad's theorem, with a projection that this agent
    omits). The greedy class minimises no logistic loss: its mistakes are only bounded by that loss divided by
    :math:`\ln 2`, plus :math:`\gamma T`. `bound` returns None.

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones. Memory:
    :math:`2 K d` numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1], often called :math:`\epsilon`. At 0 the agent is updated by hits of the greedy class
        only.
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
        self.payload_size = K + 1
        self.state = State(
            V=matrix(K, d),
            G=matrix(K, d, FLOOR * R**2),
            settings=np.array([self.gamma, self.learning_rate]),
            z=np.zeros(K),
            r=np.zeros(K),
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d)."""
        return self.learning_rate * self.state.V
