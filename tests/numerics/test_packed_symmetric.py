"""Packed symmetric matrices against full ones in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics import packed_symmetric as packed
from banditlab.numerics.contexts import as_contexts


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
    np.testing.assert_array_equal(packed.dense(P[0], d), A[0])
    np.testing.assert_array_equal(packed.dense(P[None], d), A[None])
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
def test_matrices_in_float32_are_read_as_float64(K, d):
    """Forms and products are those of the rounded matrices to the last bit; a downdate is rounded once."""
    _, P = matrices(K, d)
    single = packed.single_zeros(K, packed.size_of(packed.width(d)))
    single[:] = P
    rounded = single.astype(np.float64)
    assert single.ctypes.data % 64 == 0
    point, found = packed.point(d), np.full((2, K), np.nan)
    own, products = packed.zeros(packed.width(d)), packed.zeros(2, packed.width(d))
    for x in contexts(d, 0.3):
        packed.see(point, x)
        packed.lay(x, own)
        for i, kept in enumerate((single, rounded)):
            packed.forms(kept, point, found[i])
            packed.product(kept[0], own, products[i])
            packed.downdate(kept[0], own, 1e-3)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(products[0], products[1])
        rounded = rounded.astype(np.float32).astype(np.float64)
        np.testing.assert_array_equal(single, rounded)


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


@pytest.mark.parametrize("d", [1, 3, 8, 11, 16])
def test_packing_writes_every_entry_and_zeros_before_the_matrix(d):
    A = np.random.default_rng(d).integers(1, 9, (d, d)).astype(float)
    A += A.T
    P, back = np.full(packed.identities(np.ones(1), d).shape[1], np.nan), np.full((d, d), np.nan)
    packed.pack(A, P)
    packed.unpack(P, back)
    np.testing.assert_array_equal(back, A)
    assert 2.0 * P.sum() == A.sum()  # L + L' is A, and nothing else
