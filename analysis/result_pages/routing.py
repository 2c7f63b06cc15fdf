"""docs/results/routing.md: which language model answers a prompt."""

from __future__ import annotations

from pathlib import Path

from analysis.result_pages._several_right import FILE, costs, read, shares

TABLES = ("pareto", "pareto-costs", "mmlu", "cascade")


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, by marker."""
    lines = read(results / FILE)
    return {"shares": shares(lines, TABLES), "costs": costs(lines, TABLES[:2])}
