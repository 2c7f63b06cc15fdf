"""README.md: its length, and the numbers of its two tables, which are those of docs/results. tests/docs runs its code."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SPEED = {
    "`banditron`": "banditron gamma=0.1",
    "`fastcb`": "fastcb second_order=full",
    "SquareCB (first-order), Vowpal Wabbit's C++ driver": "vw cbify=--squarecb",
    "`stackcb`": "stackcb second_order=full",
    "LinUCB, river": "river-linucb",
    "LinUCB, MABWiser": "mabwiser-linucb",
}
"""Agents of the table of times, and their players in docs/results/speed.csv."""
STRENGTH = {
    "`fastcb`": "`fastcb`",
    "MABWiser LinUCB, tuned": "`mabwiser-linucb` tuned",
    "boosted trees, refitted": "boosted trees 0.01",
    "river LinUCB": "`river-linucb`",
    "Vowpal Wabbit, tuned": "`vw` tuned",
}
"""Agents of the table of mistakes, and their names in docs/results/rivals.md."""


def rows_under(heading: str) -> dict[str, list[str]]:
    """Return the rows of a section's table by their first cell."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    return {name: rest for name, *rest in cells[2:]}


def test_it_has_at_most_900_words() -> None:
    assert len(README.split()) <= 900


@pytest.mark.parametrize("agent", SPEED)
def test_times_are_those_of_the_table_of_speed(agent: str) -> None:
    with open(ROOT / "docs" / "results" / "speed.csv", newline="", encoding="utf-8") as opened:
        lines = [line for line in csv.DictReader(opened) if line["stream"] == "digits"]
    [measured] = {line["nanoseconds"] for line in lines if line["player"] == SPEED[agent]}
    [shown] = rows_under("How fast")[agent]
    digits = len(shown.partition(".")[2])
    assert shown.replace(",", "") == f"{float(measured) / 1000:.{digits}f}"


@pytest.mark.parametrize("agent", STRENGTH)
def test_mistakes_are_those_of_the_results_page(agent: str) -> None:
    page = (ROOT / "docs" / "results" / "rivals.md").read_text("utf-8")
    [line] = re.findall(rf"^\| {re.escape(STRENGTH[agent])} \| 35 \|.*$", page, re.MULTILINE)
    _, _, _, mean, _, better, worse = (cell.strip() for cell in line.strip("|").split("|"))
    assert rows_under("How strong")[agent] == [mean, better, worse]


def test_the_tables_have_no_other_rows() -> None:
    assert set(rows_under("How fast")) == set(SPEED)
    assert set(rows_under("How strong")) == set(STRENGTH)
