"""Surrogate losses :math:`L^r(s)` of votes s (K,) for the label r, whose gradients are the boosters' cost matrices.

Row r of a cost matrix is the gradient of :math:`L^r`. Its entry r is minus the sum of its other entries, which are
nonnegative.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import inline, njit

LOGISTIC, EXPONENTIAL, SQUARE_HINGE, SOFTMAX, SHARES = range(5)
"""SHARES is the same loss as SOFTMAX, for arguments that are the softmax of the votes."""
CODES = {"logistic": LOGISTIC, "exponential": EXPONENTIAL, "square-hinge": SQUARE_HINGE}
LARGEST_EXPONENT = 300.0
"""The largest difference of votes in the exponential loss, so sums over rounds are finite."""


FARTHEST = 600.0
"""For votes s from -`FARTHEST` to `FARTHEST`, the odds :math:`e^s` do not overflow or underflow."""


@inline
def odds(s):
    """Return :math:`e^s` for a vote s from -`FARTHEST` to `FARTHEST`."""
    return math.exp(s)


@inline
def slope(loss, rival, own):
    r"""Return the derivative of one summand of a loss, which is a function of the difference :math:`s(l) - s(r)`.

    The loss is a sum over the classes :math:`l \ne r`; `rival` is :math:`s(l)`, and `own` is :math:`s(r)`. For the
    logistic loss and votes of absolute value up to `FARTHEST`, the derivative is computed from the exponentials of the
    votes (`odds`), by the same operations as in compiled rounds.
    """
    if loss == LOGISTIC and max(abs(rival), abs(own)) <= FARTHEST:  # (8), (9)
        e = odds(rival)
        return e * (1.0 / (e + odds(own)))
    margin = rival - own
    if loss == LOGISTIC:
        return 1.0 / (1.0 + math.exp(-margin)) if margin > -LARGEST_EXPONENT else math.exp(margin)
    if loss == EXPONENTIAL:  # (36), (37)
        return math.exp(min(margin, LARGEST_EXPONENT))
    return max(margin + 1.0, 0.0)  # (39), (40)


@njit
def gradient(loss, s, r, g):
    r"""Write the gradient of :math:`L^r` at s into g (K,); it is :math:`C(r, \cdot)` for the votes s."""
    K = s.shape[0]
    total = 0.0
    if loss == SOFTMAX:  # -log softmax(s)_r: softmax(s) - e_r
        top = s[0]
        for l in range(1, K):
            top = max(top, s[l])
        mass = 0.0
        for l in range(K):
            g[l] = math.exp(s[l] - top)
            mass += g[l]
        for l in range(K):
            g[l] /= mass
            if l != r:
                total += g[l]
    elif loss == SHARES:
        for l in range(K):
            g[l] = s[l]
            if l != r:
                total += g[l]
    else:
        for l in range(K):
            if l != r:
                g[l] = slope(loss, s[l], s[r])
                total += g[l]
    g[r] = -total
