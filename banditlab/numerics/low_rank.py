r"""Matrices :math:`P = p I - F'F` with few updates, stored as rows F (r, D) instead of :math:`D (D + 8)/2` numbers.

Problem. A model begins with :math:`P = p I`, and every update subtracts :math:`s v v'` with :math:`v = P x`. After r
updates

.. math::

    P = p I - F'F, \quad \text{where row } a \text{ of } F \text{ is } f_a = \sqrt{s_a} v_a; \quad P \leftarrow P - s v
    v' \text{ appends a row.} \tag{1}

(For a matrix A to which :math:`w x x'` is added, the sign is opposite: :math:`A = p I + F'F`.)

The form is exact for any r. It takes fewer operations than a whole P until r is about :math:`D/2`:

.. math::

    x'P y = p x'y - (F x)'(F y), \qquad P x = p x - F'(F x). \tag{2}

With a matrix per class, the cost of a class with few updates is therefore proportional to the number of its updates.
:math:`x'P x` and the entries of P are differences of larger numbers in both forms. Their rounding errors are therefore
proportional to :math:`p \|x\|^2`, and not to the smaller result.

Storage. The rows occupy the space of the whole matrix. When `capacity` rows fill this space, the matrix is formed
(`make_whole`, :math:`O(r D^2)`, once). The rows are stored in blocks of eight, each by columns (see `row_tiles`); rows
after the first r are zeros.

Cost: :math:`2 r D` operations for :math:`x'P x`; :math:`4 r D` for :math:`x'P y` or :math:`P x`. :math:`r D` numbers
are read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.packed_symmetric import (
    Floats,
    downdate,
    forms,
    inner,
    product,
    size_of,
    step_along,
    width,
    zeros,
)
from banditlab.numerics.row_tiles import GROUP, TILE, eight_rows, no_rows, strip_times, subtract_rows_of
from banditlab.numerics.simd import WIDTH, all_lanes, combined, eight, plus_outer, put, total, totals

LARGE = 3 * 2**19
"""Matrices begin as rows if together they have at least this many bytes, about the size of a core's cache."""
WHOLE = -1
"""The rank of a matrix that is stored whole, as in `packed_symmetric`."""


class LowRank(NamedTuple):
    """The forms of M matrices: scales p (M,); ranks (M,), each r or `WHOLE`; the size d, with D the next multiple of eight.

    `sign` is -1, or 1 for :math:`p I + F'F`. Functions that receive None instead of this object treat all matrices as
    whole. `gram` (m, m) is a work array: the upper triangle of :math:`X'X` for the m contexts of a block.
    """

    scales: Floats
    ranks: NDArray[np.int64]
    d: int
    sign: float
    gram: Floats

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        D = width(self.d)
        return {"ranks": (WHOLE, size_of(D) // (WIDTH * D) * WIDTH)}


def low_rank(scales: NDArray[np.float64], d: int, m: int = 0, *, sign: float = -1.0) -> LowRank:
    r"""Return the `LowRank` of matrices that start as :math:`P_i = \text{scales}_i I`, for blocks of m contexts."""
    return LowRank(np.array(scales, dtype=np.float64), np.zeros(len(scales), np.int64), d, sign, zeros(m, m))


def whole(low: LowRank) -> LowRank:
    """Return the same object with all matrices marked as whole."""
    return low._replace(ranks=np.full(len(low.ranks), WHOLE))


@inline
def capacity(D):
    """Return how many rows of length D fit into the storage of a symmetric D x D matrix."""
    return (D + WIDTH) // (2 * WIDTH) * WIDTH


def rows(low: LowRank, P: Floats, i: int) -> Floats:
    """Return the rows F (r, D) of the i-th matrix of P (M, S), which must not be whole."""
    r, D = int(low.ranks[i]), width(low.d)
    blocks = P[i, : capacity(D) * D].reshape(-1, D, WIDTH)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1).reshape(-1, D)[:r])


# ------------------------------------------------------------------------------------------------------------ round by round


@njit
def all_forms(P, low, point, q):
    """Write :math:`q_i = x'P_i x` into q (M,) for P (M, S) in any form."""
    if low is None:  # known when a kernel is compiled
        forms(P, point, q)
        return
    ranks, i, M = low.ranks, 0, P.shape[0]
    size = inner(point.x, point.x)
    while i < M:
        if ranks[i] != WHOLE:
            q[i] = low.scales[i] * size + low.sign * squares(P[i], ranks[i], point)  # (2)
            i += 1
            continue
        # All following whole matrices together.
        end = i + 1
        while end < M and ranks[end] == WHOLE:
            end += 1
        forms(P[i:end], point, q[i:end])
        i = end


@njit
def squares(P, r, point):
    r"""Return :math:`\|F x\|^2` for the r rows F in P and the context x of `point`."""
    P, point = borrow(P), borrow(point)
    zero = all_lanes(0.0)
    D, n, found = point.x.shape[0], point.upto[-1], zero
    for i in range(0, r * D, WIDTH * D):
        # F x of eight rows, in four independent sums.
        a = b = c = e = zero
        for s in range(0, n - 3, 4):
            a = a + eight(P, i + point.place[s]) * point.value[s]
            b = b + eight(P, i + point.place[s + 1]) * point.value[s + 1]
            c = c + eight(P, i + point.place[s + 2]) * point.value[s + 2]
            e = e + eight(P, i + point.place[s + 3]) * point.value[s + 3]
        for s in range(n // 4 * 4, n):
            a = a + eight(P, i + point.place[s]) * point.value[s]
        y = (a + b) + (c + e)
        found = found + y * y
    return total(found)


@njit
def any_product(P, low, i, x, out):
    """Write :math:`P_i x` into `out` (D,), for :math:`P_i` stored in P (S,) in any form, and x (D,)."""
    if low is None:
        product(P, x, out)
        return
    if low.ranks[i] == WHOLE:
        product(P, x, out)
    else:
        rows_product(P, low.ranks[i], low.scales[i], low.sign, x, out)


@njit
def any_step(P, low, i, x, scratch, out):
    """Add :math:`P_i x` to `out` (D,), for :math:`P_i` stored in P (S,) in any form. `scratch` (D,) is a work array."""
    if low is not None and low.ranks[i] != WHOLE:
        rows_step(P, low.ranks[i], low.scales[i], low.sign, x, out)
    else:
        product(P, x, scratch)
        step_along(out, 1.0, scratch)


@njit
def rows_product(P, r, scale, sign, x, out):
    r"""Write :math:`p x + \text{sign}\, F'(F x)` into out (D,)."""
    for j in range(out.shape[0]):
        out[j] = 0.0
    rows_step(P, r, scale, sign, x, out)


@njit
def rows_step(P, r, scale, sign, x, out):
    r"""Add :math:`p x + \text{sign}\, F'(F x)` to out (D,)."""
    P, x, out = borrow(P), borrow(x), borrow(out)
    D = x.shape[0]
    step_along(out, scale, x)
    for i in range(0, r * D, WIDTH * D):
        # y = F x of eight rows
        a = b = c = e = all_lanes(0.0)
        for J in range(0, D, 4):
            o = i + WIDTH * J
            a = a + eight(P, o) * x[J]
            b = b + eight(P, o + 8) * x[J + 1]
            c = c + eight(P, o + 16) * x[J + 2]
            e = e + eight(P, o + 24) * x[J + 3]
        y = ((a + b) + (c + e)) * sign
        add_back(P, i, y, out)


@inline
def add_back(P, i, y, out):
    """Add :math:`F'y` to `out` (D,) for the eight rows F stored from index i, and a vector y of eight numbers."""
    for J in range(0, out.shape[0], WIDTH):
        o = i + WIDTH * J
        p0, p1, p2, p3 = eight(P, o), eight(P, o + 8), eight(P, o + 16), eight(P, o + 24)
        p4, p5, p6, p7 = eight(P, o + 32), eight(P, o + 40), eight(P, o + 48), eight(P, o + 56)
        put(out, J, eight(out, J) + totals(p0 * y, p1 * y, p2 * y, p3 * y, p4 * y, p5 * y, p6 * y, p7 * y))


@njit
def any_downdate(P, low, i, v, s):
    """Subtract :math:`s v v'` from :math:`P_i`, stored in P (S,), for v (D,).

    A matrix with fewer than `capacity` rows gets one more row. s is positive for `low.sign` = -1 and
    negative for `low.sign` = 1.
    """
    if low is None:
        downdate(P, v, s)
        return
    D = v.shape[0]
    if low.ranks[i] == capacity(D):
        make_whole(P, low, i)
    if low.ranks[i] == WHOLE:
        downdate(P, v, s)
    else:
        append(P, low, i, math.sqrt(-low.sign * s), v)


@njit
def append(P, low, i, factor, v):
    r"""Append the row :math:`\text{factor}\, v`, with v (D,), to F of :math:`P_i`, stored in P (S,)."""
    P, v = borrow(P), borrow(v)
    r = low.ranks[i]
    o = r // WIDTH * WIDTH * v.shape[0] + r % WIDTH
    for j in range(v.shape[0]):
        P[o + WIDTH * j] = factor * v[j]
    low.ranks[i] = r + 1


@njit(arrays="new")
def make_whole(P, low, i):
    r"""Replace the rows F in P (S,) by the whole matrix :math:`P_i = p I + \text{sign}\, F'F`."""
    r, d, scale = low.ranks[i], low.d, -low.sign * low.scales[i]
    D = -(-d // WIDTH) * WIDTH
    # A copy of the rows, padded with zero rows to a multiple of four; this happens only once per model.
    F = np.zeros((-(-r // GROUP) * GROUP, D))
    for a in range(r):
        for j in range(D):
            F[a, j] = P[a // WIDTH * WIDTH * D + WIDTH * j + a % WIDTH]
    for s in range(P.shape[0]):
        P[s] = 0.0
    start = 0
    for I in range(0, D, WIDTH):
        for j in range(max(I, D - d), I + WIDTH):  # the halved diagonal, without the padding
            P[start + WIDTH * j + j - I] = 0.5 * scale
        for a in range(0, r, GROUP):
            subtract_rows_of(P, start, I, F, a)
        start += WIDTH * (I + WIDTH)
    if low.sign > 0.0:  # - (- p I - F'F)
        for s in range(P.shape[0]):
            P[s] = -P[s]
    low.ranks[i] = WHOLE


@njit
def all_whole(P, low):
    """Convert matrices P (M, S) in the low-rank form to whole matrices."""
    if low is None:
        return
    for i in range(P.shape[0]):
        if low.ranks[i] != WHOLE:
            make_whole(P[i], low, i)


@njit
def none_as_rows(low):
    """Mark all matrices as whole, before they are overwritten."""
    if low is None:
        return
    low.ranks[:] = WHOLE


# ----------------------------------------------------------------------------------------------- many contexts at a time


@njit
def rows_product_of_eight(P, r, scale, X, out):
    """Write :math:`p X - F'(F X)` into `out`, for eight contexts X (D, 8) as columns."""
    P, X, out = borrow(P), borrow(X), borrow(out)
    D = X.shape[0]
    for j in range(0, WIDTH * D, WIDTH):
        put(out, j, eight(X, j) * scale)
    for i in range(0, r * D, WIDTH * D):
        y = no_rows()
        for j in range(0, WIDTH * D, WIDTH):
            y = plus_outer(y, P, i + j, eight(X, j))
        for j in range(0, WIDTH * D, WIDTH):
            put(out, j, eight(out, j) - combined(y, P, i + j, 1))


@njit
def products_of_contexts(low, X, n):
    r"""Write :math:`x_a'x_b`, :math:`a \le b`, of n contexts X (m/16, D, 16) into `low.gram`.

    If all matrices are whole, nothing is written.
    """
    asked = False
    for i in range(low.ranks.shape[0]):
        asked = asked or low.ranks[i] != WHOLE
    X, gram = borrow(X), borrow(low.gram)
    D, m = X.shape[1], gram.shape[1]
    for b in range(0, n if asked else 0, WIDTH):
        o = b // TILE * TILE * D + b % TILE
        for a in range(0, b + 1, WIDTH):
            i, y = a // TILE * TILE * D + a % TILE, no_rows()
            for j in range(0, TILE * D, TILE):
                y = plus_outer(y, X, i + j, eight(X, o + j))
            for c in range(WIDTH):
                put(gram, (a + c) * m + b, y[c])


@njit
def rows_read(P, low, i, X, G, strip, n):
    r"""Write :math:`x_a'P_i x_b`, :math:`a \le b`, of n contexts X (m/16, D, 16) into G (m, m).

    :math:`P_i` is stored in P (S,), and `strip` (8, m) is a work array.
    """
    P, X, G, gram, strip = borrow(P), borrow(X), borrow(G), borrow(low.gram), borrow(strip)
    D, m, r, scale = X.shape[1], G.shape[1], low.ranks[i], low.scales[i]
    # p X'X, then for eight rows at a time - (F X)'(F X)
    for b in range(0, n, WIDTH):
        for o in range(b, (b + WIDTH) * m, m):
            put(G, o, eight(gram, o) * scale)
    for start in range(0, r * D, WIDTH * D):
        for tile in range(-(-n // TILE)):
            strip_times(P, start, D, X, tile, strip)
        for b in range(0, n, WIDTH):
            y = eight_rows(strip, b, m)
            for a in range(b + WIDTH):
                put(G, a * m + b, eight(G, a * m + b) - combined(y, strip, a, m))
