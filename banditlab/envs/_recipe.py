"""The encoding of a table as contexts of norm at most 1, shared by Digits, OpenML and Table.

Nominal columns become one-hot columns. Missing values follow a named rule. Numeric columns are unchanged, scaled to [0,
1] or scaled by one of scikit-learn's scalers. Then all features are divided by the largest row norm, and an intercept
is appended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._base import Labels, Truth
from banditlab.envs._columns import Column, Recipe
from banditlab.envs._norm_rule import NormRule
from banditlab.envs._running_scale import looking_back
from banditlab.envs.encoding import Encoder, refuse_gaps
from banditlab.errors import UsageError


class Rows(NamedTuple):
    """A prepared data set. The arrays are read-only, and many environments may share them."""

    X: Any
    """(N, d), every row of norm at most `radius`: an array, or in CSR form."""
    y: Truth
    r"""(N,) in :math:`0, \dots, K-1`, or (N, K) bool: whether each of the actions is right."""
    classes: list[Any]
    """The K classes' own names, or the actions'."""
    radius: float
    scaling: Any
    """What was done to numeric columns: "auto" is resolved to "minmax" or "none", or "running" where rows are in order."""
    encoder: Encoder | None = None
    """What made the contexts, for rows that come later; None where rows are sparse."""
    numbers: Labels | None = None
    """(N,), the number of each row in the table it was made of; None where rows are sparse."""
    units: Labels | None = None
    """(N,) in 0 ... U-1: rows that belong together have one number; None where each is a separate unit."""
    costs: NDArray[np.float64] | None = None
    """(N, K), what each action costs; None where it is not known."""

    @property
    def first(self) -> Any:
        """The positions of the first row of each group of dependent rows (unit)."""
        return slice(None) if self.units is None else np.unique(self.units, return_index=True)[1]

    def alone(self) -> tuple[Any, Truth]:
        """Return the contexts and labels of the rows at `first`."""
        return self.X[self.first], self.y[self.first]


def prepare(
    columns: list[Column],
    y: Truth,
    classes: list[Any],
    recipe: Recipe,
    source: str,
    row_numbers: np.ndarray | None = None,
    *,
    bare: bool = False,
) -> Rows:
    """Return the rows that the recipe makes of a table's columns.

    `source` names the table in errors, and `row_numbers` (N,) its rows (default 0 ... N-1); `bare` allows an empty
    table.

    Raises
    ------
    UsageError
        Entries are missing or infinite without a rule, no row or no column is left, or only one class is left.
    """
    if not columns and not bare:
        raise UsageError(f"{source}: no feature column is left")
    numbers = np.arange(len(y)) if row_numbers is None else row_numbers
    if recipe.missing == "error":
        refuse_gaps(columns, source, numbers)
    elif recipe.missing == "drop_rows" and columns:
        keep = ~np.logical_or.reduce([column.gaps for column in columns])
        columns, y, classes = _drop_gaps(columns, y, classes, keep)
        numbers = numbers[keep]
    if len(y) == 0:
        raise UsageError(f"{source}: no row is left")
    if len(classes) < 2:
        raise UsageError(f"{source}: the labels have one class only, {classes[0]!r}; at least 2 are needed")
    if columns:
        encoder, X = (looking_back if recipe.in_order else Encoder.of_columns)(columns, recipe, source)
    else:
        norm = NormRule.bare(recipe)
        encoder = Encoder([], replace(recipe, scaling="none", in_order=False), norm)
        X = norm.rows(np.zeros((len(y), 0)))
    X.flags.writeable = False
    y.flags.writeable = False
    return Rows(
        X, y, classes, encoder.radius, "running" if recipe.in_order else encoder.recipe.scaling, encoder, numbers
    )


def _drop_gaps(columns: list[Column], y: Truth, classes: list[Any], keep: Any) -> tuple[list[Column], Truth, Any]:
    """Drop rows with gaps, and classes that lose all their rows; action columns remain."""
    columns = [column._replace(values=column.values[keep]) for column in columns]
    if y.ndim == 2:
        return columns, y[keep], classes
    present, y = np.unique(y[keep], return_inverse=True)
    return columns, y.astype(np.int64), [classes[k] for k in present]
