"""The aggregating algorithm's mixture, weights and smoothing, against the formulas in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.log_mixture import mix, mix_linear, reweigh, smooth


def members(N: int, K: int, d: int, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return matrices (N, K, d), log weights (N,) that sum to 1, and a context (d,)."""
    rng = np.random.default_rng(N * K)
    return (
        scale * rng.standard_normal((N, K, d)),
        np.log(rng.dirichlet(np.ones(N))),
        as_contexts(rng.standard_normal(d)),
    )


@pytest.mark.parametrize(("N", "K", "d", "scale"), [(1, 2, 1, 1.0), (7, 3, 4, 1.0), (40, 5, 9, 100.0)])
def test_a_mixture_of_matrices_is_the_mean_of_their_softmax(N: int, K: int, d: int, scale: float) -> None:
    M, w, x = members(N, K, d, scale)
    Z, z, again = np.empty((N, K)), np.empty(K), np.empty(K)
    mix_linear(M, w, x, Z, z)
    np.testing.assert_allclose(Z, log_softmax(M @ x, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(z), np.exp(w) @ np.exp(Z), rtol=1e-12)
    mix(w, Z, again)
    np.testing.assert_array_equal(again, z)


def test_probabilities_that_underflow_keep_their_logarithms() -> None:
    z = np.empty(2)
    mix(np.log([0.5, 0.5]), np.array([[0.0, -2000.0], [0.0, -2001.0]]), z)
    assert z[1] == pytest.approx(-2000.0 + math.log(0.5 * (1.0 + math.exp(-1.0))), abs=1e-9)


def test_weights_follow_the_losses() -> None:
    M, w, x = members(6, 3, 2, 2.0)
    Z, z = np.empty((6, 3)), np.empty(3)
    mix_linear(M, w, x, Z, z)
    expected = np.exp(w) * np.exp(Z[:, 1]) / math.exp(z[1])  # P(W) softmax(W x)_y over the mixture's probability of y
    reweigh(w, Z, 1)
    np.testing.assert_allclose(np.exp(w), expected, rtol=1e-12)
    assert np.exp(w).sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.5])
def test_smoothing_mixes_the_uniform_distribution_in(mu: float) -> None:
    z = np.log([0.7, 0.2, 0.1])
    smooth(z, mu)
    np.testing.assert_allclose(np.exp(z), (1.0 - mu) * np.array([0.7, 0.2, 0.1]) + mu / 3.0, rtol=1e-14)
