"""Functions of eight numbers at a time against the C library's, over all exponents that may occur."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.jit import njit
from banditlab.numerics.simd import eight, put
from banditlab.numerics.simd_math import cosine, exp, expm1, exponentials, sine, turn_fraction


@njit(cache=False)
def exps(z, e):
    for i in range(0, z.shape[0], 8):
        put(e, i, exp(eight(z, i)))


def units(found, exact):
    """Return the largest error in units of the last place."""
    return float(np.max(np.abs((found - exact) / np.spacing(exact.astype(np.float64)))))


def test_exponentials_are_within_a_unit_or_two():
    n = 1 << 16
    z, e = -(600.0 ** np.random.default_rng(2).random(n)), np.empty(n)
    exps(z, e)
    assert units(e, np.exp(z.astype(np.longdouble))) < 2.0


def test_an_exponential_is_zero_far_below_one_at_zero_and_nan_where_its_argument_is():
    z, e = np.array([0.0, -0.0, -601.0, -1e9, -np.inf, np.nan, -1e-300, -600.0]), np.empty(8)
    exps(z, e)
    assert e[[0, 1, 6]].tolist() == [1.0, 1.0, 1.0]
    assert e[2:5].tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(e[5])
    assert e[7] == pytest.approx(np.exp(-600.0), rel=1e-15)


@pytest.mark.parametrize("K", [1, 2, 8, 9, 10, 11, 50])
def test_the_exponentials_of_k_numbers_and_their_sum(K):
    z, e = 3.0 * np.random.default_rng(K).standard_normal(K), np.full(K + 1, 7.0)
    total = exponentials_of(z, 0.5, z.max(), K, e)
    np.testing.assert_allclose(e[:K], np.exp(0.5 * (z - z.max())), rtol=4e-16)
    assert e[K] == 7.0
    assert total == pytest.approx(e[:K].sum(), rel=1e-15)


@njit(cache=False)
def exponentials_of(z, scale, top, K, e):
    return exponentials(z, scale, top, K, e)


@njit
def expm1_of(z, out):  # type: ignore[no-untyped-def]
    for i in range(0, z.shape[0], 8):
        put(out, i, expm1(eight(z, i)))


def test_the_exponential_is_numpys_to_two_units():
    tiny = np.logspace(-300, 2.8, 4000)
    z = np.concatenate([np.linspace(-700.0, 700.0, 8000), tiny, -tiny])
    out = np.empty_like(z)
    expm1_of(z, out)
    np.testing.assert_allclose(out, np.expm1(z), rtol=4.5e-16)


@njit(cache=False)
def circled(t, c, s):
    for i in range(0, t.shape[0], 8):
        part = turn_fraction(eight(t, i))
        put(c, i, cosine(part))
        put(s, i, sine(part))


def test_cosine_and_sine_of_turns():
    rng = np.random.default_rng(7)
    t = np.concatenate(
        [rng.uniform(-3, 3, 4000), rng.uniform(-1e6, 1e6, 96), [0.0, 0.25, 0.5, -0.5, 1.0, -0.25, 1e9, 0.125]]
    )
    c, s = np.empty_like(t), np.empty_like(t)
    circled(t, c, s)
    angle = 2 * np.pi * (t - np.rint(t))
    np.testing.assert_allclose(c, np.cos(angle), rtol=0, atol=1.5e-15)
    np.testing.assert_allclose(s, np.sin(angle), rtol=0, atol=1.5e-15)
