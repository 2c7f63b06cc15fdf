"""contextualbandits under our interface against contextualbandits called directly."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.peers.contextualbandits import (
    SEEDS,
    ContextualBanditsLinTS,
    ContextualBanditsLinUCB,
    ContextualBanditsSGD,
)
from banditlab.errors import UsageError
from banditlab.problem import Problem

pytest.importorskip("contextualbandits", reason='contextualbandits is missing: pip install -e ".[peers]"')

from contextualbandits.online import EpsilonGreedy, LinTS, LinUCB
from sklearn.linear_model import SGDClassifier

ALL = [ContextualBanditsLinUCB, ContextualBanditsLinTS, ContextualBanditsSGD]


def make(cls, K, d, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


def linucb(K, seed, **settings):
    return LinUCB(K, random_state=np.random.default_rng(seed), **settings)


def lints(K, seed, **settings):
    form = {"sample_from": "ci", "method": "sm", "beta_prior": "auto"}
    return LinTS(K, **form, random_state=np.random.default_rng(seed), **settings)


def sgd(K, seed, **settings):
    base = SGDClassifier(loss="log_loss", random_state=seed)
    return EpsilonGreedy(base, K, batch_train=True, random_state=np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize(
    ("cls", "policy", "ours", "theirs"),
    [
        (ContextualBanditsLinUCB, linucb, {}, {}),
        (ContextualBanditsLinUCB, linucb, {"alpha": 0.3, "regularization": 2.0}, {"alpha": 0.3, "lambda_": 2.0}),
        (ContextualBanditsLinTS, lints, {}, {}),
        (ContextualBanditsLinTS, lints, {"deviation": 0.1, "regularization": 2.0}, {"v_sq": 0.1, "lambda_": 2.0}),
        (ContextualBanditsSGD, sgd, {}, {}),
        (ContextualBanditsSGD, sgd, {"gamma": 0.5, "decay": 1.0}, {"explore_prob": 0.5, "decay": None}),
    ],
)
@pytest.mark.few(4)
def test_equals_the_library_s_own_loop(stream, cls, policy, ours, theirs, batch):
    K, d = 4, 6
    X, y = stream(K, d, 80)
    agent = make(cls, K, d, batch=batch, **ours)
    online = policy(K, agent._seed, **theirs)
    waiting = []
    for x, label in zip(X, y):
        decision = agent.act(x)
        assert decision.action == online.predict(x[None])[0]
        np.testing.assert_array_equal(decision.probabilities, np.eye(K)[decision.action])
        agent.learn(x, decision, decision.action == label)
        waiting.append((x, decision.action, float(decision.action == label)))
        if len(waiting) == batch:
            contexts, actions, rewards = map(np.array, zip(*waiting))
            online.partial_fit(contexts, actions, rewards)
            waiting = []


def test_linucb_keeps_the_inverses_of_the_classes(stream):
    """In single precision, of the contexts with a 1 behind them."""
    K, d = 3, 5
    X, y = stream(K, d, 150)
    agent = make(ContextualBanditsLinUCB, K, d, regularization=2.0)
    grams, sums = np.array([2.0 * np.eye(d + 1)] * K), np.zeros((K, d + 1))
    for x, label in zip(X, y):
        decision = agent.act(x)
        hit = decision.action == label
        agent.learn(x, decision, hit)
        z = np.append(x, 1.0)
        grams[decision.action] += np.outer(z, z)
        sums[decision.action] += hit * z
    for k, learner in enumerate(agent._policy._oracles.algos):
        assert learner.model.coef_.dtype == np.float32
        np.testing.assert_allclose(learner.model.coef_, np.linalg.solve(grams[k], sums[k]), atol=1e-4)


def test_lints_draws_scores_of_the_stated_law(stream):
    K, d = 2, 4
    X, y = stream(K, d, 300)
    agent = make(ContextualBanditsLinTS, K, d, deviation=0.5, regularization=2.0)
    grams, sums = np.array([2.0 * np.eye(d + 1)] * K), np.zeros((K, d + 1))
    for x, label in zip(X, y):
        decision = agent.act(x)
        hit = decision.action == label
        agent.learn(x, decision, hit)
        z = np.append(x, 1.0)
        grams[decision.action] += np.outer(z, z)
        sums[decision.action] += hit * z
    z, k = np.append(X[0], 1.0), 0
    scores = np.array([agent._policy._oracles.algos[k].predict(X[:1])[0] for _ in range(4000)])
    assert scores.mean() == pytest.approx(z @ np.linalg.solve(grams[k], sums[k]), abs=0.01)
    assert scores.std() == pytest.approx(0.5 * np.sqrt(z @ np.linalg.solve(grams[k], z)), rel=0.05)


def test_the_library_s_own_way_of_drawing_coefficients_is_still_wrong():
    """contextualbandits 0.3.30 takes the Gram matrix for its inverse; when it is mended, offer `sample_from = "coef"`."""
    rng = np.random.default_rng(0)
    X, d = rng.standard_normal((500, 3)), 3
    policy = LinTS(2, fit_intercept=False, random_state=rng).fit(X, np.zeros(500, int), np.ones(500))
    scores = np.array([policy._oracles.algos[0].predict(np.eye(d)[:1])[0] for _ in range(500)])
    due = np.sqrt(np.linalg.inv(np.eye(d) + X.T @ X)[0, 0])
    assert scores.std() > 100 * due


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("cut", [0, 3, 60])
@pytest.mark.few(3)
def test_continues_exactly(continues, stream, cls, batch, cut):
    X, y = stream(3, 5, 100)
    continues(lambda: make(cls, 3, 5, batch=batch), X, y, cut)


@pytest.mark.parametrize(
    ("cls", "changed"),
    [
        (ContextualBanditsLinUCB, {"alpha": 0.05}),
        (ContextualBanditsLinUCB, {"regularization": 20.0}),
        (ContextualBanditsLinUCB, {"batch": 30}),
        (ContextualBanditsLinTS, {"deviation": 0.001}),
        (ContextualBanditsLinTS, {"regularization": 20.0}),
        (ContextualBanditsLinTS, {"batch": 30}),
        (ContextualBanditsSGD, {"gamma": 0.9}),
        (ContextualBanditsSGD, {"decay": 0.995}),
        (ContextualBanditsSGD, {"batch": 30}),
    ],
)
@pytest.mark.few(3)
def test_every_setting_reaches_the_library(stream, play, cls, changed):
    X, y = stream(3, 5, 200)
    assert not np.array_equal(play(make(cls, 3, 5), X, y).action, play(make(cls, 3, 5, **changed), X, y).action)


@pytest.mark.parametrize("cls", ALL)
def test_a_state_says_how_often_is_explored(cls):
    """0 where the library's policy has no such rate."""
    agent = make(cls, 3, 4, **({"gamma": 0.3} if cls is ContextualBanditsSGD else {}))
    assert agent.get_state()["explore_prob"] == (0.3 if cls is ContextualBanditsSGD else 0.0)


@pytest.mark.parametrize("cls", ALL)
def test_draws_come_from_our_generator_alone(stream, play, cls):
    X, y = stream(3, 5, 150)

    def actions(seed, state):
        np.random.seed(state)  # noqa: NPY002
        return play(cls(Problem(5, 3, 1.0), np.random.default_rng(seed)), X, y).action

    assert np.array_equal(actions(1, 0), actions(1, 5))
    assert not np.array_equal(actions(1, 0), actions(2, 0))


@pytest.mark.parametrize(
    ("cls", "settings", "least"),
    [
        (ContextualBanditsLinUCB, {"alpha": 0.1}, 0.75),
        (ContextualBanditsLinTS, {"deviation": 0.1}, 0.75),
        (ContextualBanditsSGD, {"gamma": 0.05}, 0.6),
    ],
)
def test_learns(stream, play, cls, settings, least):
    X, y = stream(3, 8, 600, noise=0.0)
    assert play(make(cls, 3, 8, **settings), X, y).correct[-300:].mean() > least


def test_seeds_and_probabilities_of_a_state_at_their_limits():
    agent = make(ContextualBanditsSGD, 3, 4)
    state = agent.get_state()
    for name, taken, refused in (
        ("seed", (0, 1, SEEDS[1] >> 1), (-1, 2**63)),
        ("explore_prob", (0.0, 0.4, 1.0), (-0.1, 1.1, 1.9)),
    ):
        for value in taken:
            agent.set_state(state | {name: value})
            assert agent.get_state()[name] == value
        for value in refused:
            with pytest.raises(UsageError, match=rf"^state\.{name} must"):
                agent.set_state(state | {name: value})
    assert make(ContextualBanditsLinUCB, 3, 4).get_state()["explore_prob"] == 0.0


def test_models_of_a_state_belong_to_classes(stream):
    X, y = stream(3, 4, 60)
    agent = make(ContextualBanditsLinUCB, 3, 4)
    for x, label in zip(X, y):
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)
    state = agent.get_state()
    assert set(state["fitted"]["models"]) == {"0", "1", "2"}  # every class: the largest set there may be
    other = make(ContextualBanditsLinUCB, 3, 4)
    other.set_state(state)
    assert set(other.get_state()["fitted"]["models"]) == {"0", "1", "2"}
    models = state["fitted"]["models"]
    with pytest.raises(UsageError, match=r"^the keys of state\.fitted\.models must be classes in 0 \.\.\. 2$"):
        make(ContextualBanditsLinUCB, 3, 4).set_state(
            state | {"fitted": state["fitted"] | {"models": models | {"3": models["0"]}}}
        )
