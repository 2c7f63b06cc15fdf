"""GAF over a loss: the squared loss is Vovk, Azoury and Warmuth's closed form, Huber's keeps what is promised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from banditlab.bounds.gaf import gaf_theorem_1, vovk_azoury_warmuth
from banditlab.errors import UsageError
from banditlab.regression.gaf import BEYOND, GaussianRegression
from banditlab.regression.losses import Huber, Squared


def stream(n: int, d: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n), -1.0, 1.0)


@pytest.mark.parametrize("lam", [0.01, 1.0])
@pytest.mark.parametrize("target_bound", [1.0, 7.0])
def test_the_squared_loss_is_vovk_azoury_and_warmuth(lam: float, target_bound: float) -> None:
    """theta = (lambda I + sum_{s <= t} x_s x_s')^{-1} sum_{s < t} y_s x_s, solved anew each round; Y has no say."""
    X, y = stream(40, 3, 0)
    player = GaussianRegression(3, regularization=lam, target_bound=target_bound)
    for t, x in enumerate(X):
        A = lam * np.eye(3) + X[: t + 1].T @ X[: t + 1]
        assert player.predict(x) == pytest.approx(float(x @ np.linalg.solve(A, X[:t].T @ y[:t])), abs=1e-10)
        player.update(x, float(y[t]))
    np.testing.assert_allclose(player.predict_many(X), [player.predict(x) for x in X], atol=1e-14)


def test_the_certificate_of_the_squared_loss_is_an_identity() -> None:
    """Regret against theta + lambda |theta|^2 at its least, which ridge regression solves: equality, not a bound."""
    X, y = stream(30, 2, 1)
    player, loss = GaussianRegression(2, regularization=0.3), 0.0
    for x, target in zip(X, y, strict=True):
        loss += (player.predict(x) - target) ** 2
        player.update(x, float(target))
    theta = np.linalg.solve(0.3 * np.eye(2) + X.T @ X, X.T @ y)
    least = float(((X @ theta - y) ** 2).sum() + 0.3 * theta @ theta)
    assert loss - least == pytest.approx(player.spent, rel=1e-10)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_regret_is_below_certificate_and_bound(loss: Any) -> None:
    for seed, B in ((2, 0.1), (3, 1.0), (4, 20.0)):
        X, y = stream(25, 2, seed)
        y = y if seed != 3 else np.sign(y)
        player, total = GaussianRegression(2, loss=loss, norm_bound=B), 0.0
        for x, target in zip(X, y, strict=True):
            total += player.loss.value(player.predict(x), float(target))
            player.update(x, float(target))
        grid = B * np.array([[math.cos(a), math.sin(a)] for a in np.linspace(0.0, 2.0 * math.pi, 60)])
        points = np.concatenate([r * grid for r in np.linspace(0.0, 1.0, 40)])
        offline = min(sum(player.loss.value(float(x @ w), float(t)) for x, t in zip(X, y, strict=True)) for w in points)
        assert total - offline <= player.certificate() <= player.bound(25) * (1 + 1e-12)


@pytest.mark.parametrize("loss", [Squared(1.5), Huber(1.5, 3.0), Huber(1.5, 20.0)])
@pytest.mark.parametrize(("m", "v"), [(0.0, 1.0), (1.4, 0.1), (-4.0, 2.0), (0.5, 1e3), (30.0, 4.0), (0.2, 1e-9)])
def test_the_prediction_is_mixable(loss: Any, m: float, v: float) -> None:
    """(A1): its loss is at most the mix loss of a Gaussian of margins, for every y of [-Y, Y]; by quadrature."""
    a, s = loss.mixability, math.sqrt(v)
    predicted = loss.substitute(m, v)
    for y in (-1.5, -0.7, 0.0, 1.0, 1.5):
        mean = quad(
            lambda u: math.exp(-a * loss.value(m + s * u, y) - 0.5 * u * u) / math.sqrt(2.0 * math.pi),  # noqa: B023
            -9.0, 9.0, points=[max(-8.9, min(8.9, (c - m) / s)) for c in (-1.5, 0.0, 1.5)], limit=200,
        )[0]  # fmt: skip
        assert loss.value(predicted, y) <= -math.log(mean) / a + 1e-7


def test_hubers_assumptions_hold_from_the_threshold_on_and_fail_below() -> None:
    rng = np.random.default_rng(5)

    def worst(huber: Huber, B: float) -> float:
        """The largest by which (A3)'s right side exceeds the loss, comparators in [-B, B]."""
        z1, z2, y = rng.uniform(-B, B, 20_000), rng.uniform(-30.0, 30.0, 20_000), rng.uniform(-1.0, 1.0, 20_000)
        z2[:10_000] = y[:10_000] + huber.threshold * rng.choice([-0.999, 0.999], 10_000)
        gaps = [
            huber.value(b, t)
            + huber.slope(b, t) * (a - b)
            + 0.5 * huber.curvature(b, t) * (a - b) ** 2
            - huber.value(a, t)
            for a, b, t in zip(z1, z2, y, strict=True)
        ]
        return max(gaps)

    assert worst(Huber(1.0, 4.0), 3.0) <= 1e-9
    assert worst(Huber(1.0, 2.0), 3.0) > 0.1
    Huber(1.0, 4.0).check(3.0, 1.0)
    with pytest.raises(UsageError, match=r"threshold must be at least max\(2 Y, B R \+ Y\) = 4"):
        GaussianRegression(2, loss="huber", norm_bound=3.0, threshold=3.9)


def test_theorem_1_with_the_constants_of_section_4_1() -> None:
    """lambda = max(4, d)/(4 d B^2): within the printed 1 + 8 Y^2 d ln(1 + 16 n B^2 R^2), and above the closed form's bound."""
    for n, d, B, R, Y in ((100, 3, 2.0, 1.0, 1.0), (1000, 8, 0.5, 3.0, 2.0)):
        zeta, alpha = 1.0 / (8.0 * Y**2 * d * B**2), 0.5 / Y**2
        general = gaf_theorem_1(n, d, B, alpha, zeta, 1.0, 2.0 * R**2)
        lam = max(4, d) * zeta / alpha
        assert vovk_azoury_warmuth(n, d, B, R, Y, lam) < general
        assert general <= 1.0 + 8.0 * Y**2 * d * math.log1p(16.0 * n * B**2 * R**2)
        assert math.isnan(gaf_theorem_1(n, d, B, alpha, zeta, 1.0, 2.0 * R**2, 0.5 * lam))


@pytest.mark.parametrize("target", [1.1, -1e200, math.nan, math.inf])
def test_targets_beyond_y_are_refused_and_change_nothing(target: float) -> None:
    player = GaussianRegression(2)
    player.update(np.array([0.5, 0.5]), 1.0)
    before = player.predict(np.array([0.5, 0.5]))
    with pytest.raises(UsageError, match="the target must lie in"):
        player.update(np.array([0.5, 0.5]), target)
    assert player.predict(np.array([0.5, 0.5])) == before
    player.update(np.zeros(2), 0.3)  # a context without a direction teaches nothing
    assert player.predict(np.array([0.5, 0.5])) == before


def test_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="loss must be one of"):
        GaussianRegression(2, loss="absolute")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="threshold applies to"):
        GaussianRegression(2, threshold=3.0)


def test_defaults_bounds_and_the_edges_of_what_is_taken() -> None:
    player = GaussianRegression(2)
    assert (player.problem.radius, player.norm_bound, player.target_bound, player.regularization) == (
        1.0,
        1.0,
        1.0,
        0.5,
    )
    with pytest.raises(UsageError, match="n_features must be at least 1"):
        GaussianRegression(0)
    assert GaussianRegression(1, radius=3.0, target_bound=7.0).predict(np.array([3.0])) == 0.0
    player = GaussianRegression(3, 2.0, target_bound=5.0)
    player.update(np.ones(3), 5.0 * BEYOND)
    player.update(np.ones(3), -5.0 * BEYOND)
    # R^2/lambda = 9/lambda, and 1e10 of it is too much for a certificate.
    for lam, known in ((9.0e-10 * 1.001, True), (9.0e-10 * 0.999, False)):
        assert math.isfinite(GaussianRegression(3, 3.0, regularization=lam).certificate()) is known
    # lambda B^2 + Y^2 d ln(1 + n R^2/(d lambda)), and for Huber's half of it with half of n.
    settings: dict[str, Any] = {"norm_bound": 2.0, "target_bound": 1.5, "regularization": 0.3}
    bound = GaussianRegression(4, 3.0, **settings).bound(50)
    assert bound == pytest.approx(0.3 * 4.0 + 2.25 * 4 * math.log1p(50 * 9.0 / (4 * 0.3)))
    bound = GaussianRegression(4, 3.0, loss="huber", **settings).bound(50)
    assert bound == pytest.approx(0.3 * 4.0 + 0.5 * 2.25 * 4 * math.log1p(25 * 9.0 / (4 * 0.3)))


def test_a_context_without_a_direction_costs_nothing() -> None:
    for loss in ("squared", "huber"):
        player = GaussianRegression(2, loss=loss)  # type: ignore[arg-type]
        player.update(np.array([0.5, 0.5]), 1.0)
        before = player.spent
        player.update(np.zeros(2), 0.3)
        assert player.spent == before
        assert player.rounds == 2
