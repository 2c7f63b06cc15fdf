"""Sparse contexts give what the same contexts give when they are dense, for every player that has kernels for them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from banditlab.errors import IncompatibleError
from banditlab.numerics.sparse_rows import MOST_DENSE, SparseRows
from banditlab.numerics.vectors import MOST_BY_ROWS
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

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


PLAYERS = [
    ("uniform", {}),  # which keeps no weights, nor does the next
    ("beta-ts", {"per": [0, 99]}),
    ("banditron", {"gamma": 0.2}),
    ("epsilon-greedy", {"gamma": 0.2}),
    ("epsilon-greedy-direct", {}),
    ("soba-diag", {"gamma": 0.2}),
    ("ovr-perceptron", {}),
    ("ovr-perceptron", {"choice": "largest", "corrects": "all"}),
    ("gaptron", {"gamma": 0.2, "step": "adaptive"}),
    ("rdue", {"gamma": 0.2, "step": "adaptive"}),
    ("decoded-descent", {"gamma": 0.2}),
    ("decoded-descent", {"gamma": 0.2, "step": "adaptive", "decoding": "sparsemax"}),
    ("perceptron", {}),
    ("gaptron", {"gamma": 0.2, "norm_bound": 0.3, "step": 0.2}),
    ("gaptron", {"gamma": 0.2, "norm_bound": 0.3, "step": 0.2, "loss": "hinge"}),
    ("gaptron", {"gamma": 0.2, "norm_bound": 5.0, "step": "wide", "loss": "smooth-hinge"}),
    ("rdue", {"gamma": 0.2, "norm_bound": 0.5}),
    ("pnewtron", {"gamma": 0.3}),
    ("pnewtron", {"gamma": 0.3, "norm_bound": 0.1, "exploit": "argmax"}),
    ("exploration", {"forecaster": "ogd", "gamma": 0.3, "norm_bound": 0.5}),
    ("exploration", {"forecaster": "ogd", "gamma": 0.3, "norm_bound": 1e-3, "step": 10.0}),
    ("sampled", {"forecaster": "ogd", "norm_bound": 0.5}),
    ("label-efficient", {"forecaster": "ogd", "query_rate": 0.4}),
]
"""Sums over dense and over sparse contexts differ in their order: same actions, weights to rounding."""
LEARNERS = PLAYERS[2:]
QUICK = ("banditron", "gaptron", "exploration")
"""Players whose sparse kernels are compiled by the quick tests: a plain one, one with a ball, and the reduction."""


def named(value):
    return value if isinstance(value, str) else "-".join(map(str, value.values()))


def build(id_, settings, d=D):
    return registry().load("agents", id_)(Problem(d, K, 1.0, T), np.random.default_rng(3), **settings)


def play(agent, X, y, sizes=(700, 3, 797)):
    assert agent.sparse
    trace, at = Trace.empty(T), 0
    for n in sizes:
        agent.play_block(X[at : at + n], y[at : at + n], trace.part(slice(at, at + n)))
        at += n
    assert at == T
    return agent, trace


def in_csr(X):
    return SparseRows.of(scipy.sparse.csr_array(X))


def weights(agent):
    return getattr(agent, "inner", agent).weights if hasattr(agent, "forecaster") else agent.weights


def test_no_player_with_sparse_kernels_is_left_out():
    listed = {id_ for id_, _ in PLAYERS} - {"exploration", "sampled", "label-efficient"}
    found = {
        entry.id
        for entry in registry().entries("agents")
        if not (cls := entry.load()).requires and getattr(cls, "sparse", False)
    }
    assert found == listed


@pytest.mark.parametrize("d", [64, D])
@pytest.mark.parametrize(
    ("id_", "settings"),
    [case if case[0] in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in LEARNERS],
    ids=named,
)
def test_same_actions_and_weights_in_either_form(id_, settings, d):
    X, y = documents(d=d)
    dense, by_dense = play(build(id_, settings, d), X, y)
    sparse, by_sparse = play(build(id_, settings, d), in_csr(X), y)
    assert np.array_equal(by_dense.action, by_sparse.action)
    np.testing.assert_allclose(by_dense.p_true, by_sparse.p_true, rtol=1e-12, atol=1e-12)
    assert np.abs(weights(dense)).max() > 1e-5
    np.testing.assert_allclose(weights(dense), weights(sparse), rtol=0, atol=1e-12 * np.abs(weights(dense)).max())


def test_a_player_without_sparse_kernels_meets_short_rows_dense_and_refuses_long_ones():
    X, y = documents(d=20, T=50, most=6)
    assert not registry().load("agents", "linucb").sparse
    one, other = build("banditron", {}, 20), build("banditron", {}, 20)
    one.sparse = other.sparse = False  # as if it had none
    dense, sparse = Trace.empty(50), Trace.empty(50)
    one.play_block(X, y, dense)
    other.play_block(in_csr(X), y, sparse)
    assert np.array_equal(dense.action, sparse.action)
    d = MOST_DENSE + 1
    agent = registry().load("agents", "uniform")(Problem(d, 2, 1.0), np.random.default_rng(0))
    agent.sparse = False
    with pytest.raises(IncompatibleError, match="is too large for dense ones"):
        agent.play_block(scipy.sparse.csr_array((1, d)), np.zeros(1, np.int64), Trace.empty(1))


@pytest.mark.slow
def test_a_block_of_sparse_contexts_allocates_no_dense_row():
    d, n = 347_000, 1024
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((n, d), density=80 / d, format="csr", rng=rng)
    y = rng.integers(K, size=n)
    agent = registry().load("agents", "gaptron")(Problem(d, K, 10.0, T), rng, gamma=0.1, norm_bound=0.01, step=1.0)
    trace = Trace.empty(n)
    agent.play_block(X[:1], y[:1], trace.part(slice(0, 1)))  # compiled
    tracemalloc.start()
    agent.play_block(X, y, trace)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * d  # of one row
    assert np.linalg.norm(agent.weights) == pytest.approx(0.01 * np.sqrt(K))  # the ball binds


@pytest.mark.parametrize(
    ("id_", "settings"),
    [
        LEARNERS[0],
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [*LEARNERS[1:4], LEARNERS[11], LEARNERS[15]]),
    ],
    ids=named,
)
def test_weights_by_columns_learn_what_weights_by_rows_do(id_, settings):
    """The same contexts, behind them features that are always 0: as many as make the weights go by columns."""
    X, y = documents()
    wide = np.hstack([X, np.zeros((T, MOST_BY_ROWS))])
    short, short_trace = play(build(id_, settings), X, y)
    long, long_trace = play(build(id_, settings, wide.shape[1]), wide, y)
    sparse, sparse_trace = play(build(id_, settings, wide.shape[1]), in_csr(wide), y)
    assert short.weights.strides[1] == short.weights.itemsize
    assert long.weights.strides[0] == long.weights.itemsize
    for trace in (long_trace, sparse_trace):
        assert np.array_equal(trace.action, short_trace.action)
        np.testing.assert_allclose(trace.p_true, short_trace.p_true, rtol=0, atol=1e-9)
    for agent in (long, sparse):
        np.testing.assert_allclose(agent.weights[:, :D], short.weights, rtol=1e-9, atol=1e-9)
