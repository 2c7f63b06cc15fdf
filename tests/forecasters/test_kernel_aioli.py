"""Kernel AIOLI against AIOLI on explicit features, and its fixed-size variant against both."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from banditlab.bounds.aioli import aioli_kernel
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.fourier import FourierAIOLI
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.kernel_quadratic import FIRST_CAPACITY
from banditlab.problem import Problem


def stream(seed: int, n: int, d: int, repeated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    if repeated:
        X = X[rng.integers(0, 3, n)]
    return as_contexts(X), (X[:, 0] + 0.5 * rng.standard_normal(n) < 0).astype(np.int64)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(
    "settings",
    [{}, {"norm_bound": 100.0}, {"virtual_weight": 0.3, "regularization": 0.01, "curvature": "tight"}],
)
def test_linear_kernel_is_aioli(settings: dict, repeated: bool) -> None:
    d, n = 4, 3 * FIRST_CAPACITY  # the arrays grow twice
    X, y = stream(1, n, d, repeated)
    dual = KernelAIOLI(Problem(d, 2, 1.0), None, kernel="linear", **settings)
    primal = AIOLI(Problem(d, 2, 1.0), None, **settings)
    for x, label in zip(X, y, strict=True):
        assert dual.predict(x)[0] == pytest.approx(primal.predict(x)[0], abs=1e-9)
        dual.update(x, label)
        primal.update(x, label)
    assert dual.certificate() == pytest.approx(primal.certificate(), rel=1e-9)
    assert dual.bound(n) == primal.bound(n)
    np.testing.assert_allclose(dual.predict_many(X), primal.predict_many(X), atol=1e-9)


def squares(x: np.ndarray) -> np.ndarray:
    """The features of (1 + x'y)^2 for d = 2."""
    r = math.sqrt(2)
    return np.array([1, r * x[0], r * x[1], x[0] ** 2, x[1] ** 2, r * x[0] * x[1]])


def test_polynomial_kernel_is_aioli_on_its_monomials() -> None:
    X, y = stream(2, 150, 2)
    features = as_contexts([squares(x) for x in X])
    assert features[3] @ features[5] == pytest.approx((1 + X[3] @ X[5]) ** 2)
    dual = KernelAIOLI(Problem(2, 2, 1.0), None, kernel="polynomial", norm_bound=2.0)
    primal = AIOLI(Problem(6, 2, 2.0), None, norm_bound=2.0)  # R = sqrt(k(x, x)) = 1 + 1
    assert dual.curvature == primal.curvature
    for x, f, label in zip(X, features, y, strict=True):
        assert dual.predict(x)[0] == pytest.approx(primal.predict(f)[0], abs=1e-8)
        dual.update(x, label)
        primal.update(f, label)
    assert dual.bound(150) == primal.bound(150)
    assert dual.bound(2) < primal.bound(2)  # two rounds span two dimensions at most


class Direct:
    """Equations (2) and (3) in the span of all the contexts of a short stream, minimised by scipy."""

    def __init__(self, X: np.ndarray, forecaster: KernelAIOLI) -> None:
        square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        gram = np.exp(-square / (2 * forecaster.bandwidth**2))
        values, vectors = np.linalg.eigh(gram)
        keep = values > 1e-10
        self.features = vectors[:, keep] * np.sqrt(values[keep])  # phi_i'phi_j = k(x_i, x_j)
        self.lam, self.c = forecaster.regularization, forecaster.curvature
        self.past: list[tuple[np.ndarray, np.ndarray, float]] = []

    def predict(self, t: int) -> np.ndarray:
        phi = self.features[t]

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.lam * theta @ theta, 2 * self.lam * theta
            for g, at, eta in self.past:
                r = g @ (theta - at)
                value, gradient = value + r + 0.5 * eta * r * r, gradient + (1 + eta * r) * g
            z = theta @ phi
            return value + np.logaddexp(0, z) + np.logaddexp(0, -z), gradient + math.tanh(z / 2) * phi

        start = np.zeros(len(phi))
        return minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000}).x

    def update(self, t: int, y: int) -> None:
        theta, sign = self.predict(t), 1 - 2 * y
        z = theta @ self.features[t]
        g = -sign * self.features[t] / (1 + math.exp(sign * z))
        self.past.append((g, theta, 2 * self.c * math.exp(sign * z)))


def test_gaussian_kernel_minimises_equation_3() -> None:
    X, y = stream(3, 15, 2)
    dual = KernelAIOLI(Problem(2, 2, 1.0), None, bandwidth=0.7, norm_bound=1.5)
    direct = Direct(X, dual)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        assert dual.predict(x)[0] == pytest.approx(direct.predict(t) @ direct.features[t], abs=1e-6)
        dual.update(x, label)
        direct.update(t, label)


def play(forecaster: KernelAIOLI | FourierAIOLI, X: np.ndarray, y: np.ndarray, adversarial: bool) -> tuple:
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = forecaster.predict(x)[0]
        if adversarial:
            y[t] = z > 0
        loss += np.logaddexp(0, -z if y[t] == 0 else z)
        forecaster.update(x, y[t])
    return y, loss


@pytest.mark.parametrize("adversarial", [False, True])
@pytest.mark.parametrize("bandwidth", [0.2, 1.0])
@pytest.mark.parametrize("B", [0.5, 5.0])
def test_regret_below_certificate_below_bound_in_the_space(adversarial: bool, bandwidth: float, B: float) -> None:
    n = 150
    X, y = stream(4, n, 2, repeated=False)
    dual = KernelAIOLI(Problem(2, 2, 1.0), None, bandwidth=bandwidth, norm_bound=B)
    y, loss = play(dual, X, y, adversarial)
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * bandwidth**2))
    sign = 1 - 2 * y

    def total(alpha: np.ndarray) -> float:
        norm = math.sqrt(max(alpha @ gram @ alpha, 1e-300))
        f = gram @ alpha * min(1.0, 2 * B / norm)
        return float(np.logaddexp(0, -sign * f).sum())

    rng = np.random.default_rng(0)
    candidates = [np.zeros(n), sign / 10.0, sign * 1.0]
    for penalty in (0.01, 0.1, 1.0):  # regularised fits, scaled into the ball
        alpha = np.zeros(n)
        for _ in range(200):
            alpha -= 0.05 * (-sign / (1 + np.exp(sign * (gram @ alpha))) + 2 * penalty * alpha)
        candidates.append(alpha)
    candidates += [rng.standard_normal(n) for _ in range(50)]
    best = min(map(total, candidates))
    assert best < total(np.zeros(n))
    assert loss - best <= dual.space_certificate()
    effective = dual.effective_dimension(4 * dual.regularization / dual.curvature)
    assert 0 < effective <= n
    assert dual.space_certificate() <= aioli_kernel(n, effective, 2 * B, 1.0, dual.regularization)
    assert dual.bound(n) is None
    assert math.isnan(dual.certificate())


def test_effective_dimension_of_the_linear_kernel() -> None:
    X, y = stream(5, 40, 3)
    dual = KernelAIOLI(Problem(3, 2, 1.0), None, kernel="linear")
    assert dual.effective_dimension(1.0) == 0.0
    play(dual, X, y, False)
    covariance = X.T @ X
    expected = np.trace(covariance @ np.linalg.inv(covariance + 2.0 * np.eye(3)))
    assert dual.effective_dimension(2.0) == pytest.approx(expected)


def test_a_saved_forecaster_that_has_grown_continues(tmp_path) -> None:
    X, y = stream(6, 2 * FIRST_CAPACITY + 20, 2)
    dual = KernelAIOLI(Problem(2, 2, 1.0), None)
    play(dual, X[: FIRST_CAPACITY + 10], y, False)
    dual.save(tmp_path / "k.npz")
    again = KernelAIOLI.load(tmp_path / "k.npz")
    for one in (dual, again):
        play(one, X[FIRST_CAPACITY + 10 :], y[FIRST_CAPACITY + 10 :], False)
    np.testing.assert_array_equal(again.predict_many(X), dual.predict_many(X))
    assert len(again.state.dual.s) == 4 * FIRST_CAPACITY


@pytest.mark.parametrize(
    "regularization", ["theory", 1e-8]
)  # the latter is below R^2 / 1e7: AIOLI keeps a root of A^{-1}
def test_random_features_are_aioli_on_explicit_features(regularization: float | str) -> None:
    X, y = stream(7, 200, 3)
    given: dict = {"norm_bound": 2.0, "regularization": regularization}
    fourier = FourierAIOLI(Problem(3, 2, 1.0), np.random.default_rng(0), bandwidth=0.6, features=20, **given)
    omega = np.random.default_rng(0).spawn(1)[0].standard_normal((10, 3)) / 0.6
    angles = X @ omega.T
    features = as_contexts(np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(10))
    np.testing.assert_allclose((features**2).sum(axis=1), 1.0)
    primal = AIOLI(Problem(20, 2, 1.0), None, **given)
    for x, f, label in zip(X, features, y, strict=True):
        assert fourier.predict(x)[0] == pytest.approx(
            primal.predict(f)[0], abs=1e-10 if regularization == "theory" else 1e-6
        )
        fourier.update(x, label)
        primal.update(f, label)
    assert fourier.space_certificate() == pytest.approx(primal.certificate())
    assert fourier.bound(10) is None


def test_random_features_tend_to_the_kernel() -> None:
    """The mean gap in the forecast falls as features are added (10 draws each)."""
    X, y = stream(8, 100, 2)
    dual = KernelAIOLI(Problem(2, 2, 1.0), None, bandwidth=0.5)
    play(dual, X, y, False)
    exact = dual.predict_many(X)[:, 0]
    gaps = []
    for D in (20, 320):
        total = 0.0
        for seed in range(10):
            fourier = FourierAIOLI(Problem(2, 2, 1.0), np.random.default_rng(seed), bandwidth=0.5, features=D)
            play(fourier, X, y, False)
            total += np.abs(fourier.predict_many(X)[:, 0] - exact).mean()
        gaps.append(total / 10)
    assert gaps[1] < 0.4 * gaps[0]  # 1/4 if the gap falls like 1/sqrt(D)


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (KernelAIOLI, {"kernel": "cosine"}, "kernel must be one of 'linear', 'gaussian', 'polynomial'"),
        (KernelAIOLI, {"bandwidth": 0.0}, "bandwidth"),
        (KernelAIOLI, {"degree": 0}, "degree must be at least 1"),
        (KernelAIOLI, {"norm_bound": -1.0}, "norm_bound"),
        (KernelAIOLI, {"virtual_weight": -1.0}, "virtual_weight"),
        (FourierAIOLI, {"features": 7}, "features must be even"),
        (FourierAIOLI, {"bandwidth": -1.0}, "bandwidth"),
        (FourierAIOLI, {"curvature": "printed"}, "curvature"),
    ],
)
def test_refused(make: type, wrong: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(Problem(2, 2, 1.0), np.random.default_rng(0), **wrong)


@pytest.mark.parametrize("make", [KernelAIOLI, FourierAIOLI])
def test_binary_only(make: type) -> None:
    with pytest.raises(IncompatibleError, match="n_classes = 2"):
        make(Problem(2, 3, 1.0), np.random.default_rng(0))


def test_features_need_a_generator() -> None:
    with pytest.raises(UsageError, match="rng must be a numpy Generator, got None"):
        FourierAIOLI(Problem(2, 2, 1.0), None)


@pytest.mark.parametrize("make", [KernelAIOLI, FourierAIOLI])
def test_inadmissible_curvature_has_no_certificate(make: type) -> None:
    settings = {"kernel": "linear"} if make is KernelAIOLI else {}
    player = make(Problem(2, 2, 1.0), np.random.default_rng(0), curvature=0.6, **settings)
    assert math.isnan(player.space_certificate())
    assert player.bound(10) is None
