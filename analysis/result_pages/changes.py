"""docs/results/changes.md: agents after a change of the labels, and changes detected where there was none."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from banditlab.analysis.pages import markdown_table
from banditlab.results.files import write_bytes

STATIONARY = "as they were"
PLAYERS = ("stackcb", "changes = false", "fastcb")


class Line(NamedTuple):
    """A player on a table whose labels change in one way: mistakes in % of the second half and changes called, by stream."""

    table: str
    labels: str
    player: str
    rounds: int
    mistakes: tuple[float, ...]
    called: tuple[int, ...]


def read(path: Path) -> list[Line]:
    """Return the lines of the csv file, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Line(
                row["table"],
                row["labels"],
                row["player"],
                int(row["rounds"]),
                tuple(map(float, row["mistakes"].split())),
                tuple(map(int, row["called"].split())),
            )
            for row in csv.DictReader(file)
        ]


def write(path: Path, lines: list[Line]) -> None:
    """Write the csv file: whole, whenever this process ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Line._fields)
    for line in lines:
        writer.writerow([*line[:4], " ".join(f"{m:.2f}" for m in line.mistakes), " ".join(map(str, line.called))])
    write_bytes(path, text.getvalue().encode())


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables and its count of false alarms, by marker."""
    lines = read(results / "changes.csv")
    return {"means": means(lines), "tables": by_table(lines), "alarms": alarms(lines)}


def common(lines: list[Line]) -> int:
    """Return how many streams every line has."""
    return min((len(line.mistakes) for line in lines), default=0)


def means(lines: list[Line]) -> str:
    """Return the table of the means over tables and streams, with the standard error of the difference to the last player."""
    streams, rows = common(lines), []
    for labels in dict.fromkeys(line.labels for line in lines):
        mine = {name: [x for x in lines if (x.labels, x.player) == (labels, name)] for name in PLAYERS}
        shares = {name: np.array([x.mistakes[:streams] for x in found]) for name, found in mine.items()}
        apart = (shares[PLAYERS[0]] - shares[PLAYERS[-1]]).mean(axis=1)  # by table: streams of one are alike
        error = float(np.std(apart, ddof=1)) / math.sqrt(len(apart)) if len(apart) > 1 else math.nan
        runs = [count for x in mine[PLAYERS[0]] for count in x.called[:streams]]
        rows.append(
            (
                labels,
                *(f"{share.mean():.1f}" for share in shares.values()),
                f"{apart.mean():+.1f} ± {error:.1f}",
                f"{sum(runs)} in {len(runs)}",
                f"{sum(count > 0 for count in runs)}",
            )
        )
    head = (
        "labels",
        *PLAYERS,
        f"{PLAYERS[0]} minus {PLAYERS[-1]}",
        "changes detected in runs",
        "runs with a change detected",
    )
    return markdown_table(head, rows)


def by_table(lines: list[Line]) -> str:
    """Return the table of `stackcb` and the last player by table, a column for each way of changing."""
    ways, streams = list(dict.fromkeys(line.labels for line in lines)), common(lines)
    shares = {(x.table, x.labels, x.player): np.mean(x.mistakes[:streams]) for x in lines}
    rows = [
        (table, *(f"{shares[table, way, PLAYERS[0]]:.1f} / {shares[table, way, PLAYERS[-1]]:.1f}" for way in ways))
        for table in dict.fromkeys(line.table for line in lines)
    ]
    return markdown_table(("table", *ways), rows)


def alarms(lines: list[Line]) -> str:
    """Return how many runs of the first player detected a change that did not happen."""
    runs = [count for x in lines if (x.labels, x.player) == (STATIONARY, PLAYERS[0]) for count in x.called]
    return f"{sum(count > 0 for count in runs)} of {len(runs)} runs"
