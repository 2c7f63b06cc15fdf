"""Draws of classes from given uniforms: by the inverse distribution function, uniformly, and from mixtures of the two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import inline, njit

FEW = 16
"""Up to this number of classes, a draw sums all of them without a branch, which would often be mispredicted."""


@njit
def draw(p: NDArray[np.float64], u: float) -> int:
    r"""Return the inverse-CDF draw from p (K,) at the uniform u in [0, 1).

    The result is the first k with :math:`u < p_0 + \dots + p_k`. If p is a multiple of a distribution, u must be the
    same multiple of a uniform.
    """
    total = 0.0
    last = 0
    if p.shape[0] <= FEW:
        beyond = 0  # the number of partial sums that are at most u
        for k in range(p.shape[0]):
            some = p[k] > 0.0
            last = k if some else last
            total += p[k] if some else 0.0
            beyond += not u < total
        return beyond if beyond < p.shape[0] else last
    for k in range(p.shape[0]):
        if p[k] > 0.0:  # so that no class of probability 0 is drawn
            last = k
            total += p[k]
            if u < total:
                return k
    return last  # the sum fell short of 1 by rounding


@njit
def draw_uniform(n_classes: int, u: float) -> int:
    r"""Return a uniform draw over :math:`0, \dots, K-1`, with K = `n_classes`, from u in [0, 1)."""
    k = int(u * n_classes)  # may round up to n_classes if u is close to 1
    return min(k, n_classes - 1)


@inline
def is_valid_decision(a, p):
    """Return whether action a is in range, p (K,) is a distribution without NaN, and p[a] > 0."""
    if not 0 <= a < p.shape[0]:
        return False
    # NaN fails both comparisons.
    total, signs = 0.0, True
    for k in range(p.shape[0]):
        signs &= p[k] >= 0.0
        total += p[k]
    return signs and abs(total - 1.0) <= 1e-9 and p[a] > 0.0


@inline
def mixed_draw(gamma, u, p):
    r"""Draw a uniform class with probability :math:`\gamma`, and otherwise from p (K,); return (action, explored).

    p is overwritten with the probabilities :math:`(1 - \gamma) p + \gamma/K`.
    """
    K = p.shape[0]
    explored = u[0] < gamma
    action = draw_uniform(K, u[1]) if explored else draw(p, u[1])
    for k in range(K):
        p[k] = (1.0 - gamma) * p[k] + gamma / K
    return action, explored


@inline
def greedy_or_uniform(best, gamma, u, p):
    r"""Write :math:`P = (1 - \gamma) e_{\text{best}} + \gamma/K` into p and draw from it; return (action, explored).

    The draw consists of a coin flip and a uniform class.
    """
    K = p.shape[0]
    # P_k = gamma/K, plus 1 - gamma for the best
    for k in range(K):
        p[k] = gamma / K
    p[best] += 1.0 - gamma
    # u_0 is the coin, and u_1 draws a uniform class.
    if u[0] < gamma:
        return draw_uniform(K, u[1]), True
    return best, False
