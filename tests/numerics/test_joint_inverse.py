"""The inverse of a Kd x Kd matrix in blocks, its pending updates included, against the whole inverse by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.joint_inverse import (
    BATCH,
    EPSILON,
    UPDATES,
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


@pytest.mark.parametrize(("K", "d", "room"), [(1, 2, 1), (2, 7, 1), (3, 16, 2), (4, 25, 3)])
def test_every_form_and_update_is_that_of_the_whole_inverse(K: int, d: int, room: int) -> None:
    """Through updates that wait and one that clears them: A^{-1}, (1/2) x'A^{-1}x, A^{-1}x, alone and for many contexts."""
    rng, lam = np.random.default_rng(d), 0.5
    blocks, A = Blocks.initial(K, d, lam), lam * np.eye(K * d)
    X, waiting = as_contexts(rng.standard_normal((5, d))), []
    for t in range(2 * room + 1):
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
    assert [least, most, step] == [0, (room - 1) * K, K]
    assert waiting == [(t + 1) % room * K for t in range(2 * room + 1)]
    assert blocks.limits()["at"] == (0, 1)
    # a stack of such blocks has an axis more in front
    assert blocks._replace(F=blocks.F[None]).limits() == blocks.limits()


def test_the_arrays_have_the_shapes_they_are_said_to_have_and_their_size_is_that_of_the_largest() -> None:
    for K, d, room in ((3, 5, 1), (2, 16, 2), (3, 25, 3), (1, 8 * UPDATES + 8, UPDATES)):
        blocks, n = Blocks.initial(K, d, 0.25), K * (K + 1) // 2
        shapes = {"M": (n, d, d), "F": (K, room * K, d), "rows": (1,), "V": (K, K, d), "Fx": (room * K, K)}
        shapes |= {"seen": (d,), "at": (1,), "f": (room * K,), "C": (K, d), "D": (d, d), "Xt": (d * BATCH,)}
        shapes |= {"MXt": (d * BATCH,), "FX": (K, K * BATCH), "Ats": (n, BATCH)}
        shapes |= dict.fromkeys(["At", "FxFx", "T"], (K, K))
        assert {name: array.shape for name, array in blocks._asdict().items()} == shapes
        np.testing.assert_array_equal(dense(blocks), 4.0 * np.eye(K * d))
        pending = blocks.F.nbytes if d >= 8 else 0
        assert Blocks.size(K, d) == blocks.M.nbytes + blocks.V.nbytes + pending + blocks.D.nbytes


def learnt(K: int, d: int, lam: float) -> Blocks:
    """Return blocks of which one update waits."""
    rng = np.random.default_rng(6)
    blocks, A, x = Blocks.initial(K, d, lam), lam * np.eye(K * d), as_contexts(rng.standard_normal(d))
    form_and_complete(blocks, x)
    learn(blocks, A, x, rng.dirichlet(np.ones(K)), 0.4)
    return blocks


@pytest.mark.parametrize("K", [1, 3])
def test_more_coordinates_and_another_space_keep_the_inverse(K: int) -> None:
    d, lam = 16, 0.25
    kept = dense(learnt(K, d, lam)).reshape(K, d, K, d)
    blocks = learnt(K, d, lam)
    assert blocks.rows[0] == K
    wide = dense(blocks.wider(d + 2, lam)).reshape(K, d + 2, K, d + 2)
    assert blocks.rows[0] == 0
    np.testing.assert_allclose(wide[:, :d, :, :d], kept, atol=1e-14)
    wide[:, :d, :, :d] = 0.0
    fresh = np.diag([0.0] * d + [1.0 / lam] * 2)
    np.testing.assert_allclose(wide, np.einsum("kl,ij->kilj", np.eye(K), fresh), atol=1e-14)
    # the first r coordinates as the rows of Q
    r, n = 3, 5
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((n, r)))[0].T
    found = dense(learnt(K, d, lam).rotated(Q, lam)).reshape(K, n, K, n)
    expected = np.einsum("ia,kilj,jb->kalb", Q, kept[:, :r, :, :r], Q)
    expected += np.einsum("kl,ab->kalb", np.eye(K), (np.eye(n) - Q.T @ Q) / lam)
    np.testing.assert_allclose(found, expected, atol=1e-13)


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
