"""Banditron against the pseudocode in plain numpy and the perceptron it estimates."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from banditlab.agents.banditron import Banditron
from banditlab.errors import UsageError
from banditlab.problem import Problem


def make(K, d, **settings):
    return Banditron(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


@pytest.mark.parametrize(("K", "d"), [(3, 1), (4, 8), (5, 19)])
def test_contract(one_bit_contract, stream, K, d):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(K, d, gamma=0.2), X, y)


@pytest.mark.parametrize(("K", "d", "gamma"), [(2, 3, 0.3), (3, 8, 0.05), (6, 13, 0.5), (10, 65, 0.1), (4, 5, 0.0)])
def test_equals_the_pseudocode(stream, K, d, gamma):
    X, y = stream(K, d, 400)
    agent, W = make(K, d, gamma=gamma), np.zeros((K, d))
    for x, label in zip(X, y):
        decision = agent.act(x)
        scores = W @ x
        y_hat = int(np.argmax(scores))
        gap = scores[y_hat] - np.delete(scores, y_hat).max()
        assert gap == 0.0 or gap > 1e-9  # no near tie that rounding could decide
        P = np.full(K, gamma / K)
        P[y_hat] += 1 - gamma
        np.testing.assert_allclose(decision.probabilities, P, rtol=0, atol=1e-15)
        correct = decision.action == label
        W[y_hat] -= x
        if correct:
            W[decision.action] += x / P[decision.action]
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)


def test_is_the_perceptron_in_expectation(stream):
    K, d = 4, 6
    X, y = stream(K, d, 120)
    agent = make(K, d, gamma=0.4)
    for x, label in zip(X, y):
        decision = agent.act(x)
        mean = np.zeros((K, d))
        for action in range(K):
            twin = copy.deepcopy(agent)
            twin.learn(x, decision._replace(action=action), action == label)
            mean += decision.probabilities[action] * (twin.weights - agent.weights)
        perceptron = np.zeros((K, d))
        perceptron[label] += x
        perceptron[int(np.argmax(agent.weights @ x))] -= x
        np.testing.assert_allclose(mean, perceptron, atol=1e-12)
        agent.learn(x, decision, decision.action == label)


@pytest.mark.parametrize("gamma", [-0.1, 1.5, float("nan")])
def test_refuses_a_gamma_that_is_no_probability(gamma):
    with pytest.raises(UsageError, match=r"gamma must lie in \[0, 1\]"):
        make(3, 2, gamma=gamma)


def test_has_no_bound():
    assert make(3, 2).bound(100) is None
    assert make(3, 2).gamma == 0.05
