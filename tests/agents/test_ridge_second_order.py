"""What LinUCB and LinTS keep of each class's matrix: contracts, a slow form of either, where a sketch is exact, settings."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.ridge.confidit import Confidit
from banditlab.agents.ridge.lints import LinTS
from banditlab.agents.ridge.linucb import LinUCB
from banditlab.errors import UsageError
from banditlab.numerics.frequent_directions import ROWS, SHRINKS
from banditlab.players.agent import Trace
from banditlab.policy.growing import grown
from banditlab.problem import Problem


def make(K, d, cls=LinUCB, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **{"second_order": "sketch", **settings})


def play(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


FORMS = [
    pytest.param(LinUCB, {"sketch_size": 4}, marks=pytest.mark.slow),
    pytest.param(LinUCB, {"second_order": "diagonal"}, marks=pytest.mark.slow),
    pytest.param(LinTS, {"sketch_size": 4}, marks=pytest.mark.slow),
    pytest.param(LinTS, {"second_order": "diagonal"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("cls", "settings"), FORMS)
def test_contract(one_bit_contract, stream, cls, settings):
    X, y = stream(3, 9, 120, noise=0.3)
    one_bit_contract(lambda: make(3, 9, cls, **settings), X, y)


@pytest.mark.parametrize(("cls", "settings"), FORMS[:2])
def test_equals_full_matrices_put_back_into_their_family(stream, cls, settings):
    """The sketch's own basis is read, which test_frequent_directions checks; the matrices are d x d."""
    K, d = 3, 9
    X, y = stream(K, d, 150, noise=0.2)
    agent = make(K, d, cls, **settings)
    P, w = np.tile(np.eye(d) / agent.regularization, (K, 1, 1)), np.zeros((K, d))
    for x, label in zip(X, y):
        scores = w @ x + agent.confidence * np.sqrt(np.einsum("i,kij,j->k", x, P, x))
        decision = agent.act(x)
        np.testing.assert_allclose(agent.state.z, scores, rtol=0, atol=1e-9)
        k, correct = decision.action, decision.action == label
        v = P[k] @ x
        w[k] += (correct - x @ w[k]) / (1 + x @ v) * v
        A, before = np.linalg.inv(P[k]) + np.outer(x, x), basis(agent)
        agent.learn(x, decision, correct)
        if agent.second_order == "diagonal":
            P[k] = np.diag(1.0 / np.diag(A))
            continue
        P[k] -= np.outer(v, v) / (1 + x @ v)
        if len(before) == agent.sketch_size:
            outside = np.eye(d) - before.T @ before
            P[k] = before.T @ (before @ P[k] @ before.T) @ before + outside * (d - len(before)) / np.trace(outside @ A)
            P[:] = [in_family(each, basis(agent)) for each in P]


def basis(agent):
    """Return Q (r, d), (0, d) where there is none."""
    sketch = getattr(agent.state.inverses, "sketch", None)
    d = agent.problem.n_features
    return np.zeros((0, d)) if sketch is None else sketch.Q[: sketch.counts[ROWS], -d:].copy()


def in_family(P, Q):
    block = Q @ P @ Q.T
    outside = (np.trace(P) - np.trace(block)) / (len(P) - len(Q))
    return Q.T @ block @ Q + outside * (np.eye(len(P)) - Q.T @ Q)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [LinUCB, LinTS])
def test_where_contexts_span_no_more_directions_than_the_sketch_it_is_full(stream, cls):
    X, y = stream(4, 6, 300, noise=0.2)
    X = np.hstack([X, X @ np.linspace(-1, 1, 6 * 9).reshape(6, 9)])
    X = np.ascontiguousarray(X / np.linalg.norm(X, axis=1).max())
    sketch, full = make(4, 15, cls), make(4, 15, cls, second_order="full")
    np.testing.assert_array_equal(play(sketch, X, y).action, play(full, X, y).action)
    assert sketch.state.inverses.sketch.counts[[ROWS, SHRINKS]].tolist() == [6, 0]
    assert sketch.diagnostics() == {"sketch_shrinks": 0, "sketch_outside": 0.0}
    assert full.diagnostics() == {}


@pytest.mark.parametrize("cls", [LinUCB, LinTS])
def test_settings(cls):
    for chosen, message in (
        ({"second_order": "half"}, "second_order must be one of 'auto', 'full', 'diagonal', 'sketch', got 'half'"),
        ({"sketch_size": 0}, "sketch_size must be at least 1, got 0"),
        (
            {"second_order": "diagonal", "sketch_size": 8},
            "sketch_size needs second_order = 'sketch', got second_order =",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            make(3, 4, cls, **chosen)
    problem = Problem(1024, 20, 1.0)
    least = [cls.least_bytes(problem, {"second_order": word}) for word in ("full", "sketch", "diagonal")]
    assert least[0] == Confidit.least_bytes(problem, {}) > 40 * least[1] > 40 * least[2]
    eight = cls.least_bytes(problem, {"second_order": "sketch", "sketch_size": 8})
    assert eight == 20 * (8 * 1024 + 4 * 8**2) + 24 * 8 * 1024
    assert grown(make(3, 4, cls)).problem.n_classes == 4
