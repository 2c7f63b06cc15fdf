"""OGD's bound: its best step is the theory step."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds.ogd import ogd


@pytest.mark.parametrize("step", [0.1, 1.0, 3.0, 10.0])
def test_no_step_beats_the_balance_point(step: float) -> None:
    K, B, R, T = 4, 2.0, 1.5, 900
    diameter, gradient = 2 * math.sqrt(K) * B, math.sqrt(2) * R
    balance = diameter / (math.sqrt(2) * gradient)  # D^2/(2s) = s G^2
    assert ogd(T, K, B, R, balance) <= ogd(T, K, B, R, step)
    assert ogd(T, K, B, R) == pytest.approx(1.5 * gradient * diameter * math.sqrt(T))
