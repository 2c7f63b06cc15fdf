"""Verbs of linear learners against numpy, for dense and sparse contexts and both layouts, and their bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import njit
from banditlab.numerics.packed_symmetric import width
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.numerics.vectors import MOST_BY_ROWS, add, descend, matrix, scores, size, squared_norm

SHAPES = [(K, d) for K in (2, 3, 4, 5, 9) for d in (1, 7, 8, 65)] + [(5, MOST_BY_ROWS + 1)]


def contexts(d, n=3):
    """The same contexts, some of their entries 0, as dense and as sparse ones."""
    rng = np.random.default_rng(d)
    X = as_contexts(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7))
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    return [(X[t], x) for t in range(n) for x in (X[t], csr.row(t))]


def weights(K, d):
    W = matrix(K, d)
    W[:, :d] = np.random.default_rng(K).standard_normal((K, d))
    return W


@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_sums(K, d):
    W, z = weights(K, d), np.empty(K)
    for dense, x in contexts(d):
        scores(W, x, z)
        np.testing.assert_allclose(z, W[:, :d] @ dense, rtol=1e-12, atol=1e-13)
        assert squared_norm(x) == pytest.approx(dense @ dense, rel=1e-14)
        assert size(x) == (d if isinstance(x, np.ndarray) else np.count_nonzero(dense))


@pytest.mark.parametrize(("K", "d"), SHAPES)
def test_steps(K, d):
    rng = np.random.default_rng(1)
    for dense, x in contexts(d):
        W, r, gains = weights(K, d), rng.standard_normal(K), np.empty(K)
        before = W.copy()
        add(W, K - 1, -1.75, x)
        np.testing.assert_allclose(W[K - 1, :d], before[K - 1, :d] - 1.75 * dense, rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(W[: K - 1], before[: K - 1])
        before = W.copy()
        descend(W, x, r, gains)
        np.testing.assert_allclose(W[:, :d], before[:, :d] - np.outer(r, dense), rtol=1e-13, atol=1e-15)
        assert not W[:, d:].any()
        np.testing.assert_allclose(gains, (W**2 - before**2).sum(axis=1), rtol=1e-11, atol=1e-13)


def test_weights_lie_in_memory_class_by_class_or_place_by_place():
    for d, rows in ((1, True), (MOST_BY_ROWS, True), (MOST_BY_ROWS + 1, False)):
        W = matrix(3, d, 2.0)
        assert W.shape == (3, width(d) if rows else d)
        assert (W == 2.0).all()
        assert (W if rows else W.T).flags.c_contiguous


@pytest.mark.parametrize("K", [2, 3, 4, 5, 7, 9])
def test_equal_rows_have_equal_scores_to_the_last_bit(K):
    for d in (*range(1, 40), 64, 100, MOST_BY_ROWS + 1):
        W, z = weights(K, d), np.empty(K)
        W[:] = W[0]
        for _, x in contexts(d):
            scores(W, x, z)
            assert (z == z[0]).all()


def test_a_class_whose_weights_are_no_numbers_leaves_the_others_alone():
    for bad in range(6):
        W, z = weights(6, 13), np.empty(6)
        W[bad] = np.nan
        for _, x in contexts(13):
            scores(W, x, z)
            assert np.isnan(z).tolist() == [k == bad for k in range(6)]


def test_sums_over_sparse_contexts_are_in_the_order_of_the_entries():
    """Another order could differ between a process that compiles its kernels and one that reads them from the disk."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((1, 300)) * (rng.random((1, 300)) < 0.5)
    x = SparseRows.of(scipy.sparse.csr_array(dense)).csr.row(0)
    W, r, gains, z = weights(3, 300), rng.standard_normal(3), np.empty(3), np.empty(3)
    square, sums, changes = 0.0, [0.0] * 3, [0.0] * 3
    for j, xj in zip(x.indices, x.values):
        square += xj * xj
        for k in range(3):
            new = W[k, j] - r[k] * xj
            sums[k] += W[k, j] * xj
            changes[k] += (new - W[k, j]) * (new + W[k, j])
    assert squared_norm(x) == square
    scores(W, x, z)
    assert z.tolist() == sums
    descend(W, x, r, gains)
    assert gains.tolist() == changes


@njit(cache=False)
def of_two_classes(W, x, r, gains):
    descend(W[:2], x, r[:2], gains[:2])
    return squared_norm(x)


@njit(cache=False)
def of_eight_features(W, x, r, gains):
    descend(W, x[:8], r, gains)
    return squared_norm(x[:8])


def test_a_reduction_stands_alone_in_the_code_of_its_callers():
    """Where LLVM inlined it, it would choose an order of the sums for each caller."""
    rng = np.random.default_rng(3)
    x, r, gains, other = rng.standard_normal(8), rng.standard_normal(2), np.empty(2), np.empty(2)
    squares = [of_two_classes(weights(2, 8), x, r, gains), of_eight_features(weights(2, 8), x, r, other)]
    assert squares == [squared_norm(x)] * 2
    np.testing.assert_array_equal(gains, other)
    for caller in (of_two_classes, of_eight_features):
        [code] = caller.inspect_llvm().values()
        calls = [line for line in code.splitlines() if " call " in line]
        assert all(any(name in line for line in calls) for name in ("descend", "squared_norm"))
        assert not any("entry" in line for line in calls)  # which is inlined
