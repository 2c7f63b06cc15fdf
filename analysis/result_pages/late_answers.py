"""docs/results/late-answers.md: what late, lost and one-sided answers do to the status of a policy and to its agent."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditlab.analysis.pages import markdown_table
from banditlab.results.files import write_bytes

MODES = ("all answered", "only hits answered, silence ignored", 'only hits answered, silence "wrong"')


class Drift(NamedTuple):
    """Counts of runs: alarms of stationary ones, the same over arrivals, intervals beside the truth, rises found."""

    pattern: str
    unanswered: str
    runs: int
    alarms: int
    alarms_by_arrival: int
    intervals_missed: int
    found: int
    left_out: int
    """Runs in which decisions are left out and the status warns that it cannot detect more mistakes among them."""


class OneSided(NamedTuple):
    """Mistakes in % of one agent, by seed."""

    agent: str
    answers: str
    mistakes: tuple[float, ...]


def write(path: Path, kind: type[Any], lines: Sequence[tuple[Any, ...]]) -> None:
    """Write a csv file: whole, whenever this process ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kind._fields)
    for line in lines:
        writer.writerow([" ".join(f"{x:.2f}" for x in v) if isinstance(v, tuple) else v for v in line])
    write_bytes(path, text.getvalue().encode())


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, by marker."""
    with (results / "late-answers-drift.csv").open(encoding="utf-8", newline="") as file:
        drifts = [Drift(*row[:2], *map(int, row[2:])) for row in list(csv.reader(file))[1:]]
    with (results / "late-answers-one-sided.csv").open(encoding="utf-8", newline="") as file:
        sides = [OneSided(*row[:2], tuple(map(float, row[2].split()))) for row in list(csv.reader(file))[1:]]
    return {"drift": drift_table(drifts), "one-sided": one_sided_table(sides)}


def drift_table(lines: list[Drift]) -> str:
    """Return the table of runs by pattern of lateness."""
    head = ("answers are late", "unanswered", "runs", "false alarms", "false alarms, order of arrival")
    more = ("interval misses .2", "increases found", "warns of decisions left out")
    return markdown_table((*head, *more), [tuple(map(str, line)) for line in lines])


def one_sided_table(lines: list[OneSided]) -> str:
    """Return the table of mean mistakes in %, a column for each way of answering."""
    found = {(line.agent, line.answers): f"{np.mean(line.mistakes):.1f}" for line in lines}
    agents = dict.fromkeys(line.agent for line in lines)
    head = ("agent", *(mode.replace("silence", "missing feedback") for mode in MODES))
    return markdown_table(head, [(agent, *(found[agent, mode] for mode in MODES)) for agent in agents])
