"""The root of an inverse: its small systems, and the size of what its equation adds up."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.joint_root import Root, noise, solve_lu


def test_elimination_exchanges_rows() -> None:
    rng = np.random.default_rng(0)
    for A in (np.array([[0.0, 2.0], [3.0, 1.0]]), np.array([[1e-20, 1.0], [1.0, 1.0]]), np.fliplr(np.eye(5)) * 3.0):
        b = rng.standard_normal(len(A))
        v = b.copy()
        solve_lu(A.copy(), v)
        np.testing.assert_allclose(A @ v, b, rtol=1e-12, atol=1e-12)
    for K in (1, 2, 3, 6):
        A, b = rng.standard_normal((K, K)), rng.standard_normal(K)
        v = b.copy()
        solve_lu(A.copy(), v)
        np.testing.assert_allclose(A @ v, b, atol=1e-9)


@pytest.mark.parametrize("y", [-1, 0, 2])
def test_the_size_of_the_terms_is_the_largest_sum_of_their_sizes(y: int) -> None:
    """|z| + |mean| + sum |At| s, with 1 - s at the label, and half of At's diagonal in FOLKLORE's root."""
    root = Root.initial(3, 2, 1.0)
    At = np.array([[4.0, -1.0, 0.5], [-1.0, 3.0, -2.0], [0.5, -2.0, 5.0]])
    root.At[...], root.s[:], root.mean[:] = At, [0.2, 0.5, 0.3], [1.0, -7.0, 0.25]
    z = np.array([-3.0, 0.5, 2.0])
    weights = np.array([0.2, 0.5, 0.3])
    if y >= 0:
        weights[y] = 1.0 - weights[y]
    expected = np.abs(z) + np.abs(root.mean) + np.abs(At) @ weights + (0.5 * np.diag(At) if y < 0 else 0.0)
    assert noise(root, z, y) == pytest.approx(expected.max(), rel=1e-14)
