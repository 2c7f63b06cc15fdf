"""Epsilon-greedy on a softmax model, learnt from hits by importance weights (inverse propensity scores)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.numerics.argmax import argmax
from banditlab.numerics.contexts import by_context, by_layout
from banditlab.numerics.draws import greedy_or_uniform
from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.linear_scores import by_class, features, matrix, per_class, scores
from banditlab.numerics.simd import WIDTH, eight, fma, put, root
from banditlab.numerics.simd_math import exponentials, inverse_root
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import probability, resolve

AUTO_RATE = 1.0
"""learning_rate = "auto" in units of 1/R."""
FLOOR = 1e-12
"""What the sums of squared gradients start at, in units of R^2: keeps 0/0 out."""
LEAST = 1e-50
"""Smaller probabilities weigh as much: with R up to 1e100 no square overflows, and the step, which outweighs all before it,
is the same."""


class State(NamedTuple):
    """V, the transpose of W / learning rate, and G, the sums of squared gradients, in one layout.

    They are laid out as `banditlab.numerics.linear_scores` says.
    settings (2,): gamma, learning rate; z, r scratch.
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
    best = argmax(z, K)
    payload[K] = exponentials(z, state.settings[1], z[best], K, payload)
    return greedy_or_uniform(best, gamma, u, p)


@inline
def rooted(v, s, g):
    """Return v - g / sqrt(s + g^2) and s + g^2, of numbers or lanes; g = 0 changes neither.

    s begins at FLOOR R^2 >= 1e-212, and |g| stays below 1e150: both within what `inverse_root` is exact for.
    """
    s = fma(g, g, s)
    return fma(g, inverse_root(s) * -1.0, v), s


@inline
def divided(v, s, g):
    """Return what `rooted` does, to rounding, by a root and a division."""
    s = fma(g, g, s)
    return v - g / root(s), s


THREE = 3 * WIDTH


@inline
def adagrad_entry(V, G, j, k, g):
    """Update entry k, j by its gradient g; of three times eight features the last eight by divisions.

    A processor divides and multiplies side by side. All classes go the same way, so that equal ones stay equal.
    """
    v, s = V[j, k], G[j, k]
    V[j, k], G[j, k] = divided(v, s, g) if j % THREE >= 2 * WIDTH else rooted(v, s, g)


@inline
def keep(W, H, i, entries):
    """Write eight entries of V and of G."""
    put(W, i, entries[0])
    put(H, i, entries[1])


def _adagrad(V, G, r, x):
    """V -= g / sqrt(sum of g^2), entry by entry, for the gradient g = x r', x (d,)."""
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            for k in range(r.shape[0]):
                adagrad_entry(V, G, j, k, x[j] * r[k])


def _row_adagrad(V, G, r, x):
    W, H, r, x = by_class(V), by_class(G), borrow(r), borrow(x)
    j, d, wide = 0, x.shape[0], W.shape[1]
    while j + 2 * WIDTH < d:
        one, two, three, at = features(x, j), features(x, j + WIDTH), features(x, j + 2 * WIDTH), j
        for k in range(r.shape[0]):
            second, third = at + WIDTH, at + 2 * WIDTH
            keep(W, H, at, rooted(eight(W, at), eight(H, at), one * r[k]))
            keep(W, H, second, rooted(eight(W, second), eight(H, second), two * r[k]))
            keep(W, H, third, divided(eight(W, third), eight(H, third), three * r[k]))
            at += wide
        j += THREE
    while j < d:
        one, at = features(x, j), j
        for k in range(r.shape[0]):
            keep(W, H, at, rooted(eight(W, at), eight(H, at), one * r[k]))
            at += wide
        j += WIDTH


def _sparse_adagrad(V, G, r, x):
    for i in range(x.indices.shape[0]):
        for k in range(r.shape[0]):
            adagrad_entry(V, G, x.indices[i], k, x.values[i] * r[k])


adagrad = by_context(by_layout(_adagrad, _row_adagrad), _sparse_adagrad)


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
    adagrad(state.V, state.G, r, x)


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
        self.payload_size = K + 1
        self.state = State(
            V=matrix(d, K),
            G=matrix(d, K, FLOOR * R**2),
            settings=np.array([self.gamma, self.learning_rate]),
            z=per_class(d, K),
            r=per_class(d, K),
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d)."""
        return self.learning_rate * super().weights
