"""Prepare the rows of a pandas table: nominal columns, classes, right actions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
Floats = NDArray[np.float64]
MAX_FRACTIONS = 20
"""Labels that are not all whole numbers count as a measurement if they have more different values than this, or than N/3."""
SHOWN_COLUMNS = 30


class Arms(NamedTuple):
    """The settings of a table with a column per action, as in `Table`."""

    names: Sequence[str] = ()
    right_above: float | None = None
    costs: Sequence[str] = ()
    worth: float = 0.0

    def refuse(self, label: str, source: str) -> None:
        """Raise a UsageError if these columns cannot be actions."""
        names, columns = self.names, [*self.names, *self.costs]
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if label and names:
            raise UsageError(f"{source}: arms and label cannot be combined, got label {label!r}; leave one out")
        if twice is not None:
            raise UsageError(f"{source}: arms and costs name the column {twice!r} twice")
        if len(names) == 1:
            raise UsageError(f"{source}: arms has one column only, {names[0]!r}; at least 2 are needed")
        if self.costs and len(self.costs) != len(names):
            raise UsageError(
                f"{source}: costs (--costs) must name one column per arm, in the order of arms: expected {len(names)}, "
                f"got {len(self.costs)}"
            )
        if self.right_above is not None and not names:
            raise UsageError(f"{source}: right_above (--right-above) needs arms (--arms)")
        if self.right_above is not None and not _is_finite(self.right_above):
            raise UsageError(f"{source}: right_above must be a finite number, got {self.right_above!r}")
        if self.worth != 0.0 and (self.right_above is None or not self.costs):
            raise UsageError(f"{source}: worth (--worth) needs right_above (--right-above) and costs (--costs)")
        if not (_is_finite(self.worth) and self.worth >= 0.0):
            raise UsageError(f"{source}: worth (--worth) must be a number above 0, got {self.worth!r}")

    def read(self, frame: pd.DataFrame, source: str, drop_missing: bool) -> tuple[Bits, Floats | None, Bits]:
        """Return bits (N, K), costs (N, K) or None, and whether each row is complete (N,)."""
        any_number = self.right_above is not None
        allowed = "a finite number" if any_number else "0 or 1; for scores give right_above"
        scores = numbers_of(
            frame[list(self.names)], f"{source}: arms", allowed, np.isfinite if any_number else _is_bit, drop_missing
        )
        known, costs = np.asarray(~np.isnan(scores).any(axis=1)), None
        if self.costs:
            allowed = "a finite number of at least 0"
            costs = numbers_of(frame[list(self.costs)], f"{source}: costs", allowed, is_cost, drop_missing)
            known &= ~np.isnan(costs).any(axis=1)
        net = scores if costs is None else scores - self.worth * costs
        return net >= (1.0 if self.right_above is None else self.right_above), costs, known


NO_ARMS = Arms()


def table_rows(
    frame: pd.DataFrame,
    label: str,
    recipe: Recipe,
    *,
    drop_columns: list[str],
    max_categories: int,
    source: str,
    roles: Mapping[str, str] | None = None,
    arms: Arms = NO_ARMS,
    bare: bool = False,
) -> Rows:
    """Return the prepared rows of a table; `roles` as in `Encoder.fit`.

    Row numbers in errors are those of the frame's index.

    Raises
    ------
    UsageError
        `label` or a dropped column does not exist (the message suggests the nearest name); labels are missing, have one
        class only, or have too many different values; a text column is an identifier or a numeric column with errors;
        or `prepare` raises an error.
    """
    import pandas as pd

    targets, drop_missing = [*arms.names, *arms.costs] or [label], recipe.missing == "drop_rows"
    if not targets[0]:
        raise UsageError(f"{source}: set label (--label) to the column to predict{_columns('', list(frame.columns))}")
    for name in targets:
        key = "arms" if name in arms.names else "costs" if name in arms.costs else "label (--label)"
        refuse_column(key, name, list(frame.columns), source)
    refuse_columns(drop_columns, list(frame.columns), source)
    y: Truth
    costs = None
    if arms.names:
        y, costs, known = arms.read(frame, source, drop_missing)
        classes: list[Any] = list(arms.names)
    else:
        y, classes = classes_of(frame[label], f"{source}: label column {label!r}", recipe.missing != "error")
        known = y >= 0
    features = frame.drop(columns=[*targets, *(name for name in drop_columns if name not in targets)])[known]
    columns = columns_of(features, dict(roles or {}), max_categories, source)
    rows = prepare(columns, y[known], classes, recipe, source, features.index.to_numpy(), bare=bare)
    if costs is None:
        return rows
    return rows._replace(costs=pd.DataFrame(costs, frame.index).loc[rows.numbers].to_numpy())


def refuse_columns(drop_columns: list[str], names: list[str], source: str) -> None:
    """Raise a UsageError if a column to be dropped does not exist; it names the first such column."""
    for name in drop_columns:
        refuse_column("drop_columns (--drop-column)", name, names, source)


def refuse_column(key: str, name: str, names: list[str], source: str) -> None:
    """Raise a FaultError that names the setting if a column does not exist."""
    if name not in names:
        raise FaultError(f"{source}: {key}: there is no column {name!r}{_columns(name, names)}")


def classes_of(labels: pd.Series, source: str, drop_missing: bool) -> tuple[Labels, list[Any]]:
    r"""Return labels of any type as y (N,) in :math:`0, \dots, K-1`, and the sorted names of the K classes.

    Missing labels are -1.
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
        raise UsageError(f"{many}: these are not classes")
    y = np.full(len(labels), -1, dtype=np.int64)
    y[~missing] = codes
    return y, names.tolist()


def refuse_gaps_of(column: pd.Series, source: str) -> None:
    """Raise a UsageError if a column of labels or of bits has missing entries."""
    missing = column.isna().to_numpy()
    if missing.any():
        first = column.index[int(np.argmax(missing))]
        raise FaultError(
            f"{source} has {int(missing.sum())} missing entries (the first in row {first}, counted from 0); "
            "drop those rows with drop_rows (--drop-row) or set missing (--missing) to drop_rows",
            *_without(column.index[missing]),
        )


def _without(rows: pd.Index) -> list[str]:
    if len(rows) > MOST_SLIPS:
        return ["--missing", "drop_rows"]
    return [part for row in rows for part in ("--drop-row", str(row))]


def numbers_of(
    frame: pd.DataFrame, source: str, allowed: str, are_allowed: Callable[[Floats], Any], drop_missing: bool
) -> Floats:
    """Return the columns of a table as numbers (N, K), with NaN for missing entries; True is 1 and False is 0."""
    import pandas as pd

    found = []
    for name in frame.columns:
        column, where = frame[name], f"{source}: column {name!r}"
        if not drop_missing:
            refuse_gaps_of(column, where)
        text = column.astype("str").replace({"True": "1", "False": "0"})
        numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        odd = column.notna().to_numpy() & ~are_allowed(numbers)
        if odd.any():
            at = int(np.argmax(odd))
            raise UsageError(
                f"{where} has {str(column.iloc[at])[:60]!r} in row {column.index[at]}, counted from 0; it must be {allowed}"
            )
        found.append(numbers)
    return np.column_stack(found)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def _is_bit(numbers: Floats) -> Any:
    return np.isin(numbers, (0.0, 1.0))


def is_cost(numbers: Floats) -> Any:
    return np.isfinite(numbers) & (numbers >= 0.0)


def _label_values(known: pd.Series) -> tuple[np.ndarray, bool]:
    """Return label values in a form that can be sorted (numbers, or else text), and whether all numbers are integers."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(known):
        return known.to_numpy(dtype=bool), True
    # If all strings are numbers, sort them as numbers: "10" comes after "9".
    text = known.astype("str")
    parsed = pd.to_numeric(text, errors="coerce").astype(np.float64)
    numbers = parsed.to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all() or not exact(text, parsed):
        return text.to_numpy(dtype=str), True
    integral = bool((numbers == np.floor(numbers)).all() and np.abs(numbers).max() < 2**53)
    return (numbers.astype(np.int64), True) if integral else (numbers, False)


def _columns(name: str, columns: list[str]) -> str:
    """Return the hint of `nearest` for a column name: similar names, and all columns, or a few for wide tables."""
    columns = [str(column) for column in columns]
    if len(columns) <= SHOWN_COLUMNS:
        return nearest(name, columns, keep_order=True)
    close = set(difflib.get_close_matches(name, columns, n=SHOWN_COLUMNS, cutoff=0.0)) if name else columns
    shown = [column for column in columns if column in close][:SHOWN_COLUMNS]
    return nearest(name, [*shown, f"... {len(columns) - len(shown)} more"], keep_order=True)
