"""Checks of settings, each of which returns the value to store, or raises a one-line UsageError.

The error names the setting and what is allowed. `name` is the setting's name in the message, `value` is the given
value, `words` are strings that are allowed instead of a number, and `size` is one of the limits in docs/limits.md.
"""

from __future__ import annotations

import inspect
import math
import os
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

from banditlab.errors import UsageError

ALIASES = {"B": "norm_bound", "γ": "gamma"}
"""Aliases of settings, as used in papers. A player's own setting of such a name takes precedence."""


@cache
def keyword_only(cls: Any) -> dict[str, inspect.Parameter]:
    """Return the settings of a class, which are the keyword-only parameters of its constructor, by name."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def positive(name: str, value: object) -> float:
    """Return a finite number above 0."""
    x = _real(name, value, "a number above 0")
    if not (math.isfinite(x) and x > 0):
        raise UsageError(f"{name} must be a number above 0, got {x:g}")
    return x


def nonnegative(name: str, value: object) -> float:
    """Return a finite number of at least 0."""
    x = _real(name, value, "a number that is 0 or above")
    if not (math.isfinite(x) and x >= 0):
        raise UsageError(f"{name} must be a number that is 0 or above, got {x:g}")
    return x


def probability(name: str, value: object) -> float:
    """Return a number in [0, 1]."""
    x = _real(name, value, "a number in [0, 1]")
    if not 0.0 <= x <= 1.0:
        raise UsageError(f"{name} must lie in [0, 1], got {x:g}")
    return x


def at_least(name: str, value: object, least: int) -> int:
    """Return an integer of at least `least`; floats are rejected."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UsageError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise UsageError(f"{name} must be at least {least}, got {value}")
    return int(value)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return a string that is among `allowed`."""
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def true_or_false(name: str, value: object) -> bool:
    """Return a bool; 1 and 0, which may come from tables and files, count as true and false."""
    if value not in (True, False):
        raise UsageError(f"{name} must be true or false, got {value!r}")
    return bool(value)


def loss_unit(unit: object) -> float:
    """Return the factor that converts the comparator's loss from nats to a theorem's unit (see `Player.bound_unit`).

    It is 1 for "nats", 1/ln 2 for "bits", and x/ln 2 for "x bits" with x in (0, 1].
    """
    if unit == "nats":
        return 1.0
    words = unit.split(" ") if isinstance(unit, str) else []
    try:
        share = {1: "1", 2: words[0]}[len(words)] if words[-1:] == ["bits"] else ""
        x = float(share)
    except (KeyError, ValueError):
        x = math.nan
    if not 0.0 < x <= 1.0:
        raise UsageError(f"a bound's unit must be 'nats', 'bits' or a fraction such as '0.5 bits', got {unit!r}")
    return x / math.log(2.0)


def number(name: str, value: object, *words: str) -> float:
    """Return a number. The message also lists `words`, the strings that the caller has already handled."""
    return _real(name, value, "a number" + "".join(f" or {word!r}" for word in words))


def _real(name: str, value: object, allowed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be {allowed}, got {value!r}")
    return float(value)


def resolve(name: str, value: float | str, words: dict[str, float]) -> float:
    """Return `value` if it is a number above 0, or `words[value]` if it is one of the strings in `words`.

    Raises
    ------
    UsageError
        `value` is not one of `words` or a number above 0.
    """
    if not isinstance(value, str):
        return positive(name, number(name, value, *words))
    if value not in words:
        raise UsageError(f"{name} must be one of {', '.join(map(repr, words))} or a number above 0, got {value!r}")
    return words[value]


# ------------------------------------------------------------------------------------------------ sizes of inputs


class Size(NamedTuple):
    """A limit: the environment variable that sets it, its default, and what it counts."""

    variable: str
    default: int
    counts: str


COLUMNS = Size("BANDITLAB_MAX_COLUMNS", 100_000, "columns of a CSV or Parquet file")
ROWS = Size("BANDITLAB_MAX_ROWS", 10_000_000, "rows of a table in a file")
ENTRIES = Size("BANDITLAB_MAX_ENTRIES", 50_000_000, "rows times columns of a CSV, Parquet or ARFF file")
FEATURES = Size("BANDITLAB_MAX_FEATURES", 50_000_000, "features of a LIBSVM file: its largest index")
UNPACKED = Size("BANDITLAB_MAX_UNPACKED_BYTES", 2**30, "bytes of a gzipped or Parquet file when it is unpacked")
RUNS = Size(
    "BANDITLAB_MAX_RUNS", 1_000_000, "runs of a sweep: environments x learners x repetitions, grids multiplied out"
)
PLUGIN_SECONDS = Size("BANDITLAB_PLUGIN_SECONDS", 60, "seconds for the import of a plug-in")
PENDING = Size("BANDITLAB_MAX_PENDING", 100_000, "open decisions of a policy without a log")
BODY = Size("BANDITLAB_MAX_BODY_BYTES", 2**20, "bytes of a request to `banditlab serve`")
BATCH = Size("BANDITLAB_MAX_BATCH", 1_000, "rows or answers in one request to `banditlab serve`")
CONNECTIONS = Size("BANDITLAB_MAX_CONNECTIONS", 1_000, "open connections to `banditlab serve`")
SIZES = (COLUMNS, ROWS, ENTRIES, FEATURES, UNPACKED, RUNS, PLUGIN_SECONDS, PENDING, BODY, BATCH, CONNECTIONS)
"""All limits, in the order of the documentation."""


def limit(size: Size) -> int:
    """Return the current limit, or raise a UsageError if its variable is not a whole number of at least 1."""
    text = os.environ.get(size.variable, "")
    if not text:
        return size.default
    if not text.isascii() or not text.isdigit() or int(text[:19]) < 1:
        raise UsageError(f"{size.variable} must be a whole number of at least 1, got {text[:40]!r}")
    return int(text[:19])


def refuse_beyond(size: Size, found: int | float, what: str) -> None:
    """If `found` is above the limit, raise a UsageError that begins with `what` and names the limit and its variable."""
    most = limit(size)
    if found > most:
        raise UsageError(f"{what}, above the limit of {most:,}: set {size.variable} to raise it")
