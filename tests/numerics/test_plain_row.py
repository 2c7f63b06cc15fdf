"""A row of numbers as a context: the recipe's steps, and where it is not taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.plain_row import fill_row

NUMBERS, CENTERS, SCALES = np.array([3.0, -4.0]), np.array([1.0, 2.0]), np.array([2.0, 0.5])
PLACES = np.array([2, 0])  # x = (-12, nominal, 1, constant)


@pytest.mark.parametrize(("constant", "last"), [(0.5, 0.5), (math.nan, 7.0 / 2.0 / 4.0 * 0.25)])
def test_a_row_by_hand(constant: float, last: float) -> None:
    x = np.array([np.nan, 3.0, np.nan, 7.0])
    assert fill_row(NUMBERS, CENTERS, SCALES, PLACES, 1e6, 2.0, 4.0, 0.25, constant, x)
    assert x.tolist() == [-12.0 / 2.0 / 4.0 * 0.25, 3.0 / 2.0 / 4.0 * 0.25, 1.0 / 2.0 / 4.0 * 0.25, last]


def test_a_row_whose_square_reaches_the_most_is_left_to_others() -> None:
    """144 + 9 + 1, and 49 more where the last entry is no constant."""
    for constant, square in ((0.5, 154.0), (math.nan, 203.0)):
        for most, taken in ((square + 1e-9, True), (square, False), (square - 1e-9, False)):
            x = np.array([0.0, 3.0, 0.0, 7.0])
            assert fill_row(NUMBERS, CENTERS, SCALES, PLACES, most, 2.0, 4.0, 0.25, constant, x) is taken
    x = np.array([0.0, 3.0, 0.0, 7.0])
    assert not fill_row(NUMBERS * math.nan, CENTERS, SCALES, PLACES, 1e300, 2.0, 4.0, 0.25, 0.5, x)
