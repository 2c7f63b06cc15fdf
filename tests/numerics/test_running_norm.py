"""Norms kept up to date: when they are measured anew."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.agents.gaptron import Gaptron
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.linear_scores import matrix, per_class, zero_weights
from banditlab.numerics.running_norm import (
    LARGEST,
    SCALE,
    SQUARE,
    UPDATES,
    descend_in_ball,
    descend_measured,
    fold,
    measured,
    note,
    running_norm,
    shrink,
    squared_norm,
    squares,
)
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def test_a_square_that_falls_far_is_measured_anew():
    norm = running_norm()
    measured(norm, 1e8)
    assert not note(norm, -0.5e8, 100)
    assert note(norm, -0.5e8 + 1e-3, 100)  # what is left holds few digits
    measured(norm, 1e-3)
    assert [note(norm, 0.0, 3) for _ in range(3)] == [False, False, True]
    V = np.array([[3.0, 0.0], [0.0, 4.0]])
    norm[:4] = [0.5, 1.0, 1.0, 7.0]
    fold(V, norm)
    assert V.tolist() == [[1.5, 0.0], [0.0, 2.0]]
    assert norm[:4].tolist() == [1.0, 6.25, 6.25, 0.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_after_a_long_stream_the_running_square_is_the_fresh_one(sparse):
    """In a ball that is hit all the time; sparse updates add what single entries gained."""
    d, K, T = 40, 3, 2000
    rng = np.random.default_rng(1)
    X = rng.standard_normal((T, d)) * (rng.random((T, d)) < 0.2)
    X[:, 0] += 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(K, size=T)
    agent = Gaptron(Problem(d, K, 1.0, T), np.random.default_rng(2), gamma=0.9, norm_bound=0.05)
    agent.play_block(SparseRows.of(scipy.sparse.csr_array(X)) if sparse else X, y, Trace.empty(T))
    norm = agent.state.norm
    fresh = float((agent.state.V**2).sum())
    assert norm[SQUARE] == pytest.approx(fresh, rel=1e-9)
    assert norm[LARGEST] >= norm[SQUARE] > 0.0
    assert norm[SCALE] ** 2 * fresh <= agent.state.norm[-1] ** 2 * (1 + 1e-9)


def test_when_a_square_is_measured_anew_and_a_scale_multiplied_in():
    """A ten-thousandth of the largest square is left with twelve digits; a scale of a billionth goes into the entries."""
    for left, again in ((1.5e-4, False), (0.9e-4, True)):
        norm = running_norm()
        measured(norm, 1.0)
        assert bool(note(norm, left - 1.0, 1000)) is again
        assert norm[LARGEST] == 1.0
    for scale, folded in ((1.5e-9, False), (0.9e-9, True)):
        V, norm = np.array([[3.0, 4.0]]), running_norm(5.0 * scale)
        measured(norm, 25.0)
        shrink(V, norm)
        assert norm[SCALE] == (1.0 if folded else pytest.approx(scale))
        np.testing.assert_allclose(V * norm[SCALE], [[3.0 * scale, 4.0 * scale]], rtol=1e-12)
        assert norm[SQUARE] * norm[SCALE] ** 2 == pytest.approx((5.0 * scale) ** 2)
    V, norm = np.array([[3.0, 4.0]]), running_norm(5.0)
    measured(norm, 25.0)
    shrink(V, norm)  # at the ball's border nothing moves
    assert norm[SCALE] == 1.0


def test_a_new_norm_is_that_of_zero():
    assert running_norm().tolist() == [1.0, 0.0, 0.0, 0.0, np.inf]
    assert running_norm(2.5).tolist() == [1.0, 0.0, 0.0, 0.0, 2.5]


def one_by_one(W, x, r, D):
    """Return W - r x' in the ball of radius D, entry by entry."""
    moved = np.array([[W[k, j] - r[k] * x[j] for j in range(len(x))] for k in range(len(r))])
    size = np.sqrt(sum(w * w for row in moved for w in row))
    return moved * min(1.0, D / size)


@pytest.mark.parametrize("make", [matrix, zero_weights], ids=["rows", "columns"])
@pytest.mark.parametrize(("d", "K"), [(1, 2), (7, 4), (8, 5), (17, 9), (19, 3)])
def test_a_step_within_the_ball_is_the_same_by_dense_and_by_sparse_contexts(make, d, K):
    """From the product of what an entry gained and of the sum, not their quotient: the running square is the fresh one."""
    rng = np.random.default_rng(d)
    n = 9
    X = np.round(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6), 3)
    X[:, 0] += 0.5
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    R = rng.standard_normal((n, K))
    for D in (0.7, 50.0, np.inf):
        for sparse in (False, True):
            V, norm, W = make(d, K), running_norm(D), np.zeros((K, d))
            r = per_class(d, K) if make is matrix else np.zeros(V.shape[1])
            measured_anew = []
            for t in range(n):
                r[:] = 0.0
                r[:K] = R[t]
                descend_in_ball(V, csr.row(t) if sparse else as_contexts(X[t]), r, norm)
                W = one_by_one(W, X[t], R[t], D)
                np.testing.assert_allclose(norm[SCALE] * V[:d, :K].T, W, rtol=1e-12, atol=1e-13)
                assert not V[d:].any()
                if np.isinf(D):
                    assert norm.tolist() == [1.0, 0.0, 0.0, 0.0, np.inf]
                    continue
                assert norm[SQUARE] == pytest.approx((V**2).sum(), rel=1e-11)
                assert norm[LARGEST] >= norm[SQUARE]
                measured_anew.append(int(norm[UPDATES]))
            if D == 50.0:  # nothing falls: anew after as many sparse updates as V has rows, each time by a dense one
                expected = [(t + 1) % V.shape[0] for t in range(n)] if sparse else [0] * n
                assert measured_anew == expected


@pytest.mark.parametrize("make", [matrix, zero_weights], ids=["rows", "columns"])
@pytest.mark.parametrize(("d", "K"), [(1, 1), (7, 2), (8, 3), (9, 4), (16, 5), (17, 9), (26, 8)])
def test_norms_of_rows_and_of_contexts(make, d, K):
    rng = np.random.default_rng(d + K)
    W, x = rng.standard_normal((K, d)), rng.standard_normal(d) * (rng.random(d) < 0.7)
    V = make(d, K)
    V[:d, :K] = W.T
    kept = K if make is matrix else V.shape[1]
    column = np.full(kept, 7.0)
    squares(V, column)
    np.testing.assert_allclose(column[:K], (W**2).sum(axis=1), rtol=1e-14)
    assert not column[K:].any()
    r = np.zeros(kept)
    r[:K] = rng.standard_normal(K)
    moved = W - np.outer(r[:K], x)
    descend_measured(V, as_contexts(x), r, r)  # the norms take the place of r
    np.testing.assert_allclose(V[:d, :K].T, moved, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(r[:K], (moved**2).sum(axis=1), rtol=1e-13)
    assert not r[K:].any()
    csr = SparseRows.of(scipy.sparse.csr_array(x[None])).csr
    assert squared_norm(as_contexts(x)) == squared_norm(csr.row(0)) == pytest.approx(x @ x, rel=1e-14)
