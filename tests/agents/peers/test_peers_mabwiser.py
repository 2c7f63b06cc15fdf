"""mabwiser under our interface against mabwiser called directly."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.peers.mabwiser import MABWiserLinTS, MABWiserLinUCB
from banditlab.problem import Problem

pytest.importorskip("mabwiser", reason='mabwiser is missing: pip install -e ".[peers]"')

from mabwiser.mab import MAB, LearningPolicy

BOTH = [MABWiserLinUCB, MABWiserLinTS]


def make(cls, K, d, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("settings", [{}, {"alpha": 0.1, "l2_lambda": 0.5}])
@pytest.mark.parametrize("cls", BOTH)
def test_equals_mabwiser_s_own_loop(stream, cls, settings, batch):
    K, d = 4, 6
    X, y = stream(K, d, 250)
    agent = make(cls, K, d, batch=batch, **settings)
    mab = MAB(list(range(K)), getattr(LearningPolicy, cls.policy)(**settings), seed=agent._mab.seed)
    waiting = []
    for t, (x, label) in enumerate(zip(X, y)):
        decision = agent.act(x)
        if t < batch:  # mabwiser cannot predict before it was fitted
            np.testing.assert_array_equal(decision.probabilities, np.full(K, 1 / K))
        else:
            assert decision.action == mab.predict([x.tolist()])
            np.testing.assert_array_equal(decision.probabilities, np.eye(K)[decision.action])
        waiting.append((decision.action, int(decision.action == label), x.tolist()))
        agent.learn(x, decision, decision.action == label)
        if len(waiting) == batch:
            actions, rewards, contexts = map(list, zip(*waiting))
            (mab.partial_fit if t >= batch else mab.fit)(actions, rewards, contexts)
            waiting = []


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("cut", [0, 3, 60])
def test_continues_exactly(continues, stream, cls, batch, cut):
    X, y = stream(3, 5, 120)
    continues(lambda: make(cls, 3, 5, batch=batch), X, y, cut)


@pytest.mark.parametrize("changed", [{"alpha": 0.05}, {"l2_lambda": 20.0}, {"batch": 30}])
@pytest.mark.parametrize("cls", BOTH)
def test_every_setting_reaches_the_library(stream, play, cls, changed):
    X, y = stream(3, 5, 200)
    assert not np.array_equal(play(make(cls, 3, 5), X, y).action, play(make(cls, 3, 5, **changed), X, y).action)


def test_thompson_s_draws_come_from_our_generator(stream, play):
    X, y = stream(3, 5, 200)

    def actions(seed):
        return play(MABWiserLinTS(Problem(5, 3, 1.0), np.random.default_rng(seed)), X, y).action

    assert np.array_equal(actions(1), actions(1))
    assert not np.array_equal(actions(1), actions(2))


@pytest.mark.parametrize("cls", BOTH)
def test_learns(stream, play, cls):
    X, y = stream(3, 8, 600, noise=0.0)
    assert play(make(cls, 3, 8, alpha=0.1), X, y).correct[-300:].mean() > 0.75
