"""docs/results/default-agent.md: `stackcb` beside `fastcb` at several settings, table by table."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from banditlab.analysis.pages import markdown_table

OTHERS = ("fastcb", "fastcb 3e-4", "standardised", "Fourier")
LINEAR = 3
"""The first so many of the others are linear."""
PLAYERS = (*OTHERS, "stackcb")
MARGIN = 0.5
"""Difference in pp within which stackcb counts as equal."""
BEHIND = 0.7
"""Difference in pp above which it counts as worse than the best other linear agent."""


MADE = "made-streams.csv"
MADE_PLAYERS = ("fastcb", "fastcb 3e-4", "standardised", "linucb", "linucb 1", "stackcb")
"""The agents on the synthetic streams; "linucb 1" at a ridge of R^2, both `linucb` on standardised columns."""


class Line(NamedTuple):
    """A table and a player: mistakes in % of each stream, microseconds of CPU a round, changes called."""

    table: str
    held: bool
    rounds: int
    n_classes: int
    n_features: int
    player: str
    mistakes: tuple[float, ...]
    microseconds: float
    changes: int


def parts(results: Path) -> dict[str, str]:
    """Return the page's table and its summary by marker."""
    with (results / "default-agent.csv").open(newline="") as file:
        lines = [
            Line(
                row["table"],
                row["held"] == "True",
                int(row["rounds"]),
                int(row["n_classes"]),
                int(row["n_features"]),
                row["player"],
                tuple(map(float, row["mistakes"].split())),
                math.nan,
                int(row["changes"]),
            )
            for row in csv.DictReader(file)
        ]
    table = "\n".join(markdown(group, head=i == 0) for i, group in enumerate(by_table(lines)))
    found = {"tables": table, "summary": summary(lines)}
    if (results / MADE).exists():
        made = pd.read_csv(results / MADE, dtype=str)
        found["made"] = made_table(list(made.itertuples(index=False, name=None)))
    return found


def made_table(lines: list[tuple[Any, ...]]) -> str:
    """Return a row for every synthetic stream: mistakes by player, stackcb's minus the best other's, two standard errors.

    lines: stream, rounds, classes, features, player, mistakes of every stream as one text.
    """
    rows = []
    for i in range(0, len(lines), len(MADE_PLAYERS)):
        group = lines[i : i + len(MADE_PLAYERS)]
        found = np.array([[float(share) for share in str(line[-1]).split()] for line in group])
        means = found.mean(axis=1)
        apart = found[-1] - found[np.argmin(means[:-1])]
        error = 2.0 * apart.std(ddof=1) / math.sqrt(len(apart))
        name, rounds, n_classes, d = group[0][:4]
        rows.append(
            (
                name,
                f"{int(rounds):,}",
                str(n_classes),
                str(d),
                *(f"{m:.1f}" for m in means),
                f"{apart.mean():+.1f} ± {error:.1f}",
            )
        )
    return markdown_table(("stream", "T", "K", "d", *MADE_PLAYERS, "difference from the best other, pp"), rows)


def halves(line: Line) -> tuple[float, float]:
    """Return the mean mistakes of the first half of the streams and of the second."""
    n = len(line.mistakes) // 2
    return float(np.mean(line.mistakes[:n])), float(np.mean(line.mistakes[n:]))


def lead(lines: list[Line], of: int = len(OTHERS)) -> float:
    """Return stackcb's mistakes less those of the best of the first `of` others, which the first half of the streams chose."""
    *others, own = lines
    best = min(others[:of], key=lambda line: halves(line)[0])
    return halves(own)[1] - halves(best)[1]


def markdown(lines: list[Line], *, head: bool) -> str:
    """Return one table's row, with the page's head before the first."""
    own = lines[-1]
    means = [float(np.mean(line.mistakes)) for line in lines]
    cells = [f"{m:.1f}" for m in means]
    name = own.table + (" (held)" if own.held else "")
    row = f"| {name} | {own.rounds:,} | {own.n_classes} | {own.n_features} | {' | '.join(cells)} | {lead(lines):+.1f} |"
    if not head:
        return row
    title = f"| table | T | K | d | {' | '.join(PLAYERS)} | difference from the best other, pp |"
    return f"{title}\n|---|---:|---:|---:|{'---:|' * (len(PLAYERS) + 1)}\n{row}"


def by_table(lines: list[Line]) -> list[list[Line]]:
    """Return the lines of each table."""
    return [lines[i : i + len(PLAYERS)] for i in range(0, len(lines), len(PLAYERS))]


def summary(lines: list[Line]) -> str:
    """Return the geometric means of mistakes relative to fastcb's and the counts: a row for all tables, one for those held."""
    rows = []
    for name, part in (("all", lines), ("held", [line for line in lines if line.held])):
        groups = by_table(part)
        if not groups:
            continue
        ratios = np.array([[np.mean(line.mistakes) / np.mean(group[0].mistakes) for line in group] for group in groups])
        leads, linear = np.array([(lead(group), lead(group, LINEAR)) for group in groups]).T
        counts = ((leads <= MARGIN).sum(), (leads > 2.0).sum(), (linear > BEHIND).sum())
        calls, runs = sum(g[-1].changes for g in groups), sum(len(g[-1].mistakes) for g in groups)
        means = [f"{m:.3f}" for m in np.exp(np.log(ratios).mean(0))]
        rows.append([f"{name} {len(groups)}", *means, *map(str, counts), f"{calls} in {runs}"])
    counted = [
        f"within {MARGIN} pp of the best other",
        "over 2 pp worse than it",
        f"over {BEHIND} pp worse than the best linear form",
    ]
    return markdown_table(["tables", *PLAYERS, *counted, "changes detected in runs"], rows)
