"""docs/results/new-actions.md: how soon a policy finds a new action, and what the search costs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from banditlab.analysis.pages import markdown_table

SOON, AFTER = 300, 1000
"""Decisions within which a new action is to be found, and over which its price is counted."""
KINDS = {
    "better by .2": (0.2, 0.2),
    "better by .2 in half of the contexts": (0.2, -0.4),
    "equal": (0.0, 0.0),
    "worse by .2": (-0.2, -0.2),
    "never right": (-1.0, -1.0),
}
"""How much more often the new action is right than the best old one, in two halves of the contexts."""


class Line(NamedTuple):
    """An agent and a new action, by seed: decisions until it was found, with its least probability and without; its price."""

    agent: str
    level: float
    new_action: str
    found: tuple[float, ...]
    found_alone: tuple[float, ...]
    price: tuple[float, ...]


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, by marker."""
    with (results / "new-actions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    lines = [Line(a, float(b), c, *(tuple(map(float, text.split())) for text in more)) for a, b, c, *more in rows]
    return {"found": found_table(lines), "price": price_table(lines)}


def found_table(lines: list[Line]) -> str:
    """Return in how many runs of an agent a better action is found soon, with its least probability and without."""
    better = [line for line in lines if max(KINDS[line.new_action]) > 0.0]
    head = (
        "agent",
        "old actions right",
        "new action",
        "runs",
        "found",
        "median decisions",
        "found without a lower bound",
    )
    return markdown_table(head, [found_row(line) for line in better], "lllr")


def found_row(line: Line) -> tuple[str, ...]:
    """Return a row of `found_table`."""
    soon, alone = (str(sum(n <= SOON for n in runs)) for runs in (line.found, line.found_alone))
    median = np.median(line.found)
    shown = f"{median:.0f}" if np.isfinite(median) else "never"
    return (line.agent, f"{line.level:.0%}", line.new_action, str(len(line.found)), soon, shown, alone)


def price_table(lines: list[Line]) -> str:
    """Return the mean mistakes more than without the new action, a column for each kind of it."""
    by = {(line.agent, line.level, line.new_action): f"{np.mean(line.price):+.0f}" for line in lines}
    pairs = dict.fromkeys((line.agent, line.level) for line in lines)
    rows = [(agent, f"{level:.0%}", *(by[agent, level, kind] for kind in KINDS)) for agent, level in pairs]
    return markdown_table(("agent", "old actions right", *KINDS), rows)
