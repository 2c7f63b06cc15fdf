"""PNewtron against the pseudocode in plain numpy, its gradient estimate by enumeration, and lazy gradient descent."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from banditlab.agents.pnewtron import PNewtron
from banditlab.envs.synsep import SynSep
from banditlab.errors import UsageError
from banditlab.losses import softmax
from banditlab.players.agent import Trace
from banditlab.problem import Decision, Problem


def make(K, d, radius=1.0, **settings):
    return PNewtron(Problem(d, K, radius), np.random.default_rng(7), **settings)


def forced(agent, x, action):
    """The decision of the same agent where the coin says explore and the draw falls on `action`."""
    K = agent.problem.n_classes
    p, payload = np.empty(K), np.empty(2)
    agent.kernels()[0](agent.state, x, np.array([0.0, (action + 0.5) / K]), p, payload)
    return Decision(action, p, True, payload)


@pytest.mark.parametrize("settings", [{}, {"exploit": "argmax", "gamma": 0.2, "norm_bound": "paper"}])
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d, settings):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(K, d, **settings), X, y)


def estimate(p, played, action, correct, x):
    """The pseudocode's dlt (K, d) and kappa."""
    K = len(p)
    e = np.eye(K)[action] - 1.0 / K
    if correct:
        return -(1.0 - p[action]) / played[action] * np.outer(e, x), played[action]
    return p[action] / played[action] * np.outer(e, x), 1.0


@pytest.mark.parametrize(
    ("K", "d", "binds", "settings"),
    [
        (2, 3, True, {"gamma": 0.2, "norm_bound": "paper"}),
        (4, 7, True, {"gamma": 0.3, "norm_bound": 0.5, "alpha": 4.0, "beta": 0.3}),
        (5, 9, True, {"gamma": 0.4, "norm_bound": 1.0, "exploit": "argmax"}),
        (3, 5, False, {"gamma": 0.5, "norm_bound": 300.0, "alpha": 1.0, "beta": 100.0}),
        (4, 8, True, {"gamma": 1.0, "norm_bound": 0.2}),
        (4, 8, True, {"gamma": 0.0, "norm_bound": 0.2, "alpha": 1.0}),
    ],
)
def test_equals_the_pseudocode(stream, K, d, binds, settings):
    X, y = stream(K, d, 500)
    X = np.where(np.abs(X) < 0.05, 0.0, X)
    agent = make(K, d, **settings)
    D, bound = math.sqrt(K) * agent.norm_bound, 0
    A, b, W = np.full((K, d), 1.0 / D), np.zeros((K, d)), np.zeros((K, d))
    for x, label in zip(X, y):
        decision = agent.act(x)
        p = softmax(agent.alpha * (W @ x))
        exploit = p if agent.exploit == "sample" else np.eye(K)[int(np.argmax(W @ x))]
        played = (1 - agent.gamma) * exploit + agent.gamma / K
        np.testing.assert_allclose(decision.probabilities, played, rtol=0, atol=1e-9)
        correct = decision.action == label
        delta, kappa = estimate(p, played, decision.action, correct, x)
        A += kappa * agent.beta * delta**2
        b += (1 - kappa * agent.beta * np.sum(delta * W)) * delta
        W = -b / A
        if np.linalg.norm(W) > D:
            W *= D / np.linalg.norm(W)
            bound += 1
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)
    assert (bound > 20) == binds


@pytest.mark.parametrize("exploit", ["sample", "argmax"])
def test_the_gradient_estimate_is_unbiased(stream, exploit):
    """With beta = 0 the dual vector b moves by dlt itself; all actions enumerated."""
    K, d = 4, 6
    X, y = stream(K, d, 150)
    agent = make(K, d, gamma=0.3, beta=0.0, alpha=3.0, exploit=exploit)
    for x, label in zip(X, y):
        mean, total = np.zeros((K, d)), 0.0
        for action in range(K):
            decision, twin = forced(agent, x, action), copy.deepcopy(agent)
            twin.learn(x, decision, action == label)
            mean += decision.probabilities[action] * (twin.state.b - agent.state.b)[:, :d]
            total += decision.probabilities[action]
        assert total == pytest.approx(1.0, abs=1e-12)
        gradient = np.outer(softmax(agent.alpha * (agent.weights @ x)) - np.eye(K)[label], x)
        np.testing.assert_allclose(mean, gradient, atol=1e-10)
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)


def test_the_curvature_is_as_specified(stream):
    """E[kappa dlt dlt'] on the diagonal: (1 - p_y)^2 u_y^2 + sum over i != y of p_i^2/p'_i u_i^2."""
    K, d, gamma = 3, 4, 0.25
    X, y = stream(K, d, 60)
    agent = make(K, d, gamma=gamma, beta=0.5, alpha=2.0)
    for x, label in zip(X, y):
        mean = np.zeros((K, d))
        for action in range(K):
            decision, twin = forced(agent, x, action), copy.deepcopy(agent)
            twin.learn(x, decision, action == label)
            mean += decision.probabilities[action] * (twin.state.A - agent.state.A)[:, :d] / agent.beta
        p = softmax(agent.alpha * (agent.weights @ x))
        played = (1 - gamma) * p + gamma / K
        u = [np.outer(np.eye(K)[i] - 1 / K, x) for i in range(K)]
        expected = (1 - p[label]) ** 2 * u[label] ** 2
        expected += sum(p[i] ** 2 / played[i] * u[i] ** 2 for i in range(K) if i != label)
        np.testing.assert_allclose(mean, expected, atol=1e-10)
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)


def test_scaled_is_the_papers_ball_on_synsep_and_follows_the_features():
    env = SynSep(horizon=10)
    scaled = PNewtron(env.problem, np.random.default_rng(0))
    paper = PNewtron(env.problem, np.random.default_rng(0), norm_bound="paper")
    assert scaled.norm_bound == pytest.approx(paper.norm_bound) == pytest.approx(1 / 3)
    assert make(4, 3, radius=2.0).norm_bound == pytest.approx(math.sqrt(55) / 2 / 2)
    assert make(4, 3, radius=2.0, norm_bound="paper").norm_bound == 0.5


def test_learns_a_separable_stream():
    env, T = SynSep(horizon=20_000), 20_000
    env.reset(seed=3)
    [(X, y)] = env.blocks(T, T)
    agent, trace = PNewtron(env.problem, np.random.default_rng(0), gamma=0.014), Trace.empty(T)
    agent.play_block(X, y, trace)
    assert (1 - trace.p_true[-5000:]).mean() < 0.03  # exploration alone costs 0.0124


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\]"),
        ({"alpha": 0.0}, "alpha must be a number above 0"),
        ({"beta": -0.1}, "beta must be a number that is 0 or above"),
        ({"norm_bound": 0.0}, "norm_bound must be a number above 0"),
        ({"norm_bound": "small"}, "norm_bound must be a number or 'scaled' or 'paper'"),
        ({"norm_bound": 1e-200}, r"norm_bound must lie between 1e-150 and 1e\+150, got 1e-200"),
        ({"norm_bound": 1e308}, r"norm_bound must lie between 1e-150 and 1e\+150, got 1e\+308"),
        ({"exploit": "best"}, "exploit must be one of 'sample', 'argmax'"),
    ],
)
def test_refuses_bad_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        make(3, 2, **settings)


def test_two_classes_are_opposite_to_the_last_bit(stream):
    X, y = stream(2, 19, 300, noise=0.2)
    agent = make(2, 19, gamma=0.3)
    agent.play_block(X, y, Trace.empty(300))
    assert agent.weights.all()
    np.testing.assert_array_equal(agent.weights[0], -agent.weights[1])
    agent.act(X[0])
    assert agent.state.z[0] == -agent.state.z[1] != 0.0


def test_classes_that_were_not_played_stay_equal_to_the_last_bit(stream):
    X, y = stream(13, 37, 5)
    agent, trace = make(13, 37, norm_bound=300.0), Trace.empty(5)
    agent.play_block(X, y, trace)
    agent.act(X[0])
    idle = np.setdiff1d(np.arange(13), trace.action)
    assert len(idle) > 7
    for rows in (agent.weights, agent.state.z):
        assert (rows[idle] == rows[idle[0]]).all()


def test_has_no_bound():
    assert make(3, 2).bound(100) is None
