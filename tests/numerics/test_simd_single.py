"""Eight float32 at a time: every intrinsic, from either kind of array and from anywhere in it, against numpy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from banditlab.numerics.jit import njit
from banditlab.numerics.simd import put, total
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


@njit
def every_one(A, B, i, x, out, wide):
    """Write what each intrinsic makes of eights of A, float32, and B, float64, from i on, into rows of `out` from 1 on."""
    v, w, u = singles(A, i), singles(B, i), singles(A, i + 8)
    put_singles(out, 1, v)
    put_singles(out, 9, w)
    put_singles(out, 17, all_singles(x))
    put_singles(out, 25, all_singles(A[i]))
    put_singles(out, 33, fused(v, w, u))
    put_singles(out, 41, fused(v, x, u))
    put_singles(out, 49, fused(v, A[i], u))
    put_singles(out, 57, times(v, w))
    put_singles(out, 65, plus(v, w))
    a, b, c, e = singles(A, i), singles(A, i + 1), singles(A, i + 2), singles(A, i + 3)
    f, g, h, k = singles(A, i + 4), singles(A, i + 5), singles(A, i + 6), singles(A, i + 7)
    put_singles(out, 73, single_totals(a, b, c, e, f, g, h, k))
    put(wide, 1, widened(v))
    return total(widened(w))


def exact(a, b, c):
    """a b + c in fractions, rounded once to float32; no sum here lies half-way between two."""
    sums = [Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r)) for p, q, r in zip(a, b, c)]
    return np.array([float(each) for each in sums], np.float32)


def test_every_intrinsic_from_anywhere():
    x = 1.0 / 3.0
    v = np.array([1.0 + 2.0**-20, 3.0, -5.0, 7.0, 0.5, -2.0, 11.0, 13.0], np.float32)
    u = np.array([-1.0, 2.0, -4.0, 8.0, 16.0, -32.0, 64.0, 128.0], np.float32)
    w = np.array([1.0 - 2.0**-20, 0.1, 1.0 / 7.0, -3.0, 1e-3, 5.0, 1.0 + 2.0**-30, -0.25])
    for i in range(8):
        A, B = np.full(32, np.nan, np.float32), np.full(32, np.nan)
        A[i : i + 8], A[i + 8 : i + 16], B[i : i + 8] = v, u, w
        out, wide = np.full(88, np.nan, np.float32), np.full(9, np.nan)
        found, narrow = every_one(A, B, i, x, out, wide), w.astype(np.float32)
        rounded = [np.float32(x)] * 8
        expected = [
            *(v, narrow, rounded, [v[0]] * 8),
            *(exact(v, narrow, u), exact(v, rounded, u), exact(v, [v[0]] * 8, u)),
            *(v * narrow, v + narrow),
            [A[j : j + 8].astype(float).sum() for j in range(i, i + 8)],
        ]
        for row, right in enumerate(expected):
            np.testing.assert_array_equal(
                out[1 + 8 * row : 9 + 8 * row], np.asarray(right, np.float32), err_msg=f"row {row}"
            )
        assert out[33] == -(2.0**-40)  # rounded once: twice would leave 0
        assert np.isnan(out[[0, *range(81, 88)]]).all()
        np.testing.assert_array_equal(wide[1:], v.astype(float))
        assert found == narrow.astype(float).sum()


def test_the_order_of_totals() -> None:
    """((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)): 1s are lost beside 1e8, not beside each other."""
    A, out = np.zeros(32, np.float32), np.zeros(88, np.float32)
    A[:4] = [1e8, -1e8, 1.0, 1.0]
    every_one(A, np.zeros(32), 0, 1.0, out, np.zeros(9))
    assert out[73] == 2.0
