"""docs/results/scaling.md: the default scaling beside others, on tables as they are and with numbers far from the others."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from analysis.result_pages import defaults
from banditlab.analysis.pages import markdown_table

CLEAN = "as they are"
BEFORE, AUTO = "range", "auto"
LEAST = 0.1
"""Mistakes in % that count as so many at least where they are divided."""
TIMES = 1.96


class Line(NamedTuple):
    """An agent on a table: what became of its numeric columns, their scaling, and the mistakes in %, by seed."""

    table: str
    values: str
    scaling: str
    agent: str
    mistakes: tuple[float, ...]


def read(path: Path) -> list[Line]:
    """Return the lines of the csv file, none if it is not there."""
    return defaults.read(path, Line)


def write(path: Path, lines: list[Line]) -> None:
    """Write the csv file: whole, whenever this process ends."""
    defaults.write(path, lines, Line, "{:.2f}".format)


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, by marker."""
    lines = read(results / "scaling.csv")
    return {"ratios": ratios(lines), "clean": clean(lines)}


def ratios(lines: list[Line]) -> str:
    """Return geometric means over tables of the mistakes over those on clean tables under the scaling without a map."""
    means = {line[:4]: max(float(np.mean(line.mistakes)), LEAST) for line in lines}
    agents, values, scalings, tables = (list(dict.fromkeys(line[i] for line in lines)) for i in (3, 1, 2, 0))
    rows = []
    for what in values:
        for scaling in scalings:
            logs = [
                [np.log(means[t, what, scaling, agent] / means[t, CLEAN, BEFORE, agent]) for t in tables]
                for agent in agents
            ]
            rows.append((what, scaling, *(f"{np.exp(np.mean(each)):.2f}" for each in logs)))
    return markdown_table(("numeric columns", "scaling", *agents), rows)


def clean(lines: list[Line]) -> str:
    """Return mean differences of the mistakes on clean tables to those without a map, in points, with 95 % intervals."""
    means = {line[:4]: float(np.mean(line.mistakes)) for line in lines if line.values == CLEAN}
    agents, scalings, tables = (list(dict.fromkeys(key[i] for key in means)) for i in (3, 2, 0))
    rows = []
    for agent in agents:
        shown, apart = [agent], np.zeros(0)
        for scaling in scalings[1:]:
            apart = np.array([means[t, CLEAN, scaling, agent] - means[t, CLEAN, BEFORE, agent] for t in tables])
            middle, half = np.mean(apart), TIMES * np.std(apart, ddof=1) / np.sqrt(len(apart))
            shown.append(f"{middle:+.2f} ({middle - half:+.2f} to {middle + half:+.2f})")
        rows.append((*shown, f"{tables[int(np.argmax(apart))]} {apart.max():+.1f}"))
    return markdown_table(("agent", *scalings[1:], f"{scalings[-1]}, worst table"), rows)
