"""How large inputs may be: what is refused by its size, before it takes memory or time, and by which variable that moves."""

from __future__ import annotations

import os
from typing import NamedTuple

from banditlab.errors import UsageError


class Size(NamedTuple):
    """A limit: the environment variable that moves it, its default, and what it counts."""

    variable: str
    default: int
    counts: str


COLUMNS = Size("BANDITLAB_MAX_COLUMNS", 100_000, "columns of a CSV or Parquet file")
FEATURES = Size("BANDITLAB_MAX_FEATURES", 50_000_000, "features of a LIBSVM file: its largest index")
UNPACKED = Size("BANDITLAB_MAX_UNPACKED_BYTES", 2**30, "bytes of a gzipped or Parquet file when it is unpacked")
RUNS = Size(
    "BANDITLAB_MAX_RUNS", 1_000_000, "runs of a sweep: environments x players x repetitions, grids multiplied out"
)
PLUGIN_SECONDS = Size("BANDITLAB_PLUGIN_SECONDS", 60, "seconds a plug-in may take to import")
SIZES = (COLUMNS, FEATURES, UNPACKED, RUNS, PLUGIN_SECONDS)
"""All of them, as the documentation lists them."""


def limit(size: Size) -> int:
    """Return the limit that holds, or raise a UsageError where its variable is no whole number of at least 1."""
    text = os.environ.get(size.variable, "")
    if not text:
        return size.default
    if not text.isascii() or not text.isdigit() or int(text[:19]) < 1:
        raise UsageError(f"{size.variable} must be a whole number of at least 1, got {text[:40]!r}")
    return int(text[:19])


def refuse_beyond(size: Size, found: int | float, what: str) -> None:
    """Raise a UsageError, `what` first, where `found` is above the limit; it names the limit and its variable."""
    most = limit(size)
    if found > most:
        raise UsageError(f"{what}, above the limit of {most:,}: {size.variable} raises it")
