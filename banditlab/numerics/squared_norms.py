"""Whether contexts lie in a ball, in one pass: what every block is checked for before it is played."""

from __future__ import annotations

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.simd import WIDTH, all_lanes, eight, first, fma, total


@njit
def first_beyond(X, limit):
    """Return the first row of X (n, d) whose squared norm is not within the limit, n where all are; NaN is not within."""
    X = borrow(X)
    n, d = X.shape
    twice, whole = d - d % (2 * WIDTH), d - d % WIDTH
    for t in range(n):
        o = t * d
        a, b = all_lanes(0.0), all_lanes(0.0)
        for j in range(o, o + twice, 2 * WIDTH):
            v, w = eight(X, j), eight(X, j + WIDTH)
            a, b = fma(v, v, a), fma(w, w, b)
        if twice < whole:
            v = eight(X, o + twice)
            a = fma(v, v, a)
        if whole < d:
            v = first(X, o + whole, d - whole)
            b = fma(v, v, b)
        if not total(a + b) <= limit:
            return t
    return n
