"""OBAMA's bounds as inequalities, on the exact posterior by quadrature (K = 2, d = 1)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.bounds.obama import gaussian_mix_regret, obama_gamma, obama_gaussian_prior

MARGIN = np.linspace(-80.0, 80.0, 8001)
"""The margin W_0 - W_1, which is all that softmax sees at K = 2; its prior is N(0, 2 s^2)."""


def log_sigmoid(z):
    return -np.logaddexp(0.0, -z)


def mean(log_density, values):
    density = np.exp(log_density - log_density.max())
    return density @ values / density.sum()


@pytest.mark.parametrize("labels", ["separable", "noise", "wrong", "alternating"])
@pytest.mark.parametrize("deviation", [0.5, 5.0])
@pytest.mark.parametrize("weight", [1.0, 0.1, "random"])
@pytest.mark.few(6)
def test_mix_regret_of_the_exact_posterior(labels, deviation, weight):
    rng = np.random.default_rng(0)
    comparators = np.linspace(-20, 20, 41)  # U = (u/2, -u/2): the smallest norm with this margin, u/sqrt(2)
    log_density = -(MARGIN**2) / (4 * deviation**2)
    mix, total, losses = 0.0, 0.0, np.zeros(len(comparators))
    for t in range(200):
        x = rng.uniform(-1, 1)
        w = rng.random() if weight == "random" else weight
        predicted = mean(log_density, np.exp(log_sigmoid(MARGIN * x)))
        y = {
            "separable": x > 0,
            "noise": rng.random() < 0.5,
            "wrong": predicted < 0.5,
            "alternating": t % 2 == 0,
        }[labels]
        sign = 1.0 if y else -1.0
        factor = w * log_sigmoid(sign * MARGIN * x)
        step = -math.log(mean(log_density, np.exp(factor)))
        played = predicted if y else 1 - predicted
        assert step >= -w * math.log(played) - 1e-12  # the substitution: the averaged softmax loses no more
        mix += step
        log_density = log_density + factor
        losses -= w * log_sigmoid(sign * comparators * x)
        total += w
    bounds = [gaussian_mix_regret(total, 1, 2, abs(u) / math.sqrt(2), deviation, 1.0) for u in comparators]
    assert np.all(mix - losses <= np.array(bounds) + 1e-9)
    assert mix - losses.min() > 0.0  # a posterior average cannot beat the best by much: the test is not vacuous


def test_it_is_tight_enough_to_fail():
    """Halving the dimension's term would be false: one direction carries all the data, the comparator is 0."""
    deviation, T = 30.0, 3000
    log_density = -(MARGIN**2) / (4 * deviation**2)
    start = mean(log_density, np.ones_like(MARGIN))
    for t in range(T):
        log_density = log_density + log_sigmoid(MARGIN if t % 2 else -MARGIN)
    prior = -(MARGIN**2) / (4 * deviation**2)
    evidence = np.log(np.exp(log_density + T * math.log(2)).sum() / np.exp(prior).sum())
    regret = -evidence
    bound = gaussian_mix_regret(T, 1, 2, 0.0, deviation, 1.0)
    assert start == pytest.approx(1.0)
    assert 0.45 * bound < regret <= bound


@pytest.mark.slow
def test_expected_mistakes_of_the_exact_bandit():
    """Exact OBAMA, d = 1, K = 2: expected mistakes stay below every comparator's loss plus the bound."""
    T, B = 3000, 2.0
    gamma = obama_gamma(T, 1, 2, B, 1.0)
    rng = np.random.default_rng(0)
    log_density = -(MARGIN**2) / (4 * B**2)
    comparators = np.linspace(-2 * B, 2 * B, 41)
    mistakes, losses = 0.0, np.zeros(41)
    for _ in range(T):
        x = rng.uniform(-1, 1)
        y = rng.random() < 1 / (1 + math.exp(-4 * x))
        sign = 1.0 if y else -1.0
        q = (1 - gamma) * mean(log_density, np.exp(log_sigmoid(sign * MARGIN * x))) + gamma / 2
        mistakes += 1 - q
        losses -= log_sigmoid(sign * comparators * x)
        if rng.random() < q:
            log_density = log_density + gamma / 2 / q * log_sigmoid(sign * MARGIN * x)
    additive = obama_gaussian_prior(T, 1, 2, B, 1.0, gamma)
    assert 0 < gamma < 1
    assert additive < T
    assert mistakes <= losses.min() + additive


def test_gamma_balances_the_two_terms():
    T, d, K, B, R = 10**6, 3, 4, 2.0, 1.5
    gamma = obama_gamma(T, d, K, B, R)
    exploration = gamma * (1 - 1 / K) * T
    assert obama_gaussian_prior(T, d, K, B, R, gamma) == pytest.approx(2 * exploration, rel=1e-12)
    for other in (gamma / 3, gamma * 3):
        assert obama_gaussian_prior(T, d, K, B, R, other) > obama_gaussian_prior(T, d, K, B, R, gamma)
    assert obama_gamma(10, d, K, B, R) == 1.0
    assert obama_gaussian_prior(T, d, K, B, R, 0.0) == math.inf
