"""The duel of two sets of AIOLI models under FastCB and SquareCB: a slow form, single sets, delay, both outcomes."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.errors import UsageError
from banditlab.numerics.packed_symmetric import dense
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def make(K, d, cls=FastCB, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


@pytest.mark.parametrize("cls", [FastCB, SquareCB])
def test_contract(one_bit_contract, stream, cls):
    X, y = stream(3, 5, 150, noise=0.3)
    one_bit_contract(lambda: make(3, 5, cls, sharpness=2.0), X, y)


@pytest.mark.parametrize("cls", [FastCB, SquareCB])
@pytest.mark.parametrize(
    ("ridge", "challenger", "better"), [(0.05, 10.0, None), (0.05, 3000.0, 0), (150.0, 1 / 3000, 1)]
)
@pytest.mark.few(2)
def test_equals_two_single_sets_and_a_count(stream, cls, ridge, challenger, better):
    """The single sets are tested against full matrices; here they play the two sides, fed the duel's own actions."""
    K, d, T = 4, 6, 500
    X, y = stream(K, d, T, noise=0.3 if better is None else 0.0)
    agent = make(K, d, cls, challenger=challenger, regularization=ridge)
    sides = [make(K, d, cls, challenger=0.0, regularization=ridge * factor) for factor in (1.0, challenger)]
    points, winner, decided, heard = [0, 0], -1, None, 0
    for t, (x, label) in enumerate(zip(X, y)):
        decision, alone = agent.act(x), [side.act(x) for side in sides]
        open_ = [0, 1] if winner < 0 else [winner]
        p = np.mean([alone[i].probabilities for i in open_], axis=0)
        np.testing.assert_allclose(decision.probabilities, p, rtol=0, atol=1e-9)
        for i in open_:
            np.testing.assert_allclose(decision.payload[i * K :][:K], alone[i].payload, rtol=1e-9, atol=1e-9)
        correct = decision.action == label
        for i in open_:
            sides[i].learn(x, alone[i]._replace(action=decision.action), correct)
        if 1 in open_ and correct:  # the challenger's best other class hears that it was wrong
            z = np.array(alone[1].payload)
            z[decision.action] = -np.inf
            other = int(np.argmax(z))
            full = np.append(x, 0.5)
            if full @ dense(sides[1].state.oracle.inverses.P[other], len(full)) @ full <= 1.0:
                heard += 1
                sides[1].learn(x, alone[1]._replace(action=other), False)
                sides[1].state.rounds[0] -= 1  # one round, two lessons
        if winner < 0 and correct:
            best = [int(np.argmax(side.payload)) for side in alone]
            if best[0] != best[1] and decision.action in best:
                points[best.index(decision.action)] += 1
                if abs(points[0] - points[1]) > 2.5 * math.sqrt(sum(points) + 1):
                    winner, decided = int(points[1] > points[0]), t
        agent.learn(x, decision, correct)
        assert agent.diagnostics() == {
            "duel_winner": winner,
            "duel_points": points[0],
            "duel_points_challenger": points[1],
        }
    assert sum(points) > 5
    assert heard > 0
    if better is not None:  # a far too strong ridge against a good one, on either side
        assert decided is not None
        assert winner == better


def test_the_loser_is_left_as_it_is(stream):
    X, y = stream(4, 6, 600)
    agent = make(4, 6, challenger=3000.0, regularization=0.05)
    agent.play_block(X[:500], y[:500], Trace.empty(500))
    assert agent.diagnostics()["duel_winner"] == 0
    loser = copy.deepcopy(agent.state.rival)
    agent.play_block(X[500:], y[500:], Trace.empty(100))
    assert np.array_equal(loser.inverses.P, agent.state.rival.inverses.P)
    assert np.array_equal(loser.inverses.H, agent.state.rival.inverses.H)


def test_feedback_that_arrives_after_the_decision(stream):
    """A round acted in the open duel and learnt after it teaches the winner only, and gives no point."""
    X, y = stream(4, 6, 501)
    agent = make(4, 6, challenger=3000.0, regularization=0.05)
    late = agent.act(X[500])
    agent.play_block(X[:500], y[:500], Trace.empty(500))
    before, points = copy.deepcopy(agent.state), agent.state.points.copy()
    agent.learn(X[500], late, True)
    assert np.array_equal(points, agent.state.points)
    assert np.array_equal(before.rival.inverses.P, agent.state.rival.inverses.P)
    assert not np.array_equal(before.oracle.inverses.P, agent.state.oracle.inverses.P)


def test_settings():
    assert make(3, 4).challenger == 10.0
    assert make(3, 4, challenger=0.0).diagnostics() == {}
    assert make(3, 4, oracle="logistic").diagnostics() == {}
    with pytest.raises(UsageError, match="challenger must be a number that is 0 or above"):
        make(3, 4, challenger=-1.0)
    with pytest.raises(UsageError, match="challenger applies to oracle = 'aioli' only"):
        make(3, 4, oracle="b-grid", challenger=2.0)
