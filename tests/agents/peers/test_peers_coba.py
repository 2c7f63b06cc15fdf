"""coba under our interface against coba called directly."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.peers.coba import CobaLinTS, CobaLinUCB
from banditlab.problem import Problem

pytest.importorskip("coba", reason='coba is missing: pip install -e ".[peers]"')

from banditlab.distributions import library

BOTH = [CobaLinUCB, CobaLinTS]


def make(cls, K, d, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


def learner(agent, **settings):
    """Return coba's learner, as a user of coba makes it; of Thompson sampling with our agent's generator."""
    learners = library("coba.learners", "test")
    if isinstance(agent, CobaLinUCB):
        return learners.LinUCBLearner(features=["ax"], **settings)
    made = learners.LinTSLearner(features=["ax"], **settings)
    made._initialize([0.0] * agent.problem.n_features, agent._classes[0])
    made._nrng = np.random.Generator(type(agent._learner._nrng.bit_generator)())
    made._nrng.bit_generator.state = agent._learner._nrng.bit_generator.state
    return made


@pytest.mark.parametrize(
    ("cls", "ours", "theirs"),
    [
        (CobaLinUCB, {}, {}),
        (CobaLinUCB, {"alpha": 0.3}, {"alpha": 0.3}),
        (CobaLinTS, {}, {}),
        (CobaLinTS, {"variance": 0.1}, {"v": 0.1}),
    ],
)
def test_equals_coba_s_own_loop(stream, cls, ours, theirs):
    """coba's `predict` draws from the probabilities; where one is 1, it is the class that both play."""
    K, d = 4, 6
    X, y = stream(K, d, 250)
    agent, certain = make(cls, K, d, **ours), 0
    coba = learner(agent, **theirs)
    for x, label in zip(X, y):
        context = x.tolist()
        played, probability = coba.predict(context, agent._classes)[:2]
        decision = agent.act(x)
        assert decision.probabilities[agent._classes.index(played)] == probability
        if probability == 1.0:
            assert decision.action == agent._classes.index(played)
            certain += 1
        hit = decision.action == label
        coba.learn(context, agent._classes[decision.action], float(hit), decision.probabilities[decision.action])
        agent.learn(x, decision, hit)
    assert certain > 240


def test_linucb_is_one_ridge_regression_per_class(stream):
    """The K d joint inverse has the classes' own inverses on its diagonal, and nothing beside them."""
    K, d = 3, 5
    X, y = stream(K, d, 120)
    agent = make(CobaLinUCB, K, d)
    grams = np.array([np.eye(d)] * K)
    for x, label in zip(X, y):
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)
        grams[decision.action] += np.outer(x, x)
    expected = np.zeros((K, d, K, d))
    for k in range(K):
        expected[k, :, k] = np.linalg.inv(grams[k])
    inverse = agent._learner._A_inv.reshape(K, d, K, d)
    if not np.allclose(inverse, expected, atol=1e-8):  # the order of the crossed features is coba's
        inverse = agent._learner._A_inv.reshape(d, K, d, K).transpose(1, 0, 3, 2)
    np.testing.assert_allclose(inverse, expected, atol=1e-8)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("cut", [0, 3, 60])
def test_continues_exactly(continues, stream, cls, cut):
    X, y = stream(3, 5, 120)
    continues(lambda: make(cls, 3, 5), X, y, cut)


@pytest.mark.parametrize(("cls", "changed"), [(CobaLinUCB, {"alpha": 0.05}), (CobaLinTS, {"variance": 0.01})])
def test_every_setting_reaches_the_library(stream, play, cls, changed):
    X, y = stream(3, 5, 200)
    assert not np.array_equal(play(make(cls, 3, 5), X, y).action, play(make(cls, 3, 5, **changed), X, y).action)


def test_thompson_s_draws_come_from_our_generator(stream, play):
    X, y = stream(3, 5, 200)

    def actions(seed):
        return play(CobaLinTS(Problem(5, 3, 1.0), np.random.default_rng(seed)), X, y).action

    assert np.array_equal(actions(1), actions(1))
    assert not np.array_equal(actions(1), actions(2))


@pytest.mark.parametrize(("cls", "settings"), [(CobaLinUCB, {"alpha": 0.1}), (CobaLinTS, {"variance": 0.01})])
def test_learns(stream, play, cls, settings):
    X, y = stream(3, 8, 600, noise=0.0)
    assert play(make(cls, 3, 8, **settings), X, y).correct[-300:].mean() > 0.75
