"""Reward models see earlier rounds only, propensities other folds only; both are near the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.losses import softmax
from banditlab.offpolicy import Log, estimated_propensities, evaluate, predicted_rewards

RNG = np.random.default_rng(0)
N, K = 600, 3
X = RNG.normal(size=(N, 2))
P = softmax(X @ np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))
ACTIONS = (P.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1)
Q = 1.0 / (1.0 + np.exp(-2.0 * X[:, :1] * np.array([1.0, 0.0, -1.0])))
REWARDS = RNG.random(N) < Q[np.arange(N), ACTIONS]
FOLDS = RNG.integers(5, size=N)


def test_predicted_rewards_come_from_earlier_rounds() -> None:
    found = predicted_rewards(X, ACTIONS, REWARDS, K)
    assert (found[:64] == 0.5).all()
    assert np.abs(found[256:] - Q[256:]).mean() < 0.15 < np.abs(0.5 - Q[256:]).mean()
    flipped = REWARDS.copy()
    flipped[300:] ^= True
    again = predicted_rewards(X, ACTIONS, flipped, K)
    assert (again[:512] == found[:512]).all()  # fitted after 256 rounds
    assert (again[512:] != found[512:]).all()


def test_the_model_after_65536_rounds_predicts_all_later_ones() -> None:
    n, half = 2**17 + 1, 2**15
    found = predicted_rewards(np.ones((n, 1)), np.zeros(n), np.arange(n) >= half, 1)
    assert (found[half : 2 * half] < 1e-4).all()
    assert found[2 * half :] == pytest.approx(0.5, abs=1e-3)


def test_actions_seen_with_one_bit_or_never() -> None:
    found = predicted_rewards(X, np.zeros(N), np.ones(N), 2)
    assert found[64:128, 0] == pytest.approx((64 + 0.5) / 65)
    assert (found[:, 1] == 0.5).all()


def test_any_classifier_may_be_the_model() -> None:
    class Mean:
        def fit(self, X: Any, y: Any) -> Mean:
            self.mean = np.mean(y)
            return self

        def predict_proba(self, X: Any) -> Any:
            return np.tile([1.0 - self.mean, self.mean], (len(X), 1))

    found = predicted_rewards(X, ACTIONS, REWARDS, K, model=Mean)
    first = ACTIONS[:64] == 1
    assert found[64:128, 1] == pytest.approx((REWARDS[:64][first].sum() + 0.5) / (first.sum() + 1))


def test_estimated_propensities_are_near_the_truth_and_from_other_folds() -> None:
    found = estimated_propensities(X, ACTIONS, K, FOLDS)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert np.abs(found - P).mean() < 0.05 < 0.15 < np.abs(1.0 / K - P).mean()
    assert found.mean(axis=0) == pytest.approx(np.bincount(ACTIONS) / N, abs=0.01)
    swapped = ACTIONS.copy()
    one = np.flatnonzero(FOLDS == 2)[:40]
    swapped[one] = (swapped[one] + 1) % K
    again = estimated_propensities(X, swapped, K, FOLDS)
    assert (again[FOLDS != 2] != found[FOLDS != 2]).all()
    target = np.tile([0.0, 0.0, 1.0], (N, 1))
    known, estimated = (evaluate(Log(ACTIONS, REWARDS, p, target)) for p in (P, found))
    assert estimated.value == pytest.approx(known.value, abs=0.05)


def test_propensities_of_a_fold_do_not_depend_on_its_own_actions_in_the_first_model() -> None:
    """With one context for all, every fold gets the shares of the others, twice."""
    actions = np.repeat([0, 1], 50)
    folds = np.repeat([0, 1], 50)
    found = estimated_propensities(np.zeros((100, 1)), actions, 2, folds)
    assert found[:50, 0] == pytest.approx(0.5 / 51)  # the other fold never plays action 0
    assert found[50:, 1] == pytest.approx(0.5 / 51)


def test_calibration_mends_a_model_that_is_too_sure() -> None:
    class TooSure:
        def __init__(self) -> None:
            from banditlab.offpolicy.models import logistic

            self.inner = logistic()

        def fit(self, X: Any, y: Any) -> TooSure:
            self.inner.fit(X, y)
            return self

        def predict_proba(self, X: Any) -> Any:
            p = self.inner.predict_proba(X)
            return p**3 / (p**3).sum(axis=1, keepdims=True) if X.shape[1] == 2 else p

    found = estimated_propensities(X, ACTIONS, K, FOLDS, model=TooSure)
    assert np.abs(found - P).mean() < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contexts": X[:-1]}, r"1 x contexts of shape \(599, 2\) where \(600, 2\) is needed"),
        ({"contexts": X[:, 0]}, r"contexts of shape \(600,\)"),
        ({"contexts": np.where(X > 2.0, np.nan, X)}, "entries of contexts that are not finite"),
        ({"contexts": [["red"]] * N}, "contexts that are not arrays of numbers"),
        ({"n_actions": 2}, r"[1-9]\d* x actions that are not integers from 0 to 1"),
        ({"n_actions": 0}, "n_actions must be at least 1"),
        ({"folds": np.zeros(N)}, "folds must have one number for each of 600 rounds, at least two of them different"),
        ({"folds": [0, 1]}, "folds must have one number for each of 600 rounds"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, Any], message: str) -> None:
    given = {"contexts": X, "actions": ACTIONS, "n_actions": K, "folds": FOLDS} | change
    with pytest.raises(UsageError, match=message):
        estimated_propensities(**given)
    if "folds" not in change:
        given.pop("folds")
        with pytest.raises(UsageError, match=message):
            predicted_rewards(**given, rewards=REWARDS)
