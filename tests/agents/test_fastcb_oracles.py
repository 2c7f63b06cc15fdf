"""The oracles under FastCB and SquareCB: each against a slow form, special cases that coincide, extreme margins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.envs.logistic import Logistic
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem

pytestmark = pytest.mark.slow
"""Kernels over other oracles than the default are compiled by the slow tests."""

ORACLES = ["logistic", "b-grid"]  # the default has test_fastcb


def make(K, d, oracle, radius=1.0, cls=FastCB, **settings):
    return cls(Problem(d, K, radius), np.random.default_rng(7), oracle=oracle, **settings)


@pytest.mark.parametrize("oracle", ORACLES)
def test_contract(one_bit_contract, stream, oracle):
    X, y = stream(3, 5, 120, noise=0.3)
    one_bit_contract(lambda: make(3, 5, oracle, sharpness=2.0), X, y)


class SlowLogistic:
    """AdaGrad on ln(1 + e^{-y x'w}), the gradient by central differences."""

    def __init__(self, d, agent):
        self.w, self.squares, self.step = np.zeros(d), np.zeros(d), agent.step

    def margin(self, x):
        return self.w @ x

    def update(self, x, z, y):
        g = np.empty(len(x))
        for j, e in enumerate(np.eye(len(x))):
            loss = [np.logaddexp(0.0, -y * (z + s * 1e-4 * e @ x)) for s in (-2, -1, 1, 2)]
            g[j] = (loss[0] - 8 * loss[1] + 8 * loss[2] - loss[3]) / 12e-4
        self.squares += g**2
        self.w -= self.step * g / np.sqrt(self.squares)


class SlowGrid:
    """AIOLI in full matrices at each norm bound, mixed with weights exp(-total loss)."""

    def __init__(self, d, agent):
        self.B = agent.norm_bound * agent.grid_ratio ** np.arange(agent.grid_size)
        R = agent.problem.radius
        self.c = [0.5 / (1 + B * R) if agent.curvature == "simple" else agent.curvature for B in self.B]
        self.A, self.b = [np.eye(d) / B**2 for B in self.B], [np.zeros(d) for _ in self.B]
        self.losses, self.w = np.zeros(len(self.B)), agent.virtual_weight

    def members(self, x):
        for A, b in zip(self.A, self.b):
            inverse_x = np.linalg.solve(A, x)
            m, q = inverse_x @ b, inverse_x @ x
            ends = -abs(m) - 1, abs(m) + 1
            yield brentq(lambda z, m=m, q=q: z - m + self.w * q / 2 * math.tanh(z / 2), *ends, xtol=1e-14, rtol=1e-14)

    def margin(self, x):
        z = np.array(list(self.members(x)))
        return logsumexp(log_expit(z) - self.losses) - logsumexp(log_expit(-z) - self.losses)

    def update(self, x, z, y):
        for i, own in enumerate(list(self.members(x))):
            g, kappa = -y * expit(-y * own), self.c[i] * expit(own) * expit(-own)
            self.losses[i] -= log_expit(y * own)
            self.A[i] += kappa * np.outer(x, x)
            self.b[i] += (kappa * own - g / 2) * x


SLOW = {"logistic": SlowLogistic, "b-grid": SlowGrid}


@pytest.mark.parametrize(
    ("oracle", "K", "d", "chosen"),
    [
        ("logistic", 2, 3, {}),
        ("logistic", 5, 6, {"step": 0.2, "intercept": 0.0, "sharpness": 1.0}),
        ("b-grid", 2, 3, {}),
        ("b-grid", 4, 5, {"grid_size": 3, "grid_ratio": 2.0, "norm_bound": 0.5, "intercept": 0.0, "sharpness": 1.0}),
        ("b-grid", 3, 6, {"curvature": 0.25, "virtual_weight": 1.0, "growth": 0.0}),
    ],
)
def test_equals_the_slow_form(stream, oracle, K, d, chosen):
    X, y = stream(K, d, 150, noise=0.2)
    agent = make(K, d, oracle, **chosen)
    models = [SLOW[oracle](d + (agent.intercept > 0), agent) for _ in range(K)]
    for x, label in zip(X, y):
        decision = agent.act(x)
        full = np.append(x, [agent.intercept] * (agent.intercept > 0))
        z = np.array([model.margin(full) for model in models])
        np.testing.assert_allclose(decision.payload, z, rtol=1e-9, atol=1e-9)
        correct = decision.action == label
        models[decision.action].update(full, decision.payload[decision.action], 1 if correct else -1)
        agent.learn(x, decision, correct)


def test_a_grid_of_one_point_is_that_learner(stream):
    X, y = stream(4, 6, 300, noise=0.2)
    one = make(4, 6, "b-grid", norm_bound=5.0, grid_size=1)
    alone = make(4, 6, "aioli", norm_bound=5.0, regularization=1 / 25, challenger=0.0)
    for x, label in zip(X, y):
        left, right = one.act(x), alone.act(x)
        np.testing.assert_allclose(left.payload, right.payload, rtol=1e-10, atol=1e-10)
        assert left.action == right.action
        one.learn(x, left, left.action == label)
        alone.learn(x, right, right.action == label)


def test_the_grid_goes_to_the_member_that_is_right(stream):
    """Labels a small matrix explains exactly: the largest ball, with its small ridge, wins every class's weight."""
    X, _ = stream(3, 4, 2000)
    y = np.argmax(X[:, :3], axis=1)
    agent = make(3, 4, "b-grid", norm_bound=0.01, grid_ratio=1000.0, grid_size=2)
    for x, label in zip(X, y):
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)
    weights = np.exp(agent.state.oracle.w)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    assert weights[:, 1].min() > 0.999


@pytest.mark.parametrize(
    ("cls", "oracle"), [(FastCB, "aioli"), *((FastCB, each) for each in ORACLES), (SquareCB, "aioli")]
)
@pytest.mark.parametrize("always", [True, False])
def test_a_distribution_at_extreme_margins(cls, oracle, always):
    """One answer for ever at contexts a thousand times longer than the problem says, then the opposite one.

    `act` and `learn` refuse such contexts: the verbs behind them are asked, whose kernels have to stand any margin.
    """
    K, d = 3, 2
    agent = make(K, d, oracle, cls=cls)
    x = as_contexts(np.array([1000.0, -1000.0]))
    largest = 0.0
    for t in range(200):
        decision = agent._decide(x, agent.rng.random(2))
        p = decision.probabilities
        assert np.isfinite(decision.payload).all()
        assert p.min() >= 0.0
        assert abs(p.sum() - 1.0) <= 1e-12
        largest = max(largest, np.abs(decision.payload).max())
        agent._receive(x, decision, always == (t < 100))
    assert largest > {"aioli": 3.0, "b-grid": 3.0, "logistic": 1000.0}[oracle]


@pytest.mark.parametrize("oracle", ORACLES)
def test_contexts_in_other_units_give_the_same_play(stream, oracle):
    X, y = stream(3, 5, 150)
    unit, scaled = make(3, 5, oracle), make(3, 5, oracle, radius=20.0)
    for x, label in zip(X, y):
        one, two = unit.act(x), scaled.act(20.0 * x)
        np.testing.assert_allclose(one.payload, two.payload, rtol=1e-9, atol=1e-9)
        unit.learn(x, one, one.action == label)
        scaled.learn(20.0 * x, one, one.action == label)


def test_many_classes_without_a_constant_in_the_context():
    """A class is right with 1/20 on average, where a margin x'w without an intercept says 1/2: most rounds are lost."""
    env = Logistic(n_features=5, n_classes=20, norm_bound=30.0, horizon=6000)
    env.reset(seed=0)
    [(X, y)] = env.blocks(6000, 6000)
    mistakes = {}
    for intercept in (0.0, 0.5):
        agent, trace = FastCB(env.problem, np.random.default_rng(0), intercept=intercept), Trace.empty(6000)
        agent.play_block(as_contexts(X), y, trace)
        mistakes[intercept] = 1.0 - trace.correct.mean()
    assert mistakes[0.5] < 0.6 * mistakes[0.0]
