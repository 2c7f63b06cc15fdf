"""FTRL against scipy's minimiser in every round, its certificate against the identity behind it, and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import root

from banditlab.comparators import best_in_ball
from banditlab.envs.lower_bound import LowerBound
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.forecasters.ftrl import FTRL
from banditlab.losses import log_sum_exp, logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.problem import Problem


def stream(seed: int, n: int, d: int, K: int, kind: str = "noise") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = rng.integers(0, K, n)
    if kind == "separable":
        y = np.argmax(X @ rng.standard_normal((d, K)), axis=1)
    return as_contexts(X[rng.integers(0, 4, n)] if kind == "repeated" else X), y


def objective(w: np.ndarray, X: np.ndarray, y: np.ndarray, K: int, lam: float) -> float:
    Z = X @ w.reshape(K, -1).T
    return float((log_sum_exp(Z) - Z[np.arange(len(y)), y]).sum() + lam * w @ w)


def leader(X: np.ndarray, y: np.ndarray, K: int, lam: float, start: np.ndarray) -> np.ndarray:
    """The root of the gradient, round by round as given, nothing collapsed."""
    d = X.shape[1]

    def gradient(w: np.ndarray) -> np.ndarray:
        return ((softmax(X @ w.reshape(K, d).T) - np.eye(K)[y]).T @ X).ravel() + 2 * lam * w

    def hessian(w: np.ndarray) -> np.ndarray:
        S = softmax(X @ w.reshape(K, d).T)
        H = 2 * lam * np.eye(K * d)
        for s, x in zip(S, X, strict=True):
            H += np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))
        return H

    return root(gradient, start.ravel(), jac=hessian, tol=1e-13).x.reshape(K, d)


@pytest.mark.parametrize("kind", ["noise", "repeated", "separable"])
@pytest.mark.parametrize(("K", "d", "lam"), [(2, 1, 1.0), (3, 3, 0.1), (4, 2, 1e-3)])
def test_equals_scipys_leader(K: int, d: int, lam: float, kind: str) -> None:
    X, y = stream(K, 80, d, K, kind)
    ftrl = FTRL(Problem(d, K, 1.0), None, regularization=lam)
    W = np.zeros((K, d))
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        if t % 8 == 7:
            W = leader(X[:t], y[:t], K, lam, ftrl.state.W)
            np.testing.assert_allclose(ftrl.state.W, W, atol=1e-7 * (1 + np.abs(W).max()))
        ftrl.update(x, label)
    assert ftrl.state.factored[0] < len(y)  # a Hessian is used for more than one round on average


def test_the_lower_bounds_two_points_are_two_counters() -> None:
    env = LowerBound(n=20_000, horizon=20_000)
    env.reset(seed=0)
    ftrl = FTRL(Problem(1, 2, 1.0), None, regularization=2.0)
    counts = np.zeros(2)
    for X, y in env.blocks(20_000, 1000):
        ftrl.forecast_block(as_contexts(X), y, np.empty((len(y), 2)))
        counts += np.bincount(y, minlength=2)
    assert len(ftrl.get_state()["past"]["X"]) == 2
    theta, (plus, minus) = 0.0, env.points
    for _ in range(100):  # the binary form: lambda theta^2, lambda = 1
        p, q = 1 / (1 + math.exp(theta * plus)), 1 / (1 + math.exp(-theta * minus))
        gradient = -counts[0] * plus * p + counts[1] * minus * q + 2 * theta
        theta -= gradient / (counts[0] * plus**2 * p * (1 - p) + counts[1] * minus**2 * q * (1 - q) + 2)
    W = ftrl.state.W[:, 0]
    assert W[0] - W[1] == pytest.approx(theta, abs=1e-9)
    assert W[0] == pytest.approx(-W[1], abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.few(8)
def test_regret_below_certificate_below_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, d, n = int(rng.integers(2, 5)), int(rng.integers(1, 4)), 120
    B, lam = float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-2, 1))
    X, y = stream(seed, n, d, K, ("noise", "repeated", "separable")[seed % 3])
    ftrl = FTRL(Problem(d, K, 1.0), None, norm_bound=B, regularization=lam)
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = ftrl.predict(x)
        if seed % 5 == 0:
            y[t] = np.argmin(z)
        loss += float(logistic_loss(z, y[t]))
        ftrl.update(x, int(y[t]))
    best = best_in_ball(X, np.eye(K)[y], B)
    assert loss - (best.loss - best.gap) <= ftrl.certificate() <= ftrl.bound(n)
    least = objective(leader(X, y, K, lam, ftrl.state.W).ravel(), X, y, K, lam)
    assert ftrl.certificate() == pytest.approx(lam * K * B**2 + loss - least, rel=1e-9)


def test_theory_regularization() -> None:
    ftrl = FTRL(Problem(3, 2, 2.0, horizon=400), None, norm_bound=5.0, regularization="theory")
    assert ftrl.regularization == pytest.approx(2 / 5 * 10)
    assert ftrl.bound(400) == pytest.approx(5 * 2 * math.sqrt(2 * 2 * 400))
    with pytest.raises(HorizonRequiredError, match="regularization = 'theory'"):
        FTRL(Problem(3, 2, 2.0), None, regularization="theory")


@pytest.mark.parametrize("wrong", [{"norm_bound": 0.0}, {"regularization": 0.0}, {"regularization": "best"}])
def test_refusals(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        FTRL(Problem(3, 5, 2.0), None, **wrong)
