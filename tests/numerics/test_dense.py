"""Small dense linear algebra, against numpy."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.dense import cholesky_psd, fill, invert, row_times


def test_cholesky_of_a_singular_covariance():
    A = np.array([[4.0, 2.0, -2.0], [2.0, 1.0, -1.0], [-2.0, -1.0, 5.0]])
    R = np.full((3, 3), np.nan)
    cholesky_psd(A, R)
    np.testing.assert_allclose(R @ R.T, A, atol=1e-14)
    cholesky_psd(np.zeros((3, 3)), R)
    np.testing.assert_array_equal(R, np.zeros((3, 3)))


def test_a_vector_times_a_matrix_of_any_number_of_rows():
    rng = np.random.default_rng(2)
    for d, m in ((1, 3), (3, 1), (4, 2), (7, 5), (8, 4), (13, 6)):
        x, A, out = rng.standard_normal(d), rng.standard_normal((d, m)), np.full(m, np.nan)
        row_times(x, A, out)
        np.testing.assert_allclose(out, x @ A, rtol=1e-13, atol=1e-13)


def test_a_multiple_of_a_matrix_and_what_is_no_number_times_nothing():
    A, B = np.full((2, 3), np.nan), np.array([[1.0, -2.0, 4.0], [0.5, np.nan, np.inf]])
    fill(A, -2.0, B)
    np.testing.assert_array_equal(A, -2.0 * B)
    fill(A, 1.0, B)
    np.testing.assert_array_equal(A, B)
    fill(A, 0.0, B)
    np.testing.assert_array_equal(A, np.zeros((2, 3)))


def test_an_inverse_is_symmetric_to_the_last_bit():
    Z = np.random.default_rng(3).standard_normal((16, 16))
    A = Z @ Z.T + 0.1 * np.eye(16)
    N = A.copy()
    invert(N)
    np.testing.assert_allclose(N @ A, np.eye(16), atol=1e-11)
    np.testing.assert_array_equal(N, N.T)
