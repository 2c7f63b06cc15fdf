"""Cost matrices lie in the class they must, and are the gradients of the losses they come from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from banditlab.boosting.compiled_rounds import Scratch
from banditlab.boosting.losses import CODES, EXPONENTIAL, FARTHEST, LOGISTIC, SOFTMAX, gradient
from banditlab.boosting.regression import RuleScratch, costs, put_mass
from banditlab.numerics.jit import njit

votes = st.integers(2, 7).flatmap(lambda K: arrays(np.float64, K, elements=st.floats(-30, 30)))


def loss(name, s, r):
    """L^r(s), straight from (8), (36), (39) and the multiclass logistic loss."""
    rivals = np.delete(s, r) - s[r]
    if name == "logistic":
        return np.log1p(np.exp(rivals)).sum()
    if name == "exponential":
        return np.exp(rivals).sum()
    if name == "square-hinge":
        return 0.5 * (np.maximum(rivals + 1.0, 0.0) ** 2).sum()
    return math.log(np.exp(s - s.max()).sum()) - (s[r] - s.max())


@pytest.mark.parametrize("name", [*CODES, "softmax"])
@given(s=votes)
@settings(max_examples=60, deadline=None)
def test_costs_lie_in_the_class_of_the_edge_over_random_condition(cost_matrix, name, s):
    K = len(s)
    C = cost_matrix(CODES.get(name, SOFTMAX), s)
    assert np.isfinite(C).all()
    scale = np.abs(C).max(axis=1)
    assert (C[~np.eye(K, dtype=bool)] >= 0.0).all()
    assert (np.diag(C) <= 0.0).all()
    np.testing.assert_allclose(C.sum(axis=1) / np.maximum(scale, 1e-300), 0.0, atol=1e-12)  # a row's costs cancel
    rows = np.diag(C)[:, None]
    assert (rows <= C).all()  # C(y, y) <= C(y, l) <= -C(y, y): edges lie in [-1, 1]
    assert (-rows + 1e-12 * scale[:, None] >= C).all()
    if name == "logistic":
        assert (-np.diag(C) <= K - 1).all()
    if name == "softmax":
        assert (-np.diag(C) <= 1.0 + 1e-12).all()


@njit(cache=False)
def costs_kept(scratch, C):
    put_mass(scratch, 0)
    costs(None, scratch, 0, C)


@given(s=votes)
@settings(max_examples=60, deadline=None)
def test_the_costs_of_olm_plus_lie_in_their_class(cost_matrix, s):
    """FOLKLORE's paper, Section 4.2: 0 at the label, 0 or above elsewhere, a row's sum at most 1."""
    K = len(s)
    C, scratch = np.full((K, K), np.nan), Scratch.of(1, K, RuleScratch)
    p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    scratch.own.shares[:] = p
    costs_kept(scratch, C)
    assert (np.diag(C) == 0.0).all()
    assert (C >= 0.0).all()
    assert (C.sum(axis=1) <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(C.sum(axis=1), 1.0 - p, atol=1e-12)  # the weight of the example
    G = cost_matrix(SOFTMAX, s)
    np.testing.assert_allclose(C, (G - np.diag(G)[:, None]) / K, atol=2e-15)  # (C.1)


@pytest.mark.parametrize("name", [*CODES, "softmax"])
def test_costs_are_gradients(name):
    rng = np.random.default_rng(5)
    for _ in range(20):
        K = int(rng.integers(2, 6))
        s, r, h = 2.0 * rng.standard_normal(K), int(rng.integers(K)), 1e-6
        g = np.zeros(K)
        gradient(CODES.get(name, SOFTMAX), s, r, g)
        numeric = [(loss(name, s + h * e, r) - loss(name, s - h * e, r)) / (2 * h) for e in np.eye(K)]
        np.testing.assert_allclose(g, numeric, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [*CODES, "softmax"])
def test_votes_far_apart(name):
    g = np.zeros(3)
    for s in ([1e5, -1e5, 0.0], [-1e5, 1e5, 0.0], [800.0, -800.0, 800.0]):
        gradient(CODES.get(name, SOFTMAX), np.array(s), 0, g)
        assert np.isfinite(g).all()
        assert g[0] == -(g[1] + g[2])


def test_odds_and_margins_are_the_same_logistic_function():
    """Within +-FARTHEST votes have odds, beyond it their difference is taken: no step at the border, nothing overflows."""
    rng = np.random.default_rng(3)
    for size in (1.0, 30.0, 290.0, 600.0):
        for _ in range(40):
            s, g = rng.uniform(-size, size, 4), np.zeros(4)
            gradient(LOGISTIC, s, 0, g)
            lead = s[1:].astype(np.longdouble) - s[0]
            exact = np.exp(np.minimum(lead, 0.0)) / (1.0 + np.exp(-np.abs(lead)))
            np.testing.assert_allclose(g[1:], exact.astype(float), rtol=3e-15, atol=1e-260)
    below, above = np.zeros((2, 2))
    for lead in (-700.0, -300.0, -2.0, 0.0, 5.0, 1200.0):
        gradient(LOGISTIC, np.array([FARTHEST - max(lead, 0.0), FARTHEST + min(lead, 0.0)]), 0, below)
        gradient(LOGISTIC, np.array([FARTHEST - max(lead, 0.0) + 1.0, FARTHEST + min(lead, 0.0) + 1.0]), 0, above)
        np.testing.assert_allclose(below, above, rtol=1e-12, atol=1e-250)


def test_exponential_costs_end_at_e_to_the_300():
    g = np.zeros(2)
    for lead, cost in ((299.0, math.exp(299.0)), (301.0, math.exp(300.0)), (5000.0, math.exp(300.0))):
        gradient(EXPONENTIAL, np.array([lead, 0.0]), 1, g)
        assert g.tolist() == pytest.approx([cost, -cost], rel=1e-12)
