"""AIOLI against direct minimisation of its objective (3), its theorem and its certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from banditlab.bounds.curvature import tight_curvature
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.numerics.contexts import as_contexts
from banditlab.problem import Problem


def stream(seed: int, n: int, d: int, labels: str = "noise") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = rng.integers(0, 2, n) if labels == "noise" else (X[:, 0] < 0).astype(int)
    return as_contexts(X), y


class Direct:
    """Equations (2), (3), (5) word for word: sums of past terms, minimised by scipy."""

    def __init__(self, d: int, lam: float, w: float, c: float) -> None:
        self.lam, self.w, self.c = lam, w, c
        self.g: list[np.ndarray] = []
        self.theta: list[np.ndarray] = []
        self.eta: list[float] = []
        self.d = d

    def objective(self, theta: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.lam * theta @ theta, 2 * self.lam * theta
        for g, at, eta in zip(self.g, self.theta, self.eta, strict=True):
            r = g @ (theta - at)
            value += r + 0.5 * eta * r * r
            gradient = gradient + (1 + eta * r) * g
        z = theta @ x
        value += self.w * (np.logaddexp(0, z) + np.logaddexp(0, -z))
        return value, gradient + self.w * math.tanh(z / 2) * x

    def predict(self, x: np.ndarray) -> np.ndarray:
        found = minimize(self.objective, np.zeros(self.d), (x,), jac=True, method="BFGS", options={"gtol": 1e-11})
        return found.x

    def update(self, x: np.ndarray, y: int) -> None:
        theta, sign = self.predict(x), 1 - 2 * y
        z = theta @ x
        self.g.append(-sign * x / (1 + math.exp(sign * z)))
        self.theta.append(theta)
        self.eta.append(2 * self.c * math.exp(sign * z))


@pytest.mark.parametrize("settings", [{}, {"virtual_weight": 0.3, "regularization": 0.05}, {"curvature": "tight"}])
def test_equals_minimising_equation_3(settings: dict) -> None:
    d = 4
    X, y = stream(1, 25, d)
    aioli = AIOLI(Problem(d, 2, 1.0), None, norm_bound=2.0, **settings)
    direct = Direct(d, aioli.regularization, aioli.virtual_weight, aioli.curvature)
    for x, label in zip(X, y, strict=True):
        assert aioli.predict(x)[0] == pytest.approx(direct.predict(x) @ x, abs=2e-7)
        direct.update(x, label)
        aioli.update(x, label)


@pytest.mark.parametrize("labels", ["noise", "separable", "adversarial"])
@pytest.mark.parametrize("curvature", ["simple", "tight"])
@pytest.mark.parametrize(("B", "lam", "w"), [(1.0, "theory", 1.0), (5.0, "theory", 1.0), (5.0, 0.001, 0.5)])
def test_regret_below_certificate_below_bound(labels: str, curvature: str, B: float, lam: float, w: float) -> None:
    d, n = 3, 300
    X, y = stream(3, n, d, labels)
    aioli = AIOLI(Problem(d, 2, 1.0), None, norm_bound=B, regularization=lam, curvature=curvature, virtual_weight=w)
    loss = 0.0
    y = y.copy()
    for t, x in enumerate(X):
        z = aioli.predict(x)[0]
        if labels == "adversarial":
            y[t] = z > 0
        loss += np.logaddexp(0, -z if y[t] == 0 else z)
        aioli.update(x, y[t])
    sign = 1 - 2 * y

    def total(theta: np.ndarray) -> float:
        return np.logaddexp(0, -sign * (X @ theta)).sum()

    ball = {"type": "ineq", "fun": lambda theta: 4 * B * B - theta @ theta}
    best = minimize(total, np.zeros(d), constraints=[ball], method="SLSQP").fun
    assert loss - best <= aioli.certificate() + 1e-6
    if w == 1.0:
        assert aioli.certificate() <= aioli.bound(n)
    else:
        assert aioli.bound(n) is None


def test_inadmissible_curvature_has_no_certificate() -> None:
    aioli = AIOLI(Problem(2, 2, 1.0), None, norm_bound=2.0, curvature=1.01 * tight_curvature(4.0))
    assert math.isnan(aioli.certificate())
    assert aioli.bound(10) is None


def test_theory_settings_and_refusals() -> None:
    aioli = AIOLI(Problem(2, 2, 3.0), None, norm_bound=2.0)
    assert (aioli.margin_bound, aioli.regularization) == (4.0, 1 / 16)
    assert aioli.curvature == pytest.approx(1 / (2 * (1 + 4 * 3)))
    with pytest.raises(IncompatibleError, match="n_classes = 2"):
        AIOLI(Problem(2, 3, 1.0), None)
    with pytest.raises(UsageError, match="curvature must be one of 'simple', 'tight' or a number above 0"):
        AIOLI(Problem(2, 2, 1.0), None, curvature="printed")  # type: ignore[arg-type]
    for wrong in ({"norm_bound": 0.0}, {"regularization": -1.0}, {"virtual_weight": -1.0}):
        with pytest.raises(UsageError):
            AIOLI(Problem(2, 2, 1.0), None, **wrong)


def test_rank_one_updates_do_not_drift() -> None:
    """After 10,000 rounds P still is the inverse of A and h = P b: (5) summed up beside it."""
    d = 4
    X, y = stream(5, 10_000, d)
    aioli = AIOLI(Problem(d, 2, 1.0), None, norm_bound=10.0)
    logits = np.empty((len(X), 2))
    aioli.forecast_block(X, y, logits)
    z, sign = logits[:, 0], 1 - 2 * y
    g = -sign / (1 + np.exp(sign * z))
    eta = 2 * aioli.curvature * np.exp(sign * z)
    A = aioli.regularization * np.eye(d) + 0.5 * (X.T * (eta * g**2)) @ X
    b = 0.5 * ((eta * g * z - 1) * g) @ X
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(aioli.state.P, inverse, atol=1e-10 * np.abs(inverse).max())
    np.testing.assert_allclose(aioli.state.h, inverse @ b, rtol=1e-9)
