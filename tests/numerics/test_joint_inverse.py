"""The inverse of a Kd x Kd matrix in blocks, its pending updates included, against the whole inverse by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.joint_inverse import (
    EPSILON,
    Blocks,
    add_hessian,
    dense,
    form,
    form_and_complete,
    form_many,
    form_of,
    rounding_doubt,
)
from banditlab.numerics.softmax_root import RootScratch


def learn(blocks: Blocks, A: np.ndarray, x: np.ndarray, s: np.ndarray, c: float) -> None:
    """A += c S (x) x x', of the matrix itself and by its blocks."""
    scratch = RootScratch.empty(len(s))
    scratch.s[:], scratch.a[:] = s, blocks.At @ s
    add_hessian(blocks, c, scratch)
    A += c * np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))


@pytest.mark.parametrize(("K", "d", "capacity"), [(1, 2, 1), (2, 7, 1), (3, 16, 2), (4, 25, 3)])
def test_every_form_and_update_is_that_of_the_whole_inverse(K: int, d: int, capacity: int) -> None:
    """Through updates that wait and one that clears them: A^{-1}, (1/2) x'A^{-1}x, A^{-1}x, alone and for many contexts."""
    rng, lam = np.random.default_rng(d), 0.5
    blocks, A = Blocks.initial(K, d, lam), lam * np.eye(K * d)
    X, waiting = as_contexts(rng.standard_normal((5, d))), []
    for t in range(2 * capacity + 1):
        x = as_contexts(rng.standard_normal(d))
        full = np.linalg.inv(A)
        np.testing.assert_allclose(dense(blocks), full, atol=1e-12)

        def at(x: np.ndarray, full: np.ndarray = full) -> np.ndarray:
            return 0.5 * np.einsum("i,kilj,j->kl", x, full.reshape(K, d, K, d), x)

        form_many(blocks, X)
        for i in range(len(X)):
            form_of(blocks, i)
            np.testing.assert_allclose(blocks.At, at(X[i]), atol=1e-12)
        assert blocks.at[0] == 0
        if t % 2:  # what a forecast has left is used again
            form(blocks, x)
            np.testing.assert_allclose(blocks.At, at(x), atol=1e-12)
            assert blocks.at[0] == 1
        elif t:  # that of another context is not
            form(blocks, X[0])
        form_and_complete(blocks, x)
        np.testing.assert_allclose(blocks.At, at(x), atol=1e-12)
        V = np.einsum("kilj,j->kli", full.reshape(K, d, K, d), x)
        np.testing.assert_allclose(blocks.V, V, atol=1e-12)
        assert blocks.at[0] == 0
        learn(blocks, A, x, rng.dirichlet(np.ones(K)), 0.3)
        waiting.append(int(blocks.rows[0]))
        form_and_complete(blocks, x)  # the same context, another matrix
        np.testing.assert_allclose(blocks.At, at(x, np.linalg.inv(A)), atol=1e-12)
    least, most, step = blocks.limits()["rows"]
    assert [least, most, step] == [0, (capacity - 1) * K, K]
    assert waiting == [(t + 1) % capacity * K for t in range(2 * capacity + 1)]
    assert blocks.limits()["at"] == (0, 1)
    # a stack of such blocks has an axis more in front
    assert blocks._replace(F=blocks.F[None]).limits() == blocks.limits()


def test_the_doubt_of_a_term_by_hand() -> None:
    """|x|^2 = 4 at lambda = 2: every row of At sums to 1."""
    x, u = as_contexts(np.array([2.0, 0.0])), np.array([1.0, -3.0])
    # rows off by 1 and 1/4: 4 (5/4) = 5; 4 (1 + 4 (1/2)) + 16/2 5, and 8 units of 2^51
    At = np.array([[1.5, 0.5], [-0.25, 1.0]])
    assert rounding_doubt(At, x, 2.0, 0.5, u, 1.0, 2.0**51) == pytest.approx(4.0 * 3.0 + 40.0 + 4.0, rel=1e-14)
    # no row off: units of rounding of |3| + |-2|, 4 + 16/2 of them
    At = np.array([[3.0, -2.0], [3.0, -2.0]])
    assert rounding_doubt(At, x, 2.0, 0.0, u, 0.0, 0.0) == (4.0 + 8.0) * 5.0 * EPSILON
    assert float(np.finfo(float).eps) == EPSILON
