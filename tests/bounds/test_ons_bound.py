"""ONS: the exp-concavity constant is exact, the quadratic lower bound holds, and the bound beats both printed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.bounds.ons import exp_concavity, ons
from banditlab.losses import logistic_loss, softmax


@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("BR", [0.1, 1.0, 3.0])
def test_exp_concavity_is_the_largest_constant(K: int, BR: float) -> None:
    alpha = exp_concavity(K, BR, 1.0)
    corner = np.full(K, BR)
    corner[0] = -BR
    rng = np.random.default_rng(0)

    def least(z: np.ndarray, a: float) -> float:
        s = softmax(z)
        u = s - np.eye(K)[0]
        return float(np.linalg.eigvalsh(np.diag(s) - np.outer(s, s) - a * np.outer(u, u))[0])

    assert least(corner, 1.001 * alpha) < -1e-7 * alpha
    for z in [corner, *rng.uniform(-BR, BR, (300, K)), *(BR * rng.choice([-1, 1], (100, K)))]:
        assert least(z, alpha) >= -1e-14


@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("BR", [0.1, 0.5, 1.0, 3.0])
def test_the_quadratic_stays_below_the_loss(K: int, BR: float) -> None:
    rng = np.random.default_rng(K)
    beta = 0.5 * exp_concavity(K, BR, 1.0)
    at, to = (np.where(rng.random((5000, 1)) < 0.5, rng.uniform(-BR, BR, (5000, K)),
                       BR * rng.choice([-1.0, 1.0], (5000, K))) for _ in range(2))  # fmt: skip
    y = rng.integers(0, K, 5000)
    g = softmax(at) - np.eye(K)[y]
    slope = (g * (to - at)).sum(axis=1)
    assert (np.abs(2 * beta * slope) <= 1).all()
    assert (logistic_loss(to, y) >= logistic_loss(at, y) + slope + 0.5 * beta * slope**2 - 1e-12).all()


@pytest.mark.parametrize("K", [2, 5, 20])
@pytest.mark.parametrize("B", [0.1, 0.5, 2.0])
def test_below_both_printed_forms(K: int, B: float) -> None:
    T, d, alpha = 1000, 4, exp_concavity(K, B, 1.0)
    GD = math.sqrt(2) * 2 * math.sqrt(K) * B
    assert alpha < 1 / GD
    assert ons(T, d, K, B, 1.0) < 2 * (1 / alpha + GD) * K * d * math.log(T)
    assert ons(T, d, K, B, 1.0, regularization=3.0) > 0
