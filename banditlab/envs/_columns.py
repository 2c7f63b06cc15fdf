"""A table's columns before encoding: numbers with NaN for gaps, or category codes with -1 for gaps."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from banditlab.envs._reading import EXACT
from banditlab.envs.options import Missing as Missing
from banditlab.envs.options import Scaling as Scaling
from banditlab.errors import FaultError, UsageError
from banditlab.validation import one_of

if TYPE_CHECKING:
    import pandas as pd

TableScaling = Literal[Scaling, "running"]
Role = Literal["numeric", "nominal", "time", "drop"]
MALFORMED_SHARE = 0.1
"""A text column is treated as a numeric column with errors if at most this fraction of its values are not numbers."""
MOST_SLIPS = 5
"""Up to this many rows with errors are reported one by one; with more, the column is reported."""
ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
DAY = 86_400.0
EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Recipe:
    r"""The settings that determine how a table becomes contexts.

    Parameters
    ----------
    scaling
        "none": numeric columns as given. "minmax": each column scaled to [0, 1], constant columns to 0. "auto":
        "minmax" if the ranges of two columns that vary differ by more than a factor of 10 (one-hot columns count with
        range 1), else "none". Before that, "auto" maps each column with outliers to [0, 1]. Let s be the median
        distance from the median, over the numbers that differ from the median. Numbers farther than 10 s from the
        median are outliers. If at most 1 % of the known entries are outliers, the other numbers are scaled to [0, 1]
        and outliers become 0 or 1. Otherwise the map is piecewise linear and makes 33 quantiles equidistant. If
        `missing = "zero"`, gaps of such a column are 0 after the map. "standard": mean 0, standard deviation 1.
        "maxabs": divided by the largest magnitude. "robust": median 0, quartiles 1 apart. (These are scikit-learn's
        StandardScaler, MaxAbsScaler and RobustScaler, fitted to the known entries of the whole table; a constant column
        becomes 0.) One-hot columns stay 0 and 1. "rowwise": each number x becomes :math:`\mathrm{asinh}(x)`, which is
        about :math:`\mathrm{sign}(x) \ln |2 x|` for large numbers, then each row is divided by its own norm. No row's
        context depends on the numbers of another row, past or future. (Categories, and means for `missing = "mean"`,
        are computed from the whole table.)
    missing
        Rule for missing, NaN and infinite entries. "error": reject the table with an error that names row and column.
        "mean": use the mean of the known entries (for a nominal column, the relative frequency of each category).
        "zero": use 0 (for a nominal column, no category). "indicator": use the mean, and add a 0/1 column per column
        that has gaps (for a nominal column, a separate category). "drop_rows": leave those rows out.
    normalize
        Divide by the largest row norm. With "rowwise" rows always have norm 1.
    intercept
        Append a constant column equal to the largest row norm, then divide every row by :math:`\sqrt{2}`. With one of
        scikit-learn's scalers, the constant is 1 and is appended before norms are computed.
    in_order
        Whether rows appear in the order of the table. Scaling "auto" then uses past rows only (see `_running_scale`).
    na_values
        Entries that count as missing, in the table and in later rows.
    """

    scaling: Scaling = "auto"
    missing: Missing = "error"
    normalize: bool = True
    intercept: bool = True
    in_order: bool = False
    na_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("scaling", self.scaling, get_args(Scaling))
        one_of("missing", self.missing, get_args(Missing))


class Column(NamedTuple):
    """One column of a table before encoding: numbers with NaN for gaps, or category codes with -1 for gaps."""

    name: str
    values: np.ndarray
    """(N,) float64 for a numeric column, int64 codes for a nominal one."""
    n_categories: int = 0
    """0 for a numeric column."""
    categories: tuple[str, ...] = ()
    """The names of the codes 0, 1, ...; by default "0", "1", ..."""
    role: Literal["numeric", "time", "nominal"] = "numeric"
    """"numeric" or "time" (days since 1970-01-01). A nominal column is one with categories."""
    knots: tuple[float, ...] = ()
    """The knots of the map to [0, 1] that was applied to a column with outliers; see `_outliers.mapped`."""

    @property
    def gaps(self) -> np.ndarray:
        """Where an entry is missing or not finite, as a boolean array (N,)."""
        return self.values < 0 if self.n_categories else ~np.isfinite(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """The categories' names, (n_categories,)."""
        return self.categories or tuple(map(str, range(self.n_categories)))


# ------------------------------------------------------------------------------------------------------- from pandas


def column_of(series: pd.Series, max_categories: int, source: str, role: str = "") -> Column:
    """Convert a feature column: times to days since 1970-01-01, text and categories to codes, all others to floats.

    Without a role, the type of the column determines the conversion. Error messages give the row's index in the series.

    Raises
    ------
    UsageError
        The column has dates without a role, is an identifier, is numeric except for a few entries, or has too many
        categories; or an entry does not fit the role "numeric" or "time".
    """
    import pandas as pd

    name, dtype = str(series.name), series.dtype
    numbers = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    dates = pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)
    if role == "time":
        return Column(name, _days(series, source), role="time")
    if not role and pd.api.types.is_integer_dtype(dtype) and (series.max() >= EXACT or series.min() <= -EXACT):
        numbers, series = False, series.astype("str").astype(object).where(series.notna())
    if role == "numeric" and not numbers:
        return Column(name, _numbers(series, source))
    if numbers and role != "nominal":
        return Column(name, series.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    if dates and not role:
        raise FaultError(
            f"{source} has dates, which have no default rule; leave it out with drop_columns (--drop-column), "
            "or convert it to days since 1970 with roles (--role NAME=time)",
            "--role",
            f"{name}=time",
        )
    if pd.api.types.is_object_dtype(dtype) and series.map(np.ndim).any():
        raise FaultError(
            f"{source} has lists, which cannot be encoded; leave it out with drop_columns (--drop-column), or write each entry "
            "to a column of its own",
            *("--drop-column", name),
        )
    text = series.map(category_text, na_action="ignore").astype("str") if numbers else series.astype("str")
    codes, names = pd.factorize(text, sort=True)
    check_nominal(text, len(names), int((codes >= 0).sum()), max_categories, source, asked=role == "nominal")
    # A placeholder category keeps a column without entries nominal.
    return Column(name, codes.astype(np.int64), max(len(names), 1), tuple(map(str, names)) or ("",))


def check_nominal(
    text: pd.Series, n_names: int, n_known: int, max_categories: int, source: str, *, asked: bool
) -> None:
    """Reject text columns that are numeric except for a few entries, contain dates, or have too many categories."""
    import pandas as pd

    known, name = text.dropna(), str(text.name)
    drop = ("--drop-column", name)
    odd = known[pd.to_numeric(known, errors="coerce").isna()]
    if 0 < len(odd) <= MALFORMED_SHARE * n_known and not asked:
        rows = [part for row in odd.index for part in ("--drop-row", str(row))]
        raise FaultError(
            f"{source} is numeric except for {len(odd)} of {n_known} entries (the first, {str(odd.iloc[0])!r}, in row "
            f"{odd.index[0]}, counted from 0); drop those rows with drop_rows (--drop-row) or the column with "
            "drop_columns (--drop-column)",
            *(rows if len(odd) <= MOST_SLIPS else drop),
        )
    many = n_names > max_categories
    different = n_known > 2 and n_names == n_known and not asked
    if (many or different) and are_dates(known):
        raise FaultError(
            f"{source} has dates as text; convert it to days since 1970 with roles (--role NAME=time), or leave it out with "
            "drop_columns (--drop-column)",
            "--role",
            f"{name}=time",
        )
    if different:
        raise FaultError(
            f"{source} is text with a different value in every row, such as an identifier; leave it out with drop_columns "
            "(--drop-column), or read its words with text (--text)",
            *drop,
        )
    if many:
        raise FaultError(
            f"{source} is text with {n_names} different values, more than max_categories = {max_categories}; leave it "
            "out with drop_columns (--drop-column), read its words with text (--text) or raise max_categories "
            "(--max-categories)",
            *drop,
        )


def are_dates(known: pd.Series) -> bool:
    """Return whether all strings are dates in ISO 8601."""
    import pandas as pd

    if not len(known) or not ISO.match(str(known.iloc[0])):
        return False
    return bool(pd.to_datetime(known, errors="coerce", utc=True, format="ISO8601").notna().all())


def _numbers(series: pd.Series, source: str) -> np.ndarray:
    """Return a column of strings or objects as numbers (N,), or raise an error for the first entry that is not a number."""
    import pandas as pd

    numbers = pd.to_numeric(series.astype("str"), errors="coerce")
    odd = series[numbers.isna() & series.notna()]
    if len(odd):
        raise FaultError(
            f"{source} was declared numeric (--role), but {str(odd.iloc[0])[:60]!r} in row {odd.index[0]}, counted from 0, is "
            "not a number; drop that row with drop_rows (--drop-row) or declare the column nominal",
            *("--role", f"{series.name}=nominal"),
        )
    return numbers.to_numpy(dtype=np.float64)


def _days(series: pd.Series, source: str) -> np.ndarray:
    """Return a column of dates, or of strings in ISO 8601, as an array (N,) of days since 1970-01-01; raise an error
    for the first invalid entry.
    """
    import pandas as pd

    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    if pd.api.types.is_numeric_dtype(series.dtype):
        raise UsageError(
            f"{source} has numbers, which do not need the role time (--role): numeric columns are used unchanged"
        )
    times = pd.to_datetime(series, errors="coerce", utc=True, format="ISO8601")
    odd = series[times.isna() & series.notna()]
    if len(odd):
        raise FaultError(
            f"{source}: {str(odd.iloc[0])[:60]!r} in row {odd.index[0]}, counted from 0, is not a date in ISO 8601 such as "
            "2024-05-31 or 2024-05-31T12:30:00; drop the column with drop_columns (--drop-column)",
            *("--drop-column", str(series.name)),
        )
    days = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64)


# --------------------------------------------------------------------------------------------------- one value of a row


def is_gap(value: object) -> bool:
    """Return whether a value is a missing entry: None, NaN, an infinite number, or pandas' NA and NaT."""
    if value is None:
        return True
    if isinstance(value, Real | Decimal):
        try:
            return not math.isfinite(value)
        except (OverflowError, ValueError):  # an integer beyond every float, a signalling NaN
            return True
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, np.datetime64) and bool(np.isnat(value)))


def number_of(key: str, value: object, role: str) -> float:
    """Return a row's value as a number; strings are parsed, and times converted to days since 1970-01-01.

    Raises
    ------
    UsageError
        The value is not a number; the message names the key and what is allowed.
    """
    if role == "time":
        return _day(key, value)
    if isinstance(value, Real | Decimal | np.bool_) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        return float(value)
    raise UsageError(f"key {key!r} must be a number, got {_shown(value)}")


def _day(key: str, value: object) -> float:
    try:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            if value.tzinfo is not None:
                value = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return (value - EPOCH).total_seconds() / DAY
        if isinstance(value, datetime.date):
            return float(value.toordinal() - EPOCH.toordinal())
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"key {key!r} must be a date in ISO 8601 such as 2024-05-31T12:30:00, got {_shown(value)}")


def category_text(value: object) -> str:
    """Return the category name of a number or a truth value: "True", "3", "0.5"."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real | Decimal):
        x = float(value)
        return str(int(x)) if x.is_integer() else repr(x)
    return str(value)


def spellings(key: str, value: object) -> tuple[str, ...]:
    """Return the category names that may stand for a value in the table, the most likely one first.

    Text is also tried in Unicode's normal forms NFC and NFD, a truth value as 1 or 0, and 1 and 0 as truth values.

    Raises
    ------
    UsageError
        The value is not text, a number or a truth value.
    """
    if isinstance(value, str):
        return (
            (value,) if value.isascii() else (value, *(unicodedata.normalize(form, value) for form in ("NFC", "NFD")))
        )
    if isinstance(value, Real | Decimal | np.bool_):
        text = category_text(value)
        number, truth = (str(int(float(value))), str(bool(value))) if value in (0, 1) else (str(value), text)
        return (text, number, truth, truth.lower(), truth.upper())
    if isinstance(value, datetime.date):  # dates declared nominal
        return (str(value), value.isoformat())
    raise UsageError(f"key {key!r} must be text, a number or a truth value, got {_shown(value)}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
