"""FOLKLORE in its direct form: Newton's root against `folklore`, gradient descent, Lemma 7 at A_t, certificates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.bounds.folklore import folklore_after, folklore_error, folklore_inexact
from banditlab.bounds.hessian_dominance import hessian_dominance
from banditlab.comparators import best_in_ball
from banditlab.errors import HorizonRequiredError, IncompatibleError, UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.forecasters.soft_labels import softmax_hessian, surrogate_term
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.descended_root import descended, descent_steps, newton_root
from banditlab.problem import Problem

K, D = 3, 4


def stream(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return X / np.linalg.norm(X, axis=1)[:, None], rng.integers(0, K, n)


@pytest.mark.parametrize("settings", [{}, {"norm_bound": 5.0, "curvature": "tight"}, {"regularization": 0.01}])
def test_it_is_folklore(settings: dict[str, Any]) -> None:
    X, y = stream(60)
    fast, slow = FOLKLORE(Problem(D, K, 1.0), None, **settings), FolkloreDirect(Problem(D, K, 1.0), None, **settings)
    for x, label in zip(X, y, strict=True):
        a, b = fast.predict(x), slow.predict(x)
        np.testing.assert_allclose(a - a.mean(), b - b.mean(), atol=1e-9)
        fast.update(x, int(label))
        slow.update(x, int(label))
    assert slow.certificate() == pytest.approx(fast.certificate(), rel=1e-9)
    assert slow.bound(60) == fast.bound(60)


@pytest.mark.parametrize("largest", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-8])
def test_gradient_descent_keeps_its_epsilon(largest: float, accuracy: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        Q = np.linalg.qr(rng.standard_normal((K, K)))[0]
        At = (Q * rng.uniform(0.0, largest, K)) @ Q.T
        g = 3.0 * rng.standard_normal(K)
        root, residual = newton_root(g, At)
        assert residual < 1e-12
        z = descended(g, At, largest, descent_steps(largest, accuracy))
        assert float((z - root) @ (z - root)) <= accuracy * (1 + 1e-6) + 1e-24


def test_one_step_too_few_is_seen_where_the_bound_is_tight() -> None:
    """At = largest I, g far from where the softmax bends: the distance to the root shrinks by the factor the theory has."""
    largest, g = 1.0, np.array([60.0, 0.0, 0.0])
    At = largest * np.eye(K)
    root, _ = newton_root(g, At)
    errors = [float(np.linalg.norm(descended(g, At, largest, steps) - root)) for steps in (1, 2, 3)]
    assert errors[1] / errors[0] == pytest.approx(1.0 - 1.0 / (1.0 + 0.5 * largest), rel=1e-6)


def test_lemma_7_at_the_next_matrix() -> None:
    """The round's term is at most (1/4) tr(A_t^{-1} H_t) at the fixed point, which `before` misses."""
    X, y = stream(80, seed=2)
    player = FolkloreDirect(Problem(D, K, 1.0), None, norm_bound=3.0, regularization=0.02, linear_term="after")
    c = player.curvature
    for x, label in zip(X, y, strict=True):
        _, At, mean = player._at(x)
        z, reached = player._logits(At, mean)
        s = softmax(z)
        S = softmax_hessian(s)
        after = np.linalg.solve(np.eye(K) + 2.0 * c * At @ S, At)
        term = surrogate_term(At, s, z - mean, s - np.eye(K)[label], c)
        assert reached
        assert term <= 0.5 * np.trace(S @ after) + 1e-12
        player.update(x, int(label))
    before = FolkloreDirect(Problem(D, K, 1.0), None, norm_bound=3.0, regularization=0.02)
    assert player.bound(80) == folklore_after(80, D, K, 3.0, 1.0, 0.02, c) < before.bound(80)
    assert player.diagnostics() == {"unsolved_roots": 0}


@pytest.mark.parametrize("settings", [{"linear_term": "after"}, {"solver": "gradient", "accuracy": 1.0}])
def test_the_regret_is_below_certificate_and_bound(settings: dict[str, Any]) -> None:
    for B, lam in ((0.05, 10.0), (3.0, 0.6), (30.0, 0.01)):
        X, _ = stream(40, seed=4)
        player = FolkloreDirect(Problem(D, K, 1.0), None, norm_bound=B, regularization=lam, **settings)
        loss, counts = 0.0, np.zeros((40, K))
        for t, x in enumerate(X):
            z = player.predict(x)
            label = int(np.argmin(z))
            loss, counts[t, label] = loss + float(logistic_loss(z, label)), 1.0
            player.update(x, label)
        assert loss - best_in_ball(X, counts, B).loss <= player.certificate()
        assert player.certificate() <= player.bound(40) * (1 + 1e-9)


def test_an_inexact_root_costs_what_the_bound_says_at_most() -> None:
    """A root off by 1 in the worst direction for its label: the round's term grows by less than `folklore_inexact` allows."""
    rng, c, lam = np.random.default_rng(3), 0.1, 0.5
    allowed = 1.0 / folklore_error(1.0, 1.0, lam, c)
    worst = 0.0
    for _ in range(300):
        Q = np.linalg.qr(rng.standard_normal((K, K)))[0]
        At = (Q * rng.uniform(0.0, 0.5 / lam, K)) @ Q.T
        mean = 3.0 * rng.standard_normal(K)
        root, _ = newton_root(mean + 0.5 * np.diag(At), At)
        y = np.eye(K)[rng.integers(K)]
        for error in (1e-3, 0.1, 1.0):
            e = rng.standard_normal(K)
            z = root + error * e / np.linalg.norm(e)
            s = softmax(z)
            term = surrogate_term(At, s, z - mean, s - y, c) - 0.5 * np.trace(softmax_hessian(s) @ At)
            worst = max(worst, term / (allowed * error))
    assert 0.1 < worst <= 1.0
    assert folklore_inexact(7, D, K, 1.0, 1.0, lam, 0.1, 0.0) == FolkloreDirect(
        Problem(D, K, 1.0), None, regularization=lam, curvature=0.1
    ).bound(7)


def test_settings_are_refused() -> None:
    problem = Problem(D, K, 1.0)
    with pytest.raises(UsageError, match=r"solver with linear_term = \"after\""):
        FolkloreDirect(problem, None, linear_term="after", solver="gradient")
    with pytest.raises(HorizonRequiredError, match="accuracy"):
        FolkloreDirect(problem, None, solver="gradient", accuracy="theory")
    with pytest.raises(IncompatibleError, match="GiB"):
        FolkloreDirect(Problem(10_000, 10, 1.0), None)
    with_horizon = FolkloreDirect(Problem(D, K, 1.0, 100), None, solver="gradient", accuracy="theory")
    exact = FolkloreDirect(problem, None)
    assert with_horizon.bound(100) == pytest.approx(exact.bound(100) + 1.0)


@pytest.mark.parametrize("regularizer", ["sum", "mean", "quadratic"])
@pytest.mark.parametrize(("B", "R"), [(1.0, 1.0), (5.0, 2.0)])
def test_appendix_f(B: float, R: float, regularizer: str) -> None:
    """(F.2) along (e_1 - e_2) (x) x, in matrices: it holds with the constant and not with one 1 % smaller."""
    x, W = np.array([0.0, 0.0, R]), np.diag([0.0, 0.0, B])
    z = W @ x
    s = softmax(z)
    psi = {"sum": 3.0 * s - 1.0, "mean": s - 1.0 / 3.0, "quadratic": z}[
        regularizer
    ]  # gradients, alike where logits are
    left = np.outer(s - np.eye(3)[0] - psi, s - np.eye(3)[0] - psi) - np.outer(psi, psi)
    direction = np.kron(np.array([1.0, -1.0, 0.0]), x)
    low, high = (
        float(direction @ np.kron(left - c * softmax_hessian(s), np.outer(x, x)) @ direction)
        for c in (0.99 * hessian_dominance(B, R), 1.01 * hessian_dominance(B, R))
    )
    assert low > 0.0 > high
    assert hessian_dominance(B, R) == pytest.approx(0.5 * math.exp(B * R) + 1.0)
