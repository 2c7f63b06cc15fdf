"""docs/results/bakeoff-reading.md: one-against-all losses of tables of the bake-off, beside the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from banditlab.analysis.pages import markdown_table

FORMS = ("alphabet", "appearance", "values")
REASONS = {"theirs": "agrees at the learning rates", "open": "unexplained"}
"""How the reasons of `benchmarks.commands.reading` begin, by the page's texts."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's texts and its table by marker."""
    table = pd.read_csv(results / "bakeoff-reading.csv", keep_default_na=False, na_values={"alphabet_theirs": [""]})
    off = table[table["agrees"] == ""]
    agree = len(table) - len(off)
    counts = {name: str(off["reason"].str.startswith(text).sum()) for name, text in REASONS.items()}
    shares = {"agree": str(agree), "ids": str(len(table)), "share": f"{100 * agree / len(table):.0f} %"}
    rows = [_row(row) for row in off.sort_values("openml_id").to_dict("records")]
    head = [
        "id",
        "table",
        "rows",
        "published",
        "numbers",
        "a feature per value",
        "within",
        "the authors' rates",
        "reason",
    ]
    return shares | counts | {"differ": markdown_table(head, rows, "rlrrrrrrl")}


def _row(row: dict[str, Any]) -> list[str]:
    published = float(row["published"])
    nearest = min(FORMS[:2], key=lambda form: abs(float(row[form]) - published))
    theirs = min((float(row[f"{form}_theirs"]) for form in FORMS), key=lambda loss: abs(loss - published))
    within = max(0.05 * published, 2 * float(row[f"{nearest}_error"]))
    losses = [published, float(row[nearest]), float(row["values"]), within, theirs]
    shown = [f"{100 * value:.1f}" for value in losses]
    reason = next(name for name, text in REASONS.items() if row["reason"].startswith(text))
    words = {"theirs": "learning rates", "open": "unexplained"}
    return [str(int(row["openml_id"])), str(row["file"]), f"{int(row['rows']):,}", *shown, words[reason]]
