"""The steps of a fitted encoder by column, as plain data that can be saved."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from banditlab.envs._outliers import EXTREME, LEVELS

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(allow_inf_nan=False, gt=0.0)]
Exponent = Annotated[int, Field(ge=-1074, le=1024)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Knot = Annotated[float, Field(ge=-EXTREME, le=EXTREME)]
LISTED = Field(strict=False)
"""The field type of a tuple, which is saved as a list."""


class Step(NamedTuple):
    """The step of a fitted encoder for one column. The types define which values a saved step may have."""

    name: str
    role: Literal["numeric", "time", "nominal"]
    categories: Annotated[tuple[str, ...], LISTED] = ()
    gaps: bool = False
    """Whether the column had missing entries in the fit."""
    constant: bool = False
    """Whether the column is constant and scaled to 0."""
    fill: Finite = 0.0
    """The number that replaces a missing one."""
    shares: Annotated[tuple[Share, ...], LISTED] = ()
    """(n_categories,), the features of a missing category if `missing = "mean"`."""
    shift: Exponent = 0
    """The exponent of the power of 2 by which numbers are divided first; 0 if their squares are floats."""
    center: Finite = 0.0
    scale: Positive = 1.0
    knots: Annotated[tuple[Knot, ...], Field(strict=False, max_length=max(LEVELS))] = ()
    """The knots of the map of `_outliers.mapped`, applied before scaling; empty if there is no map."""


def feature_names(steps: list[Step], missing: str, intercept: bool) -> list[str]:
    """Return the features' names in the order of the contexts: "age", "plan=pro", "age is missing", "constant"."""
    names = []
    for s in steps:
        names += [f"{s.name}={value}" for value in s.categories] if s.role == "nominal" else [s.name]
        names += [f"{s.name} is missing"] if missing == "indicator" and s.gaps else []
    return names + ["constant"] * intercept
