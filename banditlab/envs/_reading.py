"""Parse the numbers of a text file, and find missing entries."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from banditlab.errors import FaultError

if TYPE_CHECKING:
    import pandas as pd

MISSING = [
    "", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>", "NULL", "null", "nan", "NaN",
    "-nan", "-NaN",
]  # fmt: skip
"""Entries that are missing in every column."""
WORDS = ("NA", "N/A", "n/a", "None")
"""Entries that are missing in a numeric column. In a label or a text column they may be values (no account, North America)."""
WHOLE, CODE = r"[+-]?\d+", r"[+-]?0\d+"
"""Whole numbers, and those with a leading zero."""
EXACT = 2.0**53
"""Above it, floats cannot represent every whole number."""
NUMERIC = 0.9
"""The least fraction of numbers in a numeric column with errors."""


class Reading(NamedTuple):
    """The notation of numbers in a file, and the strings that stand for missing entries."""

    decimal: str = "."
    thousands: str = ""
    na_values: tuple[str, ...] = ()

    def plain(self, text: pd.Series) -> pd.Series:
        """Rewrite number strings with a decimal point and without thousands separators.

        Strings whose separators do not delimit groups of three digits become NaN.
        """
        if self.thousands:
            sign, point, text = re.escape(self.thousands), re.escape(self.decimal), text.str.strip()
            grouped = text.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}({sign}\d{{3}})+({point}\d*)?")
            text = text.where(grouped | ~text.str.contains(sign)).str.replace(self.thousands, "")
        return text if self.decimal == "." else text.str.replace(self.decimal, ".")

    @property
    def options(self) -> tuple[str, ...]:
        """The command line's options for this notation."""
        thousands = ("--thousands", self.thousands) if self.thousands else ()
        return (*thousands, *(("--decimal", self.decimal) if self.decimal != "." else ()))

    def __str__(self) -> str:
        return f"a {'thousands separator' if self.thousands else 'decimal comma'} ({shlex.join(self.options)})"


PLAIN = Reading()
READINGS = [Reading(decimal, sign) for decimal in ".," for sign in ("", ",", ".", " ", "'") if sign != decimal]


def numbers_in(text: pd.Series) -> pd.Series:
    """Return strings as floats, with NaN for strings that are not numbers."""
    import pandas as pd

    return pd.to_numeric(text, errors="coerce").astype(np.float64)


def with_numbers(frame: pd.DataFrame, label: str, reading: Reading, path: str) -> tuple[pd.DataFrame, list[FaultError]]:
    """Convert the numeric columns of a table of strings to floats, and return a fault for each column in another notation.

    Columns with a fault are parsed in their own notation.
    """
    import pandas as pd

    texts = {n: frame[n] if n == label else frame[n].mask(frame[n].isin(WORDS)) for n in frame.columns}
    odd = {name: text for name, text in texts.items() if name != label and _others(text, reading)}
    found = _others(pd.concat(odd.values()), reading) if odd else []
    other = found[0] if found else reading
    made = {name: _converted(frame[name], text, other if name in odd else reading) for name, text in texts.items()}
    return pd.DataFrame(made, index=frame.index), [_fault(text, found, path) for text in odd.values()]


def _others(text: pd.Series, declared: Reading) -> list[Reading]:
    """Return the other notations in which all entries are numbers; of those that give the same numbers, only the first.

    The list is empty if the declared notation fits.
    """
    known = text.dropna().drop_duplicates()
    if numbers_in(declared.plain(known)).notna().all():
        return []
    found: dict[tuple[float, ...], Reading] = {}
    for reading in READINGS:
        if declared.decimal in (".", reading.decimal) and declared.thousands in ("", reading.thousands):
            numbers = numbers_in(reading.plain(known))
            if numbers.notna().all():
                found.setdefault(tuple(numbers), reading)
    return [*found.values()]


def _fault(text: pd.Series, found: list[Reading], path: str) -> FaultError:
    """Return the message for a column whose numbers fit these notations."""
    where, shown = f"{path}: column {text.name!r} holds numbers", f"such as {max(text.dropna(), key=len)}"
    if len(found) == 1:
        return FaultError(f"{where} with {found[0]}, {shown}", *found[0].options)
    ways = f"{' or '.join(map(str, found))}?" if found else "write those of all columns in one way"
    return FaultError(f"{where} {shown}: {ways}")


def _converted(text: pd.Series, bare: pd.Series, reading: Reading) -> pd.Series:
    """Return a column as floats if all entries are numbers or words for missing values.

    Otherwise return its strings; if nearly all of them are numbers, these are rewritten with a decimal point.
    """
    known, plain = bare.dropna(), reading.plain(bare)
    for spelled in (plain, bare):
        numbers = numbers_in(spelled)
        if numbers.notna().sum() == len(known):
            return numbers if exact(known, numbers[known.index]) else text
    return plain.fillna(bare) if numbers_in(plain).notna().sum() >= NUMERIC * len(known) else text


def exact(text: pd.Series, numbers: pd.Series) -> bool:
    """Return whether strings can be replaced by their numbers (n,): no leading zero is lost, no large numbers merge."""
    is_code = text.str.fullmatch(WHOLE).all() and text.str.fullmatch(CODE).any()
    large = numbers.abs().between(EXACT, np.finfo(float).max)
    return not is_code and numbers[large].nunique() == text[large].nunique()


# ---------------------------------------------------------------------------------------------------------- missing entries


@cache
def _numbers(na_values: tuple[str, ...]) -> list[float]:
    import pandas as pd

    return numbers_in(pd.Series(na_values, dtype="str")).dropna().tolist()


def is_one_of(value: object, na_values: tuple[str, ...]) -> bool:
    """Return whether a value equals one of these strings, or a number that one of them represents."""
    return str(value) in na_values or (isinstance(value, Real) and float(value) in _numbers(na_values))


def without(frame: pd.DataFrame, na_values: Sequence[str]) -> pd.DataFrame:
    """Return a table in which entries equal to one of these strings, or to a number that it represents, are missing."""
    import pandas as pd

    frame = frame.copy(deep=False)
    for name in frame.columns if na_values else ():
        column, is_number = frame[name], pd.api.types.is_numeric_dtype(frame[name].dtype)
        codes = _numbers(tuple(na_values)) if is_number else na_values
        frame[name] = column.mask((column if is_number else column.astype("str")).isin(codes))
    return frame
