"""Norms kept up to date, of one ball for all weights and of one for each row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.agents.gaptron import Gaptron
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.running_norm import Norms, descend_in_balls
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.numerics.vectors import MOST_BY_ROWS, matrix
from banditlab.players.agent import Trace
from banditlab.problem import Problem


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.slow
def test_after_a_long_stream_the_running_square_is_the_fresh_one(sparse):
    """In a ball that is hit all the time."""
    d, K, T = 40, 3, 2000
    rng = np.random.default_rng(1)
    X = rng.standard_normal((T, d)) * (rng.random((T, d)) < 0.2)
    X[:, 0] += 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(K, size=T)
    agent = Gaptron(Problem(d, K, 1.0, T), np.random.default_rng(2), gamma=0.9, norm_bound=0.05)
    agent.play_block(SparseRows.of(scipy.sparse.csr_array(X)) if sparse else X, y, Trace.empty(T))
    norm, fresh = agent.state.norm, float((agent.state.V**2).sum())
    assert norm.square[0] == pytest.approx(fresh, rel=1e-9)
    assert norm.largest[0] >= norm.square[0] > 0.0
    assert np.linalg.norm(agent.weights) <= agent.state.radius * (1 + 1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(("K", "d"), [(2, 1), (4, 7), (5, 8), (9, 17), (3, MOST_BY_ROWS + 1)])
def test_steps_within_balls_by_numpy(K, d, by_row, sparse):
    rng = np.random.default_rng(d)
    X = np.round(rng.standard_normal((9, d)) * (rng.random((9, d)) < 0.6), 3)
    X[:, 0] += 0.5
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    for radius in (0.7, 50.0, np.inf):
        V, norms, W = matrix(K, d), Norms.of(K if by_row else 1), np.zeros((K, d))
        for t, x in enumerate(X):
            r = rng.standard_normal(K)
            W = W - np.outer(r, x)
            norm = np.linalg.norm(W, axis=1, keepdims=True) if by_row else np.linalg.norm(W)
            W *= np.minimum(1.0, radius / norm)
            descend_in_balls(V, csr.row(t) if sparse else as_contexts(x), r, norms, radius, np.zeros(K))
            np.testing.assert_allclose(norms.scale[:, None] * V[:, :d], W, rtol=1e-11, atol=1e-12)
