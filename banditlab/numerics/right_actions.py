"""The right actions in the rounds of a block: y contains labels, (n,) int64, or the bit of every action, (n, K) bool.

Compiled code contains only the form for the type of y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import inline


@inline
def is_right(y, t, action):
    """Return whether an action is right in round t."""
    if y.ndim == 1:
        return action == y[t]
    return y[t, action]


@inline
def probability_right(y, t, p):
    """Return the probability that an action drawn from p (K,) is right in round t."""
    if y.ndim == 1:
        return p[y[t]]
    total = 0.0
    for k in range(p.shape[0]):
        if y[t, k]:
            total += p[k]
    return total


def are_right(y: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the rounds' actions (n,) are right, as a boolean array (n,)."""
    return actions == y if y.ndim == 1 else y[np.arange(len(y)), actions]


def times_right(y: NDArray[Any], n_actions: int) -> NDArray[np.int64]:
    """Return the number of rounds in which each action is right, (K,)."""
    return np.bincount(y, minlength=n_actions) if y.ndim == 1 else y.sum(axis=0)
