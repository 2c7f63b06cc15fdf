"""Sparse contexts give what the same contexts give when they are dense, for every player that has kernels for them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.agents import Trace
from banditlab.agents._scores import scores, zero_weights
from banditlab.kernels import as_contexts
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.rows import SparseRows

D, K, T = 403, 5, 1500


def documents(d=D, K=K, T=T, most=40, seed=0):
    """Contexts (T, d) with up to `most` entries, some rows empty and many places shared, and labels of a planted W."""
    rng = np.random.default_rng(seed)
    X = np.zeros((T, d))
    for t in range(T):
        places = np.minimum((d * rng.random(int(rng.integers(0, most))) ** 3).astype(int), d - 1)
        X[t, places] = rng.standard_normal(len(places))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300) * 1.01
    y = np.argmax(X @ rng.standard_normal((d, K)), axis=1)
    return X, np.where(rng.random(T) < 0.05, rng.integers(K, size=T), y).astype(np.int64)


EXACT = [
    ("banditron", {"gamma": 0.2}),
]
"""Same bits in either form."""


def play(id_, settings, X, y, sizes=(700, 3, 797)):
    agent = registry().load("agents", id_)(Problem(X.shape[1], K, 1.0, T), np.random.default_rng(3), **settings)
    assert agent.sparse
    trace, at = Trace.empty(T), 0
    for n in sizes:
        agent.play_block(X[at : at + n], y[at : at + n], trace.part(slice(at, at + n)))
        at += n
    assert at == T
    return agent, trace


def leaves(state):
    return [leaf for part in state for leaf in (leaves(part) if isinstance(part, tuple) else [part])]


@pytest.mark.parametrize(
    ("id_", "settings"), EXACT, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values()))
)
def test_same_bits_in_either_form(id_, settings):
    X, y = documents()
    dense, by_dense = play(id_, settings, X, y)
    sparse, by_sparse = play(id_, settings, SparseRows.of(scipy.sparse.csr_array(X)), y)
    assert 10 < by_dense.correct.sum() < T
    for one, other in zip(by_dense, by_sparse, strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(leaves(dense.state), leaves(sparse.state), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("classes", [2, 4, 5, 9])
@pytest.mark.parametrize("d", [1, 7, 8, 64, 403])
def test_scores_are_summed_in_the_same_order(d, classes):
    rng = np.random.default_rng(d)
    V = zero_weights(d, classes)
    V[:, :classes] = rng.standard_normal((d, classes)) * 10.0 ** rng.integers(-8, 8, (d, classes))
    X = as_contexts(rng.standard_normal((60, d)) * (rng.random((60, d)) < rng.random((60, 1))))
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    one, other = np.ones(V.shape[1]), np.ones(V.shape[1])
    for t in range(60):
        scores(V, X[t], one)
        scores(V, csr.row(t), other)
        assert np.array_equal(one, other)
        np.testing.assert_allclose(one, V.T @ X[t], rtol=1e-9, atol=1e-6)
