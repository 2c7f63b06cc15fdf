"""Small dense linear algebra, against numpy."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.dense import cholesky_psd


def test_cholesky_of_a_singular_covariance():
    A = np.array([[4.0, 2.0, -2.0], [2.0, 1.0, -1.0], [-2.0, -1.0, 5.0]])
    R = np.full((3, 3), np.nan)
    cholesky_psd(A, R)
    np.testing.assert_allclose(R @ R.T, A, atol=1e-14)
    cholesky_psd(np.zeros((3, 3)), R)
    np.testing.assert_array_equal(R, np.zeros((3, 3)))
