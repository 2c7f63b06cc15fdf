"""What the bits of all actions show in hindsight, each against a search or a certificate of its own."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.comparators import best_action_per_value, best_single_action, none_right, one_against_rest
from banditlab.errors import UsageError


@pytest.fixture(scope="module")
def rounds():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((120, 3)) / 4.0
    X[:, -1] = 0.5
    right = X @ rng.standard_normal((3, 5)) * 8.0 + rng.logistic(size=(120, 5)) > 1.0
    right[:7], right[7:9] = False, True
    return X, right, rng.integers(4, size=120)


def test_choices_that_look_at_no_context_are_the_best_of_their_kind(rounds):
    _, right, values = rounds
    n, K = right.shape
    assert best_single_action(right) == min(sum(not right[t, a] for t in range(n)) for a in range(K))
    by_value = {v: min(sum(not right[t, a] for t in range(n) if values[t] == v) for a in range(K)) for v in range(4)}
    assert best_action_per_value(right, values) == sum(by_value.values())
    assert best_action_per_value(right, np.array(list("uvwx"))[values]) == sum(by_value.values())
    assert best_action_per_value(right, np.where(values == 3, np.nan, values)) == sum(by_value.values())
    assert best_action_per_value(right, np.zeros(n)) == best_single_action(right)
    assert none_right(right) == best_action_per_value(right, np.arange(n)) == sum(not any(bits) for bits in right)


@pytest.mark.parametrize("B", [0.5, 20.0])
def test_each_models_loss_is_certified_anew(rounds, B):
    X, right, _ = rounds
    found = one_against_rest(X, right, B)
    signs = np.where(right, 1.0, -1.0)
    margins = signs * (X @ found.weights.T)
    losses = np.logaddexp(0.0, -margins).sum(axis=0)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-12)
    norms = np.linalg.norm(found.weights, axis=1)
    assert (norms <= B * (1 + 1e-12)).all()
    G = -(signs / (1.0 + np.exp(margins))).T @ X
    gaps = (G * found.weights).sum(axis=1) + B * np.linalg.norm(G, axis=1)
    assert (gaps <= 1e-6 * np.maximum(1.0, losses)).all()
    np.testing.assert_allclose(found.gaps, gaps, rtol=1e-3, atol=1e-9)
    action = [int(np.argmax([w @ x for w in found.weights])) for x in X]
    assert found.mistakes == sum(not right[t, a] for t, a in enumerate(action))
    if B == 20.0:
        assert none_right(right) <= found.mistakes < best_single_action(right)


def test_actions_that_are_never_or_always_right(rounds):
    X, right, _ = rounds
    right = right.copy()
    right[:, 1], right[:, 3] = False, True
    found = one_against_rest(X, right, 5.0)
    assert found.mistakes == 0
    np.testing.assert_allclose(np.linalg.norm(found.weights[[1, 3]], axis=1), 5.0)


@pytest.mark.parametrize("right", [np.zeros(3, bool), np.zeros((3, 2), int), np.zeros((0, 2), bool)])
def test_what_are_no_bits_is_refused(right):
    for call in (
        best_single_action,
        none_right,
        lambda r: best_action_per_value(r, r),
        lambda r: one_against_rest(r, r, 1),
    ):
        with pytest.raises(UsageError, match=r"^right must be a bool array \(n, K\) with n and K above 0, got \("):
            call(right)
    with pytest.raises(UsageError, match=r"values must be of shape \(2,\), one for every round, got \(1,\)"):
        best_action_per_value(np.ones((2, 2), bool), [0])
