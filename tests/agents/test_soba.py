"""SOBA and SOBAdiag against the pseudocode with dense matrices, enumeration, and the case where they coincide."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from banditlab.agents.soba import SOBA
from banditlab.agents.soba_diag import SOBAdiag
from banditlab.errors import UsageError
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def make(cls, K, d, **settings):
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


@pytest.mark.parametrize("gamma", [0.2, "adaptive"])
@pytest.mark.parametrize(("cls", "K", "d"), [(SOBA, 3, 1), (SOBA, 4, 5), (SOBAdiag, 3, 1), (SOBAdiag, 5, 9)])
def test_contract(one_bit_contract, stream, cls, K, d, gamma):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(cls, K, d, gamma=gamma), X, y)


class Direct:
    """The pseudocode on vectors of length K d with a dense A, inverted anew when asked."""

    def __init__(self, K, d, gamma, ridge, diagonal):
        self.K, self.d, self.fixed, self.diagonal = K, d, gamma, diagonal
        self.A, self.theta = ridge * np.eye(K * d), np.zeros(K * d)
        self.S = self.logdet = 0.0
        self.t = 1

    def weights(self):
        return np.linalg.solve(self.A, self.theta).reshape(self.K, self.d)

    def gamma(self):
        if self.fixed != "adaptive":
            return self.fixed
        return min(1.0, math.sqrt(self.K * (1.0 + self.logdet) / self.t))

    def probabilities(self, x):
        p = np.full(self.K, self.gamma() / self.K)
        p[int(np.argmax(self.weights() @ x))] += 1.0 - self.gamma()
        return p

    def learn(self, x, action, p, correct):
        """Return whether the round was accepted."""
        self.t += 1
        if not correct:
            return False
        W = self.weights()
        scores = W @ x
        scores[action] = -np.inf
        rival = int(np.argmax(scores))
        g = np.outer(np.eye(self.K)[rival] - np.eye(self.K)[action], x).ravel() / p[action]
        z = math.sqrt(p[action]) * g
        quadratic = z @ np.linalg.solve(self.A, z)
        m = ((W.ravel() @ z) ** 2 + 2 * W.ravel() @ g) / (1 + quadratic)
        if self.S + m < 0:
            return False
        self.S += m
        self.A += np.diag(z**2) if self.diagonal else np.outer(z, z)
        self.logdet += quadratic / (1 + quadratic)
        self.theta -= g
        return True


CASES = [
    (2, 3, {"gamma": 0.3}),
    (4, 5, {"gamma": 0.1, "ridge": 0.3}),
    (3, 6, {"gamma": "adaptive"}),
    (5, 4, {"gamma": 1.0, "ridge": 4.0}),
    (6, 2, {"gamma": 0.0}),
]


@pytest.mark.parametrize(("K", "d", "settings"), CASES)
@pytest.mark.parametrize("cls", [SOBA, SOBAdiag])
@pytest.mark.few(4)
def test_equals_the_pseudocode(stream, cls, K, d, settings):
    X, y = stream(K, d, 400)
    X = np.where(np.abs(X) < 0.05, 0.0, X)
    agent = make(cls, K, d, **settings)
    direct = Direct(K, d, agent.gamma, agent.ridge, cls is SOBAdiag)
    accepted = rejected = 0
    for x, label in zip(X, y):
        scores = np.sort(direct.weights() @ x)
        decision = agent.act(x)
        if scores[-1] - scores[-2] > 1e-9:  # rounding decides exact ties, which stand at the start
            np.testing.assert_allclose(decision.probabilities, direct.probabilities(x), rtol=0, atol=1e-9)
        correct = decision.action == label
        took = direct.learn(x, decision.action, decision.probabilities, correct)
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, direct.weights(), rtol=0, atol=1e-9)
        assert agent.state.tally[0] == pytest.approx(direct.S, abs=1e-9)
        assert agent.state.tally[1] == pytest.approx(direct.logdet, abs=1e-9)
        accepted += took
        rejected += correct and not took
    assert accepted >= (1 if agent.gamma == 0.0 else 10)  # nothing feeds the budget where nothing is explored
    assert rejected >= (0 if agent.gamma in (1.0, "adaptive") else 3)
    if cls is SOBA:
        np.testing.assert_allclose(agent.state.C @ direct.A, np.eye(K * d), atol=1e-9)
    else:
        np.testing.assert_allclose(1.0 / agent.state.C[:, :d].ravel(), np.diag(direct.A), rtol=1e-9)


@pytest.mark.parametrize("cls", [SOBA, SOBAdiag])
def test_the_update_is_an_unbiased_hinge_subgradient(stream, cls):
    """theta moves by -g where the budget allows: over all actions, by (e_y - e_yb) (x) x in expectation."""
    K, d = 4, 5
    X, y = stream(K, d, 100)
    agent = make(cls, K, d, gamma=0.4)
    for x, label in zip(X, y):
        decision = agent.act(x)
        mean = np.zeros((K, d))
        for action in range(K):
            twin = copy.deepcopy(agent)
            twin.state.tally[0] = 1e9  # a budget that accepts every hit
            twin.learn(x, decision._replace(action=action), action == label)
            mean += decision.probabilities[action] * (dual(twin) - dual(agent))
        scores = agent.weights @ x
        scores[label] = -np.inf
        subgradient = np.outer(np.eye(K)[int(np.argmax(scores))] - np.eye(K)[label], x)
        np.testing.assert_allclose(mean, -subgradient, atol=1e-9)
        agent.learn(x, decision, decision.action == label)


def dual(agent):
    """theta = A W (K, d)."""
    K, d = agent.problem.n_classes, agent.problem.n_features
    if isinstance(agent, SOBAdiag):
        return agent.state.theta[:, :d].copy()
    return np.linalg.solve(agent.state.C, agent.weights.ravel()).reshape(K, d)


def test_coincide_where_the_ridge_outweighs_the_data(stream):
    """A = a (1 + O(1/a)) in both: the same actions, and a W = theta alike."""
    K, d, T = 4, 6, 2000
    X, y = stream(K, d, T)
    full, diagonal = make(SOBA, K, d, gamma=0.2, ridge=1e10), make(SOBAdiag, K, d, gamma=0.2, ridge=1e10)
    one, two = Trace.empty(T), Trace.empty(T)
    full.play_block(X, y, one)
    diagonal.play_block(X, y, two)
    assert np.array_equal(one.action, two.action)
    np.testing.assert_allclose(full.weights * 1e10, diagonal.weights * 1e10, rtol=0, atol=1e-5)
    assert np.abs(full.weights * 1e10).max() > 10.0


@pytest.mark.parametrize("cls", [SOBA, SOBAdiag])
def test_learns_and_keeps_its_budget(stream, cls):
    K, d, T = 3, 4, 5000
    X, y = stream(K, d, T, noise=0.0)
    agent, trace = make(cls, K, d, gamma=0.1), Trace.empty(T)
    agent.play_block(X, y, trace)
    assert agent.state.tally[0] >= 0.0
    assert agent.state.tally[2] == T
    assert (1 - trace.p_true[-1000:]).mean() < 0.25  # exploration costs 0.067, guessing 0.667


@pytest.mark.parametrize("cls", [SOBA, SOBAdiag])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\]"),
        ({"gamma": "theory"}, "gamma must be a number or 'adaptive'"),
        ({"ridge": 0.0}, "ridge must be a number above 0"),
    ],
)
def test_refuses_bad_settings(cls, settings, message):
    with pytest.raises(UsageError, match=message):
        make(cls, 3, 2, **settings)


@pytest.mark.parametrize("cls", [SOBA, SOBAdiag])
def test_has_no_bound(cls):
    agent = make(cls, 3, 2)
    assert agent.bound(100) is None
    assert (agent.gamma, agent.ridge) == (0.05, 1.0)
