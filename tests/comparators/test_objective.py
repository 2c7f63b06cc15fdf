"""The collapsed objective against sums over rounds, finite differences and blocks of another size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from banditlab.comparators import _objective
from banditlab.comparators._objective import Objective
from banditlab.losses import hessian_action, logistic_gradient, logistic_loss


@pytest.fixture(params=[8192, 3])
def case(request, monkeypatch):
    monkeypatch.setattr(_objective, "BLOCK", request.param)
    rng = np.random.default_rng(3)
    U, C, W = rng.normal(size=(10, 4)), rng.integers(4, size=(10, 3)).astype(float), rng.normal(size=(3, 4))
    return Objective(U, C), U, C, W


def rounds_of(U, C):
    for i, k in zip(*np.nonzero(C), strict=True):
        yield from [(U[i], k)] * int(C[i, k])


def test_loss_and_gradient_are_sums_over_rounds(case):
    objective, U, C, W = case
    Z = objective.logits(W)
    loss, S = objective.forecast(Z)
    assert loss == pytest.approx(sum(float(logistic_loss(W @ x, k)) for x, k in rounds_of(U, C)), rel=1e-13)
    assert objective.loss(Z) == pytest.approx(loss, rel=1e-14)
    slow = sum(logistic_gradient(W, x, k) for x, k in rounds_of(U, C))
    np.testing.assert_allclose(objective.gradient(S), slow, atol=1e-12)


@pytest.mark.parametrize("cached", [1024, 4, 1])
def test_one_pass_gives_the_loss_and_the_gradient(case, monkeypatch, cached):
    monkeypatch.setattr(_objective, "CACHED", cached)
    objective, *_, W = case
    loss, S = objective.forecast(objective.logits(W))
    fast, G = objective.evaluate(W)
    assert fast == pytest.approx(loss, rel=1e-14)
    np.testing.assert_allclose(G, objective.gradient(S), atol=1e-13)
    assert objective.evaluate(1e4 * W)[0] == pytest.approx(objective.loss(objective.logits(1e4 * W)), rel=1e-13)


def test_a_part_is_every_few_contexts_as_heavy_as_all(case):
    objective, U, C, _ = case
    part = objective.part(3)
    np.testing.assert_array_equal(part.contexts, U[::3])
    np.testing.assert_allclose(part.counts, C[::3].T * (C.sum() / C[::3].sum()), rtol=1e-14)
    assert part.totals.sum() == pytest.approx(C.sum(), rel=1e-14)
    assert objective.part(3) is part
    empty = Objective(U, np.where(np.arange(10)[:, None] % 3 == 0, 0.0, C))
    assert not empty.part(3).totals.any()


def test_hessian_action_and_its_diagonal(case):
    objective, U, C, W = case
    _, S = objective.forecast(objective.logits(W))
    D = np.random.default_rng(4).normal(size=W.shape)
    slow = sum(np.outer(hessian_action(W @ x, D @ x), x) for x, _ in rounds_of(U, C))
    np.testing.assert_allclose(objective.hessian_action(S, D), slow, atol=1e-12)
    columns = [objective.hessian_action(S, e.reshape(W.shape)).ravel() for e in np.eye(W.size)]
    np.testing.assert_allclose(objective.hessian_diagonal(S).ravel(), np.diag(columns), atol=1e-12)


def test_gradient_agrees_with_finite_differences(case):
    objective, *_, W = case
    slow = approx_fprime(W.ravel(), lambda w: objective.loss(objective.logits(w.reshape(W.shape))), 1e-7)
    _, S = objective.forecast(objective.logits(W))
    np.testing.assert_allclose(objective.gradient(S).ravel(), slow, atol=1e-4)


def test_mistakes_count_ties_for_the_lowest_class(case):
    objective, U, C, W = case
    assert objective.mistakes(np.zeros((3, 4))) == C[:, 1:].sum()
    assert objective.mistakes(W) == sum(int(np.argmax(W @ x)) != k for x, k in rounds_of(U, C))


def test_confident_logits_lose_at_most_a_rounding_per_round():
    objective = Objective(np.ones((1, 1)), np.array([[1e6, 0.0]]))
    assert objective.loss(np.array([[30.0], [0.0]])) == pytest.approx(1e6 * np.log1p(np.exp(-30.0)), abs=1e6 * 2**-52)
    assert objective.loss(np.array([[1e6 + 30.0], [1e6]])) == objective.loss(np.array([[30.0], [0.0]]))
    assert objective.loss(np.array([[1e5], [0.0]])) == 0.0
    assert objective.loss(np.array([[0.0], [1e5]])) == pytest.approx(1e11, rel=1e-15)
