"""RDUE's bounds: the printed one, and the sum its proof ends with."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds.rdue import rdue_bandit, rdue_fixed, rdue_gamma

CASES = [(K, R, D, T) for K in (2, 10) for R in (0.5, 7.4) for D in (0.1, 9.0) for T in (1, 100, 10**6)]


@pytest.mark.parametrize(("K", "R", "D", "T"), CASES)
def test_the_sum_is_below_the_printed_bound(K, R, D, T):
    gamma, printed = rdue_gamma(K, D, T), rdue_bandit(K, R, D, T)
    if gamma < 1.0:
        assert printed / 2 <= rdue_fixed(K, R, D, gamma, T) <= printed  # looser by 1/K of the exploration only
    else:
        assert printed >= T  # both say nothing


def test_the_sum_is_the_largest_value_of_what_it_bounds():
    """-a L + D sqrt(2 b K L / gamma) over L, by a grid."""
    K, R, D, gamma, T = 4, 1.3, 0.7, 0.05, 1000
    a, b = 1 - math.log(2), 2 * math.log(2) * R**2
    best = max(-a * L + D * math.sqrt(2 * b * K * L / gamma) for L in (i * 0.05 for i in range(60_000)))
    assert rdue_fixed(K, R, D, gamma, T) - gamma * 0.75 * T == pytest.approx(best, rel=1e-6)
