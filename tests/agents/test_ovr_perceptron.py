"""The one-vs-rest perceptron against the pseudocode, its corrections counted, its bound on separable and noisy streams."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.agents.ovr_perceptron import OvRPerceptron
from banditlab.bounds.ovr_perceptron import ovr_perceptron_mistakes
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem

WAYS = [{"choice": choice, "corrects": corrects} for choice in ("uniform", "largest") for corrects in ("played", "all")]


def make(K, d, seed=7, radius=1.0, **settings):
    return OvRPerceptron(Problem(d, K, radius), np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("settings", WAYS)
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d, settings):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(K, d, **settings), X, y)


def separable(K, T, seed):
    """Contexts (e_y, 1, noise in 3 dimensions) with the strong separator U_k = (2 e_k, -1, 0) of margin 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=T)
    X = np.hstack([np.eye(K)[y], np.ones((T, 1)), rng.uniform(-1, 1, (T, 3))])
    U = np.hstack([2 * np.eye(K), -np.ones((K, 1)), np.zeros((K, 3))])
    return as_contexts(X), y.astype(np.int64), U


@pytest.mark.parametrize("settings", WAYS)
@pytest.mark.parametrize(("K", "d", "clean"), [(3, 5, False), (4, 8, True), (6, 10, True)])
@pytest.mark.few(5)
def test_equals_the_pseudocode(stream, K, d, clean, settings):
    X, y = separable(K, 400, 5)[:2] if clean else stream(K, d, 400)
    agent, W, empty = make(K, X.shape[1], radius=3.0, **settings), np.zeros((K, X.shape[1])), 0
    for x, label in zip(X, y):
        z = W @ x
        S = np.flatnonzero(z >= 0)
        decision = agent.act(x)
        p = np.full(K, 1.0 / K)
        if len(S):
            p = np.isin(np.arange(K), S) / len(S) if agent.choice == "uniform" else np.eye(K)[int(np.argmax(z))]
        # A score that is zero up to rounding would be settled by the order of a sum; here all others are far from 0.
        assert np.all((np.abs(z) > 1e-9) | (z == 0.0))
        np.testing.assert_allclose(decision.probabilities, p, rtol=0, atol=1e-15)
        assert decision.explored is None
        correct = decision.action == label
        empty += len(S) == 0
        agent.learn(x, decision, correct)
        for k in range(K) if (correct and agent.corrects == "all") else [decision.action]:
            if correct and k == label:
                W[k] += x * (z[k] < 0)
            else:
                W[k] -= x * (z[k] >= 0)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)
    assert empty > 0


def test_draws_uniformly_from_those_that_say_yes():
    agent = make(5, 2)
    agent.weights[:] = np.array([[1.0, 0], [-1, 0], [2, 0], [-1, 0], [0.5, 0]])
    drawn = np.array([agent.act(np.array([1.0, 0.0])).action for _ in range(3000)])
    assert set(drawn) == {0, 2, 4}
    assert np.all(np.abs(np.bincount(drawn)[[0, 2, 4]] / 3000 - 1 / 3) < 5 * math.sqrt(2 / 9 / 3000))


def corrections(agent, X, y):
    """Play by steps; return (expected mistakes, corrections)."""
    expected, count = 0.0, 0
    for x, label in zip(X, y):
        before = agent.weights.copy()
        decision = agent.act(x)
        expected += 1.0 - decision.probabilities[label]
        agent.learn(x, decision, decision.action == label)
        count += int(np.any(agent.weights != before, axis=1).sum())
    return expected, count


@pytest.mark.parametrize("settings", WAYS)
@pytest.mark.parametrize("K", [2, 5])
def test_the_bound_holds_on_a_separable_stream(K, settings):
    X, y, U = separable(K, 600, seed=K)
    R, F = np.linalg.norm(X, axis=1).max(), np.linalg.norm(U)
    z = X @ U.T
    signs = np.where(np.eye(K)[y] == 1, 1.0, -1.0)
    assert (z * signs).min() >= 1.0
    expected, counts = zip(*(corrections(make(K, X.shape[1], seed, 3.0, **settings), X, y) for seed in range(6)))
    assert max(counts) <= math.floor(R**2 * F**2)  # surely, not in expectation
    assert np.mean(expected) <= (K - 1) * np.mean(counts) + 4 * np.std(expected) / math.sqrt(6)
    assert np.mean(expected) <= ovr_perceptron_mistakes(K, R, F)


@pytest.mark.parametrize("settings", WAYS)
def test_the_bound_holds_with_noise(settings):
    K = 4
    X, y, U = separable(K, 600, seed=9)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.03, rng.integers(K, size=600), y)
    R, F = np.linalg.norm(X, axis=1).max(), np.linalg.norm(U)
    signs = np.where(np.eye(K)[y] == 1, 1.0, -1.0)
    L = np.maximum(0.0, 1.0 - (X @ U.T) * signs).sum()
    assert L > 10
    expected, counts = zip(*(corrections(make(K, X.shape[1], seed, 3.0, **settings), X, y) for seed in range(3)))
    assert (K - 1) * max(counts) <= ovr_perceptron_mistakes(K, R, F, L)
    assert np.mean(expected) <= ovr_perceptron_mistakes(K, R, F, L)


def test_stops_erring_on_a_separable_stream():
    X, y, _ = separable(5, 20_000, seed=1)
    agent, trace = make(5, X.shape[1], radius=3.0), Trace.empty(20_000)
    agent.play_block(X, y, trace)
    assert (1 - trace.p_true[10_000:]).sum() == 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"choice": "best"}, "choice must be one of 'uniform', 'largest'"),
        ({"corrects": "none"}, "corrects must be one of 'played', 'all'"),
    ],
)
def test_refuses_bad_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        make(3, 2, **settings)


def test_has_no_bound_in_the_logistic_loss():
    assert make(3, 2).bound(100) is None
