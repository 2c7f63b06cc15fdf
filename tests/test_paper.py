"""paper/paper.md: each number stands in the table of docs/results that a comment above it names; each citation is in paper.bib.

A comment `<!-- numbers: FILE; COLUMN * FACTOR; KEY=VALUE, KEY=VALUE; ... -->` gives the numbers of the block below it in their
order: the cells of a column, for each row that the conditions name; `*` is all rows, whose cells are then the same.
"""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FRONT, TEXT = (ROOT / "paper" / "paper.md").read_text("utf-8").removeprefix("---\n").split("\n---\n", 1)
BIB = (ROOT / "paper" / "paper.bib").read_text("utf-8")
BLOCKS = [block for block in TEXT.split("\n\n") if block.strip()]
COMMENT = re.compile(r"<!-- numbers: (.*?) -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
NAMES = ("95 % intervals", "Python 3.11")
"""Numbers that are no measurements: a level, a version."""


def numbers_of(block: str) -> list[str]:
    """Return the numbers that a block shows, without those of comments, citations and names."""
    text = re.sub(r"@\w+", "", COMMENT.sub("", block))
    for name in NAMES:
        text = text.replace(name, "")
    return NUMBER.findall(text)


def cells_of(comment: str) -> list[float]:
    """Return the cells that a comment names, in its order, times its factor."""
    file, column, *rows = (part.strip() for part in comment.split(";"))
    name, sign, factor = re.fullmatch(r"(.*?)(?: ([*/]) (\d+))?", column).groups()  # type: ignore[union-attr]
    times = 1.0 if sign is None else float(factor) if sign == "*" else 1 / float(factor)
    with open(ROOT / file, newline="", encoding="utf-8") as opened:
        table = list(csv.DictReader(opened))
    found = []
    for row in rows:
        wanted = [] if row == "*" else [condition.strip().split("=", 1) for condition in row.split(",")]
        cells = {line[name] for line in table if all(line[key] == value for key, value in wanted)}
        assert len(cells) == 1, f"{file}: {row} names the cells {sorted(cells)} of {name}"
        found.append(float(cells.pop()) * times)
    return found


def shows(text: str, value: float) -> bool:
    """Return whether a number is a value rounded to the digits it shows."""
    digits = len(text.partition(".")[2])
    return text.replace(",", "") == f"{value:.{digits}f}"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.sub(r"\W+", " ", COMMENT.sub("", block))[:30].strip())
def test_every_number_stands_in_the_table_it_is_from(block: str) -> None:
    shown = numbers_of(block)
    expected = [cell for comment in COMMENT.findall(block) for cell in cells_of(comment)]
    assert len(shown) == len(expected), f"{shown} in the text, {expected} in the tables"
    assert [(text, value) for text, value in zip(shown, expected) if not shows(text, value)] == []


def test_a_number_that_is_not_in_its_table_is_found() -> None:
    cells = cells_of("docs/results/intervals-coverage.csv; covered * 100; data=normal, n=10; data=skewed, n=10")
    assert [shows(text, value) for text, value in zip(("95.2", "84.0"), cells)] == [True, True]
    assert [shows(text, value) for text, value in zip(("95.3", "84"), cells)] == [False, True]
    assert numbers_of("[@li2010contextual] 1,046 µs and 3.5 with 95 % intervals") == ["1,046", "3.5"]
    with pytest.raises(AssertionError, match="names the cells"):
        cells_of("docs/results/intervals-coverage.csv; covered; data=normal")


def test_citations_and_references_are_the_same() -> None:
    assert set(re.findall(r"@(\w+)", TEXT)) == set(re.findall(r"^@\w+\{(\w+),", BIB, re.MULTILINE))


def test_it_has_the_form_that_the_journal_asks_for() -> None:
    head = yaml.safe_load(FRONT)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert [author["name"] for author in head["authors"]] == [author["name"] for author in project["authors"]]
    assert head["bibliography"] == "paper.bib"
    headings = re.findall(r"^# (.*)$", TEXT, re.MULTILINE)
    assert {"Summary", "Statement of need", "State of the field", "Design", "Research use", "References"} <= set(
        headings
    )
    words = [word for word in COMMENT.sub("", TEXT).split() if re.search(r"\w", word)]
    assert 750 <= len(words) <= 1250
