"""FTRL's bound: no regularization beats the balance point."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds.ftrl import ftrl, ftrl_regularization


@pytest.mark.parametrize("factor", [0.3, 0.9, 1.1, 4.0])
def test_balance_point(factor: float) -> None:
    T, K, B, R = 500, 4, 2.0, 1.5
    lam = ftrl_regularization(T, K, B, R)
    assert ftrl(T, K, B, R, lam) == pytest.approx(B * R * math.sqrt(2 * K * T))
    assert ftrl(T, K, B, R, lam) < ftrl(T, K, B, R, factor * lam)
