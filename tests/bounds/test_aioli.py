"""AIOLI's Theorem 1 as printed, and with the tight curvature."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.bounds.aioli import aioli, aioli_inexact, aioli_kernel, aioli_steps, aioli_theorem_4, aioli_tight


@pytest.mark.parametrize(("B", "R"), [(1.0, 1.0), (10.0, 1.0), (3.0, 7.0)])
@pytest.mark.parametrize("n", [1, 1000])
def test_theorem_1(n: int, B: float, R: float) -> None:
    d, lam = 5, 0.3
    printed = lam * B**2 + d * (1 + B * R) * math.log(1 + n * R**2 / (8 * d * (1 + B * R) * lam))
    assert aioli(n, d, B, R, lam) == pytest.approx(printed)
    at_theory = d * (1 + B * R) * math.log(1 + n * B**2 * R**2 / (8 * d * (1 + B * R))) + 1
    assert aioli(n, d, B, R, 1 / B**2) == pytest.approx(at_theory)  # Equation (4)


def test_the_tight_curvature_at_ten() -> None:
    """At B R = 10 the factor 1 + B R = 11 becomes 4.2."""
    n, d, lam = 10**6, 3, 1.0
    c = 1 / (2 * 4.2)
    assert aioli_tight(n, d, 10.0, 1.0, lam) == pytest.approx(aioli(n, d, 10.0, 1.0, lam, c), rel=0.01)
    assert aioli_tight(n, d, 10.0, 1.0, lam) < aioli(n, d, 10.0, 1.0, lam)


def test_theorems_4_and_7_and_kernels() -> None:
    n, d, B, R, lam = 1000, 3, 4.0, 1.5, 0.2
    exact = aioli(n, d, B, R, lam)
    assert aioli_theorem_4(n, d, B, R, lam) == exact + 1
    at = 1 / (3 * n * R * (n * R**2 / (8 * lam) + B))
    assert aioli_inexact(n, d, B, R, lam, at) == pytest.approx(exact + 1)
    printed = (4 + R**2 / lam) * math.log(3 * n**2 * R**2 / lam * (n * R**2 / (8 * lam) + B))
    assert aioli_steps(n, B, R, lam) == math.ceil(printed)


def test_effective_dimension_bounds_the_log_determinant() -> None:
    rng = np.random.default_rng(0)
    n, B, R, lam = 60, 2.0, 1.0, 0.3
    X = rng.standard_normal((n, 4))
    X /= np.linalg.norm(X, axis=1)[:, None]
    gram, c = X @ X.T, 0.5 / (1 + B * R)
    scale = 4 * lam / c
    effective = np.trace(gram @ np.linalg.inv(gram + scale * np.eye(n)))
    determinant = lam * B**2 + np.linalg.slogdet(np.eye(n) + gram / scale)[1] / (2 * c)
    assert determinant <= aioli_kernel(n, effective, B, R, lam)
    assert determinant <= aioli(n, 4, B, R, lam) + 1e-9  # in four dimensions, Theorem 1
