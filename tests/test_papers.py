"""docs/papers.md says what is: its files exist, its names are defined where it says, and no bound of the papers is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from banditlab.bounds import THEOREMS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
COLUMNS = 5


def rows() -> list[list[str]]:
    """Return the cells of all four tables, without their heads."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("section", "---")]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def defines(text: str, name: str) -> bool:
    """Whether a module's text defines the name, at its top level or as a method."""
    return re.search(rf"^ *(?:def|class) {name}\b|^{name}(?::[^=]+)? =", text, re.MULTILINE) is not None


def test_the_four_papers_have_their_tables() -> None:
    assert re.findall(r"^## (\d+)$", PAGE, re.MULTILINE) == ["000", "001", "002", "003"]
    assert len(rows()) >= 55
    assert all(len(row) == COLUMNS for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}: {row[1][:40]}")
def test_a_row_is_true(row: list[str]) -> None:
    section, _, code, test, figure = row
    for place in named(code):
        file, _, name = place.partition(":")
        path = ROOT / "banditlab" / file
        assert path.is_file(), place
        assert defines(path.read_text("utf-8"), name), place
    assert all((ROOT / "tests" / file).is_file() for file in named(test)), test
    assert all((ROOT / "docs" / file).is_file() for file in named(figure)), figure
    assert all(cell == "-" or named(cell) for cell in (code, test, figure))
    # what is here has a test, and a test that names it or its file
    if code != "-":
        said = "".join((ROOT / "tests" / file).read_text("utf-8") for file in named(test))
        assert said, section


def test_a_row_without_code_says_why() -> None:
    for section, what, code, _, figure in rows():
        if code == "-" and figure == "-":
            assert re.search(r"open in the paper|not here|see below", what), section


def test_the_page_names_what_the_bounds_register() -> None:
    """Every theorem that cites one of the four papers stands in a module that the page names."""
    modules = {place.partition(":")[0] for row in rows() for place in named(row[2])}
    papers = ("Agarwal, Kale and Zimmert, ALT 2022", "Jézéquel, Gaillard and Rudi", "Jung, Goetz and Tewari")
    for theorem in THEOREMS.values():
        if theorem.source.startswith(papers):
            file = theorem.function.__module__.removeprefix("banditlab.").replace(".", "/") + ".py"
            assert file in modules, (theorem.name, file)


def test_the_checks_see_what_is_false() -> None:
    assert defines("class A:\n    def b(self): ...\n", "b")
    assert not defines("from x import b\n", "b")
    assert not defines("abc = 1\n", "ab")
