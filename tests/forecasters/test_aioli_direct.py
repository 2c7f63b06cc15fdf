"""Algorithm 2 of COLT 2020, mended: against AIOLI's own root, its Cholesky factor, its number of steps."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.bounds.aioli import aioli_steps
from banditlab.comparators import best_in_ball
from banditlab.errors import HorizonRequiredError, IncompatibleError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.aioli_direct import AIOLIDirect, cholesky_update
from banditlab.losses import logistic_loss
from banditlab.problem import Problem

D, N = 4, 60


def stream() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X[5] = 0.0  # rank 0 of Lemma 2's matrix but for b
    return X, rng.integers(0, 2, N)


@pytest.mark.parametrize("norm_bound", [0.5, 3.0])
def test_enough_steps_are_aioli(norm_bound: float) -> None:
    X, y = (part[:25] for part in stream())
    direct = AIOLIDirect(Problem(D, 2, 1.0), None, norm_bound=norm_bound, steps=1000)
    plain = AIOLI(Problem(D, 2, 1.0), None, norm_bound=norm_bound)
    for x, label in zip(X, y, strict=True):
        assert direct.predict(x)[0] == pytest.approx(plain.predict(x)[0], abs=1e-10)
        direct.update(x, int(label))
        plain.update(x, int(label))
    assert direct.certificate() == pytest.approx(plain.certificate(), rel=1e-9)


def test_small_contexts_have_margins() -> None:
    """The rank of Lemma 2's matrix is counted beside its largest eigenvalue, here 1e-12."""
    X, y = stream()
    players = AIOLIDirect(Problem(D, 2, 1.0), None, steps=100), AIOLI(Problem(D, 2, 1.0), None)
    for player in players:
        for x, label in zip(1e-6 * X[:10], y):
            player.update(x, int(label))
    direct, plain = (player.predict(1e-6 * X[20])[0] for player in players)
    assert direct == pytest.approx(plain, rel=1e-6, abs=0.0)


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_the_first_step_is_lemma_3s_whatever_the_radius(radius: float) -> None:
    """One step from 0 goes lambda/(4 lambda + R^2) down a gradient of -2 u: the margin is twice that times x'A^{-1} b."""
    X, y = stream()
    player = AIOLIDirect(Problem(D, 2, radius), None, norm_bound=3.0, steps=1)
    lam, x = player.regularization, radius * X[20]
    for t in range(10):
        player.update(radius * X[t], int(y[t]))
    L, b = player.state.L, player.state.b
    expected = 2.0 * lam / (4.0 * lam + radius * radius) * x @ np.linalg.solve(L @ L.T, b)
    assert abs(expected) > 1e-4
    assert player.predict(x)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("steps", [0, 1, 5, "theory"])
def test_the_regret_is_below_certificate_and_bound_at_any_number_of_steps(steps: int) -> None:
    X, y = stream()
    for B in (0.05, 2.0):
        player, loss = AIOLIDirect(Problem(D, 2, 1.0, N), None, norm_bound=B, steps=steps), 0.0
        for x, label in zip(X, y, strict=True):
            loss += float(logistic_loss(player.predict(x), int(label)))
            player.update(x, int(label))
        regret = loss - best_in_ball(X, np.eye(2)[y], B).loss
        assert regret <= player.certificate()
        assert regret <= player.bound(N)
    if steps == "theory":
        assert player.steps == aioli_steps(float(N), 4.0, 1.0, 1.0 / 16.0)


def test_the_factor_is_that_of_the_sum() -> None:
    rng = np.random.default_rng(2)
    L = np.tril(rng.standard_normal((5, 5))) + 3.0 * np.eye(5)
    A, w = L @ L.T, rng.standard_normal(5)
    cholesky_update(L, w)
    np.testing.assert_allclose(L @ L.T, A + np.outer(w, w), atol=1e-12)
    np.testing.assert_array_equal(L, np.tril(L))


def test_settings_are_refused() -> None:
    with pytest.raises(IncompatibleError, match="binary"):
        AIOLIDirect(Problem(D, 3, 1.0), None)
    with pytest.raises(HorizonRequiredError, match="steps"):
        AIOLIDirect(Problem(D, 2, 1.0), None, steps="theory")
