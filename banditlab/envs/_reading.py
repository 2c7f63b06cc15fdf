"""How a text file writes its numbers, and which of its entries are missing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
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
"""Missing in every column."""
WORDS = ("NA", "N/A", "n/a", "None")
"""Missing among numbers. In a label or a text column they may be values: no account, North America."""
UNITS = "[%$€£¥]"
GROUPS = {" ": "[ \u00a0\u202f]", "'": "['’]"}
"""The expression of each thousands separator that is not the separator itself."""
WHOLE, CODE = r"[+-]?\d+", r"[+-]?0\d+"
"""Whole numbers, and those with a leading zero."""
EXACT = 2.0**53
"""Above it floats do not tell all whole numbers apart."""
NUMERIC = 0.9
"""The least share of numbers in a column of numbers with slips."""


class Reading(NamedTuple):
    """How numbers are written in a file, and which entries are missing."""

    decimal: str = "auto"
    """"." or ","; "auto" is the one that is not `thousands`, and what may be either is refused."""
    thousands: str = ""
    na_values: tuple[str, ...] = ()
    units: str = ""
    """The signs that are written beside the numbers of a column, such as "%"."""

    @property
    def point(self) -> str:
        """The decimal sign."""
        return "," if self.decimal == "," or self.thousands == "." else "."

    def parsed(self, text: pd.Series) -> pd.Series:
        """Return texts as floats, NaN where one is no number that is written so."""
        import pandas as pd

        if (self.point, self.thousands) != (".", ""):
            sign, point = GROUPS.get(self.thousands, re.escape(self.thousands)), re.escape(self.point)
            grouped = rf"[1-9]\d{{0,2}}(?:{sign}\d{{3}})+|" if sign else ""
            text = text.where(
                text.str.fullmatch(rf"\s*[+-]?((?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)([eE][+-]?\d+)?\s*")
            )
            text = text.str.replace(sign, "", regex=True) if sign else text
            text = text.str.replace(self.point, ".", regex=False)
        return pd.to_numeric(text, errors="coerce").astype(np.float64)

    def value(self, value: object, numeric: bool) -> object:
        """Return a value of one row as the file's would be: a number for its text, None where it is missing."""
        import pandas as pd

        if numeric and isinstance(value, str):
            number = self.parsed(pd.Series([value.strip(f" {self.units}")], dtype="str"))[0]
            value = number if np.isfinite(number) else value
        gap = str(value) in self.na_values or (isinstance(value, Real) and float(value) in _numbers(self.na_values))
        return None if gap else value

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command line that say how numbers are written."""
        decimal = () if self.thousands and (self.point == "." or self.thousands == ".") else ("--decimal", self.point)
        return (*(("--thousands", self.thousands) if self.thousands else ()), *decimal)

    def __str__(self) -> str:
        sign = "a thousands separator" if self.thousands else f"a decimal {'comma' if self.point == ',' else 'point'}"
        return f"{sign} ({shlex.join(self.options)})"


@cache
def _numbers(texts: tuple[str, ...]) -> list[float]:
    import pandas as pd

    return AS_WRITTEN.parsed(pd.Series(texts, dtype="str")).dropna().tolist()


def without(frame: pd.DataFrame, na_values: Sequence[str]) -> pd.DataFrame:
    """Return a table in which entries that are one of these texts, or a number that one of them is, are missing."""
    import pandas as pd

    if not na_values:
        return frame
    numbers, made = _numbers(tuple(na_values)), {}
    for name, column in frame.items():
        is_number = pd.api.types.is_numeric_dtype(column.dtype)
        made[name] = column.mask(column.isin(numbers) if is_number else column.astype("str").isin(na_values))
    return pd.DataFrame(made, index=frame.index)


AS_WRITTEN = Reading()
READINGS = [Reading(decimal, sign) for decimal in ".," for sign in ("", ",", ".", " ", "'") if sign != decimal]


def with_numbers(
    frame: pd.DataFrame, label: str, reading: Reading, path: str, report: Callable[[FaultError], None]
) -> tuple[pd.DataFrame, Reading]:
    """Return a table of texts with its columns of numbers as floats, and the reading with the units that were found.

    A column of numbers that are not written as declared is reported, and read for what it is.
    """
    import pandas as pd

    bare = {name: (frame[name], "") if name == label else _bare(frame[name]) for name in frame.columns}
    odd = {name: found for name, (text, _) in bare.items() if name != label and (found := _readings(text, reading))}
    fit = [r for r in READINGS if odd and all(r in found for found in odd.values())] or next(iter(odd.values()), [])
    # Signs that do not occur are left out: a blank between thousands where a comma is between decimals.
    fit = [r for r in fit if not (r.thousands and {r._replace(thousands=""), r._replace(decimal=".")} & {*fit} - {r})]
    for name in odd:
        report(_fault(bare[name][0], fit, path))
    now = fit[0] if fit else reading
    made = {name: _converted(frame[name], text, now, name == label) for name, (text, _) in bare.items()}
    return pd.DataFrame(made, index=frame.index), reading._replace(units="".join({unit for _, unit in bare.values()}))


def _bare(text: pd.Series) -> tuple[pd.Series, str]:
    """Return a column without words for missing entries and without the unit that all its entries have, and the unit."""
    text = text.mask(text.isin(WORDS))
    known = text.dropna()
    unit = re.search(UNITS, str(known.iloc[0])) if len(known) else None
    if unit is None or not known.str.contains(unit[0], regex=False).all():
        return text, ""
    return text.str.replace(unit[0], "", regex=False).str.strip(), unit[0]


def _readings(text: pd.Series, declared: Reading) -> list[Reading]:
    """Return how a column's numbers may be written, if not as declared; [] where they are, or where it is no such column."""
    known = text.dropna()
    fits = declared.parsed(known).notna().mean() if len(known) else 1.0
    if fits == 1.0 and not (declared.decimal == "auto" and declared.point == "." and _may_be_thousands(known)):
        return []
    shares = {
        reading: reading.parsed(known).notna().mean()
        for reading in READINGS
        if declared.decimal in ("auto", reading.decimal) and declared.thousands in ("", reading.thousands)
    }
    best = max(shares.values())
    return [r for r in shares if shares[r] == best] if best >= NUMERIC and (fits == 1.0 or best > fits) else []


def _may_be_thousands(known: pd.Series) -> bool:
    """Return whether numbers (n,) look like 1.850 and 850: three decimals, some of which end in a zero, or none."""
    dotted = known[known.str.contains(".", regex=False)]
    return bool(
        0 < len(dotted) < len(known)
        and dotted.str.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}").all()
        and dotted.str.endswith("0").any()
    )


def _fault(text: pd.Series, found: list[Reading], path: str) -> FaultError:
    """Return what is to be said of a column whose numbers are written in one of these ways."""
    where, known = f"{path}: column {text.name!r} holds", text.dropna()
    if len(found) == 1:
        return FaultError(f"{where} numbers with {found[0]}, such as {known.max()}", *found[0].options)
    signs = known.str.fullmatch(WHOLE)
    shown = " and ".join([*known[~signs].head(1), *known[signs].head(1)])
    return FaultError(f"{where} {shown}: {' or '.join(map(str, found))}?")


def _converted(text: pd.Series, bare: pd.Series, reading: Reading, is_label: bool) -> pd.Series:
    """Return a column as floats if all its entries are numbers, with plain spelling if nearly all are, else as it is."""
    from banditlab.envs._columns import category_text

    known = bare.dropna()
    every = [numbers for r in (reading, Reading()) if (numbers := r.parsed(bare)).notna().sum() == len(known)]
    if every and (len(known) or not text.notna().any()):
        return every[0] if exact(known, every[0][known.index]) else text
    numbers = reading.parsed(bare)
    if numbers.notna().sum() < NUMERIC * len(known) or is_label or not len(known):
        return text
    return bare.mask(numbers.notna(), numbers.map(category_text, na_action="ignore").astype("str"))


def exact(text: pd.Series, numbers: pd.Series) -> bool:
    """Return whether numbers (n,) say what their texts do: no code loses a leading zero, no two large ones become one."""
    is_code = text.str.fullmatch(WHOLE).all() and text.str.fullmatch(CODE).any()
    large = numbers.abs().between(EXACT, np.finfo(float).max)
    return not is_code and numbers[large].nunique() == text[large].nunique()
