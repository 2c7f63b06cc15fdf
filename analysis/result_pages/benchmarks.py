"""docs/results/benchmarks.md: the second order where contexts are embeddings; the other tables are written by hand."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from banditlab.analysis.pages import markdown_table

HEAD = ["stream", "K x d", "agent", "second order", "rounds", "streams", "mistakes", "second half", "rounds/s"]


def parts(results: Path) -> dict[str, str]:
    """Return the page's table by its marker, from the lines of `python -m benchmarks sketch --keep`."""
    rows = pd.read_csv(results / "second-order.csv").to_dict("records")
    return {"second-order": markdown_table(HEAD, [line(row) for row in rows], "lrllr")}


def line(row: dict[Hashable, Any]) -> list[str]:
    """Return a line of the table."""
    size, rounds, rate = f"{row['K']} x {row['d']:,}", f"{row['rounds']:,}", f"{row['rate']:,}"
    mistakes = [f"{row[half]:.2f}" for half in ("mistakes", "later")]
    return [row["stream"], size, row["agent"], row["second_order"], rounds, str(row["streams"]), *mistakes, rate]
