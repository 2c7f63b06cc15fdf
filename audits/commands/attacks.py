"""What attacks on a results folder, on inputs and on plug-ins come to: docs/results/attacks.md.

Every part attacks in folders of its own, counts how it ended, and writes docs/results/attacks-PART.csv; the page is made
of these tables. `--only PART[,PART]` makes some of them anew, `--share 0.01` tries a hundredth of the attacks and writes
nothing.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from types import ModuleType

from audits.attacks.lines import COUNTS, Line, read_csv, total, write_csv
from banditlab.analysis.pages import markdown_table
from benchmarks.measure.names import picked

RESULTS = Path(__file__).parents[2] / "docs/results"
PARTS = ("kills", "flips", "inputs", "files", "plugins", "players", "tables", "caches", "clients", "bombs", "rows")
"""Modules of `audits.attacks`, in the page's order."""


def main(*, only: str = "", share: float = 1.0, seed: int = 1) -> None:
    """Run the parts, print what they came to, and write tables and page (unless it is a share only)."""
    for name in picked("only", only, PARTS):
        part, begin = _module(name), time.perf_counter()
        lines = part.attack(max(1, round(share * part.COUNT)), seed)
        print(f"\n{part.TITLE} ({time.perf_counter() - begin:.0f} s)\n\n{_table(lines)}", flush=True)
        if share == 1.0:
            write_csv(_file(name), lines)
    if share == 1.0:
        (RESULTS / "attacks.md").write_text(page(), encoding="utf-8", newline="\n")
        print("\nwritten: docs/results/attacks.md")


def page() -> str:
    """Return docs/results/attacks.md from the tables."""
    tables = {name: lines for name in PARTS if (lines := read_csv(_file(name)))}
    every = [line for lines in tables.values() for line in lines]
    counts = {name: f"{getattr(total(every), name):,}" for name in COUNTS}
    parts = [f"## {_module(name).TITLE}\n\n{_module(name).WORDS}\n\n{_table(lines)}" for name, lines in tables.items()]
    return "\n\n".join(["# Attacks", HEAD.format(tried=total(every).tried, **counts), *parts]) + "\n"


HEAD = """Does a results folder survive killed processes, damaged files, replaced inputs and hostile plug-ins?
**In {tried:,} simulated faults and attacks, {lost} finished runs were lost, {wrong} results were wrong, {tracebacks}
tracebacks appeared, and code of an attacker was executed {code_run} times.**

`python -m audits attacks` writes this page and the tables `attacks-*.csv`. Each row of a table counts outcomes. An
outcome is `right` if every value is the same as without the attack. It is `named` if a one-line message says what is
lost or rejected; the command then repeats lost runs where it can. Four counts must be 0: `lost` (finished runs that
disappear without a message), `wrong` (values that differ from those without the attack), `tracebacks`, and `code run`
(executed code of an attacker)."""


def _table(lines: list[Line]) -> str:
    rows = [[line.attack, *(f"{number:,}" for number in line[1:])] for line in lines]
    return markdown_table([name.replace("_", " ") for name in Line._fields], rows)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"audits.attacks.{name}")


def _file(name: str) -> Path:
    return RESULTS / f"attacks-{name}.csv"
