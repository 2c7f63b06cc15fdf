"""AIOLI's Theorem 1 as printed, and with the tight curvature."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds.aioli import aioli, aioli_tight


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
