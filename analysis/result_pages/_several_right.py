"""The tables of docs/results/routing.md and docs/results/tags.md: players beside what is known in hindsight."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from banditlab.analysis.pages import markdown_table

FILE = "several-right.csv"
SIGNS = {"ahead": " +", "behind": " -", "=": "", "": ""}


class Line(NamedTuple):
    """A player at one setting, or what is known in hindsight: mistakes with the 95 % interval, mean cost, beside beta-ts."""

    table: str
    player: str
    setting: str
    mistakes: float
    low: float
    high: float
    cost: float
    beside_beta_ts: str
    rounds: int


def read(path: Path) -> list[Line]:
    """Return the lines of the csv file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Line(*row[:3], *map(float, row[3:7]), row[7], int(row[8])) for row in rows]


def shares(lines: Sequence[Line], tables: Sequence[str]) -> str:
    """Return a row for each player and setting, a column for each table: the share of rounds with a right action, in %."""
    found = {(name_of(line), line.table): line for line in lines if line.table in tables}
    names = list(dict.fromkeys(name_of(line) for line in lines if line.table in tables))
    order = {name: min(line.mistakes for (other, _), line in found.items() if other == name) for name in names}
    known = [name for name in names if name.startswith("*")]
    rows = [
        (name, *(cell(found.get((name, table))) for table in tables))
        for name in [*sorted(set(names) - set(known), key=order.__getitem__), *sorted(known, key=order.__getitem__)]
    ]
    return markdown_table(("", *tables), rows)


def cell(line: Line | None) -> str:
    """Return "92.6 (91.9 to 93.3) +"."""
    if line is None:
        return ""
    interval = f" ({100 - 100 * line.high:.1f} to {100 - 100 * line.low:.1f})" if math.isfinite(line.low) else ""
    return f"{100 - 100 * line.mistakes:.1f}{interval}{SIGNS[line.beside_beta_ts]}"


def costs(lines: Sequence[Line], tables: Sequence[str]) -> str:
    """Return the mean cost of 1,000 decisions, a column for each table."""
    found = {(name_of(line), line.table): line.cost for line in lines if line.table in tables}
    names = sorted({name for name, _ in found}, key=lambda name: (name.startswith("*"), found[name, tables[0]]))
    rows = [(name, *(f"{1000 * found[name, table]:.2f}" for table in tables)) for name in names]
    return markdown_table(("", *tables), rows)


def name_of(line: Line) -> str:
    """Return a player's name; what is known in hindsight is in italics."""
    if line.setting == "hindsight":
        return f"*{line.player.partition(' of ')[0]}*" if " per value of " in line.player else f"*{line.player}*"
    if line.player == "beta-ts":
        return "beta-ts per value" if "per" in line.setting else "beta-ts"
    return {"vw": "VW squarecb", "mabwiser-lints": "mabwiser LinTS"}.get(line.player, line.player)
