"""Packed symmetric matrices and eight numbers at a time, against numpy, scipy's root finder and exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.numerics import packed_symmetric as packed
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import njit
from banditlab.numerics.simd import eight, put, total, totals
from banditlab.numerics.simd_math import expm1
from banditlab.numerics.tanh_root import aioli_root, aioli_roots


def matrices(K, d, seed=0):
    """K symmetric positive definite matrices, and the same packed."""
    A = np.random.default_rng(seed).standard_normal((K, d, d))
    A = A @ A.transpose(0, 2, 1) + np.eye(d)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    P = packed.identities(np.ones(K), d)
    for k in range(K):
        packed.pack(A[k], P[k])
    return A, P


def contexts(d, share, n=6, seed=1):
    rng = np.random.default_rng(seed)
    return as_contexts(np.where(rng.random((n, d)) < share, 0.0, rng.standard_normal((n, d))))


SHAPES = [(1, 1), (2, 7), (3, 8), (4, 9), (5, 16), (7, 23), (10, 65)]


@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_what_is_packed_comes_back(K, d):
    A, P = matrices(K, d)
    assert P.shape == (K, packed.width(d) * (packed.width(d) + 8) // 2)
    assert P.ctypes.data % 64 == 0
    np.testing.assert_array_equal(packed.dense(P, d), A)
    scales = np.arange(1.0, K + 1)
    np.testing.assert_array_equal(packed.dense(packed.identities(scales, d), d), scales[:, None, None] * np.eye(d))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_forms_equal_full_matrices(K, d, share):
    A, P = matrices(K, d)
    point, q = packed.point(d), np.full(K, np.nan)
    for x in contexts(d, share):
        packed.see(point, x)
        packed.forms(P, point, q)
        np.testing.assert_allclose(q, np.einsum("i,kij,j->k", x, A, x), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_products_and_downdates_equal_full_matrices(K, d):
    A, P = matrices(K, d)
    own, v = packed.zeros(packed.width(d)), packed.zeros(packed.width(d))
    for t, x in enumerate(contexts(d, 0.3, 40)):
        k = t % K
        packed.lay(x, own)
        packed.product(P[k], own, v)
        np.testing.assert_allclose(v[-d:], A[k] @ x, rtol=1e-9, atol=1e-12 * np.abs(A[k]).max())
        s = 1.0 / (1.0 + x @ v[-d:])
        packed.downdate(P[k], v, s)
        A[k] -= s * np.outer(v[-d:], v[-d:])
    kept = packed.dense(P, d)
    np.testing.assert_allclose(kept, A, rtol=0, atol=1e-12 * np.abs(A).max())
    np.testing.assert_array_equal(kept, kept.transpose(0, 2, 1))
    again = packed.identities(np.ones(K), d)
    for k in range(K):
        packed.pack(kept[k], again[k])
    np.testing.assert_array_equal(P, again)  # what stands before the d rows and columns is still 0


def test_a_nan_is_not_overlooked():
    _, P = matrices(2, 9)
    point, q = packed.point(9), np.zeros(2)
    x = np.zeros(9)
    x[4] = math.nan
    packed.see(point, as_contexts(x))
    packed.forms(P, point, q)
    assert np.isnan(q).all()


def test_vectors():
    rng = np.random.default_rng(0)
    H, x, z = rng.standard_normal((3, 16)), rng.standard_normal(16), np.zeros(3)
    packed.rows_times(H, x, z)
    np.testing.assert_allclose(z, H @ x, rtol=1e-13)
    assert packed.inner(H, 2.0 * H) == pytest.approx(2.0 * np.sum(H * H), rel=1e-14)
    expected = H[1] + 0.7 * x
    packed.step_along(H[1], 0.7, x)
    np.testing.assert_array_equal(H[1], expected)


# ------------------------------------------------------------------------------------------------------ eight at a time


@njit
def row_sums(A, out):  # type: ignore[no-untyped-def]
    a, b, c, e = eight(A, 0), eight(A, 8), eight(A, 16), eight(A, 24)
    f, g, h, k = eight(A, 32), eight(A, 40), eight(A, 48), eight(A, 56)
    put(out, 0, totals(a, b, c, e, f, g, h, k))
    return total(e)


@njit
def expm1_of(z, out):  # type: ignore[no-untyped-def]
    for i in range(0, z.shape[0], 8):
        put(out, i, expm1(eight(z, i)))


def test_totals_are_sums_of_rows():
    A, out = np.random.default_rng(0).integers(0, 2**40, (8, 8)).astype(float), np.zeros(8)
    assert row_sums(A, out) == A[3].sum()  # integers: sums are exact in every order
    np.testing.assert_array_equal(out, A.sum(axis=1))


def test_the_exponential_is_numpys_to_two_units():
    tiny = np.logspace(-300, 2.8, 4000)
    z = np.concatenate([np.linspace(-700.0, 700.0, 8000), tiny, -tiny])
    out = np.empty_like(z)
    expm1_of(z, out)
    np.testing.assert_allclose(out, np.expm1(z), rtol=4.5e-16)


@pytest.mark.parametrize("w", [0.0, 1.0, 2.0])
def test_eight_roots_are_the_roots(w):
    """At margins and variances of all sizes: the equation itself, scipy's root, and the root found one at a time."""
    rng = np.random.default_rng(3)
    m = np.concatenate([10.0 ** rng.uniform(-8, 3, 80) * rng.choice([-1, 1], 80), np.zeros(8)])
    q = np.concatenate([10.0 ** rng.uniform(-8, 4, 80), [0.0, 1.0, 5.0, -1e-20, 0.0, 1e4, 1.0, 1.0]])
    z = np.empty_like(m)
    aioli_roots(m, q, w, z)
    assert np.all(z[80:] == 0.0)
    for mk, qk, zk in zip(m[:80], q[:80], z[:80]):
        assert zk == pytest.approx(aioli_root(mk, qk, w), rel=1e-11)
        if w * qk < 1e3:
            f = lambda s, mk=mk, qk=qk: s - mk + 0.5 * w * qk * math.tanh(0.5 * s)  # noqa: E731
            assert zk == pytest.approx(
                brentq(f, -abs(mk) - 1, abs(mk) + 1, xtol=1e-15, rtol=1e-14), rel=1e-9, abs=1e-13
            )


def test_an_infinite_margin_is_its_own_root():
    m = np.array([np.inf, -np.inf, 1e300, -1e200, 1e160, 50.0, np.nan, 3.0])
    z = np.empty(8)
    aioli_roots(m, np.full(8, 20.0), 1.0, z)
    expected = [aioli_root(margin, 20.0, 1.0) for margin in m]
    assert expected[:2] == [np.inf, -np.inf]
    np.testing.assert_allclose(z, expected, rtol=1e-12)


def test_roots_do_not_depend_on_their_neighbours_beyond_rounding():
    m, q, z = np.array([0.3, *[50.0] * 7]), np.array([4.0, *[1e4] * 7]), np.empty(8)
    aioli_roots(m, q, 2.0, z)
    first = z[0]
    aioli_roots(np.array([0.3, *[0.0] * 7]), q, 2.0, z)
    assert z[0] == pytest.approx(first, rel=4e-16)
