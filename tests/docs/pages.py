"""The blocks of code of a page, in their order, with what the page says of them: files, outputs, what they need."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = ("python", "sh", "toml", "text")
MARKS = ("file", "needs", "exit")
FOLDERS = ("", "tutorials", "how-to", "theory", "results")
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


def all_pages() -> list[Path]:
    """Return every page written by hand: those of docs, and of the repository's own folder."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return pages + [page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))]


def name_of(page: Path) -> str:
    """Return a page's path below docs, or its name where it stands above."""
    return page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else page.name


def blocks(page: Path) -> list[Block]:
    """Return a page's blocks; a block of text belongs to the block of code before it.

    Raises
    ------
    ValueError
        A language that nothing runs, a mark that stands above no block or says that a block is not run (`not_run.py` does), an
        output without code.
    """
    text, name = page.read_text(encoding="utf-8"), name_of(page)
    found: list[Block] = []
    marks: dict[str, str] = {}
    for piece in _PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["mark"] is not None:
            key, _, value = piece["mark"].partition(":")
            if key == "not run":
                raise ValueError(
                    f"{name}, line {line}: blocks that are not run are named in tests/docs/not_run.py only"
                )
            if key in MARKS:
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
