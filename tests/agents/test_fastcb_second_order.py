"""What FastCB and SquareCB keep of each class's matrix, a diagonal or a block in a sketch: slow forms, special and odd cases.

The matrices themselves have tests of their own, test_model_forms and test_frequent_directions.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frequent_directions import BUFFERED, ROWS, SHRINKS
from banditlab.players.agent import Trace
from banditlab.policy.growing import grown
from banditlab.problem import Problem

SKETCH = {"second_order": "sketch", "sketch_size": 4}
pytestmark = pytest.mark.slow
"""Kernels of either form are compiled by the slow tests."""


def make(K, d, cls=FastCB, radius=1.0, **settings):
    return cls(Problem(d, K, radius), np.random.default_rng(7), **{"second_order": "sketch", **settings})


def play(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def low_rank(K, d, rank, T, noise=0.0, seed=0):
    """Contexts (T, d) of norm 1 near a subspace, labels (T,) of a planted matrix in it, one in twenty at random."""
    rng = np.random.default_rng(seed)
    Z, basis = rng.standard_normal((T, rank)), np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    y = np.argmax(Z @ rng.standard_normal((rank, K)), axis=1)
    X = Z @ basis + noise * math.sqrt(rank / d) * rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12)
    return as_contexts(X), np.where(rng.random(T) < 0.05, rng.integers(K, size=T), y).astype(np.int64)


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (FastCB, SKETCH),
        (FastCB, {"second_order": "diagonal"}),
        (SquareCB, SKETCH),
        (SquareCB, {"second_order": "diagonal"}),
    ],
)
@pytest.mark.parametrize("challenger", [0.0, 10.0])
def test_contract(one_bit_contract, stream, cls, settings, challenger):
    X, y = stream(3, 9, 120, noise=0.3)
    one_bit_contract(lambda: make(3, 9, cls, sharpness=2.0, challenger=challenger, **settings), X, y)


class SlowBasis:
    """Frequent directions by singular values of stacked rows; `Q` (r, d)."""

    def __init__(self, d, m):
        self.m, self.rows, self.Q, self.held = m, np.zeros((0, d)), np.zeros((0, d)), []

    def widen(self, x):
        rest = x - self.Q.T @ (self.Q @ x)
        if len(self.Q) < self.m and np.linalg.norm(rest) > 1e-6 * np.linalg.norm(x):
            rest -= self.Q.T @ (self.Q @ rest)
            self.Q = np.vstack([self.Q, rest / np.linalg.norm(rest)])

    def learn(self, x):
        """Whether the basis is another one now."""
        if np.linalg.norm(x - self.Q.T @ (self.Q @ x)) <= 1e-3 * np.linalg.norm(x):
            _, s, V = np.linalg.svd(np.vstack([self.rows, x]), full_matrices=False)
            self.rows = (s[:, None] * V)[: self.m]
            return False
        self.held.append(x)
        if len(self.held) < self.m:
            return False
        _, s, V = np.linalg.svd(np.vstack([self.rows, *self.held]), full_matrices=False)
        self.Q, self.held = V[: self.m], []
        self.rows = np.sqrt(np.maximum(s[: self.m] ** 2 - s[self.m] ** 2, 0))[:, None] * self.Q
        return True


class SlowModel:
    """AIOLI for one class with a full P, put back into its family after every lesson."""

    def __init__(self, d, agent):
        self.P, self.h, self.agent = np.eye(d) / agent.regularization, np.zeros(d), agent

    def margin(self, x):
        m, q, w = x @ self.h, x @ self.P @ x, self.agent.virtual_weight
        ends = -abs(m) - 1, abs(m) + 1
        return brentq(lambda z: z - m + w * q / 2 * math.tanh(z / 2), *ends, xtol=1e-14, rtol=1e-14)

    def update(self, x, z, y):
        """A + kappa x x' and b + (kappa z - g / 2) x; return kappa x x'."""
        kappa, g = self.agent.curvature * expit(z) * expit(-z), -y * expit(-y * z)
        v = self.P @ x
        down = 1 / (1 + kappa * x @ v)
        self.h += (kappa * z - g / 2 - kappa * x @ self.h) * down * v
        self.P -= kappa * down * np.outer(v, v)
        return kappa * np.outer(x, x)

    def learn_in(self, Q, x, z, y):
        """Do so in Q, and outside of it spread evenly what A gains."""
        outside = np.eye(len(x)) - Q.T @ Q
        old = np.linalg.inv(self.P)
        new = old + self.update(x, z, y)
        self.P = Q.T @ (Q @ self.P @ Q.T) @ Q + outside * (len(x) - len(Q)) / np.trace(outside @ new)

    def keep_block(self, Q):
        d, r = Q.shape[1], len(Q)
        block = Q @ self.P @ Q.T
        outside = (np.trace(self.P) - np.trace(block)) / (d - r)
        self.P = Q.T @ block @ Q + outside * (np.eye(d) - Q.T @ Q)


@pytest.mark.parametrize(("K", "d", "m"), [(2, 7, 3), (3, 9, 4)])
def test_a_sketch_equals_the_slow_form(stream, K, d, m):
    X, y = stream(K, d, 200, noise=0.2)
    agent = make(K, d, sketch_size=m, challenger=0.0, sharpness=2.0)
    basis, models = SlowBasis(d + 1, m), [SlowModel(d + 1, agent) for _ in range(K)]
    for x, label in zip(X, y):
        decision, full = agent.act(x), np.append(x, agent.intercept)
        np.testing.assert_allclose(decision.payload, [model.margin(full) for model in models], rtol=0, atol=1e-7)
        played, correct = models[decision.action], decision.action == label
        basis.widen(full)
        played.learn_in(basis.Q, full, decision.payload[decision.action], 1 if correct else -1)
        if basis.learn(full):
            for model in models:
                model.keep_block(basis.Q)
        agent.learn(x, decision, correct)
    assert agent.diagnostics()["sketch_shrinks"] > 40
    assert 0.05 < agent.diagnostics()["sketch_outside"] < 0.9


def test_diagonals_equal_the_slow_form(stream):
    K, d = 3, 6
    X, y = stream(K, d, 150, noise=0.2)
    agent = make(K, d, second_order="diagonal", challenger=0.0, sharpness=2.0)
    models = [SlowModel(d + 1, agent) for _ in range(K)]
    for x, label in zip(X, y):
        decision, full = agent.act(x), np.append(x, agent.intercept)
        np.testing.assert_allclose(decision.payload, [model.margin(full) for model in models], rtol=0, atol=1e-9)
        played, correct = models[decision.action], decision.action == label
        before = played.P.copy()
        gained = played.update(full, decision.payload[decision.action], 1 if correct else -1)
        played.P = np.diag(1.0 / (1.0 / np.diag(before) + np.diag(gained)))
        agent.learn(x, decision, correct)


@pytest.mark.parametrize(("d", "rank", "size"), [(9, 9, 32), (9, 9, 10), (30, 5, 6)])
@pytest.mark.parametrize("challenger", [0.0, 10.0])
def test_where_contexts_span_no_more_directions_than_the_sketch_it_is_full(d, rank, size, challenger):
    """The intercept is a direction, too."""
    X, y = low_rank(4, d, rank, 400)
    sketch, full = (make(4, d, second_order=o, challenger=challenger, **s)
                    for o, s in (("sketch", {"sketch_size": size}), ("full", {})))  # fmt: skip
    ours, theirs = play(sketch, X, y), play(full, X, y)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.p_true, theirs.p_true, rtol=0, atol=1e-8)
    assert sketch.state.sketch.counts[[ROWS, SHRINKS]].tolist() == [rank + 1, 0]
    assert sketch.diagnostics() == full.diagnostics() | {"sketch_shrinks": 0, "sketch_outside": 0.0}


def test_both_sides_of_a_duel_turn_with_the_basis_and_the_loser_no_more():
    """A far too strong ridge against a good one, on either side: what the winner does is as with no other side."""
    X, y = low_rank(4, 20, 6, 500, 0.3)
    for winner, ridge, factor in ((0, 0.05, 3000.0), (1, 150.0, 1.0 / 3000.0)):
        agent = make(4, 20, sketch_size=8, challenger=factor, regularization=ridge)
        play(agent, X[:400], y[:400])
        assert agent.diagnostics()["duel_winner"] == winner
        sides = agent.state.rival, agent.state.oracle
        lost = copy.deepcopy(sides[winner])
        turned = int(agent.state.sketch.counts[SHRINKS])
        play(agent, X[400:], y[400:])
        assert agent.state.sketch.counts[SHRINKS] > turned > 20
        for name in ("B", "p", "H", "E"):
            assert np.array_equal(getattr(lost.inverses, name), getattr(sides[winner].inverses, name))


def test_feedback_that_comes_late_is_learnt_at_the_basis_of_then():
    X, y = low_rank(3, 20, 6, 300, 0.3)
    agent = make(3, 20, sketch_size=5)
    waiting = [(t, agent.act(X[t])) for t in range(20)]
    play(agent, X[20:], y[20:])
    rounds, turned = int(agent.state.rounds[0]), int(agent.state.sketch.counts[SHRINKS])
    for t, decision in reversed(waiting):
        agent.learn(X[t], decision, decision.action == y[t])
    assert agent.state.rounds[0] == rounds + 20
    assert agent.state.sketch.counts[SHRINKS] == turned + 4
    assert np.isfinite(agent.act(X[0]).payload).all()


@pytest.mark.parametrize("second_order", ["sketch", "diagonal"])
@pytest.mark.parametrize("unit", [1.0, 1e-100, 1e100])
def test_contexts_in_other_units_and_odd_ones(second_order, unit):
    """Zeros, one context for ever, and parts whose squares are 0."""
    X, y = low_rank(3, 12, 4, 200, 0.3)
    X = np.array(X)
    X[20:25], X[30:35], X[60:120] = 0.0, 1e-200, X[60]
    size = {"sketch_size": 5} if second_order == "sketch" else {}
    trace, one = Trace.empty(200), make(3, 12, second_order=second_order, **size)
    agent = make(3, 12, radius=unit, second_order=second_order, **size)
    agent.play_block(as_contexts(unit * X), y, trace)
    np.testing.assert_allclose(trace.p_true, play(one, as_contexts(X), y).p_true, rtol=0, atol=1e-6)
    assert np.isfinite(trace.p_true).all()


def test_only_turns_of_the_basis_allocate(allocations):
    """LAPACK's work space and its answer: less than ten arrays a turn, the same number each time."""
    X, y = low_rank(3, 12, 4, 450, 0.3)
    agent = make(3, 12, **SKETCH)
    play(agent, X[:50], y[:50])
    counts, turns = [allocations().alloc], [int(agent.state.sketch.counts[SHRINKS])]
    for part in (slice(0, 50), slice(50, 450)):
        play(agent, X[part], y[part])
        counts.append(allocations().alloc)
        turns.append(int(agent.state.sketch.counts[SHRINKS]))
    (few, many), (fewer, more) = np.diff(counts), np.diff(turns)
    assert more > fewer > 0
    each, left = divmod(int(many - few), int(more - fewer))
    assert left == 0
    assert each < 10


def test_a_state_whose_counts_point_beyond_the_sketch_is_refused():
    X, y = low_rank(3, 12, 4, 60, 0.3)
    agent = make(3, 12, **SKETCH)
    play(agent, X, y)
    for slot, value in ((ROWS, 5), (BUFFERED, 4), (BUFFERED, -1)):
        state = copy.deepcopy(agent.get_state())
        state["state"].sketch.counts[slot] = value
        with pytest.raises(UsageError, match="counts must lie in"):
            agent.set_state(state)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"second_order": "half"}, "second_order must be one of 'auto', 'full', 'diagonal', 'sketch', got 'half'"),
        ({"sketch_size": 0}, "sketch_size must be at least 1, got 0"),
        ({"sketch_size": 8.0}, "sketch_size must be an integer, got 8.0"),
        (
            {"second_order": "full", "sketch_size": 8},
            "sketch_size needs second_order = 'sketch', got second_order = 'full'",
        ),
        ({"oracle": "logistic"}, "second_order applies to oracle = 'aioli' only, not to 'logistic'"),
        ({"oracle": "b-grid", "second_order": "diagonal"}, "second_order applies to oracle = 'aioli' only"),
    ],
)
def test_refuses_bad_settings(chosen, message):
    with pytest.raises(UsageError, match=message):
        make(3, 4, **chosen)


def test_sparse_contexts_are_refused_and_a_class_is_added():
    """Nobody makes a long sparse block dense unasked."""
    assert not FastCB.sparse
    assert FastCB.needs_dense(Problem(300, 4, 1.0), SKETCH)
    for form in ("sketch", "diagonal"):
        assert grown(make(3, 4, second_order=form)).problem.n_classes == 4
