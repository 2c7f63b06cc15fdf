"""Labels in the simplex (000, Section 2): vertices are classes to the last bit, mixtures follow the direct form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.comparators import best_in_ball
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.forecasters.ogd import OGD
from banditlab.forecasters.soft_labels import as_distribution, vertex
from banditlab.losses import log_sum_exp
from banditlab.problem import Problem

K, D, N = 3, 4, 40


def stream(K: int = K, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    return X / np.linalg.norm(X, axis=1)[:, None], rng.dirichlet(np.full(K, 0.5), N)


@pytest.mark.parametrize(
    ("cls", "K", "settings"),
    [(FOLKLORE, 3, {}), (FOLKLORE, 3, {"regularization": 5e-4}), (AIOLI, 2, {}), (AIOLI, 2, {"regularization": 1e-9})],
)
def test_a_vertex_is_the_class_to_the_last_bit(cls: Any, K: int, settings: dict[str, Any]) -> None:
    X, _ = stream(K)
    one, two = (cls(Problem(D, K, 1.0), None, **settings) for _ in range(2))
    for t, x in enumerate(X):
        one.update(x, t % K)
        two.update_soft(x, np.eye(K)[t % K])
    np.testing.assert_array_equal(one.predict_many(X), two.predict_many(X))
    assert one.certificate() == two.certificate()


@pytest.mark.parametrize("settings", [{}, {"regularization": 5e-4}])
def test_folklore_learns_mixtures_as_its_direct_form_does(settings: dict[str, Any]) -> None:
    X, Y = stream()
    fast = FOLKLORE(Problem(D, K, 1.0), None, norm_bound=2.0, **settings)
    slow = FolkloreDirect(Problem(D, K, 1.0), None, norm_bound=2.0, **settings)
    for x, y in zip(X, Y, strict=True):
        a, b = fast.predict(x), slow.predict(x)
        np.testing.assert_allclose(a - a.mean(), b - b.mean(), atol=1e-8)
        fast.update_soft(x, y)
        slow.update_soft(x, y)
    assert fast.certificate() == pytest.approx(slow.certificate(), rel=1e-7)


@pytest.mark.slow
def test_folklore_learns_mixtures_in_the_dual_form() -> None:
    X, Y = stream()
    one, two = (FOLKLORE(Problem(D, K, 1.0), None, form=form) for form in ("primal", "dual"))
    for x, y in zip(X, Y, strict=True):
        one.update_soft(x, y)
        two.update_soft(x, y)
    np.testing.assert_allclose(one.predict_many(X), two.predict_many(X), atol=1e-9)
    assert one.certificate() == pytest.approx(two.certificate(), rel=1e-9)


@pytest.mark.parametrize("regularization", [0.25, 5e-4])
@pytest.mark.parametrize("soft", [False, True])
def test_folklore_at_two_classes_is_aioli(regularization: float, soft: bool) -> None:
    """000, Appendix D, for the forecasters: lambda twice, the same curvature, virtual labels of weight 1/2."""
    X, Y = stream(2)
    Y = Y if soft else np.eye(2)[np.argmax(Y, axis=1)]
    problem = Problem(D, 2, 1.0)
    aioli = AIOLI(problem, None, regularization=regularization, curvature=0.1, virtual_weight=0.5)
    folklore = FOLKLORE(problem, None, regularization=2.0 * regularization, curvature=0.1)
    for x, y in zip(X, Y, strict=True):
        z = folklore.predict(x)
        assert z[0] - z[1] == pytest.approx(aioli.predict(x)[0], abs=1e-9)
        aioli.update_soft(x, y)
        folklore.update_soft(x, y)
    # theta = W_0 - W_1, |theta|^2 = 2 |W|^2 for W without what the rows share: the certificates' sums are one
    assert float(aioli.state.spent[0]) == pytest.approx(float(folklore.state.spent[0]), rel=1e-6)


@pytest.mark.parametrize("labels", ["random", "uniform", "adversarial"])
def test_the_regret_is_below_certificate_and_bound(labels: str) -> None:
    X, Y = stream(seed=3)
    for B in (0.1, 2.0):
        player, loss, told = FOLKLORE(Problem(D, K, 1.0), None, norm_bound=B), 0.0, []
        for x, y in zip(X, Y, strict=True):
            z = player.predict(x)
            soft = {"random": y, "uniform": np.full(K, 1 / K), "adversarial": 0.9 * np.eye(K)[np.argmin(z)] + 0.1 / K}[
                labels
            ]
            loss += float(log_sum_exp(z) - soft @ z)
            told.append(soft)
            player.update_soft(x, soft)
        regret = loss - best_in_ball(X, np.array(told), B).loss
        assert regret <= player.certificate() <= player.bound(N)


@pytest.mark.parametrize(
    "label",
    [[0.5, 0.5], [0.5, 0.6, 0.0], [-0.1, 0.6, 0.5], [np.nan, 0.5, 0.5], "one", None, [[1.0, 0.0, 0.0]], [1e200, 0, 0]],
)
def test_what_is_no_distribution_is_refused(label: Any) -> None:
    player = FOLKLORE(Problem(D, K, 1.0), None)
    before = player.predict(np.ones(D) / 2)
    with pytest.raises(UsageError, match="soft label"):
        player.update_soft(np.ones(D) / 2, label)
    np.testing.assert_array_equal(player.predict(np.ones(D) / 2), before)


@pytest.mark.parametrize(
    "label", [np.array([1.0 + 0.0j, 0.0, 0.0]), [1j, 1, 0], [1.0, -1e-18, 0.0], [1.0, 1e-8, 0.0], [math.inf, 0, 0]]
)
def test_edges_of_the_simplex_that_lie_outside(label: Any) -> None:
    with pytest.raises(UsageError, match="soft label"):
        as_distribution(label, 3)


def test_edges_of_the_simplex_that_lie_within() -> None:
    for label in (
        [True, False, False],
        [1, 0, 0],
        [1.0 - 1e-12, 1e-12, 0.0],
        [1.0, 1e-200, 0.0],
        np.full(3, (1.0 + 1e-12) / 3),
    ):
        np.testing.assert_array_equal(as_distribution(label, 3), np.array(label, dtype=float))
    assert vertex(as_distribution([0, 1, 0], 3)) == 1
    assert vertex(as_distribution([1.0, 1e-200, 0.0], 3)) is None
    given = np.array([0.5, 0.5, 0.0])
    taken = as_distribution(given, 3)
    given[0] = 9.0
    assert taken[0] == 0.5  # a copy


def test_a_forecaster_of_classes_says_so() -> None:
    with pytest.raises(IncompatibleError, match="ogd accepts classes"):
        OGD(Problem(D, K, 1.0), None).update_soft(np.ones(D) / 2, np.full(K, 1 / K))
