"""Scores W x of a linear learner whose W is kept by columns: as V (d, Kp), its transpose, Kp a multiple of four."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.simd import all_lanes, eight, fma, halves, put, put_folded, two


def padded(n_classes: int) -> int:
    """Return Kp, the number of classes rounded up to a multiple of four."""
    return -(-n_classes // 4) * 4


def zero_weights(n_features: int, n_classes: int) -> NDArray[np.float64]:
    """Return V (d, Kp) of zeros, by columns; columns from K on stay 0 for ever."""
    return np.zeros((n_features, padded(n_classes)))


@njit
def scores(V, x, z):
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
