"""Check that the contexts of a block lie in a ball."""

from __future__ import annotations

from banditlab.numerics.jit import njit
from banditlab.numerics.vectors import squared_norm


@njit
def first_beyond(X, limit):
    """Return the first row of X (n, d) whose squared norm exceeds the limit or is NaN, or n if there is none."""
    for t in range(X.shape[0]):
        if not squared_norm(X[t]) <= limit:
            return t
    return X.shape[0]
