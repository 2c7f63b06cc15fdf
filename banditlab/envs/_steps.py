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
"""Of a tuple, which is saved as a list."""


class Step(NamedTuple):
    """The step of a fitted encoder for one column, as plain data; the types define which values a saved step may have."""

    name: str
    role: Literal["numeric", "time", "nominal"]
    categories: Annotated[tuple[str, ...], LISTED] = ()
    gaps: bool = False
    """Whether entries were missing when it was fitted."""
    constant: bool = False
    """A numeric column that a scaling makes 0."""
    fill: Finite = 0.0
    """What is put for a missing number."""
    shares: Annotated[tuple[Share, ...], LISTED] = ()
    """(n_categories,), what is put for a missing category where `missing = "mean"`."""
    shift: Exponent = 0
    """The exponent of the power of 2 by which numbers are divided first: 0 unless their squares are beyond floats."""
    center: Finite = 0.0
    scale: Positive = 1.0
    knots: Annotated[tuple[Knot, ...], Field(strict=False, max_length=max(LEVELS))] = ()
    """Of the map to [0, 1] by which a numeric column's entries go first: see `_outliers.mapped`; none for no map."""


def feature_names(steps: list[Step], missing: str, intercept: bool) -> list[str]:
    """Return the features' names in the order of the contexts: "age", "plan=pro", "age is missing", "constant"."""
    names = []
    for s in steps:
        names += [f"{s.name}={value}" for value in s.categories] if s.role == "nominal" else [s.name]
        names += [f"{s.name} is missing"] if missing == "indicator" and s.gaps else []
    return names + ["constant"] * intercept
