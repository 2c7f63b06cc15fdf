"""Hedge at rate 1 over experts whose losses are mistakes (Freund and Schapire, 1997).

Expert i's weight is exp(-M_i), M_i its mistakes so far: the mistakes are kept, and weights are taken relative to the
best expert's, so that nothing underflows before it is negligible.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import njit


@njit
def expert_weights(mistakes, v):
    """Write exp(-M_i) / sum_j exp(-M_j) into v (N,)."""
    least = mistakes.min()
    total = 0.0
    for i in range(mistakes.shape[0]):
        v[i] = np.exp(least - mistakes[i])
        total += v[i]
    for i in range(mistakes.shape[0]):
        v[i] /= total


@njit
def mix_experts(mistakes, choices, v, p):
    """Write the distribution of the label of an expert drawn by its weight into p (K,).

    choices (N,) are the experts' labels; v (N,) gets their weights.
    """
    expert_weights(mistakes, v)
    p[:] = 0.0
    total = 0.0
    for i in range(choices.shape[0]):
        p[int(choices[i])] += v[i]
        total += v[i]
    for k in range(p.shape[0]):
        p[k] /= total


def weights_of(mistakes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the experts' weights (N,), their sum 1."""
    v = np.empty(len(mistakes))
    expert_weights(mistakes, v)
    return v
