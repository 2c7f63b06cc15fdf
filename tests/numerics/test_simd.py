"""Eight numbers at a time: every intrinsic, sums of lanes and products of eight rows, against numpy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from banditlab.numerics.jit import njit
from banditlab.numerics.simd import (
    ROUNDER,
    all_lanes,
    any_above,
    combined,
    eight,
    first,
    fma,
    how_many,
    how_many_below,
    lane,
    larger,
    only,
    pair,
    plus_outer,
    power_of_two,
    put,
    put_first,
    second,
    smaller,
    total,
    totals,
    totals_as_total,
    unless_below,
)


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
    # ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)): 1s are lost beside 1e16, not beside each other
    A[...] = [1e16, -1e16, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    row_sums(A, out)
    assert out.tolist() == [2.0] * 8


@njit
def sums_of_lanes(A, out, each):  # type: ignore[no-untyped-def]
    a, b, c, e = eight(A, 0), eight(A, 8), eight(A, 16), eight(A, 24)
    f, g, h, k = eight(A, 32), eight(A, 40), eight(A, 48), eight(A, 56)
    put(out, 0, totals_as_total(a, b, c, e, f, g, h, k))
    for i in range(8):
        each[i] = total(eight(A, 8 * i))


def test_eight_totals_have_the_bits_of_each():
    A, out, each = np.random.default_rng(0).standard_normal((8, 8)), np.zeros(8), np.zeros(8)
    sums_of_lanes(A, out, each)
    np.testing.assert_array_equal(out, each)
    np.testing.assert_allclose(out, A.sum(axis=1), rtol=1e-12)


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
    # even and odd rows apart: 1s are lost beside 1e16, not beside each other
    A[:4, 3], B[...] = [1e16, 1.0, -1e16, 1.0], 1.0
    mixed(A, B, 3, 8, out[0])
    assert out[0].tolist() == [2.0] * 8
    # fused: what a product loses when it is rounded stays; x^2 = 1 + 2^-29 + 2^-60
    x = 1.0 + 2.0**-30
    A[:], B[:] = x, x
    A[0], B[0] = 1.0, -(x * x)
    A[2:], B[2:] = 0.0, 0.0
    tile(A, B, out)
    assert out[0].tolist() == [2.0**-60] * 8


@njit
def every_one(A, i, j, k, n, x, out, numbers):
    """Write what each intrinsic makes of v, w and u, eights of A that begin at i, j and k, into rows of `out` and `numbers`."""
    v, w, u = eight(A, i), eight(A, j), eight(A, k)
    put(out, 0, v)
    put(out, 8, first(A, i, n))
    put_first(out, 16, v, n)
    put(out, 24, only(v, n, x))
    put(out, 32, unless_below(v, w, u))
    put(out, 40, all_lanes(x))
    put(out, 48, smaller(v, w))
    put(out, 56, larger(v, w))
    put(out, 64, v + w)
    put(out, 72, v - w)
    put(out, 80, v * w)
    put(out, 88, v / w)
    put(out, 96, v + x)
    put(out, 104, v - x)
    put(out, 112, v * x)
    put(out, 120, v / x)
    put(out, 128, fma(v, w, u))
    put(out, 136, fma(v, x, u))
    put(out, 144, power_of_two(u + all_lanes(ROUNDER)))
    put(out, 152, pair(x, A[j]))
    numbers[0], numbers[1], numbers[2] = total(v), lane(v), second(v)
    numbers[3], numbers[4] = how_many(v, x), how_many_below(v, x)
    numbers[5], numbers[6], numbers[7] = any_above(v, w), any_above(v, v), fma(x, A[j], A[k])


def exact_fma(a, b, c):
    """a b + c in fractions, rounded once."""
    return [float(Fraction(p) * Fraction(q) + Fraction(r)) for p, q, r in zip(a, b, c)]


def test_every_intrinsic_in_every_lane():
    """v, w and u turned lane by lane, so that what is special stands in each; they begin between cache lines."""
    half = np.sqrt(0.5)
    v = np.array([3.5, -1e16, 1.0 + 2.0**-30, 0.25, -7.0, 11.0, 1e16, 11.0])
    w = np.array([1.5, 4.0, 1.0 - 2.0**-30, half, np.nextafter(half, 0.0), 11.0, 2.0**-900, 2.0**500])
    u = np.array([-1022.0, 1023.0, -1.0, 0.0, 1.0, 52.0, -3.0, 10.0])
    for turn in range(8):
        v, w, u = (np.roll(lanes, 1) for lanes in (v, w, u))
        A = np.concatenate([[np.nan], v, [np.nan] * 2, w, [np.nan], u, [np.nan] * 4])
        for x in (11.0, 99.0):
            out, numbers = np.full((20, 8), np.nan), np.full(8, np.nan)
            every_one(A, 1, 11, 20, turn, x, out, numbers)
            lanes, none = np.arange(8), np.full(8, np.nan)
            expected = [
                v,
                np.where(lanes < turn, v, 0.0),
                np.where(lanes < turn, v, none),
                np.where(lanes < turn, v, x),
                np.where(v < w, 0.0, u),
                [x] * 8,
                *(np.minimum(v, w), np.maximum(v, w), v + w, v - w, v * w, v / w, v + x, v - x, v * x, v / x),
                exact_fma(v, w, u),
                exact_fma(v, [x] * 8, u),
                np.ldexp(1.0, u.astype(int)),
                [x, w[0], *[x] * 6],
            ]
            for row, (found, right) in enumerate(zip(out, expected, strict=True)):
                np.testing.assert_array_equal(found, right, err_msg=f"row {row}")
            summed = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
            assert numbers[:3].tolist() == [summed, v[0], v[1]]
            assert numbers[3:7].tolist() == [(v == x).sum(), (v < x).sum(), 1.0, 0.0]
            assert numbers[7] == exact_fma([x], w[:1], u[:1])[0]
