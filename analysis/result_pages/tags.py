"""docs/results/tags.md: several tags are right."""

from __future__ import annotations

from pathlib import Path

from analysis.result_pages._several_right import FILE, read, shares

TABLES = ("emotions", "scene", "yeast", "medical", "bibtex", "tmc2007-500")


def parts(results: Path) -> dict[str, str]:
    """Return the page's table, by marker."""
    return {"shares": shares(read(results / FILE), TABLES)}
