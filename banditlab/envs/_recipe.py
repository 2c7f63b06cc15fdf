"""The encoding of a table as contexts of norm at most 1, shared by Digits, OpenML and Table.

Nominal columns become one-hot columns. A named rule applies to missing values. Numeric columns are unchanged, scaled to
[0, 1] or scaled by one of scikit-learn's scalers. Then all features are divided by the largest row norm, and an
intercept is appended.
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
    """A prepared data set. Its arrays are read-only, so environments can share them."""

    X: Any
    """(N, d), a dense array or in CSR form; every row has norm at most `radius`."""
    y: Truth
    r"""Labels (N,) in :math:`0, \dots, K-1`, or whether each action is right, (N, K) bool."""
    classes: list[Any]
    """The names of the K classes or actions."""
    radius: float
    scaling: Any
    """The resolved scaling of numeric columns; "auto" becomes "minmax", "none" or, if rows are in order, "running"."""
    encoder: Encoder | None = None
    """The encoder of the contexts, for later rows; None if rows are sparse."""
    numbers: Labels | None = None
    """(N,), the number of each row in the original table; None if rows are sparse."""
    units: Labels | None = None
    """(N,) in 0 ... U-1, the group of each row; None if there are no groups."""
    costs: NDArray[np.float64] | None = None
    """(N, K), the cost of each action; None if costs are unknown."""

    @property
    def first(self) -> Any:
        """The positions of the first row of each group."""
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
    """Return the rows that result from applying the recipe to a table's columns.

    Error messages name the table `source` and number its rows by `row_numbers` (N,), by default
    0 ... N-1. `bare` allows a table without columns.

    Raises
    ------
    UsageError
        An entry is missing or infinite and `missing` is "error", no row or column is left, or only one class is left.
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
    """Drop the rows outside `keep`, and the classes without remaining rows unless rows list all right actions."""
    columns = [column._replace(values=column.values[keep]) for column in columns]
    if y.ndim == 2:
        return columns, y[keep], classes
    present, y = np.unique(y[keep], return_inverse=True)
    return columns, y.astype(np.int64), [classes[k] for k in present]
