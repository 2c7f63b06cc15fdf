"""Gaptron against the pseudocode in plain numpy, the gap inequality its proof rests on, and its bound on a run."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from banditlab.agents import Trace
from banditlab.agents.gaptron import Gaptron
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.losses import logistic_gradient, logistic_loss, softmax
from banditlab.problem import Problem

LN2 = math.log(2.0)


def make(K, d, T=None, radius=1.0, **settings):
    return Gaptron(Problem(d, K, radius, T), np.random.default_rng(7), **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"gamma": 0.1, "step": "adaptive"}, {"gamma": 0.5, "step": 2.0, "norm_bound": 0.3}]
)
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d, settings):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(K, d, T=200, **settings), X, y)


def distribution(W, x, gamma):
    """The pseudocode's p' at W (K, d), x (d,)."""
    K, s = len(W), softmax(W @ x)
    a = 1.0 - s.max() if s.max() >= 0.5 else 1.0
    m = max(a, gamma)
    played = np.full(K, m / K)
    played[int(np.argmax(W @ x))] += 1.0 - m
    return played


@pytest.mark.parametrize(
    ("K", "d", "binds", "settings"),
    [
        (3, 4, False, {"gamma": 0.2, "norm_bound": 50.0, "step": 0.3}),
        (4, 7, True, {"gamma": 0.3, "norm_bound": 0.5, "step": 0.3}),
        (4, 7, False, {"gamma": 0.3, "norm_bound": 0.5, "step": 0.3, "project": False}),
        (2, 3, False, {"gamma": 0.05, "step": "adaptive"}),
        (5, 9, False, {"gamma": 0.1, "step": "adaptive", "step_scale": 3.0}),
        (5, 9, True, {"gamma": 0.1, "step": "adaptive", "project": True}),
        (3, 17, False, {"gamma": 0.4}),
        (3, 4, True, {"gamma": 0.0, "step": 0.5}),
    ],
)
def test_equals_the_pseudocode(stream, K, d, binds, settings):
    X, y = stream(K, d, 500)
    agent = make(K, d, **settings)
    W, squares, hits, bound = np.zeros((K, d)), 0.0, 0, 0
    D = math.sqrt(K) * agent.norm_bound
    for x, label in zip(X, y):
        decision = agent.act(x)
        played = distribution(W, x, agent.gamma)
        np.testing.assert_allclose(decision.probabilities, played, rtol=0, atol=1e-9)
        correct = decision.action == label
        if correct:
            g = logistic_gradient(W, x, label) / LN2 / played[label]
            squares += np.sum(g**2)
            eta = agent.step if agent.step != "adaptive" else agent.step_scale / math.sqrt(2 * (1e-8 + squares))
            W -= eta * g
            if agent.project and np.linalg.norm(W) > D:
                W *= D / np.linalg.norm(W)
                bound += 1
            hits += 1
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)
    assert hits > 50
    assert (bound > 20) == binds


def test_the_gradient_estimate_is_unbiased(stream):
    K, d = 4, 6
    X, y = stream(K, d, 150)
    agent = make(K, d, gamma=0.3, step=0.5, project=False)
    for x, label in zip(X, y):
        decision = agent.act(x)
        mean = np.zeros((K, d))
        for action in range(K):
            twin = copy.deepcopy(agent)
            twin.learn(x, decision._replace(action=action), action == label)
            mean += decision.probabilities[action] * (agent.weights - twin.weights) / agent.step
        np.testing.assert_allclose(mean, logistic_gradient(agent.weights, x, label) / LN2, atol=1e-12)
        agent.learn(x, decision, decision.action == label)


def largest_brace(K, gamma, step, in_bits=True, bandit=True):
    """Return the largest of P(mistake) + (step/2) E||g||^2 - loss - allowance over W, y; p' is the agent's own."""
    rng = np.random.default_rng(K)
    agent = make(K, 1, gamma=gamma, step=1.0)
    x, unit, worst = np.ones(1), (LN2 if in_bits else 1.0), -np.inf
    z = rng.standard_normal((400, K)) * 10 ** rng.uniform(-2, 1.2, (400, 1))
    z[:100, 2:] = -40.0  # two classes hold everything
    z[:50, 1] = z[:50, 0] - rng.uniform(0, 3, 50)
    z[100:200, 1:] = z[100:200, :1] - np.sort(rng.uniform(0, 3, (100, 1)), axis=0)  # all but one alike
    for logits in z:
        agent.weights[:] = logits[:, None]
        played = agent.act(x).probabilities
        for label in range(K):
            gradient = softmax(logits)
            gradient[label] -= 1.0
            square = np.sum((gradient / unit) ** 2) / (played[label] if bandit else 1.0)
            loss = logistic_loss(logits, label) / unit
            worst = max(worst, 1 - played[label] + step / 2 * square - loss - bandit * gamma * (K - 1) / K)
    return worst


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_gap_inequality(K):
    assert largest_brace(K, 0.0, LN2 / (2 * K), bandit=False) <= 1e-12  # full information: the brace is <= 0
    for gamma in (0.01, 0.1, 0.5, 1.0):  # one bit: <= gamma (K-1)/K at the theorem's step
        step = make(K, 1, gamma=gamma).step
        assert step == pytest.approx(gamma * LN2 / (2 * K**2))
        assert largest_brace(K, gamma, step) <= 1e-12


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_gap_inequality_fails_in_nats_and_for_a_larger_step(K):
    assert largest_brace(K, 0.0, LN2 / (2 * K), in_bits=False, bandit=False) > 0.05
    assert largest_brace(K, 0.1, 20.0 * 0.1 * LN2 / (2 * K)) > 0.0


def test_the_bound_holds_on_a_run(stream):
    K, d, T = 3, 4, 20_000
    X, y = stream(K, d, T)
    agent = make(K, d, T=T, norm_bound=0.5)
    trace = Trace.empty(T)
    agent.play_block(X, y, trace)
    for U in (np.zeros((K, d)), agent.weights * min(1.0, 0.5 / np.linalg.norm(agent.weights, axis=1).max())):
        loss = logistic_loss(X @ U.T, y).sum() / LN2
        assert (1 - trace.p_true).sum() <= loss + agent.bound(T)
    assert agent.bound(T) < T


def test_settings_resolve():
    theory = make(10, 65, T=20_000, norm_bound=0.2, radius=2.0)
    D = math.sqrt(10) * 0.2
    assert theory.gamma == pytest.approx(10 * 2.0 * D / math.sqrt(20_000 * LN2))
    assert theory.step == pytest.approx(theory.gamma * LN2 / (2 * 100 * 4.0))
    assert theory.project is True
    assert make(10, 65, T=100).gamma == 1.0
    adaptive = make(3, 4, gamma=0.1, step="adaptive")
    assert (adaptive.step, adaptive.project, adaptive.step_scale) == ("adaptive", False, 10.0)
    assert adaptive.bound(100) is None
    assert make(3, 4, gamma=0.1, step=0.1).bound(100) is None  # above the theorem's step


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\]"),
        ({"gamma": "best"}, "gamma must be a number or 'theory'"),
        ({"gamma": 0.0}, "needs gamma above 0"),
        ({"gamma": 0.1, "step": "fast"}, "step must be a number or 'theory' or 'adaptive'"),
        ({"gamma": 0.1, "step": 0.0}, "step must be a number above 0"),
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
