"""Matrices kept in float32: a slow form that rounds what is kept, the play of double precision, memory, settings, files."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.agents.ridge.lints import LinTS
from banditlab.agents.ridge.linucb import LinUCB
from banditlab.agents.ridge.linucb import learn_kernel as learn
from banditlab.errors import UsageError
from banditlab.numerics import class_inverses
from banditlab.players.agent import Trace
from banditlab.policy.growing import grown
from banditlab.problem import Problem

AGENTS = [LinUCB, LinTS, FastCB, SquareCB]
SIZES = [False, True]
"""Whether models are large."""


def make(cls, K, d, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **{"precision": "single", **settings})


def play(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def sets(agent):
    """The sets of models of an agent."""
    state = agent.state
    return [state.inverses] if hasattr(state, "inverses") else [state.oracle.inverses, state.rival.inverses]


@pytest.mark.slow
@pytest.mark.parametrize("cls", AGENTS)
def test_contract(one_bit_contract, stream, cls):
    X, y = stream(3, 9, 120, noise=0.3)
    one_bit_contract(lambda: make(cls, 3, 9), X, y)


@pytest.mark.slow
@pytest.mark.parametrize("large", SIZES)
def test_equals_a_ridge_regression_whose_inverses_are_rounded_after_every_round(monkeypatch, stream, large):
    """Of whole matrices; where there are rows they are what is rounded, and the scores differ by a few times 1e-7."""
    monkeypatch.setattr(class_inverses, "LARGE", 1000 if large else 2**60)
    K, d = 3, 10
    X, y = stream(K, d, 200, noise=0.2)
    agent = make(LinUCB, K, d)
    P, w = np.tile(np.eye(d, dtype=np.float32) / np.float32(agent.regularization), (K, 1, 1)), np.zeros((K, d))
    for x, label in zip(X, y):
        wide = P.astype(np.float64)
        scores = w @ x + agent.confidence * np.sqrt(np.einsum("i,kij,j->k", x, wide, x))
        decision = agent.act(x)
        np.testing.assert_allclose(agent.state.z, scores, rtol=0, atol=1e-5 if large else 1e-9)
        k, correct = decision.action, decision.action == label
        v = wide[k] @ x
        w[k] += (correct - x @ w[k]) / (1 + x @ v) * v
        rounded = wide[k] - np.outer(v, v) / (1 + x @ v)
        # Diagonal blocks are kept halved, which float32 halves exactly.
        P[k] = np.tril(rounded).astype(np.float32) + np.tril(rounded, -1).T.astype(np.float32)
        agent.learn(x, decision, correct)


@pytest.mark.slow
@pytest.mark.parametrize("cls", AGENTS)
@pytest.mark.parametrize("large", SIZES)
def test_plays_as_in_double_precision_where_no_two_classes_tie(monkeypatch, stream, cls, large):
    monkeypatch.setattr(class_inverses, "LARGE", 1000 if large else 2**60)
    K, d = 4, 24
    X, y = stream(K, d, 600, noise=0.2)
    single, double = make(cls, K, d), make(cls, K, d, precision="double")
    ours, theirs = play(single, X, y), play(double, X, y)
    assert (ours.action != theirs.action).sum() <= 3
    assert abs(int(ours.correct.sum()) - int(theirs.correct.sum())) <= 6
    for one, other in zip(sets(single), sets(double)):
        assert one.P.dtype == np.float32
        assert 2 * one.P.nbytes == other.P.nbytes
        assert (one.low is None) == (other.low is None) == (not large)


@pytest.mark.slow
def test_a_lesson_on_a_unit_vector_halves_its_entry(monkeypatch):
    """Contexts e_j at a ridge of 1, to the rounding of float32: a row holds the root of one half."""
    for large in (False, True):
        monkeypatch.setattr(class_inverses, "LARGE", 0 if large else 2**60)
        agent = make(LinUCB, 2, 8, regularization=1.0, confidence=0.0)
        for j in range(8):
            decision = agent.act(np.eye(8)[j])
            agent.learn(np.eye(8)[j], decision, True)
            P = class_inverses.dense_inverses(agent.state.inverses, 8)[decision.action]
            np.testing.assert_allclose(P[j, j], 0.5, rtol=3e-7)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [0.1, 0.003])
def test_the_width_stays_right_over_many_rounds_and_never_falls_below(ridge):
    """A class of 20,000 lessons; then contexts of five directions of 32, where it stops falling, as the page says."""
    d = 32
    rng = np.random.default_rng(0)
    for directions, tolerance in ((d, 1e-4), (5, 3e-4 / ridge)):
        X = rng.standard_normal((20_000, directions)) @ rng.standard_normal((directions, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        A = ridge * np.eye(d) + X[:-1].T @ X[:-1]
        agent = make(LinUCB, 2, d, regularization=ridge)
        agent.state.inverses.P[1] = 0.0  # so that class 0 alone is played
        agent.state.inverses.H[0, 0] = 0.0
        for x in X[:-1]:
            learn(agent.state, x, 0, np.ones(2), np.zeros(0), False)
        decision = agent.act(X[-1])
        exact = X[-1] @ np.linalg.solve(A, X[-1])
        assert decision.action == 0
        assert -1e-6 * exact <= agent.state.q[0] - exact <= tolerance


@pytest.mark.slow
@pytest.mark.parametrize("cls", AGENTS[:3])
def test_files_keep_the_precision(stream, cls, tmp_path):
    X, y = stream(3, 9, 120, noise=0.3)
    agent = make(cls, 3, 9)
    play(agent, X[:60], y[:60])
    agent.save(tmp_path / "agent.npz")
    again = cls.load(tmp_path / "agent.npz")
    assert again.precision == "single"
    np.testing.assert_array_equal(play(agent, X[60:], y[60:]).action, play(again, X[60:], y[60:]).action)
    double = cls(Problem(9, 3, 1.0), np.random.default_rng(0))
    with pytest.raises(UsageError, match=r"float64 .* got an array float32"):
        double.set_state(agent.get_state())


@pytest.mark.parametrize(
    ("cls", "chosen", "message"),
    [
        (LinUCB, {"precision": "half"}, "precision must be one of 'double', 'single', got 'half'"),
        (
            LinTS,
            {"second_order": "sketch"},
            "precision is read by second_order = 'full' only, and this one is 'sketch'",
        ),
        (
            FastCB,
            {"second_order": "diagonal"},
            "precision is read by second_order = 'full' only, and this one is 'diagonal'",
        ),
        (FastCB, {"oracle": "logistic", "challenger": 10.0}, "precision is read by oracle = 'aioli' only"),
    ],
)
def test_refuses_bad_settings(cls, chosen, message):
    with pytest.raises(UsageError, match=message):
        make(cls, 3, 5, **chosen)


@pytest.mark.slow
@pytest.mark.parametrize("cls", AGENTS[::2])
@pytest.mark.parametrize("large", SIZES)
def test_contexts_in_other_units_give_the_same_play_as_far_as_float32_goes(monkeypatch, stream, cls, large):
    """Units are powers of two, so that not a bit differs; beyond them the setting is refused."""
    monkeypatch.setattr(class_inverses, "LARGE", 1000 if large else 2**60)
    X, y = stream(3, 9, 200, noise=0.2)
    play_of = {}
    for unit in (2.0**-39, 1.0, 2.0**39):
        agent = cls(Problem(9, 3, unit), np.random.default_rng(7), precision="single")
        play_of[unit] = play(agent, X * unit, y)
    for unit in (2.0**-39, 2.0**39):
        np.testing.assert_array_equal(play_of[unit].action, play_of[1.0].action)
        np.testing.assert_array_equal(play_of[unit].p_true, play_of[1.0].p_true)
    for unit in (1e-13, 1e13):
        with pytest.raises(UsageError, match=r"R in 1e-12 \.\.\. 1e\+12, got R = 1e[-+]13"):
            cls(Problem(9, 3, unit), np.random.default_rng(7), precision="single")


@pytest.mark.parametrize(
    ("cls", "chosen"),
    [
        (LinUCB, {"regularization": 9e-6}),
        (LinTS, {"regularization": 2e5}),
        (FastCB, {"regularization": 9e-6, "challenger": 0.0}),
        (FastCB, {"regularization": 2e4}),
        (FastCB, {"regularization": 2e-5, "challenger": 0.1}),
    ],
)
def test_refuses_what_float32_cannot_tell_apart(cls, chosen):
    with pytest.raises(UsageError, match=r"takes a regularization in 1e-05 R\^2 \.\.\. 100000 R\^2, got"):
        make(cls, 3, 5, **chosen)
    make(cls, 3, 5, **chosen | {"precision": "double"})
    make(cls, 3, 5, regularization=1e-5, **({"challenger": 0.0} if cls is FastCB else {}))


@pytest.mark.parametrize("cls", [LinUCB, FastCB])
def test_half_the_memory_is_asked_for(cls):
    problem = Problem(512, 10, 1.0)
    single, double = (cls.least_bytes(problem, {"precision": p}) for p in ("single", "double"))
    assert 2.0 * single == double
    agent = make(cls, 10, 512)
    assert single <= sum(each.P.nbytes for each in sets(agent)) <= 1.05 * single


@pytest.mark.slow
def test_a_class_more_begins_where_the_others_did(stream):
    X, y = stream(3, 9, 120, noise=0.3)
    agent = make(LinUCB, 3, 9)
    play(agent, X, y)
    larger = grown(agent)
    assert larger.state.inverses.P.dtype == np.float32
    np.testing.assert_array_equal(larger.state.inverses.P[:3], agent.state.inverses.P)
