"""The Gaussian posterior against a dense filter on Kd dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gaussian_posterior import (
    DELAYED,
    UNSOLVED,
    covariance,
    learn_label,
    logit_law,
    posterior_state,
)


def stream(K, d, T, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    planted = 6.0 * rng.standard_normal((K, d))
    X = rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, (T, 1))
    y = np.where(rng.random(T) < noise, rng.integers(K, size=T), np.argmax(X @ planted.T, axis=1))
    return as_contexts(X), y.astype(np.int64)


@pytest.mark.parametrize(
    ("K", "d", "deviation"), [(2, 1, 1.0), (2, 4, 10.0), (3, 2, 0.3), (3, 3, 5.0), (5, 4, 2.0), (7, 2, 30.0)]
)
def test_equals_the_dense_filter(dense_step, K, d, deviation):
    """Through several subtractions of the waiting columns, weights from 1e-6 to 1, confident wrong predictions."""
    rng = np.random.default_rng(K * d)
    X, y = stream(K, d, 3 * DELAYED + 2, seed=K)
    posterior = posterior_state(K, d, deviation)
    M, C = np.zeros((K, d)), deviation**2 * np.eye(K * d)
    for x, label in zip(X, y):
        w = min(1.0, 10.0 ** rng.uniform(-3, 1)) if rng.random() < 0.8 else 1e-6
        logit_law(posterior, x)
        J = np.kron(np.eye(K), x)
        np.testing.assert_allclose(posterior.law.z0, M @ x, atol=1e-8 * deviation)
        np.testing.assert_allclose(posterior.law.Sigma, J @ C @ J.T, atol=1e-8 * deviation**2)
        learn_label(posterior, x, label, w)
        M, C = dense_step(M, C, x, label, w)
        np.testing.assert_allclose(posterior.M, M, atol=1e-8 * deviation)
        np.testing.assert_allclose(covariance(posterior), C, atol=1e-8 * deviation**2)
    assert posterior.tally[UNSOLVED] == 0
