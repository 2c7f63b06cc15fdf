"""The aggregating forecaster's bounds: the best shrinkage, the separation of Gauss-Legendre weights, the printed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import roots_legendre

from banditlab.bounds.aggregating import (
    aggregating,
    aggregating_fine_quadrature,
    aggregating_net,
    aggregating_quadrature,
    quadrature_error,
    quadrature_nodes,
)


@pytest.mark.parametrize("T", [1, 10, 1000, 10**6])
def test_no_shrinkage_beats_the_one_taken(T: int) -> None:
    d, K, B, R = 3, 4, 2.0, 1.5
    found = aggregating(T, d, K, B, R)
    for h in np.geomspace(1e-9, 1.0, 400):
        assert found <= K * d * math.log(1 / h) + 4 * B * R * T * h + 1e-9
    assert found <= 5 * K * d * math.log(B * R * T / (K * d) + math.e)
    assert aggregating(T, d, K, B, R, 0.01) == pytest.approx(found - T * math.log(0.99))


@pytest.mark.parametrize("nodes", [1, 2, 7, 30, 801])
def test_gauss_legendre_weights_separate_lengths(nodes: int) -> None:
    """Nodes inside any interval weigh at least its length less two heaviest weights (lengths relative to the whole)."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (x + 1) / 2, w / 2
    below = np.cumsum(w)
    assert (below >= x - 1e-12).all()
    assert (below - w <= x + 1e-12).all()
    rng = np.random.default_rng(0)
    for a, b in np.sort(rng.random((300, 2)), axis=1):
        assert w[(x >= a) & (x <= b)].sum() >= b - a - 2 * w.max() - 1e-12


def test_the_quadratures_bound() -> None:
    assert aggregating_quadrature(100, 3.0, 1.0, 0.0) == pytest.approx(aggregating(100, 1, 1, 3.0, 1.0))
    assert aggregating_quadrature(100, 3.0, 1.0, 0.01) > aggregating_quadrature(100, 3.0, 1.0, 0.001)
    for h in np.linspace(0.021, 1.0, 300):
        assert aggregating_quadrature(100, 3.0, 1.0, 0.01) <= -math.log(h - 0.02) + 1200 * h + 1e-9
    assert aggregating_quadrature(0, 3.0, 1.0, 0.01) == pytest.approx(-math.log(0.98))
    assert aggregating_net(50, 7) == math.log(7)


@pytest.mark.parametrize("B", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("kind", ["noise", "separable"])
@pytest.mark.few(2)
def test_quadrature_error(kind: str, B: float) -> None:
    """The relative error of the mean of e^{-L} against a far finer rule stays below its bound, down to rounding."""
    T, tight = 200, 0
    rng = np.random.default_rng(0)
    past = rng.choice([-1.0, 1.0], T) if kind == "noise" else np.ones(T)
    fine = roots_legendre(3000)

    def log_mean(rule: tuple[np.ndarray, np.ndarray]) -> float:
        L = np.logaddexp(0, -2 * B * rule[0][:, None] * past).sum(axis=1)
        return float(np.log((0.5 * rule[1] * np.exp(L.min() - L)).sum()) - L.min())

    for nodes in (5, 20, 50, 100, 200, 400, 800):
        error = abs(math.expm1(log_mean(roots_legendre(nodes)) - log_mean(fine)))
        bound = quadrature_error(T, B, 1.0, nodes)
        assert error <= bound + 1e-10
        tight += bound < 1e-3
    assert tight >= (1 if B == 20.0 else 2) or quadrature_nodes(T, B, 1.0) > 800


@pytest.mark.parametrize("T", [1, 100, 10**5])
@pytest.mark.parametrize("B", [0.1, 1.0, 30.0])
def test_enough_nodes(T: int, B: float) -> None:
    nodes = quadrature_nodes(T, B, 1.0)
    assert quadrature_error(T, B, 1.0, nodes) <= 1e-6
    assert nodes <= 100 or quadrature_error(T, B, 1.0, int(nodes / 1.1) - 1) > 1e-6
    assert nodes <= 100 + 10 * (1 + B) * math.sqrt(T)
    exact = aggregating(T, 1, 1, B, 1.0)
    assert aggregating_fine_quadrature(T, B, 1.0, nodes) == pytest.approx(exact, abs=2e-6)
    if T > 1:
        assert math.isnan(aggregating_fine_quadrature(10**6 * T, B, 1.0, 5))  # too few
