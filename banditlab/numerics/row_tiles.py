"""The inner loops of matrix products, for eight rows by eight or sixteen columns in registers (see `simd`).

Contexts are columns in groups of sixteen, X (m/16, D, 16). Rows of a matrix are stored in blocks of eight. A block is a
block row of `packed_symmetric` or eight rows of `low_rank`. It is stored column by column, so each of its columns is
eight consecutive numbers.
"""

from __future__ import annotations

from banditlab.numerics.jit import inline
from banditlab.numerics.simd import WIDTH, all_lanes, combined, eight, plus_outer, put

TILE = 2 * WIDTH
"""The number of contexts that are multiplied in one pass over a matrix, whose sums for eight rows fit into registers."""
GROUP = 4
"""The number of rows f that one pass subtracts from a packed matrix."""


@inline
def no_rows():
    """Return eight rows of zeros."""
    zero = all_lanes(0.0)
    return (zero, zero, zero, zero, zero, zero, zero, zero)


@inline
def eight_rows(A, i, step):
    r"""Return eight rows of eight entries of A; row r, from 0 to 7, begins at the flat index :math:`i + r\, \text{step}`."""
    low = (eight(A, i), eight(A, i + step), eight(A, i + 2 * step), eight(A, i + 3 * step))
    i += 4 * step
    return (*low, eight(A, i), eight(A, i + step), eight(A, i + 2 * step), eight(A, i + 3 * step))


@inline
def put_rows(A, i, step, rows):
    """Write `rows` to the entries that `eight_rows` reads."""
    for r in range(WIDTH):
        put(A, i + r * step, rows[r])


@inline
def strip_times(P, i, columns, X, tile, strip):
    """Multiply the block of eight rows at index i of P by sixteen contexts; write the result into `strip` (8, m)."""
    m = strip.shape[1]
    # Eight rows by sixteen contexts in registers, one column of P at a time.
    a, b, o = no_rows(), no_rows(), tile * X.shape[1] * TILE
    for _ in range(columns):
        a = plus_outer(a, P, i, eight(X, o))
        b = plus_outer(b, P, i, eight(X, o + WIDTH))
        i, o = i + WIDTH, o + TILE
    put_rows(strip, tile * TILE, m, a)
    put_rows(strip, tile * TILE + WIDTH, m, b)


@inline
def subtract_rows_of(P, i, I, V, a):
    """Subtract :math:`f f'`, for four vectors f, from the rows I to I + 7 of a packed P, which are stored from index i.

    The four vectors are the rows a to a + 3 of V (m, D).
    """
    D = V.shape[1]
    o = a * D + I
    y = eight(V, o), eight(V, o + D), eight(V, o + 2 * D), eight(V, o + 3 * D)
    o -= I
    for _ in range(I):
        put(P, i, eight(P, i) - combined(y, V, o, D))
        i, o = i + WIDTH, o + 1
    for _ in range(WIDTH):  # diagonal blocks are stored halved
        put(P, i, eight(P, i) - combined(y, V, o, D) * 0.5)
        i, o = i + WIDTH, o + 1
