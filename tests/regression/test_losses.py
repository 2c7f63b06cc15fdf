"""Squared and Huber's loss: derivatives, implicit steps and predictions against what defines them, and where they end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from banditlab.errors import UsageError
from banditlab.regression.gaf import GaussianRegression
from banditlab.regression.losses import Huber, Squared

LOSSES = [Squared(1.5), Huber(1.5, 3.0), Huber(0.4, 7.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slope_and_curvature_are_derivatives(loss: Any) -> None:
    h = 1e-5
    for y in (-loss.target_bound, 0.1, loss.target_bound):
        for u in (-20.0, -3.1, -2.9, -0.3, 0.0, 1.0, 2.95, 3.05, 6.9, 7.1, 50.0):
            z = y + u
            assert loss.slope(z, y) == pytest.approx((loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h), abs=1e-6)
            second = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h)
            assert loss.curvature(z, y) == pytest.approx(second, abs=1e-6)
    assert loss.value(2.0, 2.0) == 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("q", [1e-9, 0.3, 2.0, 40.0])
def test_the_implicit_step_is_where_its_slope_says(loss: Any, q: float) -> None:
    """z minimises (z - m)^2/q + loss(z, y)."""
    for m in (-30.0, -4.0, -0.2, 0.0, 3.7, 12.0):
        for y in (-loss.target_bound, 0.3):
            z = loss.implicit(m, q, y)
            assert 2.0 * (z - m) + q * loss.slope(z, y) == pytest.approx(0.0, abs=1e-12 * max(1.0, q * abs(m)))
            assert min(m, y) - 1e-12 <= z <= max(m, y) + 1e-12


def test_constants_of_the_assumptions() -> None:
    assert (Squared(1.5).mixability, Squared(1.5).beta, Squared(1.5).name) == (0.5 / 2.25, 1.0, "squared")
    assert (Huber(1.5, 9.0).mixability, Huber(1.5, 9.0).beta, Huber(1.5, 9.0).name) == (1.0 / 2.25, 1.0, "huber")
    for wrong in ((0.0, 1.0), (1.0, 0.0)):
        with pytest.raises(UsageError):
            Huber(*wrong)
    with pytest.raises(UsageError):
        Squared(0.0)


@pytest.mark.parametrize(
    ("m", "v"), [(0.0, 1.0), (1.4, 0.1), (-4.0, 2.0), (0.5, 50.0), (7.0, 4.0), (0.2, 1e-4), (-1.6, 0.01)]
)
def test_hubers_prediction_is_the_mean_of_the_clipped_squares_mix(m: float, v: float) -> None:
    """(g(-Y) - g(Y))/(2 Y), g(y) = -(1/alpha) ln E exp(-alpha (clip(Z) - y)^2/2), by quadrature."""
    Y, s = 1.5, math.sqrt(v)
    a = 1.0 / Y**2

    def g(y: float) -> float:
        points = [p for p in ((-Y - m) / s, (Y - m) / s) if -12.0 < p < 12.0]
        found = quad(
            lambda u: math.exp(-a * (max(-Y, min(Y, m + s * u)) - y) ** 2 / 2.0 - u * u / 2.0) / math.sqrt(2.0 * math.pi),
            -12.0, 12.0, points=points or None, limit=200, epsabs=1e-13,
        )[0]  # fmt: skip
        return -math.log(found) / a

    found = Huber(Y, 3.0).substitute(m, v)
    assert found == pytest.approx((g(-Y) - g(Y)) / (2.0 * Y), abs=1e-9)
    assert Huber(Y, 3.0).substitute(-m, v) == pytest.approx(-found, abs=1e-12)


def test_hubers_prediction_at_the_ends() -> None:
    huber = Huber(2.0, 8.0)
    assert [huber.substitute(m, 0.0) for m in (-5.0, -2.0, 0.5, 2.0, 9.0)] == [-2.0, -2.0, 0.5, 2.0, 2.0]
    for m, v in ((1e6, 1e-12), (-1e6, 1e-12), (1e6, 1.0), (0.0, 1e12), (1e150, 1e10), (50.0, 1e-3)):
        found = huber.substitute(m, v)
        assert math.isfinite(found)
        assert abs(found) <= 2.0 + 1e-9
        assert found == pytest.approx(math.copysign(2.0, m), abs=1e-6) or m == 0.0
    assert huber.substitute(0.0, 1e12) == pytest.approx(0.0, abs=1e-9)


def test_huber_learns_from_its_expansion_at_the_implicit_step() -> None:
    """A = lambda I + sum (curvature/2) x x', b = sum (slope - curvature z) x; a target far off has a slope and no curvature."""
    rng = np.random.default_rng(0)
    player = GaussianRegression(2, 60.0, loss="huber", norm_bound=0.01, target_bound=1.0, regularization=0.05)
    A, b, spent, straight = 0.05 * np.eye(2), np.zeros(2), 0.0, 0
    for _ in range(40):
        x, y = 40.0 * rng.standard_normal(2) / 3.0, float(rng.uniform(-1.0, 1.0))
        m, q = -0.5 * float(b @ np.linalg.solve(A, x)), float(x @ np.linalg.solve(A, x))
        z = player.loss.implicit(m, q, y)
        curvature = player.loss.curvature(z, y)
        straight += curvature == 0.0
        predicted = player.predict(x)
        assert predicted == pytest.approx(player.loss.substitute(m, 0.5 * q), abs=1e-7)  # alpha = 1
        spent += player.loss.value(predicted, y) - player.loss.value(z, y) - (z - m) ** 2 / q
        player.update(x, y)
        A += 0.5 * curvature * np.outer(x, x)
        b += (player.loss.slope(z, y) - curvature * z) * x
        np.testing.assert_allclose(player.P, np.linalg.inv(A), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(player.b, b, rtol=1e-6)
    assert player.spent == pytest.approx(spent, rel=1e-6)
    assert player.certificate() == 0.05 * 1e-4 + player.spent
