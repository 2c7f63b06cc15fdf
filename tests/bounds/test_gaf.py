"""GAF's Corollary 2, the variant for any regularization, and what sampling adds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.bounds.gaf import (
    gaf,
    gaf_corollary_2,
    gaf_regularization,
    gaf_sampling,
    gaf_sampling_high_probability,
    gaf_smoothing,
)
from banditlab.losses import softmax


@pytest.mark.parametrize(("K", "d", "B", "R"), [(2, 1, 1.0, 1.0), (3, 5, 2.0, 2.0), (10, 64, 30.0, 1.0)])
def test_corollary_2(K: int, d: int, B: float, R: float) -> None:
    n = 10_000
    beta, lam = 1 / (math.log(K) / 2 + B * R + 1), 32 * d * K * R**2
    theorem_1 = lam * K * B**2 + K * d * (0.5 + 2 * math.sqrt(3) / beta) * math.log(1 + n * beta * R**2 / (2 * lam))
    assert gaf_corollary_2(n, d, K, B, R) == pytest.approx(theorem_1)
    assert gaf(n, d, K, B, R, lam, beta / 2) < theorem_1
    assert math.isnan(gaf_corollary_2(n, d, K, B, R, 15.9 * R**2))
    assert math.isfinite(gaf_corollary_2(n, d, K, B, R, 4 * max(4, K * d) * R**2))
    assert math.isnan(gaf_corollary_2(n, d, K, B, R, lam, 3 * beta))  # beta / 2 is not known to be admissible
    assert gaf_regularization(d, K, R) == lam


def test_any_regularization_is_finite_and_tends_to_a_quarter_log_determinant() -> None:
    n, d, K, B, R, c = 1000, 4, 3, 2.0, 1.0, 0.1
    assert math.isfinite(gaf(n, d, K, B, R, 1e-3, c))
    assert gaf(n, d, K, B, R, 1e-6, c) == math.inf  # kappa = e^(5e5)
    assert math.isnan(gaf(n, d, K, B, R, 1.0, 0.3))
    lam = 1e12
    log_det = (K - 1) * d * math.log1p(c * n / (K * d * lam))
    assert gaf(n, d, K, B, R, lam, c) - lam * K * B**2 == pytest.approx(log_det / (4 * c), abs=1e-3)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.5])
def test_kappa_bounds_the_growth_of_the_mean_loss(sigma: float) -> None:
    """E lse(z + u) - lse(z) <= (kappa/2) tr(C S) for u ~ N(0, C), C <= sigma^2: the step the variant rests on."""
    rng = np.random.default_rng(0)
    for K in (2, 3, 6):
        kappa = math.exp(sigma * math.sqrt(2 * (K - 1)) + sigma**2)
        u = sigma * rng.standard_normal((40_000, K))
        for _ in range(5):
            z = 5 * rng.standard_normal(K)
            s = softmax(z)
            ratio = np.log(np.exp(u) @ s)
            mean, error = ratio.mean(), 4 * ratio.std() / 200
            assert mean - error <= 0.5 * kappa * sigma**2 * (1 - s @ s)


@pytest.mark.parametrize("q", [0.001, 0.01, 0.04, 0.3])
def test_sampling_term_in_expectation(q: float) -> None:
    """The worst case at mean q: Bernoulli samples, smoothed."""
    K, m, mu = 4, 50, gaf_smoothing(4, 50)
    assert mu == pytest.approx(math.sqrt(0.02))
    rng = np.random.default_rng(1)
    p = (1 - mu) * rng.binomial(m, q, 200_000) / m + mu / K
    excess = (math.log(q) - np.log(p)).mean()
    assert 100 * excess <= gaf_sampling(100, K, m, mu)
    assert gaf_sampling(100, K, m, 0.0) == math.inf
    assert gaf_sampling(100, K, 10**8, gaf_smoothing(K, 10**8)) < 0.1


def test_sampling_term_with_high_probability() -> None:
    n, K, delta, q = 50, 3, 0.1, 0.02
    m = 5_000
    mu = (K * math.log(n / delta) / m) ** (1 / 3)
    term = gaf_sampling_high_probability(n, K, m, mu, delta)
    assert math.isfinite(term)
    rng = np.random.default_rng(2)
    p = (1 - mu) * rng.binomial(m, q, (2000, n)) / m + mu / K
    assert (n * math.log(q) - np.log(p).sum(axis=1) > term).mean() <= delta
    assert gaf_sampling_high_probability(n, K, 10, 0.3, delta) == math.inf
    assert gaf_sampling_high_probability(n, K, m, 0.0, delta) == math.inf
