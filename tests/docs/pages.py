"""The blocks of code of a page, in their order, with what the page says of them: files, outputs, what they need."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = ("python", "sh", "toml", "text")
REASONS = ("it installs", "it is what builds this page")
"""Why a block may be left out: nothing else is a reason."""
_PIECE = re.compile(r"^<!-- (?P<mark>[^>]*) -->$|^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A block of code: its language, where it stands, and the marks above it."""

    page: str
    line: int
    language: str
    code: str
    marks: dict[str, str] = field(default_factory=dict)
    output: str | None = None
    """The block of text behind it: what it prints."""


def runnable_pages() -> list[Path]:
    """Return the pages written by hand whose code is run: all that have some, but for result pages, notes and proofs."""
    pages = [DOCS / name for name in ("index.md", "start.md", "glossary.md")]
    return pages + sorted((DOCS / "tutorials").glob("*.md")) + sorted((DOCS / "how-to").glob("*.md"))


def blocks(page: Path) -> list[Block]:
    """Return a page's blocks; a block of text belongs to the block of code before it.

    Raises
    ------
    ValueError
        A language that nothing runs, a mark that stands above no block, an output without code, a reason that is none.
    """
    text, name = page.read_text(encoding="utf-8"), page.relative_to(DOCS).as_posix()
    found: list[Block] = []
    marks: dict[str, str] = {}
    for piece in _PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["mark"] is not None:
            key, _, value = piece["mark"].partition(":")
            if key in ("file", "needs", "not run", "exit"):
                marks[key] = value.strip()
            continue
        language = piece["language"]
        if language not in LANGUAGES:
            raise ValueError(f"{name}, line {line}: nothing runs {language!r}")
        if language == "text":
            if not found or found[-1].output is not None or marks:
                raise ValueError(f"{name}, line {line}: an output without the code that prints it")
            found[-1].output = piece["code"]
            continue
        if "not run" in marks and marks["not run"] not in REASONS:
            raise ValueError(f"{name}, line {line}: {marks['not run']!r} is no reason to leave a block out")
        if language == "toml" and "file" not in marks:
            raise ValueError(f"{name}, line {line}: a file without its name")
        found.append(Block(name, line, language, piece["code"], marks))
        marks = {}
    if marks:
        raise ValueError(f"{name}: {marks} stands above no block")
    return found


def agrees(expected: str, printed: str) -> bool:
    """Return whether what was printed is what a page shows: "..." is any text within a line, a line of it any one line."""
    wanted, lines = expected.strip().split("\n"), printed.strip().split("\n")
    patterns = [re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in wanted]
    return len(wanted) == len(lines) and all(
        re.fullmatch(pattern, line.rstrip()) for pattern, line in zip(patterns, lines, strict=True)
    )
