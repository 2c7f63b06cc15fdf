"""Outliers of a column, and the map to [0, 1] that scaling "auto" applies to such a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.envs._base import Floats
from banditlab.envs._columns import Column

FAR, MANY = 10.0, 0.01
"""Numbers farther from the median than so many spreads are far out; a column with a larger share of them has heavy tails."""
LEVELS = {m: np.linspace(0.0, 1.0, m) for m in range(2, 34)}
"""The map's values at its m knots, at most 33."""
EXTREME = 1e300
"""No knot is beyond it, and none nearer to the next than its reciprocal: slopes and differences stay numbers."""


def bounds(numbers: Floats) -> tuple[float, float]:
    """Return the limits beyond which numbers (n,) are outliers: the median minus and plus `FAR` spreads. NaN is
    ignored.

    The spread is the median distance from the median of the numbers that differ from it. It is positive for counts and
    0/1 columns, too, and infinite if all numbers are equal.
    """
    known = numbers[np.isfinite(numbers)]
    middle = np.quantile(known, 0.5, method="lower") if len(known) else 0.0  # the mean of two may be beyond floats
    with np.errstate(over="ignore"):
        apart = np.abs(known[known != middle] - middle)
        spread = float(np.quantile(apart, 0.5, method="lower")) if len(apart) else np.inf
        return float(middle - FAR * spread), float(middle + FAR * spread)


def mapped(column: Column, *, ranks: bool = True) -> Column:
    """Return a column mapped to [0, 1] with the knots of the map, or the column itself if it has no outliers.

    With few outliers the map's knots are the least and the largest of the other numbers, and the map is linear between
    them. With more outliers, and `ranks`, the knots are the different quantiles, so the map is the rank except for
    ties. Beyond the knots it is 0 or 1.
    """
    known = column.values[~column.gaps]
    low, high = bounds(known)
    inside = known[(low <= known) & (known <= high)]
    if column.n_categories or len(inside) == len(known) or np.abs(inside).max() > EXTREME:
        return column
    ends = np.array([inside.min(), inside.max()])
    if ranks and len(inside) < (1.0 - MANY) * len(known):
        ends = np.unique(np.quantile(np.clip(known, -EXTREME, EXTREME), LEVELS[33], method="lower"))
    if np.diff(ends).min() < 1.0 / EXTREME:
        return column
    knots = tuple(ends.tolist())
    return column._replace(values=np.where(column.gaps, np.nan, bent(column.values, knots)), knots=knots)


def bent(numbers: Any, knots: tuple[float, ...]) -> Any:
    """Return the piecewise linear map with these knots at numbers (n,) or a number; the identity if there are no knots."""
    return np.interp(numbers, knots, LEVELS[len(knots)]) if knots else numbers
