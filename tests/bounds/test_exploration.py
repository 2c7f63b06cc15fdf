"""The reduction's bound against Theorem 9."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds.exploration import exploration, exploration_theorem_9, theorem_9_gamma
from banditlab.bounds.folklore import folklore


@pytest.mark.parametrize("T", [10**4, 10**6, 10**8])
@pytest.mark.parametrize("K", [2, 5, 10])
def test_tighter_than_theorem_9_at_its_gamma(T: int, K: int) -> None:
    def regret(n: float) -> float:
        return folklore(n, 4, K, 2.0, 1.0)

    gamma = theorem_9_gamma(T, K, regret(T))
    assert gamma == pytest.approx(min(1.0, math.sqrt(K * regret(T) / T)))
    tight = exploration(T, K, gamma, regret(gamma * T / K))
    proof = K / gamma * regret(T) + gamma * T
    assert tight <= exploration_theorem_9(T, K, regret(T)) <= proof + 1e-9 * proof
