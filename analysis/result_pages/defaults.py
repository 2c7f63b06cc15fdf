"""docs/results/defaults.md: agents of practice at other settings than their defaults, over tables of the study of rivals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from banditlab.analysis.pages import markdown_table
from banditlab.results.files import write_bytes

DEFAULT = "default"
STUCK = "one context"
"""The "table" whose lines count stuck runs: see `python -m benchmarks lockin`."""
PLANTED, EMBEDDED = "planted", "embedding"
"""How the names of synthetic streams begin: planted logistic models, and clusters like embeddings."""


class Line(NamedTuple):
    """An agent at a setting on a table or a made stream: mistakes in %, by stream; on `STUCK`, 100 for a run stuck."""

    player: str
    setting: str
    table: str
    mistakes: tuple[float, ...]


def read(path: Path, line: Any = Line) -> list[Any]:
    """Return the lines of a csv file, none if it is not there; the last field of `line` is mistakes."""
    if not path.exists():
        return []
    rows = pd.read_csv(path, dtype=str)[list(line._fields)].to_numpy()
    return [line(*names, tuple(map(float, mistakes.split()))) for *names, mistakes in rows]


def shortest(mistakes: float) -> str:
    """Return a number with at most three decimals."""
    return f"{mistakes:.3f}".rstrip("0").rstrip(".")


def write(path: Path, lines: Sequence[Any], line: Any = Line, text: Callable[[float], str] = shortest) -> None:
    """Write the csv file: whole, whenever this process ends."""
    rows = [(*each[:-1], " ".join(map(text, each.mistakes))) for each in lines]
    write_bytes(path, pd.DataFrame(rows, columns=line._fields).to_csv(index=False, lineterminator="\n").encode())


def parts(results: Path) -> dict[str, str]:
    """Return the page's table, by marker."""
    return {"settings": settings(read(results / "defaults.csv"))}


def error_over(own: dict[str, tuple[float, ...]], base: dict[str, tuple[float, ...]], names: list[str]) -> float:
    """Return the geometric mean over the named tables of the mean mistakes over those of `base`."""
    return math.exp(np.mean([math.log(np.mean(own[name]) / np.mean(base[name])) for name in names]))


def settings(lines: list[Line]) -> str:
    """Return a row for every agent and setting: its mistakes relative to the default, where it is better, and stuck runs."""
    rows = []
    for player, setting in dict.fromkeys((line.player, line.setting) for line in lines):
        own = {x.table: x.mistakes for x in lines if (x.player, x.setting) == (player, setting)}
        base = {x.table: x.mistakes for x in lines if (x.player, x.setting) == (player, DEFAULT)}
        tables = [name for name in own if not name.startswith((STUCK, PLANTED, EMBEDDED))]
        apart = {name: float(np.mean(np.subtract(own[name], base[name]))) for name in tables}
        made = ([name for name in own if name.startswith(kind)] for kind in (PLANTED, EMBEDDED))
        ordered = sorted(apart, key=lambda name: apart[name])
        stuck = [round(sum(own[name]) / 100) for name in own if name.startswith(STUCK)]
        least, most = ([f"{name} {apart[name]:+.1f}" for name in names] for names in (ordered[:2], ordered[:-4:-1]))
        compared = (f"{sum(x < 0 for x in apart.values())} of {len(tables)}", ", ".join(least), ", ".join(most))
        shown = ("", "", "") if setting == DEFAULT else compared
        over, *there = (f"{error_over(own, base, names):.3f}" if names else "" for names in (tables, *made))
        rows.append((f"`{player}`", setting, over, *shown, *there, ", ".join(map(str, stuck))))
    head = (
        "agent",
        "setting",
        "mistakes relative to the default",
        "fewer mistakes on",
        "best",
        "worst",
        "on planted models",
        "on embeddings",
        "stuck at K = 2, 3, 5",
    )
    return markdown_table(head, rows)
