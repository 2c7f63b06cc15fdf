"""Outliers of a column, and the map to [0, 1] that scaling "auto" applies to such a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.envs._base import Floats
from banditlab.envs._columns import Column

FAR, MANY = 10.0, 0.01
"""Numbers more than `FAR` spreads from the median are outliers; a column has heavy tails if their fraction exceeds `MANY`."""
LEVELS = {m: np.linspace(0.0, 1.0, m) for m in range(2, 34)}
"""The map's values at its m knots, at most 33."""
EXTREME = 1e300
"""The largest magnitude of a knot. Its reciprocal is the least distance of knots, so slopes and differences stay finite."""


def bounds(numbers: Floats) -> tuple[float, float]:
    """Return the limits beyond which numbers (n,) are outliers: the median minus and plus `FAR` spreads, ignoring NaN.

    The spread is the median distance from the median, over the numbers that differ from it. It is positive for counts
    and 0/1 columns, and infinite if all numbers are equal.
    """
    known = numbers[np.isfinite(numbers)]
    middle = np.quantile(known, 0.5, method="lower") if len(known) else 0.0  # the mean of two numbers may overflow
    with np.errstate(over="ignore"):
        apart = np.abs(known[known != middle] - middle)
        spread = float(np.quantile(apart, 0.5, method="lower")) if len(apart) else np.inf
        return float(middle - FAR * spread), float(middle + FAR * spread)


def mapped(column: Column, *, ranks: bool = True) -> Column:
    """Map a column with outliers to [0, 1] and store the knots of the map; return a column without outliers unchanged.

    If `ranks` is true and there are many outliers, the knots are the distinct quantiles of all numbers, so the map
    approximates the rank. Otherwise the knots are the smallest and the largest of the numbers that are not outliers.
    The map is linear between knots, and 0 or 1 beyond them.
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
    """Apply the piecewise linear map with these knots to a number or to numbers (n,); without knots it is the identity."""
    return np.interp(numbers, knots, LEVELS[len(knots)]) if knots else numbers
