"""Products of matrices kept by rows against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.packed_symmetric import zeros
from banditlab.numerics.row_products import add_product, clear, orthonormalize, scale, times


def rows(rng, *shape):
    made = zeros(*shape)
    made[:] = rng.standard_normal(shape)
    return made


@pytest.mark.parametrize(("n", "D"), [(1, 8), (4, 16), (7, 24), (13, 64)])
def test_products(n, D):
    rng = np.random.default_rng(n)
    W, x, z = rows(rng, n, D), rows(rng, D), zeros(n + 3)
    times(W, x, z)
    np.testing.assert_allclose(z[:n], W @ x, rtol=0, atol=1e-12)
    assert not z[n:].any()
    Y, C, B = rows(rng, n, D), rows(rng, n, 16), rows(rng, 16, D)
    expected = Y + C @ B
    add_product(Y, C, B)
    np.testing.assert_allclose(Y, expected, rtol=0, atol=1e-12)
    scale(Y, -2.0)
    np.testing.assert_allclose(Y, -2.0 * expected, rtol=0, atol=1e-12)
    clear(Y)
    assert not Y.any()


@pytest.mark.parametrize("d", [1, 8, 13, 24])
def test_a_product_has_the_same_bits_beside_any_number_of_rows(d):
    W, x, z, one = (
        rows(np.random.default_rng(d), 19, 24),
        np.random.default_rng(0).standard_normal(d),
        zeros(19),
        zeros(1),
    )
    times(W, x, z)
    np.testing.assert_allclose(z, W[:, :d] @ x, rtol=0, atol=1e-13)
    for k in range(19):
        times(W[k : k + 1], x, one)
        assert one[0] == z[k]


def test_rows_become_orthonormal_and_keep_what_they_span():
    rng = np.random.default_rng(0)
    Q = zeros(8, 24)
    Q[:5] = np.linalg.qr(rng.standard_normal((24, 5)))[0].T + 1e-6 * rng.standard_normal((5, 24))
    before = Q.copy()
    orthonormalize(Q, 6)  # the last of these rows stays 0
    np.testing.assert_allclose(Q[:5] @ Q[:5].T, np.eye(5), rtol=0, atol=1e-14)
    np.testing.assert_allclose(before - before @ Q.T @ Q, 0.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(Q, before, rtol=0, atol=1e-4)
    assert not Q[5:].any()
