"""The measurements on an algorithm's page: its rows of the tables in docs/results, and the figure of a study."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands.figures import STUDIES

RESULTS = Path(__file__).parents[1] / "results"


class Table(NamedTuple):
    """A committed table with rows of several algorithms."""

    name: str
    key: str
    """The column that names the algorithm: its id, or its id and settings after a blank."""
    columns: str
    only: dict[str, str]
    """Rows that are shown: these columns have these values."""
    caption: str
    """What its rows are; where it is empty, the study of `benchmarks.commands.figures` has it."""
    page: str
    """The page of docs/results that says more."""


PLANTED = {"K": "3", "B": "1"}
PROMISE = (
    "The table shows mistakes, and the loss and bound of the theorem, at the theorem's settings on a planted logistic model "
    "(K = 3, d = 10, B = 1)."
)
RATES = "The table shows the mistake rate of the first pass in % at the defaults, with 95 % intervals."
LAST_FIFTH = "The table shows the share of correct predictions on the last fifth of each stream."
MEANS = "The table shows the mistake rate in % at the defaults, averaged over four streams."
SPEED = "The table shows nanoseconds per round on one core, and the share of mistakes."
REGRET = "The table shows the regret in nats on hard multiclass streams (K = 2, T = 4,000), for the worse of two signs."
TASTED = (
    "The table shows the expected mistakes minus those of the best action on a planted logistic model (K = 2), and the share "
    "of accepted items."
)
ASKED = "The table shows mistakes in 20,000 rounds for several query rates, on a planted logistic model (K = 3)."
HARD = {"data": "HardMulticlass", "K": "2"}
TABLES = (
    Table("theory-mistakes", "agent", "T, mistakes, loss, bound", PLANTED, PROMISE, "theory"),
    Table("decoding-mistakes", "agent", "agent, T, mistakes, loss, bound", PLANTED, PROMISE, "decoding"),
    Table("real-data-defaults", "agent", "data, mistakes %, low, high", {}, RATES, "real-data"),
    Table("papers-000-regret", "forecaster", "B, regret, bound", HARD, REGRET, "papers-000"),
    Table("apple-tasting", "agent", "settings, bits, excess, accepted, guaranteed", {}, TASTED, "label-efficient"),
    Table("label-efficient", "agent", "query_rate, queries, mistakes, guaranteed", {}, ASKED, "label-efficient"),
    Table("boosting-tables", "method", "data, last fifth", {}, LAST_FIFTH, "boosting-tables"),
    Table("default-agent", "player", "table, rounds, mean, standard_error", {}, MEANS, "default-agent"),
    Table("small-studies", "id", "line, x, mean, standard error", {}, "", "small-studies"),
    Table("speed", "player", "player, stream, K, d, nanoseconds, mistakes", {}, SPEED, "speed"),
)
"""Tables in the order of a page."""
METHODS = {
    "adaboost-olm": "AdaOLM",
    "adaboost-olm++": "OLM++",
    "online-mbbm": "MB .1",
    "adaboost-ol-ova": "OvA",
    "adaova": "AdaOVA",
    "oza": "OLB",
    "best-single": "DT",
}
"""Boosters by their names in the tables of online boosting."""
FIGURE_2 = ("papers-001-figure-2.png", "Regret on the lower-bound data.", "results/papers-001.md")
SYNSEP = ("synsep.png", "Mistakes on SynSep and SynNonSep against gamma.", "results/synsep.md")
REAL_DATA = ("real-data.png", "Mistakes on eight real data sets.", "results/real-data.md")
PICTURES = {
    "banditlab/Digits-v0": (
        "quickstart.png",
        "Mistakes so far on the digits, each agent at its best setting.",
        "gallery/quickstart.md",
    ),
    "banditlab/Logistic-v0": ("theory.png", "Mistakes against rounds on planted logistic models.", "results/theory.md"),
    "banditlab/LowerBound-v0": FIGURE_2,
    "banditlab/OpenML-v0": REAL_DATA,
    "banditlab/SynSep-v0": SYNSEP,
    "banditlab/SynNonSep-v0": SYNSEP,
    "banditlab/Table-v0": REAL_DATA,
    "hoeffding-tree": ("boosting-learners.png", "Errors against the number of trees.", "results/boosting-tables.md"),
    "simulated": (
        "boosting-edges.png",
        "Mistakes of boosters over simulated learners with a known edge.",
        "results/boosting-edges.md",
    ),
    "aioli": FIGURE_2,
    "ftrl": FIGURE_2,
    "b-grid": FIGURE_2,
    "aggregating": (
        "papers-001-figure-1.png",
        "Log-odds that the forecasters predict near 0.",
        "results/papers-001.md",
    ),
    "decoded-descent": ("decoding.png", "Mistakes per round with and without half-log.", "results/decoding.md"),
}
"""Figures of a study that are of one algorithm in particular: file, caption, the page that says more."""


@cache
def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a committed table."""
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def figures(kind: str, id_: str) -> str:
    """Return the measurements of one algorithm.

    Raises
    ------
    ValueError
        No committed study plays it: `benchmarks/commands/figures.py` is where a small one goes.
    """
    found = [part for table in TABLES if (part := markdown(table, id_))]
    if id_ in PICTURES:
        file, caption, page = PICTURES[id_]
        found.append(f"![{caption}](../../images/{file})\n\n{caption} More: [{page}](../../{page}).")
    if found:
        return "\n\n".join(found)
    if kind in ("agents", "forecasters"):
        return f"No study includes {id_}. `python -m benchmarks --only {id_} --keep` measures its speed."
    raise ValueError(
        f"{kind} {id_}: no figure of it is on record; a small study goes into benchmarks/commands/figures.py"
    )


def markdown(table: Table, id_: str) -> str:
    """Return the rows of one algorithm in a committed table, "" where it has none."""
    found = [
        row for row in rows(table.name) if _is_of(row[table.key], id_, table) and table.only.items() <= row.items()
    ]
    if not found:
        return ""
    columns = table.columns.split(", ")
    cells = [columns, ["---"] * len(columns), *([_rounded(row[name]) for name in columns] for row in found)]
    shown = "\n".join(f"| {' | '.join(line)} |" for line in cells)
    more = f"[{table.name}.csv](../../results/{table.name}.csv), [{table.page}](../../results/{table.page}.md)"
    caption = table.caption or STUDIES[id_].caption
    return f"{caption}\n\n{shown}\n\nMore: {more}."


def _is_of(named: str, id_: str, table: Table) -> bool:
    """Return whether a row is an algorithm's: by its id, which settings may follow, or by its name in the boosting tables."""
    if table.key == "method":
        return named == METHODS.get(id_)
    return named.split(" ")[0] == id_


def _rounded(cell: str) -> str:
    """Return a cell of a table, a decimal number with three digits or as a whole number."""
    if not re.fullmatch(r"-?\d*\.\d+", cell):
        return cell
    value = float(cell)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
