"""Gaptron's bounds: the printed maximum, and the sum its proof ends with."""

from __future__ import annotations

import pytest

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

CASES = [(K, R, D, T) for K in (2, 10) for R in (0.5, 7.4) for D in (0.1, 9.0) for T in (1, 100, 10**6)]


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
