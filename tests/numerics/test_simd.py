"""Eight numbers at a time: sums of lanes and products of eight rows, against numpy."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.jit import njit
from banditlab.numerics.simd import all_lanes, combined, eight, plus_outer, put, total, totals


@njit
def row_sums(A, out):  # type: ignore[no-untyped-def]
    a, b, c, e = eight(A, 0), eight(A, 8), eight(A, 16), eight(A, 24)
    f, g, h, k = eight(A, 32), eight(A, 40), eight(A, 48), eight(A, 56)
    put(out, 0, totals(a, b, c, e, f, g, h, k))
    return total(e)


def test_totals_are_sums_of_rows():
    A, out = np.random.default_rng(0).integers(0, 2**40, (8, 8)).astype(float), np.zeros(8)
    assert row_sums(A, out) == A[3].sum()  # integers: sums are exact in every order
    np.testing.assert_array_equal(out, A.sum(axis=1))


@njit
def tile(A, B, out):
    zero = all_lanes(0.0)
    a = (zero, zero, zero, zero, zero, zero, zero, zero)
    for j in range(A.shape[0]):
        a = plus_outer(a, A, 8 * j, eight(B, 8 * j))
    for r in range(8):
        put(out, 8 * r, a[r])


@njit
def mixed(A, B, i, step, out):
    put(out, 0, combined((eight(B, 0), eight(B, 8), eight(B, 16), eight(B, 24)), A, i, step))


def test_tiles():
    rng = np.random.default_rng(0)
    A, B = rng.integers(-9, 9, (5, 8)).astype(float), rng.integers(-9, 9, (5, 8)).astype(float)
    out = np.zeros((8, 8))
    tile(A, B, out)
    np.testing.assert_array_equal(out, A.T @ B)
    mixed(A, B, 3, 8, out[0])
    np.testing.assert_array_equal(out[0], A[:4, 3] @ B[:4])
