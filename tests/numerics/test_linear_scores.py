"""Scores of dense and of sparse contexts in both layouts: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.linear_scores import MOST_BY_ROWS, matrix, padded, per_class, scores, zero_weights
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
