"""The two epsilon-greedy agents against plain numpy, and the importance weights against exact enumeration."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.special import expit, softmax

from banditlab.agents.epsilon_greedy import EpsilonGreedy, inverse_root
from banditlab.agents.epsilon_greedy_direct import EpsilonGreedyDirect
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem

BOTH = [EpsilonGreedy, EpsilonGreedyDirect]


def make(cls, K, d, radius=1.0, **settings):
    return cls(Problem(d, K, radius), np.random.default_rng(7), **settings)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, cls, K, d):
    X, y = stream(K, d, 200, noise=0.3)
    one_bit_contract(lambda: make(cls, K, d), X, y)


def greedy(scores, gamma):
    p = np.full(len(scores), gamma / len(scores))
    p[np.argmax(scores)] += 1 - gamma
    return p


@pytest.mark.parametrize(
    ("K", "d", "radius", "chosen"),
    [
        (2, 3, 1.0, {}),
        (5, 8, 1.0, {"gamma": 0.3, "learning_rate": 0.2}),
        (3, 6, 7.0, {}),
        (4, 5, 1.0, {"gamma": 0.0, "learning_rate": 3.0}),
        (3, 5, 1.0, {"gamma": 1.0}),
    ],
)
def test_importance_weights_equal_plain_numpy(stream, K, d, radius, chosen):
    X, y = stream(K, d, 400, noise=0.2)
    X = as_contexts(radius * X)
    agent = make(EpsilonGreedy, K, d, radius, **chosen)
    W, G = np.zeros((K, d)), np.full((K, d), 1e-12 * radius**2)
    for x, label in zip(X, y):
        decision = agent.act(x)
        np.testing.assert_allclose(decision.payload[:K] / decision.payload[K], softmax(W @ x), rtol=1e-9, atol=1e-9)
        p = greedy(decision.payload[:K], agent.gamma)
        np.testing.assert_allclose(decision.probabilities, p, rtol=0, atol=1e-15)
        correct = decision.action == label
        if correct:
            g = np.outer(softmax(W @ x) - np.eye(K)[label], x) / p[label]
            G += g**2
            W -= agent.learning_rate * g / np.sqrt(G)
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("K", "d", "radius", "chosen"),
    [
        (2, 3, 1.0, {}),
        (5, 8, 1.0, {"gamma": 0.3, "learning_rate": 0.2}),
        (3, 6, 7.0, {}),
        (4, 5, 1.0, {"gamma": 0.0, "learning_rate": 3.0}),
    ],
)
def test_direct_method_equals_plain_numpy(stream, K, d, radius, chosen):
    X, y = stream(K, d, 400, noise=0.2)
    X = as_contexts(radius * X)
    agent = make(EpsilonGreedyDirect, K, d, radius, **chosen)
    W, G = np.zeros((K, d)), np.full((K, d), 1e-12 * radius**2)
    for t, (x, label) in enumerate(zip(X, y), start=1):
        decision = agent.act(x)
        a = decision.action
        assert decision.payload[0] == pytest.approx(W[a] @ x, rel=1e-9, abs=1e-9)
        gamma = min(1.0, math.sqrt(K / t)) if agent.gamma == "anytime" else agent.gamma
        scores = agent.weights @ x
        second, first = np.sort(scores)[-2:]
        if first == second == 0.0 or first - second > 1e-9:
            np.testing.assert_allclose(decision.probabilities, greedy(scores, gamma), rtol=0, atol=1e-15)
        correct = a == label
        g = (expit(W[a] @ x) - float(correct)) * x
        G[a] += g**2
        W[a] -= agent.learning_rate * g / np.sqrt(G[a])
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)


def test_importance_weighted_gradient_is_unbiased(stream):
    """By exact enumeration over actions: sum_a p_a g(a) is the full-information gradient."""
    K, d = 4, 6
    X, y = stream(K, d, 120, noise=0.3)
    agent = make(EpsilonGreedy, K, d, gamma=0.3)
    for x, label in zip(X, y):
        decision = agent.act(x)
        squares = agent.state.G[:, :d].copy()
        first, second = np.zeros((K, d)), np.zeros((K, d))
        for action in range(K):
            twin = copy.deepcopy(agent)
            twin.learn(x, decision._replace(action=action), action == label)
            # the step and the sums of squares together give the estimate back, sign included
            grown = twin.state.G[:, :d] - squares
            moved = agent.weights - twin.weights
            estimate = moved * np.sqrt(twin.state.G[:, :d]) / agent.learning_rate
            np.testing.assert_allclose(estimate**2, grown, rtol=1e-6, atol=1e-9)
            first += decision.probabilities[action] * estimate
            second += decision.probabilities[action] * estimate**2
        gradient = np.outer(softmax(agent.weights @ x) - np.eye(K)[label], x)
        np.testing.assert_allclose(first, gradient, rtol=0, atol=1e-9)
        assert np.all(second <= gradient**2 * K / 0.3 * (1 + 1e-6) + 1e-9)  # the second moment the docstring states
        agent.learn(x, decision, decision.action == label)


def test_the_inverse_root_is_that_of_numpy_for_all_normal_numbers():
    s = np.exp(np.random.default_rng(0).uniform(np.log(3e-308), np.log(1e308), 5000))
    s[:4] = 1.0, 4.0, np.finfo(float).tiny, np.finfo(float).max
    np.testing.assert_allclose([inverse_root(each) for each in s], 1.0 / np.sqrt(s), rtol=1e-15)


@pytest.mark.parametrize("probability", [1e-40, 1e-60, 1e-160, 1e-300])
def test_a_step_after_a_hit_of_hardly_any_probability_is_that_of_the_largest_gradient(probability):
    """g^2 outweighs what was summed before; from 1e-154 on it is no number, and the steps stay those of AdaGrad."""
    agent = make(EpsilonGreedy, 3, 4, radius=3.0)
    x = as_contexts([2.0, -1.0, 0.0, 1e-3])
    p = np.array([1.0 - probability, probability, 0.0])
    agent.learn(x, agent.act(x)._replace(action=1, probabilities=p), True)
    signs = np.outer([-1.0, 1.0, -1.0], np.sign(x))  # -g of softmax = (1/3, 1/3, 1/3)
    np.testing.assert_allclose(agent.weights, agent.learning_rate * signs, rtol=1e-15)
    assert np.isfinite(agent.state.G).all()


def test_anytime_explores_at_the_root_of_K_over_t(stream):
    K, T = 4, 3000
    X, y = stream(K, 6, T)
    agent = make(EpsilonGreedyDirect, K, 6)
    trace = Trace.empty(T)
    agent.play_block(X, y, trace)
    rate = np.minimum(1.0, np.sqrt(K / np.arange(1, T + 1)))
    assert trace.explored[:K].all()
    assert abs(trace.explored.sum() - rate.sum()) < 5 * math.sqrt((rate * (1 - rate)).sum())
    assert agent.gamma == "anytime"


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("scale", [0.01, math.sqrt(55), 1e-100, 1e100])
def test_contexts_in_other_units_give_the_same_play(stream, cls, scale):
    X, y = stream(4, 6, 300)
    unit, scaled = make(cls, 4, 6), make(cls, 4, 6, radius=scale)
    one, two = Trace.empty(len(y)), Trace.empty(len(y))
    unit.play_block(X, y, one)
    scaled.play_block(as_contexts(scale * X), y, two)
    assert np.array_equal(one.action, two.action)
    np.testing.assert_allclose(scaled.weights * scale, unit.weights, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"gamma": -0.1}, r"gamma must lie in \[0, 1\]"),
        ({"gamma": float("nan")}, r"gamma must lie in \[0, 1\]"),
        ({"gamma": "theory"}, "gamma must be a number"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"learning_rate": "slow"}, "learning_rate must be one of 'auto'"),
    ],
)
def test_refuses_bad_settings(cls, chosen, message):
    with pytest.raises(UsageError, match=message):
        make(cls, 3, 4, **chosen)


def test_have_no_bound():
    assert all(make(cls, 3, 2).bound(100) is None for cls in BOTH)


# -------------------------------------------------------------------------------------------------------- whole streams


@pytest.mark.parametrize(("cls", "most"), [(EpsilonGreedy, 0.4), (EpsilonGreedyDirect, 0.25)])
def test_digits_with_default_settings(cls, most):
    from banditlab.envs.digits import Digits

    T, mistakes = 20_000, []
    for seed in range(3):
        env = Digits(horizon=T)
        env.reset(seed=seed)
        [(X, y)] = env.blocks(T, T)
        trace = Trace.empty(T)
        cls(env.problem, np.random.default_rng(seed)).play_block(as_contexts(X), y, trace)
        mistakes.append(1.0 - trace.correct.mean())
    assert np.median(mistakes) <= most


def test_classes_that_were_not_right_stay_equal_to_the_last_bit(stream):
    K, d, T = 9, 41, 40
    X, y = stream(K, d, T)
    agent = make(EpsilonGreedy, K, d, gamma=1.0)
    trace = Trace.empty(T)
    agent.play_block(X, y, trace)
    idle = np.setdiff1d(np.arange(K), trace.action[trace.correct])
    assert 1 < len(idle) < K
    V = agent.state.V[idle, :d]
    assert np.all(V != 0.0)
    assert (V[0] == V).all()
