"""Scores W x of a linear learner at kernel speed, in one order of summation on both paths.

W is kept transposed and padded, V (d, Kp) with Kp a multiple of four: the loop over classes is then contiguous and
vectorises without reordering a sum. Eight rows of V go at a time, so z is read and written d/8 times. A sparse context
reads the rows of V where it has entries, one place in memory for all classes, and sums in the same order: contexts with
zeros give the same bits in either form.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.kernels import by_context, inline, njit


def padded(n_classes: int) -> int:
    """Return Kp, the number of classes rounded up to a multiple of four."""
    return -(-n_classes // 4) * 4


def zero_weights(n_features: int, n_classes: int) -> NDArray[np.float64]:
    """Return V (d, Kp) of zeros; columns from K on stay 0 for ever."""
    return np.zeros((n_features, padded(n_classes)))


def _scores(V, x, z):  # type: ignore[no-untyped-def]
    """Write V' x into z (Kp,)."""
    d, Kp = V.shape
    for k in range(Kp):
        z[k] = 0.0
    whole = d - d % 8
    for j in range(0, whole, 8):
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        x4, x5, x6, x7 = x[j + 4], x[j + 5], x[j + 6], x[j + 7]
        for k in range(Kp):
            low = (V[j, k] * x0 + V[j + 1, k] * x1) + (V[j + 2, k] * x2 + V[j + 3, k] * x3)
            high = (V[j + 4, k] * x4 + V[j + 5, k] * x5) + (V[j + 6, k] * x6 + V[j + 7, k] * x7)
            z[k] += low + high
    for j in range(whole, d):
        xj = x[j]
        for k in range(Kp):
            z[k] += V[j, k] * xj


def _sparse_scores(V, x, z):  # type: ignore[no-untyped-def]
    j, a = x.indices, x.values
    if _is_crowded(j, V.shape[0]):
        _crowded_scores(V, j, a, z)
        return
    for k in range(0, z.shape[0], 4):
        z0 = z1 = z2 = z3 = 0.0
        for i in range(j.shape[0]):
            z0 += V[j[i], k] * a[i]
            z1 += V[j[i], k + 1] * a[i]
            z2 += V[j[i], k + 2] * a[i]
            z3 += V[j[i], k + 3] * a[i]
        z[k], z[k + 1], z[k + 2], z[k + 3] = z0, z1, z2, z3


@inline
def _is_crowded(j, d):  # type: ignore[no-untyped-def]
    """Whether two of the places j meet in one of the eights that `_scores` sums on its own."""
    crowded = False
    for i in range(1, j.shape[0]):
        crowded |= (j[i] >> 3 == j[i - 1] >> 3) & (j[i] < d - d % 8)
    return crowded


@njit
def _crowded_scores(V, j, a, z):  # type: ignore[no-untyped-def]
    """Write V' x into z (Kp,) for the entries a at j, each eight summed in pairs and fours as `_scores` does it."""
    d, n = V.shape[0], j.shape[0]
    for k in range(z.shape[0]):
        total = four = pair = eight = 0.0
        for i in range(n):
            pair += V[j[i], k] * a[i]
            here, following = j[i], j[i + 1] if i + 1 < n else j[i]
            last = i + 1 == n or here >= d - d % 8  # the rest of d/8 is summed one by one
            if last or here >> 1 != following >> 1:
                four, pair = four + pair, 0.0
            if last or here >> 2 != following >> 2:
                eight, four = eight + four, 0.0
            if last or here >> 3 != following >> 3:
                total, eight = total + eight, 0.0
        z[k] = total


scores = by_context(_scores, _sparse_scores)


def _add(V, k, c, x):  # type: ignore[no-untyped-def]
    """Add c x to row k of W: V (d, Kp)."""
    for j in range(x.shape[0]):
        V[j, k] += c * x[j]


def _sparse_add(V, k, c, x):  # type: ignore[no-untyped-def]
    for i in range(x.indices.shape[0]):
        V[x.indices[i], k] += c * x.values[i]


add = by_context(_add, _sparse_add, inlined=True)


def _descend(V, x, r):  # type: ignore[no-untyped-def]
    """Take the matrix r x' off W: V (d, Kp) -= x r', r (Kp,) with zeros from K on."""
    for j in range(x.shape[0]):
        xj = x[j]
        for k in range(V.shape[1]):
            V[j, k] -= xj * r[k]


def _sparse_descend(V, x, r):  # type: ignore[no-untyped-def]
    for i in range(x.indices.shape[0]):
        j, xj = x.indices[i], x.values[i]
        for k in range(V.shape[1]):
            V[j, k] -= xj * r[k]


descend = by_context(_descend, _sparse_descend, inlined=True)
