"""The best model of a Frobenius ball: against projected descent, its gap, its faces; and FOLKLORE's promise over it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from banditlab.bounds.folklore import folklore_frobenius
from banditlab.comparators import best_in_ball, best_in_frobenius_ball, project_frobenius
from banditlab.errors import UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.losses import log_sum_exp, logistic_loss
from banditlab.problem import Problem

K, D, N = 3, 2, 40


def sample(seed: int, soft: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.argmax(X @ rng.standard_normal((D, K)) + 0.5 * rng.standard_normal((N, K)), axis=1)
    return X, rng.dirichlet(np.ones(K), N) if soft else np.eye(K)[y]


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("bound", [0.01, 1.0, 50.0])
def test_it_is_what_a_general_solver_finds(soft: bool, bound: float) -> None:
    X, C = sample(0, soft)
    found = best_in_frobenius_ball(X, C, bound)

    def loss(w: Any) -> float:
        Z = X @ w.reshape(K, D).T
        return float((log_sum_exp(Z) - (C * Z).sum(axis=1)).sum())

    other = minimize(
        loss, np.zeros(K * D), method="SLSQP", constraints={"type": "ineq", "fun": lambda w: bound**2 - w @ w},
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert found.loss == pytest.approx(other.fun, rel=1e-5)
    assert found.loss - found.gap <= other.fun + 1e-7
    assert np.linalg.norm(found.weights) <= bound
    assert found.loss == pytest.approx(loss(found.weights))


def test_the_row_ball_lies_between_two() -> None:
    X, C = sample(1)
    for B in (0.1, 3.0):
        rows = best_in_ball(X, C, B).loss
        assert best_in_frobenius_ball(X, C, math.sqrt(K) * B).loss <= rows + 1e-4 * rows
        assert best_in_frobenius_ball(X, C, B).loss >= rows - 1e-4 * rows


def test_projection_is_one_rescaling() -> None:
    W = np.random.default_rng(2).standard_normal((K, D))
    assert project_frobenius(W, 100.0) is W
    P = project_frobenius(W, 0.5)
    assert np.linalg.norm(P) == pytest.approx(0.5)
    np.testing.assert_allclose(P / np.linalg.norm(P), W / np.linalg.norm(W))
    for seed in range(200):
        V = np.random.default_rng(seed).standard_normal((K, D))
        assert np.linalg.norm(project_frobenius(V, 0.1)) <= 0.1  # to the last bit


@pytest.mark.parametrize("bound", [0.3, 4.0])
def test_folklore_keeps_its_promise_over_the_frobenius_ball(bound: float) -> None:
    X, C = sample(3)
    settings = {"norm_bound": bound / math.sqrt(2.0), "regularization": 0.5}
    player, loss = FOLKLORE(Problem(D, K, 1.0), None, **settings), 0.0
    for x, c in zip(X, C, strict=True):
        loss += float(logistic_loss(player.predict(x), int(np.argmax(c))))
        player.update(x, int(np.argmax(c)))
    regret = loss - best_in_frobenius_ball(X, C, bound).loss
    promise = player.frobenius_certificate(bound)
    assert regret <= promise <= folklore_frobenius(N, D, K, bound, 1.0, 0.5, player.curvature)
    assert math.isnan(
        player.frobenius_certificate(50.0 * bound)
    )  # two rows may differ by more than the curvature is for


@pytest.mark.parametrize(
    ("U", "counts", "bound", "said"),
    [
        (np.ones((2, 2)), np.ones((3, 2)), 1.0, "counts"),
        (np.full((2, 2), np.nan), np.ones((2, 2)), 1.0, "finite"),
        (np.ones((2, 2)), -np.ones((2, 2)), 1.0, "0 or above"),
        (np.ones((2, 2)), np.ones((2, 2)), 0.0, "frobenius_bound"),
    ],
)
def test_arguments_are_refused(U: Any, counts: Any, bound: float, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        best_in_frobenius_ball(U, counts, bound)
