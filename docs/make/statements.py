"""List the numbered items of the papers: theorems, lemmas, definitions, remarks, assumptions, algorithms, tables and figures.

    python -m docs.make.statements FOLDER

writes docs/papers.csv, which `tests/test_papers.py` compares with docs/papers.md. FOLDER holds the papers' texts, a `.txt`
file each, whose name begins with the paper's number in docs/papers.md (`000...`).
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parents[1] / "papers.csv"
ONE_COUNTER = ("Theorem", "Lemma", "Proposition", "Corollary", "Definition", "Remark")
"""Kinds that each of the papers numbers with one counter: a number that is taken cannot be another statement's."""
OF_THEIR_OWN = ("Algorithm", "Table", "Figure")
NAME = rf"\b({'|'.join(ONE_COUNTER + OF_THEIR_OWN)}) (\d+(?:\.\d+)*|[A-Z]\.\d+)\b"
STATED = re.compile(rf"^\W*{NAME}", re.MULTILINE)
MENTIONED = re.compile(NAME)
UNNUMBERED = re.compile(r"^\W*Remark\.\W", re.MULTILINE)
ASSUMED = re.compile(r"^\W*\((A\d)\)", re.MULTILINE)
ANOTHERS = re.compile(
    r"(?: and \w+ [\d.]+)? (?:of|in) (?!Appendix|Section|Algorithm)\W?[A-Z]|(?: and \w+ \d+)? \([A-Z]"
)
"""What follows the mention of another paper's statement: "of Vovk", "in [Jézéquel", "(Foster"."""
CITED = re.compile(r"(?:\[\d+, |their )$")
"""What precedes it."""


class Statement(NamedTuple):
    """One row of the list."""

    paper: str
    kind: str
    number: str
    """As printed; "unnumbered 1" is the first remark that has no number."""


def own_mentions(text: str, decimals: bool) -> list[tuple[str, str]]:
    """Return the statements that a text names without a sign that they are another paper's.

    A paper numbers its theorems either by integers or, where `decimals`, by section and integer; its algorithms by
    integers. The first mention decides where two kinds have one number.
    """
    found = []
    for match in MENTIONED.finditer(text):
        kind, number = match[1], match[2]
        foreign = CITED.search(text[: match.start()]) or ANOTHERS.match(text[match.end() : match.end() + 40])
        if not foreign and ("." in number) == (decimals and kind in ONE_COUNTER):
            found.append((kind, number))
    return found


def statements_of(paper: str, text: str) -> list[Statement]:
    """Return what a paper numbers: what begins a line, and what is only mentioned under a number that is free."""
    stated = [(match[1], match[2]) for match in STATED.finditer(text)]
    decimals = any("." in number for kind, number in stated if kind in ONE_COUNTER)
    found: dict[tuple[str, str], str] = {}
    for kind, number in stated + own_mentions(text, decimals):
        counter = "" if kind in ONE_COUNTER else kind
        found.setdefault((counter, number), kind)
    rows = [Statement(paper, kind, number) for (_, number), kind in found.items()]
    rows += [Statement(paper, "Remark", f"unnumbered {i}") for i, _ in enumerate(UNNUMBERED.findall(text), 1)]
    rows += [Statement(paper, "Assumption", name) for name in dict.fromkeys(ASSUMED.findall(text))]
    return sorted(rows, key=lambda row: ("" if row.kind in ONE_COUNTER else row.kind, _in_order(row.number)))


def _in_order(number: str) -> list[tuple[bool, int, str]]:
    """Return a key that puts 3.2 before 3.10, and letters after numbers."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"[. ]", number)]


def main(arguments: list[str] | None = None) -> int:
    """Write the list of all texts of the folder."""
    parser = argparse.ArgumentParser(prog="python -m docs.make.statements", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the papers' texts, NUMBER*.txt")
    parser.add_argument("--out", type=Path, default=TABLE, help="where the list goes (docs/papers.csv)")
    given = parser.parse_args(arguments)
    texts = sorted(given.folder.glob("[0-9][0-9][0-9]*.txt"))
    if not texts:
        print(f"statements: {given.folder} has no text named NUMBER*.txt, such as 000.txt", file=sys.stderr)
        return 2
    try:
        rows = [row for path in texts for row in statements_of(path.name[:3], path.read_text("utf-8"))]
        with given.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([Statement._fields, *rows])
    except UnicodeDecodeError as error:
        print(f"statements: a text of {given.folder} is not UTF-8: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"statements: {error}", file=sys.stderr)
        return 2
    print(f"statements: {len(rows)} of {len(texts)} texts in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
