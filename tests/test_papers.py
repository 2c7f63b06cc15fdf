"""docs/papers.md says what is: its files exist, its names are defined where it says, and no statement or bound is left out."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from banditlab.bounds import THEOREMS
from docs.make.statements import OF_THEIR_OWN, ONE_COUNTER, TABLE, main, statements_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
COLUMNS = 5


def table(paper: str) -> list[list[str]]:
    """Return the cells of a paper's table, without its head."""
    section = PAGE.partition(f"\n## {paper}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def rows() -> list[list[str]]:
    """Return the rows of the four papers that differ and of other papers."""
    return [row for paper in ("000", "001", "002", "003", "Other papers") for row in table(paper)]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def defines(text: str, name: str) -> bool:
    """Whether a module's text defines the name, at its top level or as a method."""
    return re.search(rf"^ *(?:def|class) {name}\b|^{name}(?::[^=]+)? =", text, re.MULTILINE) is not None


NUMBER = r"(?:\d+(?:\.\d+)?|[A-Z]\.\d+)"
LISTED = re.compile(rf"\b({'|'.join(ONE_COUNTER + OF_THEIR_OWN)})s? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
REMARKS = re.compile(r"unnumbered remark (\d)")
ASSUMPTIONS = re.compile(r"\(A(\d)\)(?: to \(A(\d)\))?")


def spelled(numbers: str) -> list[str]:
    """Return the numbers of "2", "7, 8 and 15" or "16 to 19"."""
    first, _, last = numbers.partition(" to ")
    if last:
        return [str(n) for n in range(int(first), int(last) + 1)]
    return re.findall(NUMBER, numbers)


def statements(cell: str) -> list[tuple[str, str]]:
    """Return the statements that a cell names, in their order."""
    found = [(kind, number) for kind, numbers in LISTED.findall(cell) for number in spelled(numbers)]
    found += [("Remark", f"unnumbered {number}") for number in REMARKS.findall(cell)]
    for first, last in ASSUMPTIONS.findall(cell):
        found += [("Assumption", f"A{n}") for n in range(int(first), int(last or first) + 1)]
    return found


def numbered(paper: str) -> set[tuple[str, str]]:
    """Return the statements of a paper in the committed list."""
    with TABLE.open(encoding="utf-8") as file:
        return {(row["kind"], row["number"]) for row in csv.DictReader(file) if row["paper"] == paper}


@pytest.mark.parametrize("paper", ["000", "001", "002", "003"])
def test_every_statement_has_a_row_and_every_row_names_statements_that_are(paper: str) -> None:
    named_here = {statement for row in table(paper) for statement in statements(row[0])}
    assert named_here == numbered(paper)
    assert len(named_here) >= 12


def test_every_statement_of_004_is_one_of_000() -> None:
    pairs = [(statements(own), statements(other)) for own, other in table("004")]
    assert {statement for own, _ in pairs for statement in own} == numbered("004")
    assert {statement for _, other in pairs for statement in other} == numbered("000")
    for own, other in pairs:
        assert [kind for kind, _ in own] == [kind for kind, _ in other], (own, other)


TEXT = """Lemma 1 *For any x*, see Theorem 9 of Vovk and [7, Lemma 8] and their Theorem 6.
**Theorem 2.** (Lemma 23 (Foster et al., 2018)) By Lemma 3 in Appendix C and Corollary 2 it holds.
Theorem 10. It is in Figure 1. See Theorem 1.10.5 of Doerr.
**Remark.** So it is.
- (A1) The loss is mixable.
**Remark.** And so.
"""


def test_the_list_has_what_a_text_numbers_and_nothing_of_other_papers() -> None:
    found = [(row.kind, row.number) for row in statements_of("007", TEXT)]
    assert found == [
        *(("Lemma", "1"), ("Theorem", "2"), ("Lemma", "3"), ("Theorem", "10")),
        *(("Remark", "unnumbered 1"), ("Remark", "unnumbered 2"), ("Assumption", "A1"), ("Figure", "1")),
    ]


def test_a_text_numbered_by_section() -> None:
    text = (
        "Lemma 3.10.\nLemma 3.2. By Lemma A.1 and Algorithm 4, and Theorem 8 and Proposition 9 (Foster), Lemma 3.2.\n"
    )
    assert [row[1:] for row in statements_of("004", text)] == [
        *(("Lemma", "3.2"), ("Lemma", "3.10"), ("Lemma", "A.1"), ("Algorithm", "4")),
    ]


def test_the_command_writes_the_list_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "list.csv"
    assert main([str(tmp_path), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"statements: {tmp_path} has no text named NUMBER*.txt, such as 000.txt\n"
    (tmp_path / "007_x.txt").write_text(TEXT, "utf-8")
    assert main([str(tmp_path), "--out", str(out)]) == 0
    lines = out.read_text("utf-8").splitlines()
    assert lines[:2] == ["paper,kind,number", "007,Lemma,1"]
    assert len(lines) == 9
    assert main([str(tmp_path), "--out", str(tmp_path / "gone" / "list.csv")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    (tmp_path / "008.txt").write_bytes(b"\xff\xfe")
    assert main([str(tmp_path), "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"statements: a text of {tmp_path} is not UTF-8: ")


def test_cells_are_read_as_they_are_meant() -> None:
    assert statements("4.2, Lemmas 7, 8 and 15, Tables 1 to 3") == [
        *(("Lemma", "7"), ("Lemma", "8"), ("Lemma", "15"), ("Table", "1"), ("Table", "2"), ("Table", "3")),
    ]
    assert statements("3, Algorithm (2) to (4)") == []
    assert statements("2, (A1) to (A3), unnumbered remark 2")[0] == ("Remark", "unnumbered 2")
    assert statements("Lemmas A.1 and B.4") == [("Lemma", "A.1"), ("Lemma", "B.4")]


def test_the_papers_have_their_tables() -> None:
    assert re.findall(r"^## (\d+)$", PAGE, re.MULTILINE) == ["000", "001", "002", "003", "004"]
    assert len(rows()) >= 85
    assert all(len(row) == COLUMNS for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}: {row[1][:40]}")
def test_a_row_is_true(row: list[str]) -> None:
    section, _, code, test, figure = row
    places = [(ROOT / "banditlab", place) for place in named(code)] + [(ROOT / "tests", place) for place in named(test)]
    for folder, place in places:
        file, _, name = place.partition(":")
        path = folder / file
        assert path.is_file(), place
        assert name or folder.name == "tests", place
        assert not name or defines(path.read_text("utf-8"), name), place
    assert all((ROOT / "docs" / file).is_file() for file in named(figure)), figure
    assert all(cell == "-" or named(cell) for cell in (code, test, figure))
    assert code == "-" or named(test), f"{section}: what is here has a test"


def test_a_row_without_code_says_why() -> None:
    for section, what, code, test, figure in rows():
        if code == "-" and figure == "-":
            assert re.search(r"proof step" if test != "-" else r"open in the paper|not here|see below", what), section


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
