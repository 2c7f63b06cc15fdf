"""RDUE against the pseudocode in plain numpy, the inequalities its proof rests on, and its bound on runs."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from banditlab.agents.rdue import RDUE
from banditlab.bounds.rdue import GAP, rdue_radius, rdue_smoothness
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.losses import logistic_loss, softmax
from banditlab.players.agent import Trace
from banditlab.problem import Problem

LN2 = math.log(2.0)


def make(K, d, T=None, radius=1.0, **settings):
    return RDUE(Problem(d, K, radius, T), np.random.default_rng(7), **settings)


@pytest.mark.parametrize("settings", [{}, {"gamma": 0.1, "step": "adaptive"}, {"gamma": 0.3, "norm_bound": 0.1}])
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d, settings):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(K, d, T=2000, **settings), X, y)


def decoding(theta):
    """The randomised decoding at scores theta (K,): q and the distribution without exploration."""
    powers = 2.0 ** (theta - theta.max())
    q = powers / powers.sum()
    r = min(1.0, 2.0 * (1.0 - q.max()))
    return q, (1.0 - r) * np.eye(len(q))[int(np.argmax(theta))] + r * q


def surrogate(theta, label):
    """S(theta, y) = log2 sum_j 2^theta_j - theta_y."""
    return np.log2(np.sum(2.0 ** (theta - theta.max()))) + theta.max() - theta[label]


@pytest.mark.parametrize(
    ("K", "d", "binds", "settings"),
    [
        (3, 4, True, {"gamma": 0.2, "norm_bound": 0.3}),
        (4, 7, False, {"gamma": 0.3, "norm_bound": 3.0, "project": False}),
        (2, 3, False, {"gamma": 0.05, "step": "adaptive"}),
        (5, 9, False, {"gamma": 0.1, "step": "adaptive", "step_scale": 3.0}),
        (5, 9, True, {"gamma": 0.1, "step": "adaptive", "project": True}),
        (3, 4, True, {"gamma": 0.0, "norm_bound": 0.3}),
        (3, 4, True, {"gamma": 1.0, "norm_bound": 0.3}),
    ],
)
@pytest.mark.few(3)
def test_equals_the_pseudocode(stream, K, d, binds, settings):
    X, y = stream(K, d, 500)
    agent = make(K, d, **settings)
    W, squares, hits, bound = np.zeros((K, d)), 0.0, 0, 0
    D = math.sqrt(K) * agent.norm_bound / LN2
    for x, label in zip(X, y):
        decision = agent.act(x)
        q, decoded = decoding(W @ x)
        played = agent.gamma / K + (1.0 - agent.gamma) * decoded
        np.testing.assert_allclose(decision.probabilities, played, rtol=0, atol=1e-9)
        correct = decision.action == label
        if correct:
            G = np.outer(q - np.eye(K)[label], x) / played[label]
            squares += np.sum(G**2)
            theory = agent.step == "theory"
            W -= (2 * D / math.sqrt(2 * squares) if theory else agent.step_scale / math.sqrt(2 * (1e-8 + squares))) * G
            if agent.project and np.linalg.norm(W) > D:
                W *= D / np.linalg.norm(W)
                bound += 1
            hits += 1
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)
    assert hits > 50
    assert (bound > 3) == binds


def test_the_gradient_estimate_is_unbiased(stream):
    """The step undone: each action's G is the move of W divided by its own eta; S by finite differences."""
    K, d = 4, 6
    X, y = stream(K, d, 150)
    agent = make(K, d, gamma=0.3, step="adaptive")
    for x, label in zip(X, y):
        decision = agent.act(x)
        mean = np.zeros((K, d))
        for action in range(K):
            twin = copy.deepcopy(agent)
            twin.learn(x, decision._replace(action=action), action == label)
            eta = agent.step_scale / math.sqrt(2 * (1e-8 + twin.state.squares[0]))
            mean += decision.probabilities[action] * (agent.weights - twin.weights) / eta
        theta, h = agent.weights @ x, 1e-5
        slope = [(surrogate(theta + h * e, label) - surrogate(theta - h * e, label)) / (2 * h) for e in np.eye(K)]
        np.testing.assert_allclose(mean, np.outer(slope, x), atol=1e-8)
        agent.learn(x, decision, decision.action == label)


def random_scores(K):
    """Scores (400, K) of all scales, with two classes that hold everything and all but one alike among them."""
    rng = np.random.default_rng(K)
    theta = rng.standard_normal((400, K)) * 10 ** rng.uniform(-2, 1.2, (400, 1))
    theta[:100, 2:] = -60.0
    theta[:50, 1] = theta[:50, 0] - rng.uniform(0, 3, 50)
    theta[100:200, 1:] = theta[100:200, :1] - np.sort(rng.uniform(0, 9, (100, 1)), axis=0)
    return theta


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_decoding_inequality(K):
    """P(mistake) <= (1 - a) S = ln 2 S at q0 = 0. The sharp constant is below .518 and reached by two classes."""
    agent, x = make(K, 1, gamma=0.0), np.ones(1)
    worst = worst_gradient = 0.0
    for theta in random_scores(K):
        agent.state.V[:] = theta[:, None]
        decision = agent.act(x)
        q = softmax(theta * LN2)
        for label in range(K):
            S = surrogate(theta, label)
            if S > 1e-12:
                worst = max(worst, (1.0 - decision.probabilities[label]) / S)
                worst_gradient = max(worst_gradient, np.sum((q - np.eye(K)[label]) ** 2) / S)
    assert worst <= 1.0 - GAP
    assert 0.51 < worst <= 0.518
    assert worst_gradient <= rdue_smoothness(1.0)


def test_the_comparator_is_converted(stream):
    """U in the row ball B has the base-2 logistic loss of U x when it enters as U / ln 2, and that fits in the set."""
    K, d, B = 4, 5, 0.7
    X, y = stream(K, d, 30)
    U = np.random.default_rng(1).standard_normal((K, d))
    U *= B / np.linalg.norm(U, axis=1, keepdims=True)
    for x, label in zip(X, y):
        assert surrogate(U @ x / LN2, label) == pytest.approx(logistic_loss(U @ x, label) / LN2, abs=1e-12)
    assert np.linalg.norm(U / LN2) == pytest.approx(rdue_radius(K, B))
    agent = make(K, d, gamma=0.1, norm_bound=B)
    assert agent.state.radius == pytest.approx(rdue_radius(K, B))
    assert agent.state.scale[0] == pytest.approx(2 * rdue_radius(K, B))


def test_the_bound_holds_in_mean(stream):
    K, d, T, runs = 3, 4, 20_000, 4
    X, y = stream(K, d, T)
    mistakes, comparators = [], [np.zeros((K, d))]
    for seed in range(runs):
        agent, trace = RDUE(Problem(d, K, 1.0, T), np.random.default_rng(seed), norm_bound=0.5), Trace.empty(T)
        agent.play_block(X, y, trace)
        mistakes.append((1 - trace.p_true).sum())
        U = agent.weights * LN2
        comparators.append(U * min(1.0, 0.5 / np.linalg.norm(U, axis=1).max()))
    losses = [logistic_loss(X @ U.T, y).sum() / LN2 for U in comparators]
    assert min(losses) < 0.95 * losses[0]  # some comparator has learnt
    assert np.mean(mistakes) <= min(losses) + agent.bound(T)
    assert agent.bound(T) < T / 2


def test_settings_resolve():
    theory = make(10, 65, T=10**7, norm_bound=0.2, radius=2.0)
    assert theory.gamma == pytest.approx(2 * math.sqrt(10) * 0.2 / LN2 * math.sqrt(10 / 10**7))
    assert theory.project is True
    assert theory.bound(0) > 0
    assert make(10, 65, T=100).gamma == 1.0
    adaptive = make(3, 4, gamma=0.1, step="adaptive")
    assert (adaptive.step, adaptive.project, adaptive.step_scale) == ("adaptive", False, 10.0)
    assert adaptive.bound(100) is None
    assert make(3, 4, gamma=0.1, project=False).bound(100) is None
    assert make(3, 4, gamma=0.0).bound(100) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\]"),
        ({"gamma": "best"}, "gamma must be a number or 'theory'"),
        ({"gamma": 0.1, "step": "fast"}, "step must be one of 'theory', 'adaptive'"),
        ({"gamma": 0.1, "step_scale": -1.0}, "step_scale must be a number above 0"),
        ({"gamma": 0.1, "norm_bound": 0.0}, "norm_bound must be a number above 0"),
        ({"gamma": 0.1, "project": "yes"}, "project must be true, false or 'auto'"),
    ],
)
def test_refuses_bad_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        make(3, 2, **settings)


def test_theory_needs_the_horizon():
    with pytest.raises(HorizonRequiredError, match="gamma = 'theory' needs the horizon"):
        make(3, 2)
