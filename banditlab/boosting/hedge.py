r"""Hedge at rate 1 over experts whose losses are mistakes (Freund and Schapire, 1997).

Expert i has the weight :math:`\exp(-M_i)`, where :math:`M_i` is its number of mistakes so far. The mistakes are stored,
and weights are computed relative to that of the best expert, so only negligible weights underflow. :math:`e^{-M}` is
read from a table.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import inline, njit

NEVER = 746
"""The smallest M for which :math:`e^{-M}` is treated as 0."""


@njit
def fade(fading):
    r"""Write :math:`e^{-M}` for :math:`M = 0, 1, \dots` into fading."""
    for i in range(fading.shape[0]):
        fading[i] = np.exp(-float(i))


@cache
def fading_weights() -> NDArray[np.float64]:
    """Return :math:`e^{-M}` for M from 0 to `NEVER - 1`, as one shared read-only array."""
    fading = np.zeros(NEVER)
    fade(fading)
    return fading


@inline
def expert_weights(mistakes, fading, v):
    r"""Write :math:`\exp(-M_i) / \sum_j \exp(-M_j)` into v (N,)."""
    least, total = mistakes[0], 0.0
    for i in range(1, mistakes.shape[0]):
        least = min(least, mistakes[i])
    for i in range(mistakes.shape[0]):
        behind = mistakes[i] - least
        v[i] = fading[int(behind)] if 0.0 <= behind < NEVER else 0.0 * behind  # NaN stays NaN
        total += v[i]
    for i in range(mistakes.shape[0]):
        v[i] /= total


@inline
def mix_experts(mistakes, choices, fading, v, p):
    """Write into p (K,) the distribution of the label of an expert that is drawn in proportion to its weight.

    `choices` (N,) contains the experts' labels; their weights are written into v (N,).
    """
    expert_weights(mistakes, fading, v)
    for k in range(p.shape[0]):
        p[k] = 0.0
    total = 0.0
    # p_k, the sum of v_i over the experts whose label is k
    for i in range(choices.shape[0]):
        if v[i] > 0.0:
            p[int(choices[i])] += v[i]
            total += v[i]
    for k in range(p.shape[0]):
        p[k] /= total


@njit
def write_weights(mistakes, fading, v):
    """Write the result of `expert_weights`, for callers in Python."""
    expert_weights(mistakes, fading, v)


def weights_of(mistakes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the experts' weights (N,), whose sum is 1."""
    v = np.empty(len(mistakes))
    write_weights(mistakes, fading_weights(), v)
    return v
