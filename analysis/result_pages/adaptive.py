"""docs/results/adaptive.md: a bound that an adaptive adversary exceeds, and the same streams with other random draws."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from banditlab.analysis.pages import markdown_table
from banditlab.results.files import write_bytes


class Line(NamedTuple):
    """A run: expected mistakes against the adversary, their mean over other draws on its stream, and the guarantee's parts.

    `loss` is the best expert's over the run, in mistakes (0.7213 for each nat), `bound` the theorem's additive term.
    """

    seed: int
    experts: int
    gamma: float
    rounds: int
    updates: int
    mistakes: float
    replayed: float
    loss: float
    bound: float


def read(path: Path) -> list[Line]:
    """Return the lines of the csv file."""
    with path.open(encoding="utf-8", newline="") as file:
        kinds = Line.__annotations__
        return [
            Line(*(int(value) if kinds[name] == "int" else float(value) for name, value in row.items()))
            for row in csv.DictReader(file)
        ]


def text_of(lines: list[Line]) -> str:
    """Return the lines as csv."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Line._fields)
    for line in lines:
        writer.writerow([*line[:5], *(f"{value:.1f}" for value in line[5:])])
    return text.getvalue()


def write(path: Path, lines: list[Line]) -> None:
    """Write the csv file: whole, whenever this process ends."""
    write_bytes(path, text_of(lines).encode())


def parts(results: Path) -> dict[str, str]:
    """Return the page's table and its ratios, by marker."""
    lines = read(results / "adaptive.csv")
    against, with_other_coins = ratios(lines)
    return {"runs": table(lines), "against": f"{against:.2f} times", "replayed": f"{with_other_coins:.2f} times"}


def ratios(lines: list[Line]) -> tuple[float, float]:
    """Return mean mistakes over mean guarantee: against the adversary, and with other random draws on the same streams."""
    guarantee = np.mean([line.loss + line.bound for line in lines])
    return tuple(float(np.mean(values) / guarantee) for values in zip(*(x[5:7] for x in lines), strict=True))  # type: ignore[return-value]


def table(lines: list[Line]) -> str:
    """Return the means and their standard errors over the runs."""
    columns = np.array([(x.mistakes, x.replayed, x.loss, x.bound, x.loss + x.bound) for x in lines])
    errors = columns.std(axis=0, ddof=1) / np.sqrt(len(lines))
    names = (
        "mistakes, adversary",
        "mistakes, same streams and other random draws",
        "loss of the best expert",
        "bound",
        "loss + bound",
    )
    rows = [(name, f"{m:,.0f} ± {e:,.0f}") for name, m, e in zip(names, columns.mean(axis=0), errors, strict=True)]
    return markdown_table(("", f"mean of {len(lines)} runs"), rows)
