"""Scores W x of a linear learner, and W + c e_k x', W - r x', in one order of summation for dense and sparse contexts.

W is kept as V (d, K), its transpose, padded, in one of two layouts that kernels tell by the array's type
(`contexts.by_layout`):

* rows: up to `MOST_BY_ROWS` features, V is the transpose of W in C order. Eight features go at a time, whatever K is, and a row
  of W is one piece of memory. d is padded to a multiple of eight; lane l of a sum has the features l, l + 8, ...
* columns: above, V itself is in C order: a sparse context reads one place in memory for all classes. Kp classes are a
  multiple of four. Even features are summed on their own, and odd ones.

A sparse context is summed in the same order: contexts with zeros give the same bits in either form.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context, by_layout
from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.simd import (
    WIDTH,
    all_lanes,
    each_total,
    eight,
    first,
    fma,
    halves,
    one_lane,
    put,
    put_first,
    put_folded,
    total,
    two,
)

MOST_BY_ROWS = 1024
"""Most features of a matrix that is kept by rows."""


def padded(n_classes: int) -> int:
    """Return Kp, the number of classes rounded up to a multiple of four."""
    return -(-n_classes // 4) * 4


def zero_weights(n_features: int, n_classes: int) -> NDArray[np.float64]:
    """Return V (d, Kp) of zeros, by columns; columns from K on stay 0 for ever."""
    return np.zeros((n_features, padded(n_classes)))


def matrix(n_features: int, n_classes: int, value: float = 0.0) -> NDArray[np.float64]:
    """Return V, each entry `value`, by rows up to MOST_BY_ROWS features: (D, Kp), D = d or d padded; padding never matters."""
    if n_features > MOST_BY_ROWS:
        return np.full((n_features, padded(n_classes)), value)
    D = width(n_features)
    if D % 128 == 0:  # rows that lie parts of a page apart would share a few places of the cache
        D += WIDTH
    V = zeros(padded(n_classes), D).T
    V[:] = value
    return V


def per_class(n_features: int, n_classes: int) -> NDArray[np.float64]:
    """Return zeros as many as kernels score or move classes: K by rows, Kp by columns."""
    return np.zeros(n_classes if n_features <= MOST_BY_ROWS else padded(n_classes))


@inline(arrays="lent")
def by_class(V):
    """Return W (Kp, D), borrowed, of a V by rows."""
    return borrow(V).T


@inline
def features(x, j):
    """Return x_j ... x_{j+7}, zeros beyond its end."""
    return eight(x, j) if j + WIDTH <= x.shape[0] else first(x, j, x.shape[0] - j)


def _scores(V, x, z):
    """Write V' x into z (Kp,), eight classes at a time; the last four lie side by side, for even and odd features."""
    V, x, z = borrow(V), borrow(x), borrow(z)
    d, Kp = V.shape
    pairs = d - d % 2
    # Eight classes a pass, even and odd features in two sums.
    for k in range(0, Kp - Kp % 8, 8):
        even = odd = all_lanes(0.0)
        for j in range(0, pairs, 2):
            even = fma(eight(V, j * Kp + k), x[j], even)
            odd = fma(eight(V, j * Kp + Kp + k), x[j + 1], odd)
        if pairs < d:
            even = fma(eight(V, pairs * Kp + k), x[pairs], even)
        put(z, k, even + odd)
    # The last four classes: even features in the first four lanes, odd ones in the others, added in the end.
    if Kp % 8 > 0:
        k, sums = Kp - 4, all_lanes(0.0)
        for j in range(0, pairs, 2):
            sums = fma(halves(V, j * Kp + k, j * Kp + Kp + k), two(x[j], x[j + 1]), sums)
        if pairs < d:
            sums = fma(halves(V, pairs * Kp + k, pairs * Kp + k), two(x[pairs], 0.0), sums)
        put_folded(z, k, sums)


def _sparse_scores(V, x, z):
    V, z, places, a = borrow(V), borrow(z), x.indices, x.values
    Kp = V.shape[1]
    # Four classes a pass; an entry at an even place goes to the first four lanes, at an odd one to the others.
    for k in range(0, Kp, 4):
        sums = all_lanes(0.0)
        for i in range(a.shape[0]):
            j, odd = places[i], places[i] & 1
            sums = fma(halves(V, j * Kp + k, j * Kp + k), two(0.0 if odd else a[i], a[i] if odd else 0.0), sums)
        put_folded(z, k, sums)


@inline
def _two_rows(W, w, x, a, b):
    return fma(eight(W, w), x, a), fma(eight(W, w + W.shape[1]), x, b)


@inline
def _four_rows(W, w, x, a, b, c, e):
    a, b = _two_rows(W, w, x, a, b)
    c, e = _two_rows(W, w + 2 * W.shape[1], x, c, e)
    return a, b, c, e


@inline
def _score_eight(W, x, k):
    """Return the scores of classes k ... k + 7."""
    d, wide, a = x.shape[0], W.shape[1], all_lanes(0.0)
    # Eight sums, so that an addition need not wait for the last.
    b = c = e = f = g = h = i = a
    for j in range(0, d, WIDTH):
        w, xj = k * wide + j, features(x, j)
        a, b, c, e = _four_rows(W, w, xj, a, b, c, e)
        f, g, h, i = _four_rows(W, w + 4 * wide, xj, f, g, h, i)
    return each_total(a, b, c, e, f, g, h, i)


@inline
def _score_four(W, x, k):
    """Return the scores of classes k ... k + 3, and zeros."""
    zero = all_lanes(0.0)
    a = b = c = e = zero
    for j in range(0, x.shape[0], WIDTH):
        a, b, c, e = _four_rows(W, k * W.shape[1] + j, features(x, j), a, b, c, e)
    return each_total(a, b, c, e, zero, zero, zero, zero)


@inline
def _score_two(W, x, k):
    """Return the scores of classes k and k + 1, as two numbers."""
    a = b = all_lanes(0.0)
    for j in range(0, x.shape[0], WIDTH):
        a, b = _two_rows(W, k * W.shape[1] + j, features(x, j), a, b)
    return total(a), total(b)


def _row_scores(V, x, z):
    """Write W_k x into z (K,), eight rows of W at a time."""
    W, x, z = by_class(V), borrow(x), borrow(z)
    k, n = z.shape[0] - z.shape[0] % WIDTH, z.shape[0] % WIDTH
    for i in range(0, k, WIDTH):
        put(z, i, _score_eight(W, x, i))
    # The classes left over, with zeros of the padding: rows come in fours.
    if n > 4:
        put_first(z, k, _score_eight(W, x, k), n)
    elif n > 2:
        put_first(z, k, _score_four(W, x, k), n)
    elif n > 0:
        z[k], after = _score_two(W, x, k)  # as numbers, for what reads them next (see `simd_math.exponentials`)
        if n > 1:
            z[k + 1] = after


def _sparse_row_scores(V, x, z):
    j, a = x.indices, x.values
    # Each entry goes into the lane in which the dense form sums its place.
    for k in range(z.shape[0]):
        sums = all_lanes(0.0)
        for i in range(j.shape[0]):
            lane = j[i] & 7
            sums = fma(one_lane(lane, V[j[i], k]), a[i], sums)
        z[k] = total(sums)


scores = by_context(by_layout(_scores, _row_scores), by_layout(_sparse_scores, _sparse_row_scores))


def _add(V, k, c, x):
    """Add c x to row k of W: V (d, Kp)."""
    for j in range(x.shape[0]):
        V[j, k] += c * x[j]


def _sparse_add(V, k, c, x):
    for i in range(x.indices.shape[0]):
        V[x.indices[i], k] += c * x.values[i]


def _row_add(V, k, c, x):
    W, x = by_class(V), borrow(x)
    # W_k += c x, eight features at a time
    w, d = k * W.shape[1], x.shape[0]
    whole = d - d % WIDTH
    for j in range(0, whole, WIDTH):
        put(W, w + j, eight(W, w + j) + eight(x, j) * c)
    if whole < d:
        put(W, w + whole, eight(W, w + whole) + first(x, whole, d - whole) * c)


add = by_context(by_layout(_add, _row_add), _sparse_add)


def _descend(V, x, r):
    """Take the matrix r x' off W: V -= x r', r as `per_class` makes it, zeros from K on."""
    for j in range(x.shape[0]):
        xj = x[j]
        for k in range(r.shape[0]):
            V[j, k] -= xj * r[k]


def _row_descend(V, x, r):
    W, x, r = by_class(V), borrow(x), borrow(r)
    # Eight features of every class, then the next eight: x is read once.
    for j in range(0, x.shape[0], WIDTH):
        xj, w = features(x, j), j
        for k in range(r.shape[0]):
            put(W, w, eight(W, w) - xj * r[k])
            w += W.shape[1]


def _sparse_descend(V, x, r):
    for i in range(x.indices.shape[0]):
        j, xj = x.indices[i], x.values[i]
        for k in range(r.shape[0]):
            V[j, k] -= xj * r[k]


descend = by_context(by_layout(_descend, _row_descend), _sparse_descend)
