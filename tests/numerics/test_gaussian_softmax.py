"""The mean of softmax over Gaussian logits, against fine rules, samples and exact moments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.losses import log_sum_exp, softmax
from banditlab.numerics.gaussian_softmax import Nodes, cubature, gauss_hermite, log_mean_softmax, symmetric_root


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
@pytest.mark.parametrize("K", [2, 3, 6, 12])
def test_symmetric_root(K: int, scale: float) -> None:
    rng = np.random.default_rng(K)
    for rank in (1, K // 2, K):
        F = rng.standard_normal((K, max(1, rank)))
        C = scale * F @ F.T
        S = np.empty((K, K))
        symmetric_root(C.copy(), np.empty((K, K)), S)
        np.testing.assert_array_equal(S, S.T)
        np.testing.assert_allclose(S @ S, C, atol=1e-13 * K * scale * K)
        assert np.linalg.eigvalsh(S).min() >= -1e-7 * math.sqrt(scale)


def random_gaussian(seed: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((K, K))
    F -= F.mean(axis=0)
    return 2.0 * rng.standard_normal(K), F @ F.T + 0.7  # (1, ..., 1) is an eigenvector, as it is of At


def log_mean(mean: np.ndarray, C: np.ndarray, nodes: Nodes, mu: float = 0.0) -> np.ndarray:
    z = np.empty(len(mean))
    log_mean_softmax(mean, C.copy(), nodes, mu, z)
    return z


def test_gauss_hermite_is_the_gaussian_integral() -> None:
    """Two classes: scipy's adaptive quadrature; three: a fine grid in the plane softmax sees."""
    from scipy.integrate import quad

    mean, C = random_gaussian(0, 2)
    m, v = mean[0] - mean[1], C[0, 0] - 2 * C[0, 1] + C[1, 1]
    density = lambda t: math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi) / (1 + math.exp(-m - math.sqrt(v) * t))  # noqa: E731
    exact = quad(density, -12, 12, epsabs=1e-12)[0]
    assert math.exp(log_mean(mean, C, gauss_hermite(2, 60))[0]) == pytest.approx(exact, abs=1e-9)
    mean, C = random_gaussian(1, 3)
    t = np.linspace(-9, 9, 361)
    a, b = np.meshgrid(t, t, indexing="ij")
    weight = np.exp(-0.5 * (a**2 + b**2))
    L = np.linalg.cholesky((C[:, :2] - C[2, :2])[:2] - (C[:2, 2] - C[2, 2])[:, None])
    logits = np.stack([mean[0] - mean[2] + L[0, 0] * a, mean[1] - mean[2] + L[1, 0] * a + L[1, 1] * b, 0 * a], axis=-1)
    fine = (softmax(logits) * weight[..., None]).sum(axis=(0, 1)) / weight.sum()
    np.testing.assert_allclose(np.exp(log_mean(mean, C, gauss_hermite(3, 40))), fine, atol=1e-7)


def test_cubature_is_exact_to_degree_three() -> None:
    nodes = cubature(4)
    x = nodes.points
    np.testing.assert_allclose(nodes.weights @ x, 0, atol=1e-15)
    np.testing.assert_allclose((x.T * nodes.weights) @ x, np.eye(4), atol=1e-15)
    third = np.einsum("m,mi,mj,mk->ijk", nodes.weights, x, x, x)
    np.testing.assert_allclose(third, 0, atol=1e-15)
    mean, C = random_gaussian(4, 3)
    small = log_mean(mean, 1e-4 * C, cubature(3))
    np.testing.assert_allclose(small, log_mean(mean, 1e-4 * C, gauss_hermite(3, 20)), atol=1e-6)


def test_tiny_probabilities_keep_their_digits() -> None:
    """A class 2,000 below the top: its mean is dominated by the samples that favour it, far below the smallest float."""
    mean, C = np.array([0.0, -2000.0, 1.0]), np.diag([4.0, 100.0, 1.0])
    half = np.random.default_rng(0).standard_normal((50, 3))
    nodes = Nodes.of(np.concatenate([half, -half]), np.full(100, 0.01))
    w = mean + nodes.points @ np.sqrt(C)
    logs = w - log_sum_exp(w)[:, None]
    expected = [log_sum_exp(logs[:, k]) - math.log(100) for k in range(3)]
    np.testing.assert_allclose(log_mean(mean, C, nodes), expected, rtol=1e-12)
    assert expected[1] < -1900
    np.testing.assert_allclose(log_mean(mean + 1000.0, C, nodes), expected, rtol=1e-11)  # only differences matter
    smoothed = log_mean(mean, C, nodes, 0.3)
    np.testing.assert_allclose(smoothed, np.log(0.7 * np.exp(expected) + 0.1), rtol=1e-12)
