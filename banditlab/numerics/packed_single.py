"""Symmetric matrices kept once as `packed_symmetric` lays them out, in float32: half the memory, and sums of float32.

Numbers that leave (forms, inner products) are totals of eight float32 sums, added in float64. Rounding costs some 1e-6 of what
cancels in a sum: good enough for models that forget their rounding by learning, not for long downdates of matrices whose
smallest eigenvalue counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.packed_symmetric import BLOCK, width
from banditlab.numerics.packed_symmetric import size_of as padded_size
from banditlab.numerics.packed_symmetric import zeros as double_zeros
from banditlab.numerics.simd import WIDTH, total
from banditlab.numerics.simd_single import (
    all_singles,
    fused,
    plus,
    put_singles,
    single_totals,
    singles,
    times,
    widened,
)

Singles = NDArray[np.float32]


def zeros(*shape: int) -> Singles:
    """Return zeros that start on a cache line."""
    size = int(np.prod(shape))
    return double_zeros(-(-size // 2)).view(np.float32)[:size].reshape(shape)


def size_of(d: int) -> int:
    """Return S = D (D + 8) / 2, the entries kept of a d x d matrix, D the next multiple of eight."""
    return padded_size(width(d))


def diagonal(d: int) -> NDArray[np.int64]:
    """Return where the entries (j, j) of a d x d matrix are kept, (d,), halved."""
    j = np.arange(width(d) - d, width(d))
    block_row = j // WIDTH
    return BLOCK * block_row * (block_row + 1) // 2 + WIDTH * j + j % WIDTH


class SinglePoint(NamedTuple):
    """A context as sweeps read it: x (D,), its zeros in front included; value, place (D,), upto (D/8,) as in `Point`."""

    x: Singles
    value: Singles
    place: NDArray[np.int64]
    upto: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        D = len(self.value)
        return {"place": (0, WIDTH * (D - 1)), "upto": (0, D)}


def point(d: int) -> SinglePoint:
    """Return room for a context (d,)."""
    D = width(d)
    return SinglePoint(zeros(D), zeros(D), np.zeros(D, np.int64), np.zeros(D // WIDTH, np.int64))


@njit
def lay(x, own):
    """Copy x (d,), float64, behind the zeros of own (D,)."""
    x, own = borrow(x), borrow(own)
    first = own.shape[0] - x.shape[0]
    for j in range(first, min(WIDTH, own.shape[0])):
        own[j] = x[j - first]
    for j in range(WIDTH, own.shape[0], WIDTH):
        put_singles(own, j, singles(x, j - first))


@njit
def see(point, x):
    """Take in the context x (d,), float64."""
    lay(x, point.x)
    compress(point, point.x)


@njit
def compress(point, x):
    """Note the entries other than 0 of a context x (D,), float32, laid behind its zeros; it may be `point.x` itself."""
    own, value, place, upto = borrow(point.x), borrow(point.value), borrow(point.place), borrow(point.upto)
    n = 0
    for b in range(upto.shape[0]):
        put_singles(own, WIDTH * b, singles(x, WIDTH * b))
        for j in range(WIDTH * b, WIDTH * b + WIDTH):
            # Without a branch: written over by the next entry where this one is 0.
            value[n], place[n] = own[j], WIDTH * j
            n += own[j] != 0.0  # NaN is not 0: it stays in
        upto[b] = n


# -------------------------------------------------------------------------------------------------------------- x'A_k x


@njit
def forms(P, point, q):
    """Write q_k = x'A_k x into q (K,), float64, for all of P (K, S): four matrices at a time, then two."""
    P, q = borrow(P), borrow(q)
    point = borrow(point)
    K, S = P.shape
    whole = K // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, e = _four_sweeps(P, k * S, S, point)
        q[k], q[k + 1] = 2.0 * total(widened(a)), 2.0 * total(widened(b))
        q[k + 2], q[k + 3] = 2.0 * total(widened(c)), 2.0 * total(widened(e))
    for k in range(whole, K, 2):
        other = min(k + 1, K - 1)
        a, b = _two_sweeps(P, k * S, other * S, point)
        q[k], q[other] = 2.0 * total(widened(a)), 2.0 * total(widened(b))


@inline
def _four_sweeps(P, i, S, point):
    """Return x'L x, summed by lanes, of the four matrices from entry i on, S entries each."""
    zero = all_singles(0.0)
    qa = qb = qc = qe = zero
    start = 0
    for I in range(point.upto.shape[0]):
        stop = point.upto[I]
        if stop > start:  # else x is 0 in these eight rows
            # (L x) in these eight rows, of each matrix
            a = b = c = e = zero
            for s in range(stop):
                x, j = all_singles(point.value[s]), i + point.place[s]
                a = fused(singles(P, j), x, a)
                b = fused(singles(P, j + S), x, b)
                c = fused(singles(P, j + 2 * S), x, c)
                e = fused(singles(P, j + 3 * S), x, e)
            # times x there
            y = singles(point.x, WIDTH * I)
            qa, qb, qc, qe = fused(a, y, qa), fused(b, y, qb), fused(c, y, qc), fused(e, y, qe)
        start = stop
        i += BLOCK * (I + 1)
    return qa, qb, qc, qe


@inline
def _two_sweeps(P, i, k, point):
    """Return x'L x, summed by lanes, of the matrices from the entries i and k on; even columns apart from odd ones."""
    zero = all_singles(0.0)
    qa = qb = zero
    start = 0
    for I in range(point.upto.shape[0]):
        stop = point.upto[I]
        if stop > start:
            # (L x) in these eight rows: a + c of the first matrix, b + e of the second
            a = b = c = e = zero
            for s in range(0, stop - 1, 2):
                x, j = all_singles(point.value[s]), point.place[s]
                a = fused(singles(P, i + j), x, a)
                b = fused(singles(P, k + j), x, b)
                x, j = all_singles(point.value[s + 1]), point.place[s + 1]
                c = fused(singles(P, i + j), x, c)
                e = fused(singles(P, k + j), x, e)
            if stop % 2 == 1:
                x, j = all_singles(point.value[stop - 1]), point.place[stop - 1]
                a = fused(singles(P, i + j), x, a)
                b = fused(singles(P, k + j), x, b)
            y = singles(point.x, WIDTH * I)
            qa, qb = fused(plus(a, c), y, qa), fused(plus(b, e), y, qb)
        start = stop
        i += BLOCK * (I + 1)
        k += BLOCK * (I + 1)
    return qa, qb


# ---------------------------------------------------------------------------------------------------- A x, and A - s v v'


@njit
def product(P, x, out):
    """Write A x into out for P (S,), x and out (D,), two arrays of float32: one sweep, each block both ways."""
    P, x, out = borrow(P), borrow(x), borrow(out)
    i = 0
    for I in range(0, x.shape[0], WIDTH):
        y = singles(x, I)
        # Blocks left of the diagonal, eight columns each: B x_J is added to rows I, B'x_I to rows J.
        a = b = all_singles(0.0)
        for J in range(0, I, WIDTH):
            p0, p1, p2, p3 = singles(P, i), singles(P, i + 8), singles(P, i + 16), singles(P, i + 24)
            p4, p5, p6, p7 = singles(P, i + 32), singles(P, i + 40), singles(P, i + 48), singles(P, i + 56)
            a = fused(p0, x[J], fused(p1, x[J + 1], fused(p2, x[J + 2], fused(p3, x[J + 3], a))))
            b = fused(p4, x[J + 4], fused(p5, x[J + 5], fused(p6, x[J + 6], fused(p7, x[J + 7], b))))
            low = single_totals(
                times(p0, y),
                times(p1, y),
                times(p2, y),
                times(p3, y),
                times(p4, y),
                times(p5, y),
                times(p6, y),
                times(p7, y),
            )
            put_singles(out, J, plus(singles(out, J), low))
            i += BLOCK
        # The diagonal block, kept halved.
        e = all_singles(0.0)
        for j in range(WIDTH):
            e = fused(singles(P, i + WIDTH * j), x[I + j], e)
        put_singles(out, I, plus(plus(a, b), plus(e, e)))
        i += BLOCK


@njit
def downdate(P, v, s):
    """Subtract s v v' from P (S,), v (D,) with zeros in front."""
    P, v = borrow(P), borrow(v)
    i = 0
    for I in range(0, v.shape[0], WIDTH):
        y = times(singles(v, I), all_singles(-s))
        half = times(y, all_singles(0.5))
        # Columns left of the diagonal block, then the block itself, kept halved.
        for j in range(I):
            put_singles(P, i, fused(y, v[j], singles(P, i)))
            i += WIDTH
        for j in range(I, I + WIDTH):
            put_singles(P, i, fused(half, v[j], singles(P, i)))
            i += WIDTH


@njit
def inner(x, y):
    """Return the sum of x_i y_i for x, y (D,)."""
    x, y = borrow(x), borrow(y)
    a = all_singles(0.0)
    for J in range(0, x.size, WIDTH):
        a = fused(singles(x, J), singles(y, J), a)
    return total(widened(a))


@njit
def rows_times(H, x, z):
    """Write h_k'x into z_k, float64, for H (K, D), x (D,)."""
    H, x, z = borrow(H), borrow(x), borrow(z)
    for k in range(H.shape[0]):
        z[k] = inner(H[k], x)


@njit
def step_along(h, step, v):
    """Add step v to h, both (D,)."""
    h, v = borrow(h), borrow(v)
    for J in range(0, v.size, WIDTH):
        put_singles(h, J, fused(singles(v, J), step, singles(h, J)))
