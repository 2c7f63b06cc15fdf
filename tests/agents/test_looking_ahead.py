"""Agents whose blocks look ahead: the rounds and the states of those that play one by one, however a block is cut."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.agents.ridge.confidit import Confidit
from banditlab.agents.ridge.lints import LinTS
from banditlab.agents.ridge.linucb import LinUCB
from banditlab.errors import UsageError
from banditlab.numerics import class_inverses
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.players.rounds import no_prefetch
from banditlab.problem import Problem
from tests.numerics.dense_inverses import dense_inverses

pytestmark = pytest.mark.slow  # large problems are played by kernels of their own, which take long to compile
PLAYERS = [
    (LinUCB, {"regularization": 1e-3}),
    (Confidit, {"alpha": 0.5}),
    (FastCB, {}),
    (FastCB, {"oracle": "b-grid", "grid_size": 3}),
    (FastCB, {"challenger": 0.0, "intercept": 0.0}),
]
ONE_KERNEL = [(LinTS, {"deviation": 0.3}), (SquareCB, {})]
"""Those whose kernels differ from the others' in a line: the loop over blocks is compiled for them and no more."""
CUTS = [(), (1, 3, 60, 61), (64, 128, 192, 256), (5, 10, 15, 20, 150, 157)]


def make(monkeypatch, cls, K, d, ahead, **settings):
    monkeypatch.setattr(class_inverses, "LARGE", 1000 if ahead else 2**60)  # the stub in place of a challenger is small
    agent = cls(Problem(d, K, 1.0), np.random.default_rng(7), **settings)
    assert (agent.prefetch() is not no_prefetch) == ahead
    return agent


def play(agent, X, y, cuts=()):
    trace = Trace.empty(len(y))
    for i, j in zip([0, *cuts], [*cuts, len(y)], strict=True):
        agent.play_block(X[i:j], y[i:j], trace.part(slice(i, j)))
    return trace


def parts(state):
    """The named tuples `Inverses` inside a state."""
    if isinstance(state, class_inverses.Inverses):
        return [state]
    return [part for field in state if isinstance(field, tuple) for part in parts(field)]


def assert_same(agent, other):
    """Every matrix and vector to 1e-9 of its largest entry, everything else that is kept exactly."""
    for ours, theirs in zip(parts(agent.state), parts(other.state), strict=True):
        assert ours.ahead is None or ours.ahead.place[0] == 0
        assert theirs.ahead is None
        d = ours.H.shape[1] if ours.low is None else ours.low.d
        matrices = tuple(dense_inverses(each, d) for each in (ours, theirs))
        for A, B in (matrices, (ours.H, theirs.H)):
            np.testing.assert_allclose(A, B, rtol=0, atol=1e-9 * max(1e-300, np.abs(B).max()))
    for name in ("points", "winner", "rounds", "tally"):
        if hasattr(agent.state, name):
            np.testing.assert_array_equal(getattr(agent.state, name), getattr(other.state, name))


def with_oddities(X):
    """Contexts with zeros, x = 0, and some that nearly come again: exactly, and classes played there would tie to rounding."""
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.2, 0.0, X)
    X[::9] = np.linspace(1.0, 0.5, len(X[::9]))[:, None] * X[1]
    X[40:44] = 0.0
    return as_contexts(X)


@pytest.mark.parametrize(("cls", "settings"), PLAYERS + ONE_KERNEL)
@pytest.mark.parametrize(("K", "d"), [(2, 16), (5, 27)])
def test_blocks_are_rounds_one_by_one(monkeypatch, stream, cls, settings, K, d):
    X, y = stream(K, d, 300, noise=0.2)
    X = with_oddities(X)
    slow = make(monkeypatch, cls, K, d, False, **settings)
    expected = play(slow, X, y)
    for cuts in CUTS:
        agent = make(monkeypatch, cls, K, d, True, **settings)
        trace = play(agent, X, y, cuts)
        np.testing.assert_array_equal(trace.action, expected.action)
        np.testing.assert_allclose(trace.p_true, expected.p_true, rtol=0, atol=1e-9)
        assert agent.rng.bit_generator.state == slow.rng.bit_generator.state
        assert_same(agent, slow)


@pytest.mark.parametrize(("cls", "settings"), PLAYERS)
def test_between_blocks_rounds_go_one_by_one(monkeypatch, stream, cls, settings, tmp_path):
    """Blocks, rounds through act and learn, a copy through pickle and one through a file take turns."""
    K, d = 3, 20
    X, y = stream(K, d, 200, noise=0.2)
    slow = make(monkeypatch, cls, K, d, False, **settings)
    expected = play(slow, X, y)
    agent = make(monkeypatch, cls, K, d, True, **settings)
    play(agent, X[:70], y[:70])
    for t in range(70, 90):
        decision = agent.act(X[t])
        assert decision.action == expected.action[t]
        agent.learn(X[t], decision, decision.action == y[t])
    agent = pickle.loads(pickle.dumps(agent))
    np.testing.assert_array_equal(play(agent, X[90:130], y[90:130]).action, expected.action[90:130])
    agent.save(tmp_path / "agent.npz")
    again = cls.load(tmp_path / "agent.npz")
    for player in (agent, again):
        np.testing.assert_array_equal(play(player, X[130:], y[130:]).action, expected.action[130:])
        assert_same(player, slow)


def test_a_duel_may_end_within_a_stretch(monkeypatch, stream):
    K, d = 4, 6
    X, y = stream(K, d, 500)
    for winner, settings in ((0, (0.05, 3000.0)), (1, (150.0, 1.0 / 3000.0))):
        ridge = dict(zip(("regularization", "challenger"), settings, strict=True))
        slow, agent = (make(monkeypatch, FastCB, K, d, ahead, **ridge) for ahead in (False, True))
        expected, trace = play(slow, X, y), play(agent, X, y)
        np.testing.assert_array_equal(trace.action, expected.action)
        assert agent.state.winner[0] == winner
        assert_same(agent, slow)


@pytest.mark.parametrize("cls", [LinUCB, FastCB])
def test_a_block_with_a_context_that_is_no_number_leaves_what_was(monkeypatch, stream, cls):
    """It is refused as a whole, before any context is looked at."""
    K, d, bad = 3, 16, 21
    X, y = stream(K, d, 100)
    spoilt = np.array(X)
    spoilt[bad] = np.nan
    slow, agent = (make(monkeypatch, cls, K, d, ahead) for ahead in (False, True))
    for each in (slow, agent):
        play(each, X[:bad], y[:bad])
    with pytest.raises(UsageError, match=f"context {bad} of the block must be finite, got nan"):
        play(agent, as_contexts(spoilt), y)
    assert_same(agent, slow)


@pytest.mark.parametrize("cls", [LinUCB, FastCB])
def test_stretches_allocate_nothing(monkeypatch, stream, cls, allocations):
    X, y = stream(3, 40, 600)
    agent = make(monkeypatch, cls, 3, 40, True)
    play(agent, X[:200], y[:200])
    counts = [allocations().alloc]
    for n in (100, 400):
        play(agent, X[200 : 200 + n], y[200 : 200 + n])
        counts.append(allocations().alloc)
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_small_problems_and_first_order_oracles_do_not_look(monkeypatch):
    assert LinUCB(Problem(65, 10, 1.0), np.random.default_rng(0)).prefetch() is no_prefetch
    assert LinUCB(Problem(256, 10, 1.0), np.random.default_rng(0)).prefetch() is not no_prefetch
    monkeypatch.setattr(class_inverses, "LARGE", 0)
    assert FastCB(Problem(65, 10, 1.0), np.random.default_rng(0), oracle="logistic").prefetch() is no_prefetch
    agent = FastCB(Problem(65, 10, 1.0), np.random.default_rng(0))
    assert copy.deepcopy(agent).prefetch() is agent.prefetch()
