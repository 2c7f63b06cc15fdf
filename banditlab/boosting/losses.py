"""Surrogate losses :math:`L^r(s)` of votes s (K,) for the label r, whose gradients are the boosters' cost matrices.

Row r of a cost matrix is the gradient of :math:`L^r`. The entry of the label is minus the sum of the other entries,
which are not negative.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import inline, njit

LOGISTIC, EXPONENTIAL, SQUARE_HINGE, SOFTMAX, SHARES = range(5)
"""SHARES is SOFTMAX where not the votes but their softmax is given."""
CODES = {"logistic": LOGISTIC, "exponential": EXPONENTIAL, "square-hinge": SQUARE_HINGE}
LARGEST_EXPONENT = 300.0
"""Votes further apart than this cost no more under the exponential loss: sums over rounds stay finite."""


FARTHEST = 600.0
r"""Votes within :math:`\pm``FARTHEST` have odds :math:`e^s` that are numbers, and so are their products."""


@inline
def odds(s):
    r"""Return :math:`e^s` of one vote s within :math:`\pm``FARTHEST`."""
    return math.exp(s)


@inline
def slope(loss, rival, own):
    r"""Return the slope of the loss in a rival's lead :math:`s(l) - s(r)`, for losses that are a sum over rivals.

    The votes s(l) and s(r) are given. The logistic loss computes the slope from their odds, which compiled rounds
    store. That needs one exponential per vote instead of one per pair.
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
