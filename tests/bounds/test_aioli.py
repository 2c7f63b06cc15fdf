"""AIOLI's Theorems 1, 4 and 7: as printed, where they fail, and what holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.bounds.aioli import aioli, aioli_inexact, aioli_kernel, aioli_steps, aioli_theorem_4, aioli_tight
from banditlab.comparators import best_in_ball


def test_the_tight_curvature_at_ten() -> None:
    """At B R = 10 the factor 1 + B R = 11 becomes 4.2."""
    n, d, lam = 10**6, 3, 1.0
    c = 1 / (2 * 4.2)
    assert aioli_tight(n, d, 10.0, 1.0, lam) == pytest.approx(aioli(n, d, 10.0, 1.0, lam, c), rel=0.01)
    assert aioli_tight(n, d, 10.0, 1.0, lam) < aioli(n, d, 10.0, 1.0, lam)


def printed_7(n: int, d: int, B: float, R: float, lam: float, error: float) -> float:
    return aioli(n, d, B, R, lam) + 3 * n * R * (n * R**2 / (8 * lam) + B) * error


def test_theorem_7_as_printed_is_false_for_small_norms() -> None:
    """One round, R = 1: AIOLI predicts 0, so an error of 10 away from the label costs ln(1 + e^10)."""
    B, lam, error = 1e-3, 1e6, 10.0
    regret = math.log1p(math.exp(error)) - math.log1p(math.exp(-B))
    assert regret == pytest.approx(9.31, abs=0.01)
    assert printed_7(1, 1, B, 1.0, lam, error) == pytest.approx(1.03, abs=0.01)
    assert regret <= aioli_inexact(1, 1, B, 1.0, lam, error) == pytest.approx(11.0, abs=0.01)


@pytest.mark.parametrize("n", [1, 2, 10, 10**4])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_theorem_7_as_printed_holds_from_a_third_on(n: int, scale: float) -> None:
    for R in (0.1, 1.0, 30.0):
        for B in (1 / 3, 1.0, 50.0):
            assert aioli_inexact(n, 2, B, R, scale * R**2, 1.0) <= printed_7(n, 2, B, R, scale * R**2, 1.0)


class Inexact:
    """AIOLI by Equation (5), in the open: `theta` is the minimiser of (3), and what was played enters the sums."""

    def __init__(self, d: int, B: float, R: float, lam: float) -> None:
        self.A, self.b, self.margin = lam * np.eye(d), np.zeros(d), B * R

    def theta(self, x: np.ndarray) -> np.ndarray:
        h, v = np.linalg.solve(self.A, np.stack([self.b, x], axis=1)).T
        z = brentq(lambda z: z - x @ h + 0.5 * (x @ v) * math.tanh(z / 2), *(x @ h + np.array([-1, 1]) * (x @ v)))
        return h - 0.5 * math.tanh(z / 2) * v

    def descended(self, x: np.ndarray, steps: int, R: float, lam: float) -> np.ndarray:
        """`steps` gradient steps from 0, of the length of Lemma 3, in the coordinates in which (3) is well conditioned."""
        L = np.linalg.cholesky(self.A)
        u, v = np.linalg.solve(L, np.stack([self.b, x], axis=1)).T
        r = np.zeros(len(x))
        for _ in range(steps):
            r = r - lam / (4 * lam + R**2) * (2 * r - 2 * u + math.tanh(v @ r / 2) * v)
        return np.linalg.solve(L.T, r)

    def update(self, x: np.ndarray, y: float, theta: np.ndarray) -> float:
        """Learn, and return the loss: g = -y s x, s = 1/(1 + e^u), eta g g' = s (1 - s) x x'/(1 + BR)."""
        u = y * float(x @ theta)
        s = 0.5 * (1 - math.tanh(u / 2))
        self.A = self.A + 0.5 * s * (1 - s) / (1 + self.margin) * np.outer(x, x)
        self.b = self.b + 0.5 * (s * (1 - s) / (1 + self.margin) * u + s) * y * x
        return float(np.logaddexp(0.0, -u))


def regret_of(play: Callable[[Inexact, np.ndarray], np.ndarray], X: np.ndarray, B: float, R: float, lam: float,
              label: Callable[[float], float]) -> float:  # fmt: skip
    form, loss, counts = Inexact(X.shape[1], B, R, lam), 0.0, np.zeros((len(X), 2))
    for x, count in zip(X, counts, strict=True):
        theta = play(form, x)
        y = label(float(x @ theta))
        loss += form.update(x, y, theta)
        count[int(y < 0)] = 1.0
    return float(loss - best_in_ball(X, counts, B / 2).loss)


Setting = tuple[int, int, float, float, float, float]


def inexact_share(setting: Setting, kind: int, rng: np.random.Generator) -> float:
    """The regret over the bound, with an error of the largest size: away from the label, or in any direction."""
    n, d, B, R, lam, error = setting
    X = rng.standard_normal((n, d))
    X *= R / np.linalg.norm(X, axis=1)[:, None]
    if kind % 2:
        X[:] = X[0]
    labels = iter(rng.choice([-1.0, 1.0], n) if kind < 2 else np.ones(n))

    def play(form: Inexact, x: np.ndarray) -> np.ndarray:
        off = rng.standard_normal(d) if kind == 4 else -x if kind != 5 else x
        return form.theta(x) + error * off / np.linalg.norm(off)

    def adversary(z: float) -> float:
        return next(labels) if kind < 5 else -math.copysign(1.0, z)

    return regret_of(play, X, B, R, lam, adversary) / aioli_inexact(n, d, B, R, lam, error)


def test_no_inexact_aioli_exceeds_theorem_7() -> None:
    """Random settings, then a climb from the best of them; some comes near enough for the bound to be no idle one."""
    rng, tried = np.random.default_rng(0), []
    for trial in range(240):
        n, d = int(rng.integers(1, 25)), int(rng.integers(1, 4))
        B, R, lam, error = (float(10 ** rng.uniform(*r)) for r in ((-4, 1.5), (-1, 1), (-3, 6), (-2, 2.5)))
        tried.append((inexact_share((n, d, B, R, lam, error), trial % 6, rng), trial % 6, (n, d, B, R, lam, error)))
    for share, kind, (n, d, *rest) in sorted(tried, reverse=True)[:6]:
        for _ in range(15):
            near = (max(1, n + int(rng.integers(-2, 3))), d, *(float(v * 10 ** rng.normal(0, 0.3)) for v in rest))
            found = inexact_share(near, kind, rng)
            tried.append((found, kind, near))
            if found > share:
                share, (n, d, *rest) = found, near
    shares = [share for share, _, _ in tried]
    assert max(shares) <= 1.0
    assert max(shares) >= 0.5, max(tried)
    assert sum(share > 0.1 for share in shares) >= 20


def test_theorem_4_as_printed_may_allow_no_step_at_all() -> None:
    """n = 10^4 labels of one kind at x = R = 1: where the printed T is 0 every prediction is 0."""
    n, B, lam = 10_000, 1e-3, 8e5
    printed = math.ceil((4 + 1 / lam) * math.log(3 * n**2 / lam * (n / (8 * lam) + B)))
    assert printed == 0
    regret = n * (math.log(2) - math.log1p(math.exp(-B)))
    assert regret == pytest.approx(5.0, abs=0.01)
    assert aioli_theorem_4(n, 1, B, 1.0, lam) == pytest.approx(1.80, abs=0.01)
    assert aioli_steps(n, B, 1.0, lam) >= 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.few(5)
def test_theorem_4_with_the_steps_it_needs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 30)), int(rng.integers(1, 4))
    B, R, lam = (float(10 ** rng.uniform(*r)) for r in ((-4, 1), (-1, 0.5), (-2, 4)))
    X = rng.standard_normal((n, d))
    X *= R / np.linalg.norm(X, axis=1)[:, None]
    steps = int(aioli_steps(n, B, R, lam))
    allowed = 1 / (n * R * (1 + R**2 / (4 * lam) + (n - 1) * R**2 / (16 * (1 + B * R) * lam)))

    def play(form: Inexact, x: np.ndarray) -> np.ndarray:
        theta = form.descended(x, steps, R, lam)
        assert np.linalg.norm(theta - form.theta(x)) <= allowed * (1 + 1e-9)
        return theta

    labels = iter(np.ones(n) if seed % 2 else rng.choice([-1.0, 1.0], n))
    assert regret_of(play, X, B, R, lam, lambda z: next(labels)) <= aioli_theorem_4(n, d, B, R, lam)


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
