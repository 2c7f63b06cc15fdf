"""From a pandas table to prepared rows: which columns are nominal, which labels are classes, which actions are right."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._base import Labels, Truth
from banditlab.envs._columns import MOST_SLIPS, Recipe
from banditlab.envs._reading import exact
from banditlab.envs._recipe import Rows, prepare
from banditlab.envs.encoding import columns_of
from banditlab.errors import FaultError, UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd

Bits = NDArray[np.bool_]
MAX_FRACTIONS = 20
"""More different labels than this that are not all whole numbers, or more than a third of the rows, are a measurement."""
SHOWN_COLUMNS = 30


def table_rows(
    frame: pd.DataFrame,
    label: str,
    recipe: Recipe,
    *,
    drop_columns: list[str],
    max_categories: int,
    source: str,
    roles: Mapping[str, str] | None = None,
    arms: list[str] | None = None,
    right_above: float | None = None,
) -> Rows:
    """Return the prepared rows of a table; `roles` as `Encoder.fit` takes them, `arms` and `right_above` as `Table` does.

    Row numbers in errors are those of the frame's index.

    Raises
    ------
    UsageError
        `label` or a dropped column does not exist (the nearest name is given), labels are missing, of one class, or so
        many that they are no classes; a text column is an identifier or a numeric column with slips; see `prepare`.
    """
    targets, drop_missing = arms or [label], recipe.missing == "drop_rows"
    if not targets[0]:
        raise UsageError(f"{source}: give label (--label), the column to predict{_columns('', list(frame.columns))}")
    for name in targets:
        _refuse_column("arms" if arms else "label (--label)", name, list(frame.columns), source)
    refuse_columns(drop_columns, list(frame.columns), source)
    y: Truth
    if arms:
        y, known = bits_of(frame[arms], right_above, source, drop_missing)
        classes: list[Any] = arms
    else:
        y, classes = classes_of(frame[label], f"{source}: label column {label!r}", recipe.missing != "error")
        known = y >= 0
    features = frame.drop(columns=[*targets, *(name for name in drop_columns if name not in targets)])[known]
    columns = columns_of(features, dict(roles or {}), max_categories, source)
    return prepare(columns, y[known], classes, recipe, source, features.index.to_numpy())


def refuse_columns(drop_columns: list[str], names: list[str], source: str) -> None:
    """Raise a UsageError for the first of the columns to drop that does not exist."""
    for name in drop_columns:
        _refuse_column("drop_columns (--drop-column)", name, names, source)


def _refuse_column(key: str, name: str, names: list[str], source: str) -> None:
    if name not in names:
        raise FaultError(f"{source}: {key}: there is no column {name!r}{_columns(name, names)}")


def classes_of(labels: pd.Series, source: str, drop_missing: bool) -> tuple[Labels, list[Any]]:
    r"""Return labels of any type as y (N,) in :math:`0, \dots, K-1`, -1 where missing, and the sorted names of the K
    classes.
    """
    missing = labels.isna().to_numpy()
    if not drop_missing:
        refuse_gaps_of(labels, source)
    known = labels[~missing]
    if len(known) == 0:
        raise UsageError(f"{source}: no row is left")
    values, integral = _label_values(known)
    names, codes = np.unique(values, return_inverse=True)
    if len(names) == 1:
        raise UsageError(f"{source} has one class only, {names[0]!s}; at least 2 are needed")
    many = f"{source} has {len(names)} different values in {len(known)} rows"
    if not integral and len(names) > max(2, min(MAX_FRACTIONS, len(known) // 3)):
        raise UsageError(f"{many}: it looks like a measurement, not like classes")
    if len(names) > max(2, len(known) // 2):
        raise UsageError(f"{many}: these are no classes")
    y = np.full(len(labels), -1, dtype=np.int64)
    y[~missing] = codes
    return y, names.tolist()


def refuse_gaps_of(column: pd.Series, source: str) -> None:
    """Raise a UsageError where entries of a column of labels, or of bits, are missing."""
    missing = column.isna().to_numpy()
    if missing.any():
        first = column.index[int(np.argmax(missing))]
        raise FaultError(
            f"{source} has {int(missing.sum())} missing entries (the first in row {first}, counted from 0); "
            "drop those rows with drop_rows (--drop-row) or give missing (--missing) as drop_rows",
            *_without(column.index[missing]),
        )


def _without(rows: pd.Index) -> list[str]:
    if len(rows) > MOST_SLIPS:
        return ["--missing", "drop_rows"]
    return [part for row in rows for part in ("--drop-row", str(row))]


def refuse_arms(arms: list[str], right_above: float | None, label: str, source: str) -> None:
    """Raise a UsageError where the settings name no arms that can be played."""
    twice = next((name for name in arms if arms.count(name) > 1), None)
    if label and arms:
        raise UsageError(f"{source}: arms and label exclude one another, got label {label!r}; leave one out")
    if twice is not None:
        raise UsageError(f"{source}: arms names the column {twice!r} twice")
    if len(arms) == 1:
        raise UsageError(f"{source}: arms has one column only, {arms[0]!r}; at least 2 are needed")
    if right_above is not None and not (arms and isinstance(right_above, int | float) and np.isfinite(right_above)):
        raise UsageError(f"{source}: right_above must be a finite number, given with arms, got {right_above!r}")


def bits_of(frame: pd.DataFrame, right_above: float | None, source: str, drop_missing: bool) -> tuple[Bits, Bits]:
    """Return the bits (N, K) of the columns of `frame`, one an action, and the rows in which none is missing, (N,).

    A number of at least `right_above` is right; without one the columns hold 0 and 1, or truth values.
    """
    known = frame.notna().to_numpy()
    columns = [
        _bits(frame[name], known[:, k], right_above, f"{source}: arms: column {name!r}", drop_missing)
        for k, name in enumerate(frame.columns)
    ]
    return np.column_stack(columns), np.asarray(known.all(axis=1))


def _bits(column: pd.Series, known: Bits, right_above: float | None, source: str, drop_missing: bool) -> Bits:
    import pandas as pd

    if not drop_missing:
        refuse_gaps_of(column, source)
    text = column.astype("str").replace({"True": "1", "False": "0"})
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    odd = known & ~(np.isin(numbers, (0.0, 1.0)) if right_above is None else np.isfinite(numbers))
    if odd.any():
        at = int(np.argmax(odd))
        wanted = "must be 0 or 1; for scores give right_above" if right_above is None else "must be a finite number"
        raise UsageError(
            f"{source} has {str(column.iloc[at])[:60]!r} in row {column.index[at]}, counted from 0; it {wanted}"
        )
    return numbers >= (1.0 if right_above is None else right_above)


def _label_values(known: pd.Series) -> tuple[np.ndarray, bool]:
    """Return label values to be sorted, numbers as numbers, the rest as text; and False if some are fractions."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(known):
        return known.to_numpy(dtype=bool), True
    # Categories and text that are all numbers are numbers: "10" comes after "9".
    text = known.astype("str")
    parsed = pd.to_numeric(text, errors="coerce").astype(np.float64)
    numbers = parsed.to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all() or not exact(text, parsed):
        return text.to_numpy(dtype=str), True
    integral = bool((numbers == np.floor(numbers)).all() and np.abs(numbers).max() < 2**53)
    return (numbers.astype(np.int64), True) if integral else (numbers, False)


def _columns(name: str, columns: list[str]) -> str:
    """Return the hint of `nearest`, in the file's order; of a wide table the columns that are likest, or the first."""
    columns = [str(column) for column in columns]
    if len(columns) <= SHOWN_COLUMNS:
        return nearest(name, columns, keep_order=True)
    close = set(difflib.get_close_matches(name, columns, n=SHOWN_COLUMNS, cutoff=0.0)) if name else columns
    shown = [column for column in columns if column in close][:SHOWN_COLUMNS]
    return nearest(name, [*shown, f"... {len(columns) - len(shown)} more"], keep_order=True)
