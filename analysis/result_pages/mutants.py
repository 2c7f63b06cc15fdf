"""docs/results/mutants.md: which random changes of the package its tests notice, room by room, and which they do not."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from banditlab.analysis.pages import markdown_table

NOTICED, EQUIVALENT, UNNOTICED, LATE = "noticed", "equivalent", "not noticed", "out of time"
OUTCOMES = (NOTICED, EQUIVALENT, UNNOTICED, LATE)
"""What may become of a mutant; the first two are good."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's count, its table by room and what is left, by marker."""
    with (results / "mutants.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    good = sum(row["outcome"] in (NOTICED, EQUIVALENT) for row in rows)
    left = [
        (
            f"`{row['path']}:{row['line']}`",
            f"`{row['before'].strip()}`",
            f"`{row['after'].strip() or ' '}`",
            row["outcome"],
        )
        for row in rows
        if row["outcome"] not in (NOTICED, EQUIVALENT)
    ]
    return {
        "count": f"{len(rows)} mutants were tested: {good} are noticed or equivalent, {good / max(1, len(rows)):.1%}.",
        "rooms": by_room((room_of(row["path"]), row["outcome"]) for row in rows),
        "left": markdown_table(("where", "there", "instead", "outcome"), left, "llll") if left else "None.",
    }


def room_of(path: str) -> str:
    """Return the folder of the package that a file stands in, "top" for a module of the package itself."""
    inside = Path(path).parts
    return inside[1] if len(inside) > 2 else "top"


def by_room(found: Iterable[tuple[str, str]]) -> str:
    """Return the counts of (room, outcome) as a table in Markdown, the share that is noticed or equivalent last."""
    pairs = list(found)
    lines = []
    for room in [*sorted({room for room, _ in pairs}), "all"]:
        outcomes = Counter(outcome for each, outcome in pairs if room in (each, "all"))
        total, good = outcomes.total(), outcomes[NOTICED] + outcomes[EQUIVALENT]
        share = f"{100 * good / max(1, total):.0f} %"
        lines.append((room, str(total), *(str(outcomes[name]) for name in OUTCOMES), share))
    return markdown_table(("room", "mutants", *OUTCOMES, "share"), lines)
