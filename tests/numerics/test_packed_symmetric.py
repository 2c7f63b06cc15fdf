"""Packed symmetric matrices against full ones in numpy."""

from __future__ import annotations

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
    packed.set_identity(P[0], 3.0, d)
    np.testing.assert_array_equal(P[:1], packed.identities(np.array([3.0]), d))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_forms_equal_full_matrices(K, d, share):
    A, P = matrices(K, d)
    point, q = packed.point(d), np.full(K, np.nan)
    for x in contexts(d, share):
        packed.set_point(point, x)
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
        packed.set_point(point, x)
        packed.pad(x, own)
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
        packed.pad(x, own)
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
