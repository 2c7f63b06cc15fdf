"""The recipe that turns a table into contexts of norm at most 1: one place for Digits, OpenML and Table.

Nominal columns become one-hot columns; missing values follow a named rule; numeric columns are kept, brought to [0, 1], or
scaled by one of scikit-learn's scalers; everything is divided by the largest row norm; an intercept is appended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from banditlab.envs._base import Labels
from banditlab.envs._planted import HAIR
from banditlab.errors import UsageError
from banditlab.numerics.exponents import divided, exponent
from banditlab.validation import one_of, positive

Scaling = Literal["auto", "none", "minmax", "standard", "maxabs", "robust"]
EXTREME = 400
"""Binary exponents beyond which a column's squares may leave the floating-point range."""
SCALERS = {"standard": "StandardScaler", "maxabs": "MaxAbsScaler", "robust": "RobustScaler"}
"""Of `sklearn.preprocessing`, at their defaults."""
Missing = Literal["error", "mean", "zero", "indicator", "drop_rows"]

RANGE_RATIO = 10.0
"""scaling = "auto" brings columns to [0, 1] when the ranges of two of them differ by more than this factor."""


@dataclass(frozen=True)
class Recipe:
    """The named parameters.

    Parameters
    ----------
    scaling
        "none": numeric columns as given; "minmax": each brought to [0, 1], constant ones to 0; "auto": minmax if the
        ranges of two columns that vary differ by more than 10 times (one-hot columns count with range 1), else none.
        "standard": mean 0, standard deviation 1; "maxabs": divided by the largest magnitude; "robust": median 0, quartiles
        1 apart (scikit-learn's StandardScaler, MaxAbsScaler, RobustScaler, fitted to the known entries of the whole
        table, whatever rows are played; a constant column gets 0). One-hot columns stay 0 and 1.
    missing
        What is done about missing, NaN and infinite entries. "error": refuse the table, naming row and column; "mean":
        put the mean of the known entries (for a nominal column that is the frequency of each category); "zero": put 0
        (for a nominal column, no category); "indicator": the mean, and one 0/1 column more per column that has gaps (for
        a nominal column, a category of its own); "drop_rows": leave those rows out.
    normalize
        Divide by the largest row norm.
    intercept
        Append a constant column as large as the largest row norm; the whole is then divided by sqrt(2). With one of
        scikit-learn's scalers the constant is 1, in the units of the scaled columns, and part of the rows' norms.
    """

    scaling: Scaling = "auto"
    missing: Missing = "error"
    normalize: bool = True
    intercept: bool = True

    def __post_init__(self) -> None:
        one_of("scaling", self.scaling, get_args(Scaling))
        one_of("missing", self.missing, get_args(Missing))


class Column(NamedTuple):
    """One column of a table before the recipe: numbers with NaN for gaps, or category codes with -1 for gaps."""

    name: str
    values: np.ndarray
    """(N,) float64 for a numeric column, int64 codes for a nominal one."""
    n_categories: int = 0
    """0 for a numeric column."""

    @property
    def gaps(self) -> np.ndarray:
        """Where an entry is missing or not finite, (N,) bool."""
        return self.values < 0 if self.n_categories else ~np.isfinite(self.values)


class Rows(NamedTuple):
    """A prepared data set. The arrays are read-only and may be shared by many environments."""

    X: Any
    """(N, d), every row of norm at most `radius`: an array, or in CSR form."""
    y: Labels
    """(N,) in 0 ... K-1."""
    classes: list[Any]
    """The K classes' own names."""
    radius: float
    scaling: Scaling
    """What was done to numeric columns: "auto" is resolved to "minmax" or "none"."""


def prepare(
    columns: list[Column],
    y: Labels,
    classes: list[Any],
    recipe: Recipe,
    source: str,
    row_numbers: np.ndarray | None = None,
) -> Rows:
    """Return the rows that the recipe makes of a table's columns.

    `source` names the table in errors, `row_numbers` (N,) its rows (by default 0 ... N-1).

    Raises
    ------
    UsageError
        Entries are missing or infinite and no rule is given, no row or no column is left, one class is left.
    """
    if not columns:
        raise UsageError(f"{source}: no feature column is left")
    if recipe.missing == "error":
        _refuse_gaps(columns, source, np.arange(len(y)) if row_numbers is None else row_numbers)
    elif recipe.missing == "drop_rows":
        columns, y, classes = _drop_gaps(columns, y, classes)
    if len(y) == 0:
        raise UsageError(f"{source}: no row is left")
    if len(classes) < 2:
        raise UsageError(f"{source}: the labels have one class only, {classes[0]!r}; at least 2 are needed")
    scaling = recipe.scaling
    if scaling == "auto":
        scaling = "minmax" if _ranges_differ(columns) else "none"
    parts = [part for column in columns for part in _expand(column, scaling, recipe.missing)]
    X = np.column_stack(parts)
    e = exponent(np.abs(X).max())
    Y = divided(X, e)
    largest = float(np.sqrt((Y * Y).sum(axis=1).max()))
    if largest == 0.0:
        raise UsageError(f"{source}: every feature is zero in every row, nothing distinguishes the rows")
    if recipe.intercept and scaling in SCALERS:
        one = float(divided(1.0, e))
        X, Y = (np.column_stack([A, np.full(len(A), value)]) for A, value in ((X, 1.0), (Y, one)))
        largest = float(np.hypot(largest, one))
    radius = 1.0 if recipe.normalize else float(divided(largest, -e))
    if recipe.normalize:
        X = Y / largest
    if recipe.intercept and scaling not in SCALERS:
        X = np.column_stack([X, np.full(len(X), radius)]) / np.sqrt(2.0)
    X = np.ascontiguousarray(X * HAIR)
    X.flags.writeable = False
    y.flags.writeable = False
    return Rows(X, y, classes, positive("radius", radius), scaling)


def _refuse_gaps(columns: list[Column], source: str, row_numbers: np.ndarray) -> None:
    for column in columns:
        gaps = column.gaps
        if gaps.any():
            raise UsageError(
                f"{source}: column {column.name!r} has {int(gaps.sum())} missing or infinite entries (the first in row "
                f"{row_numbers[int(np.argmax(gaps))]}, counted from 0); give missing (--missing) as mean, indicator or "
                "drop_rows"
            )


def _drop_gaps(columns: list[Column], y: Labels, classes: list[Any]) -> tuple[list[Column], Labels, list[Any]]:
    """Leave out rows with gaps, and classes that lose all their rows by it."""
    keep = ~np.logical_or.reduce([column.gaps for column in columns])
    columns = [column._replace(values=column.values[keep]) for column in columns]
    present, y = np.unique(y[keep], return_inverse=True)
    return columns, y.astype(np.int64), [classes[k] for k in present]


def _ranges_differ(columns: list[Column]) -> bool:
    """Return whether two columns that vary have ranges more than 10 times apart."""
    ranges = [1.0] * any(column.n_categories for column in columns)
    for column in columns:
        known = column.values[~column.gaps]
        if column.n_categories == 0 and len(known):
            ranges.append(float(0.5 * known.max() - 0.5 * known.min()) * 2.0)
    ranges = [r for r in ranges if r > 0]
    return bool(ranges) and max(ranges) > RANGE_RATIO * min(ranges)


def _expand(column: Column, scaling: Scaling, missing: Missing) -> list[np.ndarray]:
    """Return the float columns (N,) that one column becomes, its gaps filled with 0 or the mean of the known entries."""
    gaps, indicator, zero = column.gaps, missing == "indicator", missing == "zero"
    if column.n_categories:
        parts = [(column.values == k).astype(np.float64) for k in range(column.n_categories)]
        if gaps.any():
            if indicator:
                return [*parts, gaps.astype(np.float64)]
            for part in parts:
                part[gaps] = 0.0 if zero or gaps.all() else part[~gaps].mean()
        return parts
    values = column.values.astype(np.float64)
    known = values[~gaps]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    if zero and gaps.any():
        low, high = min(low, 0.0), max(high, 0.0)
    e = exponent(max(abs(low), abs(high)))  # else a mean of large entries, or their range, is infinite
    values[gaps] = 0.0 if zero or not len(known) else divided(divided(known, e).mean(), -e)
    if scaling == "minmax":
        values, low, high = (divided(part, e) for part in (values, low, high))
        values = (values - low) / (high - low) if high > low else np.zeros_like(values)
    elif scaling in SCALERS:
        values = _by_scaler(values, known, SCALERS[scaling]) if high > low else np.zeros_like(values)
    return [values, gaps.astype(np.float64)] if indicator and gaps.any() else [values]


def _by_scaler(values: np.ndarray, known: np.ndarray, name: str) -> np.ndarray:
    """Return a column (N,) scaled by scikit-learn's scaler of that name, fitted to its known entries."""
    from sklearn import preprocessing

    # The square of 1e200 is no number, and that of 1e-200 is 0: such columns are brought to 1 by a power of 2, which changes no
    # digit of what a scaler returns. Others are not: a robust scaler leaves those as they are whose quartiles are the same.
    exponent = int(np.frexp(np.abs(known).max())[1])
    shift = -exponent if abs(exponent) > EXTREME else 0
    scaler = getattr(preprocessing, name)().fit(np.ldexp(known, shift)[:, None])
    return np.asarray(scaler.transform(np.ldexp(values, shift)[:, None])[:, 0], dtype=np.float64)
