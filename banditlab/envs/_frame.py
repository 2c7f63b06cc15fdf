"""From a pandas table and its label column to prepared rows: which columns are nominal, which labels are classes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from banditlab.envs._base import Labels
from banditlab.envs._columns import MOST_SLIPS, Recipe
from banditlab.envs._recipe import Rows, prepare
from banditlab.envs.encoding import columns_of
from banditlab.errors import FaultError, UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd

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
) -> Rows:
    """Return the prepared rows of a table; `roles` as `Encoder.fit` takes them.

    Row numbers in errors are those of the frame's index.

    Raises
    ------
    UsageError
        `label` or a dropped column does not exist (the nearest name is given), labels are missing, of one class, or so
        many that they are no classes; a text column is an identifier or a numeric column with slips; see `prepare`.
    """
    if not label:
        raise UsageError(f"{source}: give label (--label), the column to predict{_columns('', list(frame.columns))}")
    keys = [("label (--label)", label), *(("drop_columns (--drop-column)", name) for name in drop_columns)]
    for key, name in keys:
        _refuse_column(key, name, list(frame.columns), source)
    y, classes = classes_of(frame[label], f"{source}: label column {label!r}", recipe.missing == "drop_rows")
    features = frame.drop(columns=[label, *(name for name in drop_columns if name != label)])[y >= 0]
    columns = columns_of(features, dict(roles or {}), max_categories, source)
    return prepare(columns, y[y >= 0], classes, recipe, source, features.index.to_numpy())


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
    if missing.any() and not drop_missing:
        first = labels.index[int(np.argmax(missing))]
        raise FaultError(
            f"{source} has {int(missing.sum())} missing entries (the first in row {first}, counted from 0); "
            "drop those rows with drop_rows (--drop-row) or give missing (--missing) as drop_rows",
            *_without(labels.index[missing]),
        )
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


def _without(rows: pd.Index) -> list[str]:
    if len(rows) > MOST_SLIPS:
        return ["--missing", "drop_rows"]
    return [part for row in rows for part in ("--drop-row", str(row))]


def _label_values(known: pd.Series) -> tuple[np.ndarray, bool]:
    """Return label values to be sorted, numbers as numbers, the rest as text; and False if some are fractions."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(known):
        return known.to_numpy(dtype=bool), True
    # Categories and text that are all numbers are numbers: "10" comes after "9".
    numbers = pd.to_numeric(known.astype(str), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all():
        return known.astype(str).to_numpy(dtype=str), True
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
