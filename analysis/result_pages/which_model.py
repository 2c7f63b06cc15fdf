"""docs/tutorials/which-model.md: what to expect on real prompts."""

from __future__ import annotations

from pathlib import Path

from analysis.result_pages._several_right import FILE, read, shares
from analysis.result_pages.routing import TABLES

PLAYERS = ("stackcb", "fastcb", "linucb", "beta-ts", "best single action", "oracle")


def parts(results: Path) -> dict[str, str]:
    """Return the page's table, by marker."""
    return {"shares": shares([line for line in read(results / FILE) if line.player in PLAYERS], TABLES)}
