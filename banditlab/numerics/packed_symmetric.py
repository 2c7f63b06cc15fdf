r"""Packed symmetric matrices, in an order for processing eight numbers at a time (see `simd`).

A :math:`d \times d` matrix is padded in front to :math:`D \times D`, with D the next multiple of eight. The
:math:`8 \times 8` blocks up to the diagonal are stored, one block row after the other. Each block is stored by columns,
so a column of a block is eight consecutive numbers. For :math:`D = 24`:

    block 0                   rows 0 ... 7
    block 1   block 2         rows 8 ... 15
    block 3   block 4   block 5

Diagonal blocks are stored halved. With L the lower block triangle, :math:`A = L + L'`, so :math:`x'A x = 2 x'L x` takes
one pass. A pass reads only the columns j with :math:`x_j \ne 0` of the context x, and skips block rows in which x is
zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.simd import WIDTH, all_lanes, eight, put, total, totals

Floats = NDArray[np.float64]
BLOCK = WIDTH * WIDTH


def width(d: int) -> int:
    """Return D, d rounded up to a multiple of eight."""
    return -(-d // WIDTH) * WIDTH


def zeros(*shape: int) -> Floats:
    """Return zeros aligned to a cache line, so no group of eight numbers crosses a cache line."""
    size = int(np.prod(shape))
    # Allocate eight more numbers than needed, and skip those before the first cache line.
    scratch = np.zeros(size + WIDTH)
    first = -scratch.ctypes.data // scratch.itemsize % WIDTH
    return scratch[first : first + size].reshape(shape)


def single_zeros(*shape: int) -> NDArray[np.float32]:
    """Return float32 zeros, an even number, aligned to a cache line. (`eight` converts float32 entries to float64.)"""
    return zeros(int(np.prod(shape)) // 2).view(np.float32).reshape(shape)


def size_of(D: int) -> int:
    """Return S, the number of stored entries of a D x D matrix, D a multiple of eight."""
    return D * (D + WIDTH) // 2


def diagonal(d: int) -> NDArray[np.int64]:
    """Return the positions (d,) of the entries (j, j) of a d x d matrix, which are stored halved."""
    j = np.arange(width(d) - d, width(d))
    block_row = j // WIDTH
    return BLOCK * block_row * (block_row + 1) // 2 + WIDTH * j + j % WIDTH


def identities(scales: Floats, d: int) -> Floats:
    r"""Return the matrices :math:`\text{scales}_k I` of size d as P (K, S), :math:`S = D (D + 8) / 2`."""
    P = zeros(len(scales), size_of(width(d)))
    P[:, diagonal(d)] = 0.5 * np.asarray(scales)[:, None]
    return P


def dense(P: Floats, d: int) -> Floats:
    """Return the matrices (..., d, d) stored in P (..., S)."""
    A = np.empty((*P.shape[:-1], d, d))
    for place in np.ndindex(P.shape[:-1]):
        unpack(P[place], A[place])
    return A


@njit
def set_identity(P, scale, d):
    r"""Store :math:`\text{scale} I` of size d in P (S,)."""
    P[:] = 0.0
    pad = -d % WIDTH
    for j in range(pad, pad + d):
        block_row = j // WIDTH
        P[BLOCK * block_row * (block_row + 1) // 2 + WIDTH * j + j % WIDTH] = 0.5 * scale


@njit
def unpack(P, A):
    """Write the matrix stored in P (S,) into A (d, d)."""
    d = A.shape[0]
    pad = -d % WIDTH
    i = 0
    for I in range(-pad, d, WIDTH):
        for j in range(-pad, I + WIDTH):
            # Column j of block row I ... I + 7, without the padding (j, r < 0).
            for r in range(max(I, 0), I + WIDTH):
                if j >= 0:
                    A[r, j] = A[j, r] = P[i + r - I] * (1.0 if j < I else 2.0)
            i += WIDTH


@njit
def pack(A, P):
    """Store the symmetric matrix A (d, d) in P (S,)."""
    d = A.shape[0]
    pad = -d % WIDTH
    i = 0
    for I in range(-pad, d, WIDTH):
        for j in range(-pad, I + WIDTH):
            # The padding is zero, and the diagonal block (j >= I) is halved.
            for r in range(I, I + WIDTH):
                P[i + r - I] = A[r, j] * (1.0 if j < I else 0.5) if j >= 0 and r >= 0 else 0.0
            i += WIDTH


class Point(NamedTuple):
    """A context in the form that a pass over a matrix reads: x (D,), padded with zeros in front.

    `value` (D,) lists the nonzero entries of x, and `place` (D,) their positions in x, times eight. `upto` (D/8,) is
    the number of nonzero entries up to the end of each group of eight.
    """

    x: Floats
    value: Floats
    place: NDArray[np.int64]
    upto: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        D = len(self.value)
        return {"place": (0, WIDTH * (D - 1)), "upto": (0, D)}


def point(d: int) -> Point:
    """Return a `Point` for contexts (d,)."""
    D = width(d)
    return Point(zeros(D), np.zeros(D), np.zeros(D, np.int64), np.zeros(D // WIDTH, np.int64))


@njit
def pad(x, own):
    """Copy x (d,) into `own` (D,), after its padding."""
    x, own = borrow(x), borrow(own)
    # The first eight entries, with the padding, are copied one by one, the others eight at a time.
    first = own.shape[0] - x.shape[0]
    for j in range(first % WIDTH, WIDTH):
        own[j] = x[j - first]
    for j in range(WIDTH, own.shape[0], WIDTH):
        put(own, j, eight(x, j - first))


@njit
def set_point(point, x):
    """Make x (d,) the context of `point`, and list its nonzero entries."""
    own, value, place, upto = borrow(point.x), borrow(point.value), borrow(point.place), borrow(point.upto)
    pad(x, own)
    first, n = own.shape[0] - x.shape[0], 0
    for b in range(upto.shape[0]):
        for j in range(max(WIDTH * b, first), WIDTH * b + WIDTH):
            # Without a branch: if this entry is 0, the next one overwrites it.
            value[n], place[n] = x[j - first], WIDTH * j
            n += x[j - first] != 0.0  # NaN is not 0 and is included
        upto[b] = n


# -------------------------------------------------------------------------------------------------------------- x'A_k x


@njit
def forms(P, point, q):
    """Write :math:`q_k = x'A_k x` for all of P (K, S), with four matrices at a time, so x is read once for four."""
    P, q = borrow(P), borrow(q)
    point = borrow(point)
    K, S = P.shape
    # Four matrices share a pass, then two; a single last one is passed twice.
    whole = K // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, e = _four_sweeps(P, k * S, S, point)
        q[k], q[k + 1], q[k + 2], q[k + 3] = 2.0 * total(a), 2.0 * total(b), 2.0 * total(c), 2.0 * total(e)
    for k in range(whole, K, 2):
        other = min(k + 1, K - 1)
        a, b = _two_sweeps(P, k * S, other * S, point)
        q[k], q[other] = 2.0 * total(a), 2.0 * total(b)


@inline
def _four_sweeps(P, i, S, point):
    """Return :math:`x'L x` for four matrices of S entries each, stored from index i, as eight partial sums for each."""
    zero = all_lanes(0.0)
    qa = qb = qc = qe = zero
    start = 0
    for I in range(point.upto.shape[0]):
        stop = point.upto[I]
        if stop > start:  # else x is 0 in these eight rows
            # (L x) in these eight rows, of each matrix
            a = b = c = e = zero
            for s in range(stop):
                x, j = point.value[s], i + point.place[s]
                a = a + eight(P, j) * x
                b = b + eight(P, j + S) * x
                c = c + eight(P, j + 2 * S) * x
                e = e + eight(P, j + 3 * S) * x
            # times x there
            y = eight(point.x, WIDTH * I)
            qa, qb, qc, qe = qa + a * y, qb + b * y, qc + c * y, qe + e * y
        start = stop
        i += BLOCK * (I + 1)
    return qa, qb, qc, qe


@inline
def _two_sweeps(P, i, k, point):
    """Return :math:`x'L x` for the two matrices stored from the indices i and k, as eight partial sums for each.

    Even columns and odd columns have separate sums.
    """
    zero = all_lanes(0.0)
    qa = qb = zero
    start = 0
    for I in range(point.upto.shape[0]):
        stop = point.upto[I]
        if stop > start:
            # (L x) in these eight rows: a + c of the first matrix, b + e of the second
            a = b = c = e = zero
            for s in range(0, stop - 1, 2):
                x, j = point.value[s], point.place[s]
                a = a + eight(P, i + j) * x
                b = b + eight(P, k + j) * x
                x, j = point.value[s + 1], point.place[s + 1]
                c = c + eight(P, i + j) * x
                e = e + eight(P, k + j) * x
            if stop % 2 == 1:
                x, j = point.value[stop - 1], point.place[stop - 1]
                a = a + eight(P, i + j) * x
                b = b + eight(P, k + j) * x
            y = eight(point.x, WIDTH * I)
            qa, qb = qa + (a + c) * y, qb + (b + e) * y
        start = stop
        i += BLOCK * (I + 1)
        k += BLOCK * (I + 1)
    return qa, qb


# ---------------------------------------------------------------------------------------------------- A x, and A - s v v'


@njit
def product(P, x, out):
    """Write A x into `out` (D,), for A stored in P (S,), in one pass that uses each block twice.

    x (D,) must be another array.
    """
    P, x, out = borrow(P), borrow(x), borrow(out)
    i = 0
    for I in range(0, x.shape[0], WIDTH):
        y = eight(x, I)
        # Blocks left of the diagonal, eight columns each: B x_J is added to rows I, B'x_I to rows J.
        a = all_lanes(0.0)
        for J in range(0, I, WIDTH):
            p0, p1, p2, p3 = eight(P, i), eight(P, i + 8), eight(P, i + 16), eight(P, i + 24)
            p4, p5, p6, p7 = eight(P, i + 32), eight(P, i + 40), eight(P, i + 48), eight(P, i + 56)
            low = (p0 * x[J] + p1 * x[J + 1]) + (p2 * x[J + 2] + p3 * x[J + 3])
            high = (p4 * x[J + 4] + p5 * x[J + 5]) + (p6 * x[J + 6] + p7 * x[J + 7])
            a = a + (low + high)
            put(out, J, eight(out, J) + totals(p0 * y, p1 * y, p2 * y, p3 * y, p4 * y, p5 * y, p6 * y, p7 * y))
            i += BLOCK
        # The diagonal block, stored halved.
        b = all_lanes(0.0)
        for j in range(WIDTH):
            b = b + eight(P, i + WIDTH * j) * x[I + j]
        put(out, I, a + (b + b))
        i += BLOCK


@njit
def downdate(P, v, s):
    """Subtract :math:`s v v'` from the matrix in P (S,), for v (D,) with leading zeros."""
    P, v = borrow(P), borrow(v)
    i = 0
    for I in range(0, v.shape[0], WIDTH):
        y = eight(v, I)
        # Columns left of the diagonal block, then the block itself, stored halved.
        for j in range(I):
            put(P, i, eight(P, i) - y * v[j] * s)
            i += WIDTH
        for j in range(I, I + WIDTH):
            put(P, i, eight(P, i) - y * v[j] * (0.5 * s))
            i += WIDTH


@njit
def inner(x, y):
    """Return the sum of :math:`x_i y_i` for x, y (D,) or (K, D)."""
    x, y = borrow(x), borrow(y)
    a = all_lanes(0.0)
    for J in range(0, x.size, WIDTH):
        a = a + eight(x, J) * eight(y, J)
    return total(a)


@njit
def rows_times(H, x, z):
    """Write :math:`h_k'x` into :math:`z_k` for H (K, D), x (D,)."""
    H, x, z = borrow(H), borrow(x), borrow(z)
    for k in range(H.shape[0]):
        z[k] = inner(H[k], x)


@njit
def step_along(h, step, v):
    """Add step v to h, both (D,) or (K, D)."""
    h, v = borrow(h), borrow(v)
    for J in range(0, v.size, WIDTH):
        put(h, J, eight(h, J) + eight(v, J) * step)
