"""The steps of a fitted recipe by column, as plain data that is saved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """The transformer's step for one column, from which it can be rebuilt."""

    name: str
    role: str
    """"numeric", "time" or "nominal"."""
    categories: tuple[str, ...] = ()
    gaps: bool = False
    """Whether entries were missing when it was fitted."""
    constant: bool = False
    """A numeric column that a scaling makes 0."""
    fill: float = 0.0
    """What is put for a missing number."""
    shares: tuple[float, ...] = ()
    """(n_categories,), what is put for a missing category where `missing = "mean"`."""
    shift: int = 0
    """The exponent of the power of 2 by which numbers are divided first: 0 unless their squares are beyond floats."""
    center: float = 0.0
    scale: float = 1.0
    knots: tuple[float, ...] = ()
    """Of the map to [0, 1] by which a numeric column's entries go first: see `_outliers.mapped`; none for no map."""


def varying_names(steps: list[Step]) -> list[str]:
    """Return the names of the numeric columns that vary."""
    return [s.name for s in steps if s.role != "nominal" and not s.constant]


def feature_names(steps: list[Step], missing: str, intercept: bool) -> list[str]:
    """Return the features' names in the order of the contexts: "age", "plan=pro", "age is missing", "constant"."""
    names = []
    for s in steps:
        names += [f"{s.name}={value}" for value in s.categories] if s.role == "nominal" else [s.name]
        names += [f"{s.name} is missing"] if missing == "indicator" and s.gaps else []
    return names + ["constant"] * intercept


def output_order(steps: list[Step], missing: str) -> np.ndarray:
    """Return the position (d,) of each feature in the transformer's output; features are in the order of the
    columns."""
    indicators = [s.name for s in steps if s.role != "nominal" and s.gaps] if missing == "indicator" else []
    numbers = varying_names(steps) + [s.name for s in steps if s.role != "nominal" and s.constant]
    place = {name: j for j, name in enumerate(numbers)}
    gap_place = {name: len(numbers) + j for j, name in enumerate(indicators)}
    order: list[int] = []
    start = len(numbers) + len(indicators)
    for s in steps:
        if s.role == "nominal":
            size = len(s.categories) + (missing == "indicator" and s.gaps)
            order += range(start, start + size)
            start += size
        else:
            order += [place[s.name], *([gap_place[s.name]] if s.name in gap_place else [])]
    return np.array(order, dtype=np.int64)
