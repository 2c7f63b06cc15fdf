"""The last step of the encoder: append a constant column and bound the norm of rows by R."""

from __future__ import annotations

from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from banditlab.envs._columns import Recipe
from banditlab.envs._planted import JUST_BELOW_ONE
from banditlab.envs._steps import Exponent, Positive
from banditlab.errors import UsageError
from banditlab.numerics.exponents import divided, exponent
from banditlab.validation import positive

Floats = NDArray[np.float64]
FARTHEST = 1e100
"""Entries are clipped to this many times the fit's largest entry, so the sum of their squares does not overflow."""


class NormRule(NamedTuple):
    """The rule for norms: shorten rows whose norm is above the largest norm of the fit's rows, divide all rows by this
    largest norm, and append the constant.

    With "rowwise" each row is divided by its own norm instead.
    """

    rowwise: bool
    exponent: Exponent
    r"""Rows are divided by :math:`2^{\text{exponent}}` before they are squared; it is 0 except for extreme tables."""
    reach: Positive
    """The largest norm of the fit's rows without the constant, divided by :math:`2^{\text{exponent}}`."""
    divisor: Positive
    """The divisor of rows in the same unit: `reach`, or with scikit-learn's scalers the largest norm with the constant."""
    one: Annotated[float, Field(allow_inf_nan=False, ge=0.0)]
    """With scikit-learn's scalers the constant in the same unit, otherwise 0."""
    radius: Positive
    normalize: bool
    intercept: bool

    @classmethod
    def of(cls, raw: Floats, recipe: Recipe, source: str) -> Self:
        """Return the rule for features (n, d'), or raise a UsageError if they are all zeros."""
        e = int(exponent(np.abs(raw).max()))
        Y = divided(raw, e)
        largest = reach = float(np.sqrt((Y * Y).sum(axis=1).max()))
        if largest == 0.0:
            raise UsageError(f"{source}: every feature is zero in every row, so all rows are equal")
        if recipe.scaling == "rowwise":
            return cls(True, 0, float(divided(reach, -e)), 1.0, 0.0, 1.0, True, recipe.intercept)
        one = 0.0
        if recipe.intercept and recipe.scaling in ("standard", "maxabs", "robust"):
            one = float(divided(1.0, e))
            largest = float(np.hypot(largest, one))
        radius = 1.0 if recipe.normalize else positive("radius", float(divided(largest, -e)))
        return cls(False, e, reach, largest, one, radius, recipe.normalize, recipe.intercept)

    @classmethod
    def bare(cls, recipe: Recipe) -> Self:
        """Return the rule for rows without features, which have only the constant."""
        return cls(False, 0, 1.0, 1.0, 0.0, 1.0, recipe.normalize, recipe.intercept)

    def rows(self, raw: Floats) -> Floats:
        """Return the contexts (n, d) made from features (n, d'). The array of the features may be overwritten."""
        e = exponent(np.abs(raw).max(axis=1, initial=0.0))[:, None] if self.rowwise else self.exponent
        Y = divided(raw, e)
        with np.errstate(over="ignore"):
            norms = np.sqrt((Y * Y).sum(axis=1))
        if self.rowwise:
            Y = Y / np.where(norms > 0.0, norms, 1.0)[:, None]
        elif (far := norms > self.reach).any():
            cut = np.clip(Y[far], -FARTHEST * self.reach, FARTHEST * self.reach)
            Y = np.array(Y)
            Y[far] = cut * (self.reach / np.sqrt((cut * cut).sum(axis=1)))[:, None]
        if self.one:
            Y = np.column_stack([Y, np.full(len(Y), self.one)])
        X = Y / self.divisor if self.normalize else divided(Y, -self.exponent)
        if self.intercept and not self.one:
            X = np.column_stack([X, np.full(len(X), self.radius)]) / np.sqrt(2.0)
        return np.ascontiguousarray(X * JUST_BELOW_ONE)
