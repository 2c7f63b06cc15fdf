"""Gaptron's bounds: the printed maximum, and the sum its proof ends with."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds import THEOREMS
from banditlab.bounds.gaptron import (
    gaptron_bandit,
    gaptron_bandit_hinge,
    gaptron_bandit_smooth_hinge,
    gaptron_fixed,
    gaptron_gamma,
    gaptron_step,
    gaptron_wide,
    gaptron_wide_hinge,
    gaptron_wide_smooth_hinge,
)

LN2 = math.log(2.0)
CASES = [(K, R, D, T) for K in (2, 3, 10) for R in (0.5, 1.0, 7.4) for D in (0.1, 1.0, 9.0) for T in (1, 100, 10**6)]


VARIANTS = [
    ("logistic", False, gaptron_bandit),
    ("hinge", False, gaptron_bandit_hinge),
    ("smooth-hinge", False, gaptron_bandit_smooth_hinge),
    ("logistic", True, gaptron_wide),
    ("hinge", True, gaptron_wide_hinge),
    ("smooth-hinge", True, gaptron_wide_smooth_hinge),
]


@pytest.mark.parametrize(("loss", "wide", "theorem"), VARIANTS)
@pytest.mark.parametrize(("K", "R", "D", "T"), CASES)
def test_the_sum_is_below_the_maximum_at_the_theorems_settings(K, R, D, T, loss, wide, theorem):
    gamma = gaptron_gamma(K, R, D, T, loss, wide)
    total = gaptron_fixed(K, D, gaptron_step(K, R, gamma, loss, wide), gamma, T)
    assert total <= theorem(K, R, D, T) * (1 + 1e-12)
    assert total >= theorem(K, R, D, T) / 2  # never looser than by the factor the proof gives away


@pytest.mark.parametrize(("loss", "wide"), [variant[:2] for variant in VARIANTS])
@pytest.mark.parametrize(("K", "R", "D", "T"), CASES)
def test_the_theorems_gamma_is_the_best_up_to_the_dropped_factor(K, R, D, T, loss, wide):
    def total(gamma):
        return gaptron_fixed(K, D, gaptron_step(K, R, gamma, loss, wide), gamma, T)

    best = min(total(g / 200) for g in range(1, 201))
    assert (
        total(gaptron_gamma(K, R, D, T, loss, wide)) <= best * 1.07
    )  # (K-1)/K <= 1 in place of 1: at K = 2 1.5 / sqrt(2)


@pytest.mark.parametrize(("loss", "factor"), [("logistic", 2.5), ("hinge", 1.0), ("smooth-hinge", 1.0)])
def test_the_wide_step_is_a_factor_of_order_k_longer(loss, factor):
    for K in (2, 7):
        assert gaptron_step(K, 3.0, 0.2, loss, True) == pytest.approx(factor * K * gaptron_step(K, 3.0, 0.2, loss))


def test_values_by_hand():
    assert gaptron_gamma(10, 1.0, 1.0, 10) == 1.0
    assert gaptron_gamma(2, 1.0, 1.0, 10_000) == pytest.approx(2 / math.sqrt(10_000 * LN2))
    assert gaptron_bandit(2, 1.0, 1.0, 10_000) == pytest.approx(4 * math.sqrt(10_000 / LN2))
    assert gaptron_bandit(2, 1.0, 1.0, 1) == pytest.approx(8 / LN2)
    assert gaptron_fixed(4, 2.0, 0.5, 0.1, 100) == pytest.approx(4.0 + 7.5)
    assert gaptron_bandit_hinge(3, 1.0, 1.0, 10_000) == pytest.approx(600.0)
    assert gaptron_bandit_smooth_hinge(3, 1.0, 1.0, 20_000) == pytest.approx(1200.0)
    assert gaptron_wide(4, 1.0, 1.0, 10_000) == pytest.approx(400 / math.sqrt(2.5 * LN2))
    assert gaptron_wide_hinge(4, 1.0, 1.0, 10_000) == pytest.approx(400.0)
    assert gaptron_wide_smooth_hinge(2, 1.0, 1.0, 10_000) == pytest.approx(400.0)


def test_are_registered_in_their_losses():
    assert {THEOREMS[name].unit for name in ("gaptron_bandit", "gaptron_fixed", "gaptron_wide")} == {"bits"}
    assert {THEOREMS[name].unit for name in ("gaptron_bandit_hinge", "gaptron_wide_hinge")} == {"hinge loss"}
    smooth = ("gaptron_bandit_smooth_hinge", "gaptron_wide_smooth_hinge")
    assert {THEOREMS[name].unit for name in smooth} == {"smooth hinge loss"}
