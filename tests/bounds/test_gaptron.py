"""Gaptron's bounds: the printed maximum, and the sum its proof ends with."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds import THEOREMS
from banditlab.bounds.gaptron import gaptron_bandit, gaptron_fixed, gaptron_gamma, gaptron_step

LN2 = math.log(2.0)
CASES = [(K, R, D, T) for K in (2, 3, 10) for R in (0.5, 1.0, 7.4) for D in (0.1, 1.0, 9.0) for T in (1, 100, 10**6)]


@pytest.mark.parametrize(("K", "R", "D", "T"), CASES)
def test_the_sum_is_below_the_maximum_at_the_theorems_settings(K, R, D, T):
    gamma = gaptron_gamma(K, R, D, T)
    total = gaptron_fixed(K, D, gaptron_step(K, R, gamma), gamma, T)
    assert total <= gaptron_bandit(K, R, D, T) * (1 + 1e-12)
    assert total >= gaptron_bandit(K, R, D, T) / 2  # never looser than by the factor the proof gives away


@pytest.mark.parametrize(("K", "R", "D", "T"), CASES)
def test_the_theorems_gamma_is_the_best_up_to_the_dropped_factor(K, R, D, T):
    def total(gamma):
        return gaptron_fixed(K, D, gaptron_step(K, R, gamma), gamma, T)

    best = min(total(g / 1000) for g in range(1, 1001))
    assert total(gaptron_gamma(K, R, D, T)) <= best * 1.07  # (K-1)/K <= 1 in place of 1: at K = 2 1.5 / sqrt(2)


def test_values_by_hand():
    assert gaptron_gamma(10, 1.0, 1.0, 10) == 1.0
    assert gaptron_gamma(2, 1.0, 1.0, 10_000) == pytest.approx(2 / math.sqrt(10_000 * LN2))
    assert gaptron_bandit(2, 1.0, 1.0, 10_000) == pytest.approx(4 * math.sqrt(10_000 / LN2))
    assert gaptron_bandit(2, 1.0, 1.0, 1) == pytest.approx(8 / LN2)
    assert gaptron_fixed(4, 2.0, 0.5, 0.1, 100) == pytest.approx(4.0 + 7.5)


def test_are_registered_in_bits():
    assert {THEOREMS[name].unit for name in ("gaptron_bandit", "gaptron_fixed")} == {"bits"}
