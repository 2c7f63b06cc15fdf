"""river under our interface against river called directly."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.peers.river import RiverLinUCB, RiverLogistic
from banditlab.problem import Problem

pytest.importorskip("river", reason='river is missing: pip install -e ".[peers]"')

from river import bandit, linear_model, optim


def logistic(K, d, **settings):
    return RiverLogistic(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


def linucb(K, d, **settings):
    return RiverLinUCB(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [({}, {}), ({"l2": 0.1, "learning_rate": 0.3, "gamma": 0.2}, {"l2": 0.1, "optimizer": optim.SGD(0.3)})],
)
def test_logistic_equals_river_s_own_models(stream, settings, arguments):
    K, d = 4, 6
    X, y = stream(K, d, 500)
    agent = logistic(K, d, **settings)
    models = [linear_model.LogisticRegression(**arguments).clone() for _ in range(K)]
    gamma, explored, greedy = agent.gamma, 0, set()
    for x, label in zip(X, y):
        features = dict(enumerate(x.tolist()))
        forecast = [model.predict_proba_one(features)[True] for model in models]
        expected = np.full(K, gamma / K)
        expected[int(np.argmax(forecast))] += 1 - gamma
        decision = agent.act(x)
        np.testing.assert_array_equal(decision.probabilities, expected)
        explored += decision.explored
        greedy.add(int(np.argmax(forecast)))
        models[decision.action].learn_one(features, bool(decision.action == label))
        agent.learn(x, decision, decision.action == label)
    assert 0.5 * gamma * 500 < explored < 1.6 * gamma * 500
    assert greedy == set(range(K))


@pytest.mark.parametrize("settings", [{}, {"alpha": 2.0, "beta": 5.0}])
def test_linucb_equals_river_s_own_policy(stream, settings):
    K, d = 4, 6
    X, y = stream(K, d, 400)
    agent = linucb(K, d, **settings)
    policy = bandit.LinUCBDisjoint(**settings, seed=agent._policy.seed)
    for x, label in zip(X, y):
        features = dict(enumerate(x.tolist()))
        decision = agent.act(x)
        assert decision.action == policy.pull(list(range(K)), context=features)
        np.testing.assert_array_equal(decision.probabilities, np.eye(K)[decision.action])
        policy.update(decision.action, features, float(decision.action == label))
        agent.learn(x, decision, decision.action == label)
    assert len(agent._policy._bayes_lin_regs) == K


@pytest.mark.parametrize("make", [logistic, linucb])
@pytest.mark.parametrize("cut", [0, 1, 100])
def test_continues_exactly(continues, stream, make, cut):
    X, y = stream(3, 5, 200)
    continues(lambda: make(3, 5), X, y, cut)


@pytest.mark.parametrize(
    ("make", "changed"),
    [(logistic, {"gamma": 0.4}), (logistic, {"learning_rate": 1.0}), (logistic, {"l2": 1.0}),
     (linucb, {"alpha": 50.0}), (linucb, {"beta": 100.0})],
)  # fmt: skip
def test_every_setting_reaches_the_library(stream, play, make, changed):
    X, y = stream(3, 5, 300)
    assert not np.array_equal(play(make(3, 5), X, y).action, play(make(3, 5, **changed), X, y).action)


def test_ties_are_settled_by_a_generator_seeded_from_ours():
    x = np.ones(2) / 2
    first = {RiverLinUCB(Problem(2, 5, 1.0), np.random.default_rng(s)).act(x).action for s in range(40)}
    assert first == set(range(5))


@pytest.mark.parametrize(("make", "floor"), [(logistic, 0.5), (linucb, 0.75)])
def test_learns(stream, play, make, floor):
    X, y = stream(3, 8, 2000, noise=0.0)
    assert play(make(3, 8), X, y).correct[-1000:].mean() > floor


def test_logistic_tosses_its_coin_below_gamma_and_not_at_it():
    agent, x = logistic(3, 2, gamma=0.25), np.array([0.5, 0.5])
    greedy = agent._decide(x, np.array([0.25, 0.99]))
    assert (greedy.explored, greedy.action) == (False, 0)
    explored = agent._decide(x, np.array([np.nextafter(0.25, 0.0), 0.99]))
    assert (explored.explored, explored.action) == (True, 2)


def test_a_model_that_learnt_nothing_is_saved_as_zeros():
    agent = logistic(3, 2)
    x = np.array([0.5, -0.5])
    agent.learn(x, agent.act(x)._replace(action=1), True)
    state = agent.get_state()
    assert state["weights"][[0, 2]].tolist() == [[0.0, 0.0]] * 2
    assert state["weights"][1, 0] == -state["weights"][1, 1] > 0.0
    assert state["steps"].tolist() == [0, 1, 0]
