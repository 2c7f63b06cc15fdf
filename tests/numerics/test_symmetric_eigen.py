"""Eigenvalues and vectors inside kernels: against LAPACK's, and matrices that fall apart, repeat or are no numbers."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.symmetric_eigen import eigen


def decomposed(A):
    """Return w (n,) and Z (n, n) of A (n, n), with room that is longer than the matrix."""
    n = len(A)
    N = width(n) + 8
    own, Z, lines = zeros(N, N), zeros(N, N), [zeros(N) for _ in range(4)]
    own[:n, :n] = A
    eigen(own, Z, *lines, n)
    return lines[0][:n], Z[:n, :n]


def assert_eigen(A):
    w, Z = decomposed(A)
    size = max(np.abs(A).max(), 1e-300)
    np.testing.assert_allclose(Z @ Z.T, np.eye(len(A)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(Z.T @ np.diag(w) @ Z, A, rtol=0, atol=2e-13 * size)
    np.testing.assert_allclose(np.sort(w), np.linalg.eigvalsh(A), rtol=0, atol=2e-13 * size)


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (2, 1), (3, 3), (8, 8), (13, 4), (40, 40), (40, 7)])
def test_agrees_with_lapack(n, rank):
    rng = np.random.default_rng(n + rank)
    B = rng.standard_normal((rank, n)) * 10.0 ** rng.uniform(-3, 0, (rank, 1))  # squares spread over six decades
    assert_eigen(B.T @ B)
    assert_eigen(B.T @ np.diag(rng.choice([-1.0, 1.0], rank)) @ B)


def test_special_matrices():
    n = 12
    assert_eigen(np.zeros((n, n)))
    assert_eigen(np.eye(n))
    assert_eigen(np.ones((n, n)))
    assert_eigen(np.diag([*range(n // 2), *range(n // 2)]).astype(float))
    assert_eigen(np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1))
    apart = np.zeros((n, n))  # two blocks, and a number between them
    apart[:5, :5], apart[5, 5], apart[6:, 6:] = 1.0, -1.0, 2.0 + np.eye(6)
    assert_eigen(apart)
    assert_eigen(1e-12 * np.ones((n, n)) + np.diag(np.arange(n, dtype=float)))


def test_what_is_no_number_comes_to_an_end():
    for odd in (np.nan, np.inf):
        A = np.ones((9, 9))
        A[3, 4] = A[4, 3] = odd
        w, _ = decomposed(A)
        assert not np.isfinite(w).all()
