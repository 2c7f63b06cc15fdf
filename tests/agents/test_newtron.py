"""Newtron against the full Kd x Kd textbook solve, its estimates by enumeration, and the properties every agent has."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

from banditlab.agents.newtron import Newtron
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.losses import logistic_gradient, softmax
from banditlab.numerics import frobenius_programme
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import (
    SOLUTION,
    refactor,
    solve,
)
from banditlab.numerics.packed_symmetric import dense
from banditlab.players.agent import Trace
from banditlab.problem import Decision, Problem


def stream(K, d, T, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    planted = 4.0 * rng.standard_normal((K, d))
    X = rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, (T, 1))
    y = np.where(rng.random(T) < noise, rng.integers(K, size=T), np.argmax(X @ planted.T, axis=1))
    return as_contexts(X), y.astype(np.int64)


def problem(K, d, T=None):
    return Problem(n_features=d, n_classes=K, radius=1.0, horizon=T)


def estimate(p, played, action, correct, x):
    """Return (dlt (K, d), kappa) as the specification writes them: p the softmax, `played` the mixed distribution."""
    K = len(p)
    direction = np.full(K, 1.0 / K)
    direction[action] -= 1.0
    if correct:
        return (1 - p[action]) / played[action] * np.outer(direction, x), played[action]
    return -p[action] / played[action] * np.outer(direction, x), 1.0


def ball_minimiser(A, b, D):
    """Return argmin over ||w|| <= D of w'Aw/2 + b'w, by eigen-decomposition and one scalar root."""
    values, Q = eigh(A)
    c = Q.T @ b

    def solution(nu):
        return -Q @ (c / (values + nu))

    if np.linalg.norm(solution(0.0)) <= D:
        return solution(0.0), 0.0
    nu = brentq(lambda v: 1 / D - 1 / np.linalg.norm(solution(v)), 0.0, np.linalg.norm(b) / D + 1, xtol=1e-15)
    return solution(nu), nu


@pytest.mark.parametrize(
    ("K", "d", "settings", "rounds"),
    [
        (3, 4, {"gamma": 0.1, "beta": 0.1, "ball": False}, 300),
        (5, 3, {"gamma": 0.02, "beta": 1e-3, "ball": False}, 300),
        (3, 4, {"gamma": 0.1, "beta": 0.1}, 300),
        (3, 4, {"gamma": 0.3, "beta": 3.0, "norm_bound": 2.0}, 400),  # slack and binding rounds alternate
        (2, 5, {"gamma": 0.01, "beta": 0.01, "norm_bound": 3.0}, 300),
        (2, 1, {"gamma": 0.1}, 200),
        (5, 6, {"gamma": 0.05}, 300),  # beta of the theory, 2e-3
        (4, 3, {"gamma": 0.1, "norm_bound": 10.0}, 300),  # beta of the theory, 1e-13
        (3, 3, {"gamma": 0.0, "beta": 1e-20}, 200),
        (4, 3, {"gamma": 1.0, "beta": 0.0}, 200),
        (3, 4, {"gamma": 0.1, "beta": 0.05, "alpha": 3.0}, 300),
    ],
)
@pytest.mark.few(4)
def test_equals_the_full_solve(K, d, settings, rounds):
    X, y = stream(K, d, rounds, seed=K * d)
    agent = Newtron(problem(K, d), np.random.default_rng(1), **settings)
    D = math.sqrt(K) * agent.norm_bound
    A, b = np.eye(K * d) / D, np.zeros(K * d)
    worst, binding = 0.0, 0
    for x, label in zip(X, y):
        # The witness takes W'_t from the agent: iterating on its own solutions, last-digit differences grow with 1/p'.
        w = agent.weights.ravel().copy()
        decision = agent.act(x)
        p = softmax(agent.alpha * w.reshape(K, d) @ x)
        played = (1 - agent.gamma) * p + agent.gamma / K
        np.testing.assert_allclose(decision.probabilities, played, atol=1e-13)
        correct = decision.action == label
        agent.learn(x, decision, correct)
        dlt, kappa = estimate(p, played, decision.action, correct, x)
        v = dlt.ravel()
        b = b + (1 - kappa * agent.beta * (v @ w)) * v
        A = A + kappa * agent.beta * np.outer(v, v)
        w, nu = ball_minimiser(A, b, D if agent.ball else math.inf)
        binding += nu > 0
        worst = max(worst, np.abs(agent.weights.ravel() - w).max() / max(1.0, np.linalg.norm(w)))
        assert agent.state.programme.nu[SOLUTION] == pytest.approx(nu, rel=1e-7, abs=1e-9)
    assert worst < 1e-9
    assert agent.diagnostics()["binding"] == binding
    if not agent.ball:
        assert binding == 0
    elif agent.beta == 3.0:
        assert 20 < binding < rounds - 20
    else:
        assert binding > rounds / 2


@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0])
def test_estimates_are_unbiased(gamma):
    """Enumerate the actions: E[dlt] is the gradient, E[kappa dlt dlt'] the specification's matrix."""
    rng = np.random.default_rng(3)
    K, d = 4, 3
    for _ in range(20):
        W, x, y = rng.standard_normal((K, d)), rng.standard_normal(d), int(rng.integers(K))
        x /= max(1.0, np.linalg.norm(x))
        p = softmax(W @ x)
        played = (1 - gamma) * p + gamma / K
        mean, second = np.zeros((K, d)), np.zeros((K * d, K * d))
        for action in range(K):
            dlt, kappa = estimate(p, played, action, action == y, x)
            step, weight = kernel_estimate(K, d, p, played, action, action == y, x)
            np.testing.assert_allclose(step, dlt, atol=1e-12)
            np.testing.assert_allclose(weight, kappa * np.outer(dlt, dlt).reshape(K * d, K * d), atol=1e-12)
            mean += played[action] * step
            second += played[action] * weight
        np.testing.assert_allclose(mean, logistic_gradient(W, x, y), atol=1e-12)
        u = [np.outer(np.eye(K)[i] - 1 / K, x).ravel() for i in range(K)]
        expected = (1 - p[y]) ** 2 * np.outer(u[y], u[y])
        expected += sum(p[i] ** 2 / played[i] * np.outer(u[i], u[i]) for i in range(K) if i != y)
        np.testing.assert_allclose(second, expected, atol=1e-12)


def kernel_estimate(K, d, p, played, action, correct, x):
    """Read dlt and kappa dlt dlt' off what one call of `learn` adds to the agent's quadratic."""
    beta = 1e-3
    agent = Newtron(problem(K, d), np.random.default_rng(0), gamma=0.5, beta=beta, ball=False)
    before = dense(agent.state.programme.C, d)
    agent.learn(x, Decision(action, played, False, np.array([p[action], 0.0])), correct)
    centre = np.eye(K) - 1 / K  # the quadratic lives on matrices whose rows sum to zero: compare there
    step = centre @ agent.state.programme.b[:, -d:]
    blocks = (dense(agent.state.programme.C, d) - before) / beta
    P = np.kron(centre, np.eye(d))
    weight = np.zeros((K * d, K * d))
    for k in range(K):
        weight[k * d : (k + 1) * d, k * d : (k + 1) * d] = blocks[k]
    return step, P @ weight @ P


@pytest.mark.parametrize("beta", ["theory", 0.1])
@pytest.mark.few(1)
@pytest.mark.slow
def test_drift_over_many_rounds(beta):
    K, d, T = 4, 5, 5_000
    X, y = stream(K, d, T)
    agent = Newtron(problem(K, d), np.random.default_rng(0), gamma=0.05, beta=beta)
    agent.play_block(X, y, Trace.empty(T))
    assert agent.diagnostics()["stalled"] == 0
    assert agent.diagnostics()["drift"] < 1e-11
    qp = agent.state.programme
    kept = qp.W.copy()
    refactor(qp, qp.nu[SOLUTION])
    solve(qp)
    np.testing.assert_allclose(kept, qp.W, atol=1e-11)


@pytest.mark.parametrize(
    "settings", [{"gamma": 0.1}, {"gamma": 0.02, "beta": 0.1, "norm_bound": 3.0}, {"gamma": 0.1, "ball": False}]
)
def test_contract(one_bit_contract, settings):
    X, y = stream(5, 7, 400)
    one_bit_contract(lambda: Newtron(problem(5, 7), np.random.default_rng(7), **settings), X, y)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "d"), [(2, 16), (5, 27)])
def test_large_problems_begin_as_rows_and_play_the_same(monkeypatch, tmp_path, K, d):
    """Without a ball: the same play as whole matrices to rounding, through a copy, a file, and blocks of any length."""
    X, y = stream(K, d, 300)
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.2, 0.0, X)
    X[::9], X[40:44] = np.linspace(1.0, 0.5, len(X[::9]))[:, None] * X[1], 0.0
    X, settings = as_contexts(X), {"gamma": 0.1, "beta": 0.5, "ball": False}
    slow, expected = Newtron(problem(K, d), np.random.default_rng(7), **settings), Trace.empty(300)
    slow.play_block(X, y, expected)
    monkeypatch.setattr(frobenius_programme, "LARGE", 0)
    agent, trace = Newtron(problem(K, d), np.random.default_rng(7), **settings), Trace.empty(300)
    assert slow.state.programme.low_N is None
    assert agent.state.programme.low_N is not None
    agent.play_block(X[:70], y[:70], trace.part(slice(0, 70)))
    agent = pickle.loads(pickle.dumps(agent))
    agent.play_block(X[70:71], y[70:71], trace.part(slice(70, 71)))
    agent.save(tmp_path / "newtron.npz")
    agent = Newtron.load(tmp_path / "newtron.npz")
    agent.play_block(X[71:], y[71:], trace.part(slice(71, 300)))
    np.testing.assert_array_equal(trace.action, expected.action)
    np.testing.assert_allclose(trace.p_true, expected.p_true, rtol=0, atol=1e-9)
    np.testing.assert_allclose(agent.weights, slow.weights, rtol=0, atol=1e-9 * np.abs(slow.weights).max())
    assert agent.rng.bit_generator.state == slow.rng.bit_generator.state
    assert agent.diagnostics()["solves"] == slow.diagnostics()["solves"]


@pytest.mark.slow
def test_blocks_of_large_problems_allocate_nothing(monkeypatch, allocations):
    monkeypatch.setattr(frobenius_programme, "LARGE", 0)
    X, y = stream(2, 16, 600)
    agent = Newtron(problem(2, 16), np.random.default_rng(7), gamma=0.1, ball=False)
    agent.play_block(X[:100], y[:100], Trace.empty(100))
    counts = [allocations().alloc]
    for i, j in ((100, 200), (200, 600)):
        agent.play_block(X[i:j], y[i:j], Trace.empty(j - i))
        counts.append(allocations().alloc)
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_feedback_may_come_late_or_never():
    """The estimate belongs to the round of the decision: dlt and <dlt, W'_t> are those of that round's W'_t."""
    K, d = 3, 4
    X, y = stream(K, d, 60)
    agent = Newtron(problem(K, d), np.random.default_rng(4), gamma=0.2, beta=0.1, ball=False)
    A, b = np.eye(K * d) / math.sqrt(K), np.zeros(K * d)
    waiting = []
    for t in range(60):
        waiting.append((t, agent.act(X[t]), agent.weights.copy()))
        if t % 7 == 6:
            for s, decision, W in reversed(waiting[1:]):  # late, out of order; the first one never
                correct = decision.action == y[s]
                agent.learn(X[s], decision, correct)
                p = softmax(W @ X[s])
                dlt, kappa = estimate(p, 0.8 * p + 0.2 / K, decision.action, correct, X[s])
                A += kappa * 0.1 * np.outer(dlt, dlt)
                b += (1 - kappa * 0.1 * np.sum(dlt * W)) * dlt.ravel()
            waiting.clear()
            np.testing.assert_allclose(agent.weights.ravel(), -np.linalg.solve(A, b), atol=1e-9)


def test_theory_settings_and_refusals():
    agent = Newtron(Problem(5, 4, 2.0, 1000), np.random.default_rng(0), norm_bound=1.5)
    assert agent.gamma == pytest.approx(math.sqrt(4 / 1000))
    assert agent.beta == pytest.approx(math.exp(-math.sqrt(2) * 2 * 1.5 * 2.0) / 4)
    assert agent.bound(1000) is None
    assert Newtron(problem(4, 2, 2), np.random.default_rng(0)).gamma == 1.0
    with pytest.raises(HorizonRequiredError, match="gamma = 'theory'"):
        Newtron(problem(3, 2), np.random.default_rng(0))


@pytest.mark.parametrize(
    "wrong", [{"gamma": 1.5}, {"gamma": "much"}, {"beta": -1.0}, {"norm_bound": 0.0}, {"alpha": 0.0}, {"ball": "no"}]
)
def test_settings_out_of_range(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Newtron(problem(3, 2), np.random.default_rng(0), **({"gamma": 0.1} | wrong))
