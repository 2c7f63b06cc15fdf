"""OBAMA-lite against a dense filter, quadrature and enumeration, and the properties every agent has."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from banditlab.agents.obama.laplace import mean_softmax
from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.bounds.obama import obama_gamma
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.losses import logistic_gradient, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gaussian_posterior import (
    covariance,
    learn_label,
    posterior_state,
)
from banditlab.problem import Decision, Problem


def stream(K, d, T, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    planted = 6.0 * rng.standard_normal((K, d))
    X = rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, (T, 1))
    y = np.where(rng.random(T) < noise, rng.integers(K, size=T), np.argmax(X @ planted.T, axis=1))
    return as_contexts(X), y.astype(np.int64)


def problem(K, d, T=None):
    return Problem(n_features=d, n_classes=K, radius=1.0, horizon=T)


def test_mean_softmax_is_the_average_over_the_mirrored_nodes():
    rng = np.random.default_rng(0)
    K, z = 4, rng.standard_normal(4)
    F = rng.standard_normal((K, K))
    nodes = rng.standard_normal((30, K))
    qbar = np.empty(K)
    mean_softmax(z, F @ F.T, nodes, np.zeros((K, K)), np.zeros(K), np.zeros(K), qbar)
    N = nodes @ np.linalg.cholesky(F @ F.T).T
    np.testing.assert_allclose(qbar, softmax(z + np.vstack([N, -N])).mean(axis=0), atol=1e-13)


@pytest.mark.parametrize(("B", "average", "worst"), [(0.5, 0.001, 0.003), (1.0, 0.005, 0.01), (4.0, 0.03, 0.07)])
def test_close_to_the_exact_posterior_of_one_dimension(B, average, worst):
    """K = 2, d = 1: |q - exact q|, the tempered posterior by quadrature; wide priors become less Gaussian."""
    rng = np.random.default_rng(1)
    agent = ObamaLite(problem(2, 1), np.random.default_rng(0), decoding="sample", norm_bound=B, gamma=0.2, samples=4000)
    margin = np.linspace(-12 * B, 12 * B, 4001)  # W_0 - W_1, prior N(0, 2 B^2)
    log_density = -(margin**2) / (4 * B**2)
    gaps = []
    for _ in range(150):
        x = np.array([rng.uniform(-1, 1)])
        label = int(rng.random() > 1 / (1 + math.exp(-3 * x[0])))
        density = np.exp(log_density - log_density.max())
        exact = np.sum(density / (1 + np.exp(-margin * x[0]))) / density.sum()
        decision = agent.act(x)
        gaps.append(abs(decision.probabilities[0] - (0.8 * exact + 0.1)))
        agent.learn(x, decision, decision.action == label)
        if decision.action == label:
            w = 0.1 / decision.probabilities[label]
            log_density -= w * np.logaddexp(0.0, -margin * x[0] if label == 0 else margin * x[0])
    assert agent.diagnostics()["hits"] > 50
    assert exact != pytest.approx(0.5, abs=0.01)  # something was learnt
    assert np.mean(gaps) < average, (np.mean(gaps), max(gaps))
    assert max(gaps) < worst, (np.mean(gaps), max(gaps))


@pytest.mark.parametrize("gamma", [0.01, 0.3, 1.0])
def test_weights_never_exceed_one(gamma):
    X, y = stream(4, 3, 500)
    agent = ObamaLite(problem(4, 3), np.random.default_rng(0), decoding="sample", norm_bound=30.0, gamma=gamma)
    for x, label in zip(X, y):
        decision = agent.act(x)
        assert (gamma / 4 / decision.probabilities).max() <= 1 + 1e-12
        agent.learn(x, decision, decision.action == label)
    assert agent.diagnostics()["cut"] == 0


def test_without_exploration_the_weight_is_cut_and_counted():
    """gamma = 0: eta = e^{-2BR}/K; below it, which a Gaussian allows and the ball does not, the weight is 1."""
    agent = ObamaLite(problem(2, 1), np.random.default_rng(0), decoding="sample", gamma=0.0)
    assert agent.state.eta == pytest.approx(math.exp(-2) / 2)
    twice = ObamaLite(Problem(1, 2, 2.0), np.random.default_rng(0), decoding="sample", gamma=0.0)
    assert twice.state.eta == pytest.approx(math.exp(-4) / 2)
    x, rare = np.array([1.0]), math.exp(-2) / 4
    agent.learn(x, Decision(0, np.array([rare, 1 - rare])), True)
    assert agent.diagnostics()["cut"] == 1
    other = posterior_state(2, 1, 1.0)
    learn_label(other, as_contexts(x), 0, 1.0)
    np.testing.assert_array_equal(agent.state.posterior.M, other.M)


def test_loss_estimates_are_unbiased():
    """Enumerate the actions: to first order in eta the mean step is that of the full-information gradient."""
    K, d, gamma = 4, 3, 1e-7
    X, y = stream(K, d, 41, seed=2)
    agent = ObamaLite(problem(K, d), np.random.default_rng(0), decoding="sample", norm_bound=2.0, gamma=gamma)
    for t in range(40):
        learn_label(agent.state.posterior, X[t], y[t], 0.5)
    M, C, x = agent.state.posterior.M.copy(), covariance(agent.state.posterior), X[40]
    q = agent.act(x).probabilities
    for label in range(K):
        mean = np.zeros((K, d))
        for action in range(K):
            copy = pickle.loads(pickle.dumps(agent))
            copy.learn(x, Decision(action, q), action == label)
            mean += q[action] * (copy.state.posterior.M - M) * K / gamma
        np.testing.assert_allclose(mean.ravel(), -C @ logistic_gradient(M, x, label).ravel(), atol=1e-5)


@pytest.mark.parametrize(("K", "d", "gamma"), [(2, 3, 0.1), (5, 7, 0.3), (3, 4, 0.0)])
def test_contract(one_bit_contract, K, d, gamma):
    X, y = stream(K, d, 400)
    settings = {"decoding": "sample", "norm_bound": 3.0, "gamma": gamma}
    one_bit_contract(lambda: ObamaLite(problem(K, d), np.random.default_rng(7), **settings), X, y)


def test_feedback_may_come_late_or_never(dense_step):
    """The weight is that of the decision; the step is taken at the posterior of the moment."""
    K, d = 3, 2
    X, y = stream(K, d, 60)
    agent = ObamaLite(problem(K, d), np.random.default_rng(4), decoding="sample", norm_bound=2.0, gamma=0.3)
    M, C = np.zeros((K, d)), 2.0 * np.eye(K * d)
    waiting = []
    for t in range(60):
        waiting.append((t, agent.act(X[t])))
        if t % 7 == 6:
            for s, decision in reversed(waiting[1:]):  # late, out of order; the first one never
                agent.learn(X[s], decision, decision.action == y[s])
                if decision.action == y[s]:
                    M, C = dense_step(M, C, X[s], y[s], 0.1 / decision.probabilities[y[s]])
            waiting.clear()
    np.testing.assert_allclose(agent.state.posterior.M, M, atol=1e-8)


def test_permuting_the_classes_permutes_the_answers_in_law():
    """The nodes are drawn class by class through a triangular root: equality holds up to their Monte Carlo error."""
    K, d, order = 4, 3, np.array([2, 0, 3, 1])
    X, y = stream(K, d, 60, seed=3)
    plain, permuted = (
        ObamaLite(
            problem(K, d), np.random.default_rng(seed), decoding="sample", norm_bound=4.0, gamma=0.1, samples=20_000
        )
        for seed in (5, 6)
    )
    for x, label in zip(X, y):
        learn_label(plain.state.posterior, x, label, 0.5)
        learn_label(permuted.state.posterior, x, order[label], 0.5)
    np.testing.assert_allclose(permuted.state.posterior.M[order], plain.state.posterior.M, atol=1e-9)
    spread = 0.0
    for x in X[:10]:
        p, q = plain.act(x).probabilities, permuted.act(x).probabilities
        np.testing.assert_allclose(q[order], p, atol=0.01)
        spread = max(spread, np.ptp(p))
    assert spread > 0.1


def test_theory_settings_and_refusals():
    agent = ObamaLite(Problem(2, 3, 1.0, 1_000_000), np.random.default_rng(0), decoding="sample", norm_bound=1.5)
    assert agent.gamma == obama_gamma(1_000_000, 2, 3, 1.5, 1.0)
    assert 0 < agent.gamma < 0.1
    assert agent.state.eta == agent.gamma / 3
    assert agent.bound(1000) is None
    np.testing.assert_allclose(covariance(agent.state.posterior), 1.5**2 / 2 * np.eye(6))
    with pytest.raises(HorizonRequiredError, match="gamma = 'theory'"):
        ObamaLite(problem(3, 2), np.random.default_rng(0), decoding="sample")


@pytest.mark.parametrize(
    "wrong",
    [{"gamma": -0.1}, {"gamma": "much"}, {"norm_bound": 0.0}, {"samples": 0}, {"samples": 7}, {"sampler": "gibbs"}],
)
def test_settings_out_of_range(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ObamaLite(problem(3, 2), np.random.default_rng(0), decoding="sample", **({"gamma": 0.1} | wrong))
