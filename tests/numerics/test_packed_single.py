"""Packed symmetric matrices in float32 against full ones in numpy, and against float64 after many downdates."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics import packed_single as single
from banditlab.numerics import packed_symmetric as packed
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.packed_symmetric import pack

SHAPES = [(1, 1), (2, 7), (3, 8), (4, 9), (5, 16), (7, 23)]


def matrices(K, d, seed=0):
    """K symmetric positive definite matrices of float32 entries, and the same packed."""
    A = np.random.default_rng(seed).standard_normal((K, d, d))
    A = (A @ A.transpose(0, 2, 1) + np.eye(d)).astype(np.float32).astype(float)
    A = np.maximum(A, A.transpose(0, 2, 1))
    P = single.zeros(K, single.size_of(d))
    for k in range(K):
        packed.pack(A[k], P[k])
    return A, P


def dense(P, d):
    A = np.empty((len(P), d, d))
    for k in range(len(P)):
        packed.unpack(P[k], A[k])
    return A


@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_what_is_packed_comes_back(K, d):
    A, P = matrices(K, d)
    assert P.dtype == np.float32
    assert P.ctypes.data % 64 == 0
    np.testing.assert_array_equal(dense(P, d), A)
    I = single.zeros(1, single.size_of(d))
    I[0, single.diagonal(d)] = 0.5
    np.testing.assert_array_equal(dense(I, d)[0], np.eye(d))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_forms_products_and_downdates_equal_full_matrices(K, d, share):
    A, P = matrices(K, d)
    rng = np.random.default_rng(1)
    point, q, v, D = single.point(d), np.full(K, np.nan), single.zeros(packed.width(d)), packed.width(d)
    for t, x in enumerate(as_contexts(np.where(rng.random((8, d)) < share, 0.0, rng.standard_normal((8, d))))):
        single.see(point, x)
        single.forms(P, point, q)
        size = np.einsum("i,kij,j->k", abs(x), abs(A), abs(x))
        np.testing.assert_array_less(abs(q - np.einsum("i,kij,j->k", x, A, x)), 1e-6 * size + 1e-30)
        k = t % K
        single.product(P[k], point.x, v)
        full = A[k] @ x
        np.testing.assert_array_less(abs(v[D - d :] - full), 1e-6 * (abs(A[k]) @ abs(x)) + 1e-30)
        assert not v[: D - d].any()
        assert single.inner(point.x, v) == pytest.approx(x @ full, rel=1e-5, abs=1e-6 * size[k])
        s = 0.5 / (1.0 + x @ full)
        single.downdate(P[k], v, s)
        A[k] -= s * np.outer(full, full)
        np.testing.assert_allclose(dense(P, d)[k], A[k], rtol=0, atol=2e-6 * abs(A[k]).max())


def test_rows_and_steps_equal_numpy():
    rng = np.random.default_rng(2)
    H, x, z = single.zeros(3, 16), single.zeros(16), np.empty(3)
    H[...], x[...] = rng.standard_normal((3, 16)), rng.standard_normal(16)
    single.rows_times(H, x, z)
    np.testing.assert_allclose(z, H.astype(float) @ x, rtol=1e-5)
    assert single.inner(H[0], H[1]) == pytest.approx(H[0].astype(float) @ H[1], rel=1e-5)
    before = H[1].astype(float)
    single.step_along(H[1], 0.3, x)
    np.testing.assert_allclose(H[1], before + 0.3 * x, rtol=1e-6, atol=1e-6)


def test_an_inverse_survives_many_downdates():
    """5,000 outcomes at lambda = 0.001: forms stay above 0 and within a hundredth of those in float64."""
    rng, d, lam = np.random.default_rng(3), 20, 0.001
    P, A = single.zeros(1, single.size_of(d)), lam * np.eye(d)
    P[0, single.diagonal(d)] = 0.5 / lam
    point, v, q = single.point(d), single.zeros(packed.width(d)), np.empty(1)
    X = rng.standard_normal((5000, d)) * np.geomspace(1.0, 0.1, d)
    X /= np.linalg.norm(X, axis=1)[:, None]
    for x in as_contexts(X):
        single.see(point, x)
        single.product(P[0], point.x, v)
        single.downdate(P[0], v, 0.05 / (1.0 + 0.05 * single.inner(point.x, v)))
        A += 0.05 * np.outer(x, x)
    exact = np.einsum("ti,ij,tj->t", X[-200:], np.linalg.inv(A), X[-200:])
    for x, right in zip(as_contexts(X[-200:]), exact, strict=True):
        single.see(point, x)
        single.forms(P, point, q)
        assert q[0] == pytest.approx(right, rel=0.01)


@pytest.mark.parametrize("kind", [single, packed])
@pytest.mark.parametrize("d", [3, 8, 21])
def test_a_full_context_reaches_the_limits_of_a_points_integers(kind, d):
    """What a file may say of a point is what a context may make of it: no place beyond."""
    point = kind.point(d)
    kind.see(point, as_contexts(np.ones(d)))
    (least, last), (fewest, most) = point.limits()["place"], point.limits()["upto"]
    assert (least, last) == (0, point.place.max())
    assert most == -(-d // 8) * 8 >= point.upto.max() == d
    kind.see(point, as_contexts(np.zeros(d)))
    assert fewest == point.upto.min() == 0


def test_the_entries_kept_are_the_block_triangle():
    """D (D + 8) / 2 for D = 8, 8, 16, 16, 24."""
    assert [single.size_of(d) for d in (1, 8, 9, 16, 17)] == [64, 64, 192, 192, 384]
    assert single.zeros(3, 5).shape == (3, 5)
    assert [packed.width(d) for d in (1, 8, 9, 16, 17)] == [8, 8, 16, 16, 24]


def some(kind, K, d):
    """K symmetric matrices of small integers, and the same packed."""
    A = np.random.default_rng(4).integers(-8, 9, (K, d, d)).astype(float)
    A += A.transpose(0, 2, 1)
    P = kind.zeros(K, single.size_of(d))
    for k in range(K):
        pack(A[k], P[k])
    return A, P


@pytest.mark.parametrize("kind", [single, packed])
def test_forms_of_one_or_two_entries_are_entries_of_the_matrices(kind):
    """Seven matrices are four, two and one; one entry and two, in either block row, are sums of every length at its edge."""
    A, P = some(kind, 7, 10)
    point = kind.point(10)
    for i in range(10):
        for j in range(i, 10):
            x, q = np.zeros(10), np.full(7, np.nan)
            x[i] += 2.0
            x[j] += 1.0
            kind.see(point, as_contexts(x))
            kind.forms(P, point, q)
            np.testing.assert_array_equal(q, x @ A @ x)


@pytest.mark.parametrize("kind", [single, packed])
def test_fours_of_matrices_have_the_same_bits_in_any_company(kind):
    """Four share a sweep wherever they stand, two or one that are left over another, which adds in another order."""
    rng = np.random.default_rng(5)
    _, P = some(kind, 12, 30)
    P *= rng.uniform(0.5, 1.5, P.shape).astype(P.dtype)
    point = kind.point(30)
    kind.see(point, as_contexts(rng.standard_normal(30)))

    def forms(first, stop):
        q = np.zeros(stop - first)
        if stop > first:
            kind.forms(P[first:stop].copy(), point, q)
        return q.tolist()

    fours, twos = [forms(k, k + 4) for k in (0, 4, 8)], [forms(k, k + 2) for k in range(0, 12, 2)]
    assert all(four != [*twos[2 * k], *twos[2 * k + 1]] for k, four in enumerate(fours))
    for K in range(4, 13):
        whole = K // 4 * 4
        assert forms(0, K) == [*np.ravel(fours[: whole // 4]), *forms(whole, K)]
