"""ONS against full matrices and scipy's projection, the projection's conditions, its certificate and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from banditlab.comparators import best_in_ball
from banditlab.errors import UsageError
from banditlab.forecasters.ons import ONS, note_doubt
from banditlab.losses import logistic_gradient, logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.joint_inverse import EPSILON, ERROR_FACTOR
from banditlab.numerics.row_ball_projection import (
    PANEL,
    STALLS,
    MetricBall,
    active_rows,
    cholesky,
    cholesky_by_panels,
    evaluate,
    newton_direction,
    project,
    rows_alone,
)
from banditlab.problem import Problem


def stream(seed: int, n: int, d: int, K: int, repeated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X[rng.integers(0, 3, n)] if repeated else X), rng.integers(0, K, n)


def scipy_projection(V: np.ndarray, A: np.ndarray, K: int, B: float) -> np.ndarray:
    scale = np.abs(A).max()
    rows = [{"type": "ineq", "fun": lambda w, k=k: B * B - (w.reshape(K, -1)[k] ** 2).sum()} for k in range(K)]
    found = minimize(
        lambda w: ((w - V) @ A @ (w - V) / scale, 2 * A @ (w - V) / scale),
        np.zeros_like(V),
        jac=True,
        constraints=rows,
        method="SLSQP",
        options={"ftol": 1e-17, "maxiter": 500},
    )
    return found.x


class Direct:
    """The update with the full matrix A and scipy's projection."""

    def __init__(self, ons: ONS) -> None:
        self.K, self.d, self.ons = ons.problem.n_classes, ons.problem.n_features, ons
        self.W = np.zeros((self.K, self.d))
        self.A = ons.regularization * np.eye(self.K * self.d)
        self.projected = 0

    def update(self, x: np.ndarray, y: int) -> None:
        g = logistic_gradient(self.W, x, y).ravel()
        self.A += np.outer(g, g)
        V = self.W.ravel() - self.ons.step * np.linalg.solve(self.A, g)
        B = self.ons.norm_bound
        if self.ons.projection == "ball" and (np.linalg.norm(V.reshape(self.K, -1), axis=1) > B).any():
            V = scipy_projection(V, self.A, self.K, B)
            self.projected += 1
        self.W = V.reshape(self.K, self.d)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(
    ("K", "B", "settings", "binds"),
    [
        (2, 0.3, {}, True),
        (3, 0.5, {}, True),
        pytest.param(4, 0.7, {"step": 5.0, "regularization": 0.3}, True, marks=pytest.mark.slow),
        (3, 0.5, {"step": 5.0, "regularization": 0.3, "projection": "none"}, False),
    ],
)
def test_equals_full_matrices(K: int, B: float, settings: dict, binds: bool, repeated: bool) -> None:
    d = 3
    X, y = stream(K, 60, d, K, repeated)
    ons = ONS(Problem(d, K, 1.0), None, norm_bound=B, **settings)
    direct = Direct(ons)
    for x, label in zip(X, y, strict=True):
        np.testing.assert_allclose(ons.predict(x), direct.W @ x, atol=1e-6)
        direct.update(x, label)
        ons.update(x, label)
    assert (direct.projected > 0) == binds
    assert ons.projections["bound"] == direct.projected
    assert ons.projections["stalled"] == 0


@pytest.mark.parametrize("seed", range(60))
def test_projection_meets_the_optimality_conditions(seed: int) -> None:
    """A (V - W) = nu W row by row, nu >= 0, and a row strictly inside has nu = 0: sufficient, the problem is convex."""
    rng = np.random.default_rng(seed)
    K, d, B = int(rng.integers(1, 6)), int(rng.integers(1, 6)), float(10 ** rng.uniform(-1, 1))
    Z = rng.standard_normal((K * d, K * d))
    A = (Z * 10 ** rng.uniform(-2, 2, K * d)) @ Z.T + 0.01 * np.eye(K * d)
    P = np.linalg.inv(A)
    P = 0.5 * (P + P.T)
    ball = MetricBall.empty(K, d)
    V = B * 10 ** rng.uniform(-0.5, 1.5) * rng.standard_normal((K, d))
    ball.V[:] = V.ravel()
    project(ball, P, B)
    W = ball.W.reshape(K, d)
    norms = np.linalg.norm(W, axis=1)
    assert norms.max() <= B * (1 + 1e-15)
    force = (A @ (V.ravel() - ball.W)).reshape(K, d)
    np.testing.assert_allclose(force, ball.nu[:, None] * W, atol=1e-7 * max(np.abs(force).max(), 1e-300))
    slack = np.minimum(1.0 - norms / B, ball.nu * np.diag(P).reshape(K, d).mean(axis=1))
    assert slack.max() <= 1e-8 or (ball.nu == 0.0).all()
    assert ball.tally[2] == 0


@pytest.mark.parametrize("m", [1, 17, PANEL, PANEL + 1, 3 * PANEL - 5])
def test_panels_give_the_cholesky_factor(m: int) -> None:
    A = np.random.default_rng(m).standard_normal((m, m))
    A = A @ A.T + np.eye(m)
    plain, panels = A.copy(), np.pad(A, (0, 3), constant_values=np.nan)
    cholesky(plain, m)
    cholesky_by_panels(panels, m, np.full(m * m, np.nan), np.full(m * PANEL, np.nan))
    panels = np.tril(panels[:m, :m])
    np.testing.assert_allclose(panels, np.tril(plain), rtol=1e-10, atol=1e-12)
    np.fill_diagonal(panels, 1.0 / np.diag(panels))
    np.testing.assert_allclose(panels @ panels.T, A, rtol=1e-12, atol=1e-12 * m)


def test_projection_in_the_euclidean_norm_clips_rows() -> None:
    ball, B = MetricBall.empty(3, 2), 2.0
    V = np.array([[3.0, 4.0], [0.1, -0.2], [0.0, -7.0]])
    ball.V[:] = V.ravel()
    project(ball, 0.3 * np.eye(6), B)
    np.testing.assert_allclose(ball.W.reshape(3, 2), [[1.2, 1.6], [0.1, -0.2], [0.0, -2.0]], rtol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_regret_below_certificate_below_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, d, n = int(rng.integers(2, 5)), int(rng.integers(1, 4)), 150
    B = float(10 ** rng.uniform(-0.7, 0.3))
    X, y = stream(seed, n, d, K, repeated=seed % 2 == 0)
    settings = {} if seed % 3 else {"regularization": float(10 ** rng.uniform(-1, 2))}
    ons = ONS(Problem(d, K, 1.0), None, norm_bound=B, **settings)
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = ons.predict(x)
        if seed % 4 > 1:
            y[t] = np.argmin(z) if seed % 4 == 2 else np.argmax(X[t, 0] > 0)
        loss += float(logistic_loss(z, y[t]))
        ons.update(x, int(y[t]))
    best = best_in_ball(X, np.eye(K)[y], B)
    assert loss - (best.loss - best.gap) <= ons.certificate() <= ons.bound(n)


@pytest.mark.parametrize("settings", [{"step": 1.0}, {"projection": "none"}])
def test_no_promise_where_nothing_is_proved(settings: dict) -> None:
    ons = ONS(Problem(3, 3, 1.0), None, norm_bound=2.0, **settings)
    assert math.isnan(ons.certificate())
    assert ons.bound(10) is None


@pytest.mark.slow
def test_the_inverse_does_not_drift() -> None:
    """After 100,000 rounds P is the inverse of A summed up from the forecasts."""
    K, d, n = 5, 20, 100_000
    X, y = stream(1, n, d, K)
    ons = ONS(Problem(d, K, 1.0), None, norm_bound=3.0, step=1.0, regularization=1.0)
    logits = np.empty((n, K))
    ons.forecast_block(X, y, logits)
    residual = softmax(logits)
    residual[np.arange(n), y] -= 1.0
    A = np.eye(K * d)
    for start in range(0, n, 2000):
        part = slice(start, start + 2000)
        g = (residual[part, :, None] * X[part, None, :]).reshape(-1, K * d)
        A += g.T @ g
    np.testing.assert_array_equal(ons.state.P, ons.state.P.T)
    assert np.abs(ons.state.P @ A - np.eye(K * d)).max() < 1e-9


@pytest.mark.parametrize(
    "wrong", [{"norm_bound": 0.0}, {"step": 0.0}, {"regularization": -1.0}, {"step": "best"}, {"projection": "rows"}]
)
def test_refusals(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ONS(Problem(3, 5, 2.0), None, **wrong)


def test_a_point_beyond_what_floats_hold_is_counted() -> None:
    ball = MetricBall.empty(1, 1)
    ball.V[0] = 1e200
    with np.errstate(all="ignore"):
        project(ball, np.ones((1, 1)), 1.0)
    assert ball.tally[STALLS] == 1


@pytest.mark.parametrize("v", [(1.0, 0.5), (1.0, -1.0)])
def test_onss_allowance_for_rounding(v: tuple[float, float]) -> None:
    """B = 2, step 4, one feature: what is left of v, and of its rounding, eight times; the projection's 1e-12."""
    state = ONS(Problem(1, 2, 3.0), None, norm_bound=2.0, step=4.0, regularization=7.0).state
    state.g[:], state.v[:], state.doubt[:] = (3.0, 4.0), v, (0.0, 7.0, 1.0)
    note_doubt(state, np.array([1.5]), 0.5)
    left = abs(v[0] + v[1])
    off = ERROR_FACTOR * 0.5 * (left + EPSILON * math.hypot(*v))
    metric = 7.0 + 25.0
    across = 2.0 * math.sqrt(2.0) * 2.0 * metric
    found = across * (off + 1e-12 * math.sqrt(2.0) * 2.0 / 4.0) + 0.5 * 4.0 * 5.0 * off
    assert state.doubt[1:].tolist() == [metric, 2.25]
    assert state.doubt[0] == pytest.approx(found, rel=1e-9, abs=0.0)
    note_doubt(state, np.array([0.5]), 0.0)
    assert state.doubt[2] == 2.25  # the longest stays


@pytest.mark.parametrize("seed", range(6))
def test_each_row_s_own_step_raises_the_dual_value(seed: int) -> None:
    """What the projection falls back to where no step of Newton's does."""
    K, d, B, rng = 3, 2, 1.5, np.random.default_rng(seed)
    F = rng.standard_normal((K * d, K * d))
    P, ball = np.linalg.inv(F @ F.T + 0.5 * np.eye(K * d)), MetricBall.empty(K, d)
    ball.V[:] = 3.0 * rng.standard_normal(K * d)
    ball.old[:] = ball.nu[:] = rng.uniform(0.2, 3.0, K)
    active_rows(ball, B)
    _, before = evaluate(ball, P, B, K, d)
    newton_direction(ball, P, B, K, d)
    rows_alone(ball, K)
    own = ball.move.copy()
    for k in range(K):
        ball.nu[:] = ball.old + 1e-4 * own * (np.arange(K) == k)
        assert evaluate(ball, P, B, K, d)[1] > before
