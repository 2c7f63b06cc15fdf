"""Figures of the parts that are measured beside the table, kept for the head of the speed page.

`python -m benchmarks stream --keep` (sparse, sweep, comparator alike) writes what it found, with the command and the day,
into docs/results/speed-parts.json; `python -m benchmarks --redraw` tells them on top of docs/results/speed.md.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FILE = "speed-parts.json"
PARTS = {
    "stream": "A stream longer than memory",
    "sparse": "Sparse contexts",
    "sweep": "Many short runs",
    "comparator": "The comparator",
}
"""The parts that keep something, in the order of the page, and what they are called there."""


def keep(part: str, text: str, folder: Path = RESULTS) -> None:
    """Write a part's sentence, with the command that measured it and the day."""
    command = " ".join(["python -m benchmarks", *(argument for argument in sys.argv[1:] if argument != "--keep")])
    kept = read(folder)
    kept[part] = {"command": command, "day": str(datetime.date.today()), "text": text}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({name: kept[name] for name in PARTS if name in kept}, indent=1) + "\n")


def read(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return what was kept, by part; {} where nothing was."""
    file = folder / FILE
    return dict(json.loads(file.read_text())) if file.exists() else {}


def lines(kept: dict[str, dict[str, Any]]) -> Iterable[str]:
    """Yield the page's line of every part; one that was never kept says how to measure it."""
    for part, name in PARTS.items():
        if part in kept:
            yield f"* **{name}** (`{kept[part]['command']}`, {kept[part]['day']}): {kept[part]['text']}"
        else:
            yield f"* **{name}**: not measured yet; `python -m benchmarks {part} --keep`"


def cells(line: str) -> list[str]:
    """Return the cells of a table's line."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
