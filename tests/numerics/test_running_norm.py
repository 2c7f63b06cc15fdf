"""Norms kept up to date: when they are measured anew."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.agents.gaptron import Gaptron
from banditlab.numerics.running_norm import LARGEST, SCALE, SQUARE, fold, measured, note, running_norm, shrink
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
