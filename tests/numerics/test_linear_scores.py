"""Scores of dense and of sparse contexts in both layouts: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.linear_scores import (
    MOST_BY_ROWS,
    add,
    descend,
    matrix,
    padded,
    per_class,
    scores,
    zero_weights,
)
from banditlab.numerics.sparse_rows import SparseRows


@pytest.mark.parametrize("classes", [2, 4, 5, 9])
@pytest.mark.parametrize("d", [1, 7, 8, 64, 403, MOST_BY_ROWS + 1])
def test_scores_are_summed_in_the_same_order(d, classes):
    rng = np.random.default_rng(d)
    X = as_contexts(rng.standard_normal((60, d)) * (rng.random((60, d)) < rng.random((60, 1))))
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    W = rng.standard_normal((classes, d)) * 10.0 ** rng.integers(-8, 8, (classes, d))
    for V, one, other in (
        (matrix(d, classes), per_class(d, classes), per_class(d, classes)),
        (zero_weights(d, classes), np.zeros(padded(classes)), np.zeros(padded(classes))),
    ):
        V[:d, :classes] = W.T
        one[:] = other[:] = 1.0
        for t in range(60):
            scores(V, X[t], one)
            scores(V, csr.row(t), other)
            assert np.array_equal(one, other)
            np.testing.assert_allclose(one[:classes], W @ X[t], rtol=1e-9, atol=1e-6)
            assert not one[classes:].any()


@pytest.mark.parametrize("classes", [4, 5, 7])
@pytest.mark.parametrize("d", [8, 13, 64])
def test_a_class_whose_weights_are_no_numbers_leaves_the_others_alone(d, classes):
    """Rows are read to their ends and not a lane further: the next row begins there."""
    rng = np.random.default_rng(d)
    x, W = as_contexts(rng.standard_normal(d)), rng.standard_normal((classes, d))
    for bad in range(classes):
        V, z = matrix(d, classes), per_class(d, classes)
        V[:d, :classes] = W.T
        V[:d, bad] = np.nan
        scores(V, x, z)
        assert np.isnan(z[bad])
        others = np.delete(np.arange(classes), bad)
        np.testing.assert_allclose(z[others], W[others] @ x, rtol=1e-12)


def test_a_matrix_is_kept_by_rows_up_to_1024_features():
    """Rows padded to eights, but not to a multiple of a kilobyte, of classes padded to fours; by columns nothing but those."""
    for d, K, shape, by_rows in (
        (5, 3, (8, 4), True),
        (8, 4, (8, 4), True),
        (120, 5, (120, 8), True),
        (121, 5, (136, 8), True),
        (128, 5, (136, 8), True),
        (1024, 2, (1032, 4), True),
        (1025, 2, (1025, 4), False),
    ):
        V = matrix(d, K, 2.0)
        assert V.shape == shape
        assert V.flags.f_contiguous is by_rows
        assert V.flags.c_contiguous is not by_rows
        assert (V == 2.0).all()
        assert per_class(d, K).tolist() == [0.0] * (K if by_rows else shape[1])
        assert zero_weights(d, K).shape == (d, shape[1])
        assert not zero_weights(d, K).any()


@pytest.mark.parametrize(("d", "classes"), [(1, 13), (4, 17), (5, 33), (9, 13), (19, 6)])
def test_scores_of_many_classes(d, classes):
    rng = np.random.default_rng(d * classes)
    X = as_contexts(rng.standard_normal((3, d)) * (rng.random((3, d)) < 0.7))
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    W = rng.standard_normal((classes, d))
    for V, z in ((matrix(d, classes), per_class(d, classes)), (zero_weights(d, classes), np.zeros(padded(classes)))):
        V[:d, :classes] = W.T
        for t in range(3):
            for x in (X[t], csr.row(t)):
                z[:] = 7.0
                scores(V, x, z)
                np.testing.assert_allclose(z[:classes], W @ X[t], rtol=1e-12, atol=1e-14)
                assert not z[classes:].any()


@pytest.mark.parametrize("d", [1, 7, 8, 9, 17])
def test_rows_are_moved_and_nothing_else(d):
    """W + c e_k x' and W - r x' in both layouts, by dense and by sparse contexts; the padding stays as it is."""
    rng = np.random.default_rng(d)
    K, c = 4, -1.75
    X = as_contexts(rng.standard_normal((1, d)) * (rng.random((1, d)) < 0.8))
    csr, W, r = SparseRows.of(scipy.sparse.csr_array(X)).csr, rng.standard_normal((K, d)), rng.standard_normal(K)
    for make in (matrix, zero_weights):
        for x in (X[0], csr.row(0)):
            for k in range(K):
                V = make(d, K)
                assert not V.any()
                V[:d, :K] = W.T
                add(V, k, c, x)
                np.testing.assert_allclose(V[:d, :K].T, W + c * np.outer(np.eye(K)[k], X[0]), rtol=1e-13, atol=1e-15)
                assert not V[d:].any()
            V[:d, :K] = W.T
            descend(V, x, r)
            np.testing.assert_allclose(V[:d, :K].T, W - np.outer(r, X[0]), rtol=1e-13, atol=1e-15)
            assert not V[d:].any()
