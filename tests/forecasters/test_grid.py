"""The B-grid aggregator: one point is that learner, several are the mixture in plain numpy, bounds with ln N."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from banditlab.comparators import best_in_ball
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.grid import BATCH, BGrid
from banditlab.losses import log_sum_exp, logistic_loss
from banditlab.numerics.contexts import as_contexts
from banditlab.problem import Problem


def stream(seed: int, n: int, d: int, K: int, kind: str = "noise") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    X = X[rng.integers(0, 3, n)] if kind == "repeated" else X
    y = np.argmax(X @ rng.standard_normal((d, K)), axis=1) if kind == "separable" else rng.integers(0, K, n)
    return as_contexts(X), y


def log_softmax(z: np.ndarray) -> np.ndarray:
    return z - log_sum_exp(z)


@pytest.mark.parametrize("curvature", ["simple", "tight"])
@pytest.mark.parametrize(("member", "K", "B"), [("folklore", 3, 2.0), ("folklore", 4, 100.0), ("aioli", 2, 3.0)])
def test_one_point_is_that_learner(member: str, K: int, B: float, curvature: str) -> None:
    d, n = 3, 150
    X, y = stream(1, n, d, K)
    problem = Problem(d, K, 1.0)
    player = BGrid(problem, None, norm_bound=B, member=member, smallest=B, size=1, curvature=curvature)
    alone = {"folklore": FOLKLORE, "aioli": AIOLI}[member](problem, None, norm_bound=B, curvature=curvature)
    for x, label in zip(X, y, strict=True):
        np.testing.assert_allclose(player.predict(x), log_softmax(alone.predict(x)), atol=1e-12)
        player.update(x, label)
        alone.update(x, label)
    assert player.certificate() == pytest.approx(alone.certificate(), rel=1e-12)
    assert player.bound(n) == alone.bound(n)


@pytest.mark.parametrize("kind", ["noise", "repeated", "separable"])
@pytest.mark.parametrize(("member", "K"), [("folklore", 3), ("aioli", 2)])
def test_equals_the_mixture_of_separate_learners(member: str, K: int, kind: str) -> None:
    d, n = 3, 120
    X, y = stream(2, n, d, K, kind)
    problem = Problem(d, K, 1.0)
    player = BGrid(problem, None, member=member, smallest=0.1, ratio=10.0, size=4)
    cls = {"folklore": FOLKLORE, "aioli": AIOLI}[member]
    members = [cls(problem, None, norm_bound=B) for B in (0.1, 1.0, 10.0, 100.0)]
    losses, total = np.zeros(4), 0.0
    for x, label in zip(X, y, strict=True):
        Z = np.array([log_softmax(one.predict(x)) for one in members])
        w = np.exp(losses.min() - losses)
        expected = np.log((w / w.sum()) @ np.exp(Z))
        np.testing.assert_allclose(player.predict(x), expected, atol=1e-9)
        total += logistic_loss(player.predict(x), label)
        losses -= Z[:, label]
        player.update(x, label)
        for one in members:
            one.update(x, label)
    np.testing.assert_allclose(player.weights(), np.exp(losses.min() - losses) / np.exp(losses.min() - losses).sum())
    assert total == pytest.approx(-math.log(np.exp(losses.min() - losses).mean()) + losses.min(), rel=1e-10)
    assert total - losses.min() <= math.log(4)
    for i in range(4):  # the members' certificates are read off the stack
        bounded = BGrid(
            problem, None, member=member, smallest=0.1, ratio=10.0, size=4, norm_bound=members[i].norm_bound
        )
        bounded.set_state(player.get_state())
        terms = [one.certificate() + math.log(4 * w) for one, w in zip(members, player.weights(), strict=True)]
        assert bounded.certificate() == pytest.approx(min(terms[i:]), rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_regret_below_certificate_below_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), 100
    member = "aioli" if seed % 3 == 0 else "folklore"
    K = 2 if member == "aioli" else int(rng.integers(2, 5))
    B = float(10 ** rng.uniform(-1, 1.5))
    X, y = stream(seed, n, d, K, ("noise", "repeated", "separable")[seed % 3])
    player = BGrid(Problem(d, K, 1.0), None, member=member, norm_bound=B, curvature=("simple", "tight")[seed % 2])
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = player.predict(x)
        if seed % 4 == 0:
            y[t] = np.argmin(z)
        loss += float(logistic_loss(z, y[t]))
        player.update(x, int(y[t]))
    best = best_in_ball(X, np.eye(K)[y], B)
    assert loss - best.loss <= player.certificate() + best.gap + 1e-9
    assert player.certificate() <= player.bound(n)


def test_norm_bound_changes_the_promise_only() -> None:
    X, y = stream(3, 60, 3, 3)
    problem = Problem(3, 3, 1.0)
    small, large = BGrid(problem, None, norm_bound=0.3), BGrid(problem, None, norm_bound=60.0)
    for x, label in zip(X, y, strict=True):
        np.testing.assert_array_equal(small.predict(x), large.predict(x))
        small.update(x, label)
        large.update(x, label)
    assert small.norm_bounds == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert small.bound(100) == pytest.approx(FOLKLORE(problem, None, norm_bound=0.5).bound(100) + math.log(9))
    assert large.bound(100) > small.bound(100)


def test_a_grid_is_made_to_reach_a_norm() -> None:
    assert [BGrid.settings_at(B, {})["size"] for B in (1.0, 64.0, 64.1)] == [9, 9, 10]
    assert BGrid.settings_at(1000.0, {"smallest": 1.0}) == {"smallest": 1.0, "norm_bound": 1000.0}


@pytest.mark.parametrize(("member", "K"), [("folklore", 3), ("aioli", 2)])
def test_paths_agree_and_a_pickle_continues(member: str, K: int) -> None:
    n = BATCH + 40
    X, y = stream(4, n, 3, K)
    one, other = (BGrid(Problem(3, K, 1.0), None, member=member, size=3) for _ in range(2))
    expected, logits = np.empty((n, K)), np.empty((n, K))
    for t in range(n):
        expected[t] = one.predict(X[t])
        one.update(X[t], y[t])
    other.forecast_block(X[:90], y[:90], logits[:90])
    other = pickle.loads(pickle.dumps(other))
    other.forecast_block(X[90:], y[90:], logits[90:])
    np.testing.assert_allclose(logits, expected, atol=1e-10)
    np.testing.assert_allclose(one.predict_many(X), [one.predict(x) for x in X], atol=1e-10)


def test_refusals() -> None:
    with pytest.raises(IncompatibleError, match=r"^b-grid: its 9 members need 26\.8 GiB .*: use a size of 1 or less$"):
        BGrid(Problem(20_000, 2, 1.0), None, member="aioli")
    with pytest.raises(IncompatibleError, match="n_classes = 2"):
        BGrid(Problem(2, 3, 1.0), None, member="aioli")
    with pytest.raises(UsageError, match="norm_bound must lie within the grid, at most 64, got 65"):
        BGrid(Problem(2, 3, 1.0), None, norm_bound=65.0)


@pytest.mark.parametrize(
    "wrong",
    [{"norm_bound": 0.0}, {"smallest": 0.0}, {"ratio": 1.0}, {"size": 0}, {"member": "ogd"}, {"curvature": "x"}],
)
def test_settings_out_of_range(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        BGrid(Problem(2, 2, 1.0), None, **wrong)
