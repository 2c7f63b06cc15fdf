r"""Changes to StackCB in its first d rounds, in which there are fewer rounds than columns. They are not from a paper.

In these rounds a linear model can fit all outcomes exactly, so only the directions of the contexts of right and of
wrong actions are informative. If the contexts have at least `COLUMNS` K columns, the ridge expert's target for a wrong
action is below 0 (`miss_penalty`), its upper confidence bounds are added to the scores (`add_bounds`), and scales are
estimated twice as often (`is_due`).
"""

from __future__ import annotations

import math

from banditlab.agents.stacked.experts import SLOPE
from banditlab.numerics.jit import inline

COLUMNS = 4
"""Least number of columns per class for which the first rounds differ."""


@inline
def miss_penalty(n, d, K):
    """Return how far below 0 the ridge expert's target for a wrong action is after n updates.

    At first the targets are the corners of a simplex (Mroueh, Poggio, Rosasco and Slotine, NIPS 2012). With two classes
    the result is 0: either one model serves both classes, or both actions may be wrong in the same round.
    """
    return max(0.0, 1.0 - n / d) / (K - 1) if K > 2 else 0.0


@inline
def is_due(n, d):
    r"""Return whether scales are estimated again after n rounds: n is a power of two, or at most d and 3 times such a
    power.
    """
    odd = n
    while odd % 2 == 0:
        odd //= 2
    return odd == 1 or (odd == 3 and n <= d)


@inline
def add_bounds(lifted_m, q, lifted, first, n_models, n, d, zeta):
    r"""Add the ridge expert's confidence bounds, times the logit's slope at 1/2, to :math:`\zeta` (K,) in round n.

    Its models are those from `first` on, with means :math:`m_k + \text{lifted}\, q_k`. If two classes share a model,
    the width is 0.
    """
    K = zeta.shape[0]
    if 2 * n > d or n > 16 * K:
        return
    if n_models < K:
        zeta[0] += SLOPE * 2.0 * lifted_m[first]
        return
    width = min(3.0, 0.3 * K)  # LinUCB's 1 at a ridge of .1 is 3.2 here
    for k in range(K):
        q_k = max(0.0, q[first + k])
        zeta[k] += SLOPE * (lifted_m[first + k] - lifted * q_k + width * math.sqrt(q_k))
