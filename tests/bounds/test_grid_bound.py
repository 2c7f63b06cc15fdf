"""The B-grid's bound: a member's and the logarithm of the grid's size."""

from __future__ import annotations

import math

from banditlab.bounds.grid import grid


def test_doubling_the_grid_costs_ln_2() -> None:
    assert grid(3.5, 1) == 3.5
    assert math.isclose(grid(3.5, 18) - grid(3.5, 9), math.log(2))
