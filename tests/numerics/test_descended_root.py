"""How many steps of gradient descent an accuracy takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.descended_root import descended, descent_steps, newton_root


def test_steps_are_none_where_the_start_is_near_enough_and_grow_with_the_logarithm() -> None:
    assert [descent_steps(largest, 1e-6) for largest in (0.0, 0.5e-3, 1e-3)] == [0, 0, 0]
    assert descent_steps(1.1e-3, 1e-6) == 1
    for largest, accuracy in ((2.0, 1e-6), (50.0, 1e-2), (50.0, 1e-12)):
        steps = descent_steps(largest, accuracy)
        exact = (1.0 + largest / 2.0) * math.log(largest**2 / accuracy)
        assert exact <= steps < exact + 1.0


@pytest.mark.parametrize("largest", [1e-4, 1.0, 30.0, 1e4])
def test_newtons_root_solves_its_equation_and_descent_comes_as_near_as_it_says(largest: float) -> None:
    rng = np.random.default_rng(2)
    for K in (2, 5):
        Z = rng.standard_normal((K, K))
        At = Z @ Z.T
        At *= largest / np.linalg.eigvalsh(At)[-1]
        g = rng.standard_normal(K) * largest
        z, residual = newton_root(g, At)
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        off = np.abs(z - g + At @ p).max()
        assert off <= 1e-11 * (1.0 + np.abs(g).max())
        assert residual == pytest.approx(off / (1.0 + np.abs(g).max()), abs=1e-14)
        if largest <= 30.0:
            near = descended(g, At, largest, descent_steps(largest, 1e-4))
            assert ((near - z) ** 2).sum() <= 1e-4
