"""From a pandas table and its label column to prepared rows: which columns are nominal, which labels are classes."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np

from banditlab.envs._base import Labels
from banditlab.envs._recipe import Column, Recipe, Rows, prepare
from banditlab.errors import UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd

MALFORMED_SHARE = 0.1
"""A text column of which at most this share of the values is no number counts as a numeric column with slips."""
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
) -> Rows:
    """Return the prepared rows of a table. Row numbers in errors are those of the frame's index.

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
    columns = [_column(features[name], max_categories, f"{source}: column {name!r}") for name in features.columns]
    return prepare(columns, y[y >= 0], classes, recipe, source, features.index.to_numpy())


def refuse_columns(drop_columns: list[str], names: list[str], source: str) -> None:
    """Raise a UsageError for the first of the columns to drop that does not exist."""
    for name in drop_columns:
        _refuse_column("drop_columns (--drop-column)", name, names, source)


def _refuse_column(key: str, name: str, names: list[str], source: str) -> None:
    if name not in names:
        raise UsageError(f"{source}: {key}: there is no column {name!r}{_columns(name, names)}")


def classes_of(labels: pd.Series, source: str, drop_missing: bool) -> tuple[Labels, list[Any]]:
    """Return labels of any type as y (N,) in 0 ... K-1, -1 where missing, and the sorted names of the K classes."""
    missing = labels.isna().to_numpy()
    if missing.any() and not drop_missing:
        first = labels.index[int(np.argmax(missing))]
        raise UsageError(
            f"{source} has {int(missing.sum())} missing entries (the first in row {first}, counted from 0); "
            "drop those rows with drop_rows (--drop-row) or give missing (--missing) as drop_rows"
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


def _column(series: pd.Series, max_categories: int, source: str) -> Column:
    """Return a feature column: numbers and booleans as floats, text and categories as codes."""
    import pandas as pd

    name, dtype = str(series.name), series.dtype
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return Column(name, series.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        raise UsageError(f"{source} holds dates, which have no rule; leave it out with drop_columns (--drop-column)")
    text = series.astype("str")
    codes, names = pd.factorize(text, sort=True)
    _check_nominal(text, len(names), int((codes >= 0).sum()), max_categories, source)
    # A column without any entry has no category; one that never occurs keeps it nominal.
    return Column(name, codes.astype(np.int64), max(len(names), 1))


def _check_nominal(text: pd.Series, n_names: int, n_known: int, max_categories: int, source: str) -> None:
    """Refuse a numeric column with slips and an identifier before they become thousands of one-hot columns."""
    import pandas as pd

    known = text.dropna()
    odd = known[pd.to_numeric(known, errors="coerce").isna()]
    if 0 < len(odd) <= MALFORMED_SHARE * n_known:
        raise UsageError(
            f"{source} is numeric but for {len(odd)} of {n_known} entries (the first, {str(odd.iloc[0])!r}, in row "
            f"{odd.index[0]}, counted from 0); drop those rows with drop_rows (--drop-row) or the column with "
            "drop_columns (--drop-column)"
        )
    if n_known > 2 and n_names == n_known:
        raise UsageError(
            f"{source} is text that is different in every row, such as an identifier; leave it out with drop_columns "
            "(--drop-column)"
        )
    if n_names > max_categories:
        raise UsageError(
            f"{source} is text with {n_names} different values, more than max_categories = {max_categories}; leave it "
            "out with drop_columns (--drop-column) or raise max_categories (--max-categories)"
        )


def _columns(name: str, columns: list[str]) -> str:
    """Return the hint of `nearest`, in the file's order; of a wide table the columns that are likest, or the first."""
    columns = [str(column) for column in columns]
    if len(columns) <= SHOWN_COLUMNS:
        return nearest(name, columns, keep_order=True)
    close = set(difflib.get_close_matches(name, columns, n=SHOWN_COLUMNS, cutoff=0.0)) if name else columns
    shown = [column for column in columns if column in close][:SHOWN_COLUMNS]
    return nearest(name, [*shown, f"... {len(columns) - len(shown)} more"], keep_order=True)
