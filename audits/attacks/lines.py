"""What an attack came to: a line of its table, and the page made of all tables.

A part is a module of this folder with `TITLE`, `WORDS` (a paragraph), `COUNT` (how often by default) and
`attack(count, seed) -> list[Line]`. Its name stands in PARTS of `audits.commands.attacks`, in the page's order.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

COUNTS = ("lost", "wrong", "tracebacks", "code_run")


class Line(NamedTuple):
    """One kind of attack: how often it was tried, and how it ended.

    `right`: all values as without the attack; `named`: a loss or a refusal said in one line; what must be 0: finished runs
    `lost` (without a word, or although they stood elsewhere), values that are `wrong`, `tracebacks` on a user's screen, and
    attackers' `code_run`.
    """

    attack: str
    tried: int
    right: int
    named: int
    lost: int = 0
    wrong: int = 0
    tracebacks: int = 0
    code_run: int = 0


def line(attack: str, verdicts: Counter[str], tried: int | None = None) -> Line:
    """Return the line of an attack from how often it ended in each way, by the names of the columns."""
    return Line(
        attack, verdicts.total() if tried is None else tried, **{name: verdicts[name] for name in Line._fields[2:]}
    )


def write_csv(file: Path, lines: list[Line]) -> None:
    """Write a part's table."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(Line._fields)
        writer.writerows(lines)


def read_csv(file: Path) -> list[Line]:
    """Return a part's table, empty where it has not been made."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as rows:
        _, *cells = csv.reader(rows)
    return [Line(row[0], *map(int, row[1:])) for row in cells]


def total(lines: list[Line]) -> Line:
    """Return the sums over lines."""
    return Line("all", *(sum(line[i] for line in lines) for i in range(1, len(Line._fields))))
