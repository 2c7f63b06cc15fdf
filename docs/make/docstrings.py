"""A docstring as Markdown: its sections, its formulas typeset, nothing in it taken for markup that is none."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from docs.make.plain_math import pieces

SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Attributes", "References", "Notes", "Examples")
HEADS = re.compile(r"(Problem|Prediction|Update rule|Guarantee|Cost|Errata|Memory|Rounding|Saving|Features)\b")
"""What a paragraph of an algorithm's docstring begins with, and what becomes a heading."""


class Docstring(NamedTuple):
    """What a docstring says: its first line, the prose below, and (name, text) by section."""

    summary: str
    body: str
    sections: dict[str, str]


def read(thing: Any) -> Docstring:
    """Return the docstring of a class, function or module, cut into its parts."""
    text = inspect.getdoc(thing) or ""
    marks = list(re.finditer(rf"^({'|'.join(SECTIONS)})\n-{{3,}}\n", text, re.MULTILINE))
    ends = [*(m.start() for m in marks[1:]), len(text)]
    sections = {m.group(1): text[m.end() : end].strip("\n") for m, end in zip(marks, ends, strict=False)}
    prose = text[: marks[0].start()] if marks else text
    summary, _, body = prose.strip().partition("\n\n")
    return Docstring(" ".join(summary.split()), body.strip("\n"), sections)


def fields(cls: type) -> dict[str, str]:
    """Return what the text below each annotated name of a class says of it, "" where there is none; its own names only."""
    try:
        [body] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    lines = body.body if isinstance(body, ast.ClassDef) else []
    for line, after in zip(lines, [*lines[1:], None], strict=True):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not line.target.id.startswith("_"):
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found[line.target.id] = " ".join(str(said).split())
    return found


def escaped(text: str) -> str:
    """Return prose in which Markdown sees no markup."""
    return re.sub(r"([\\`*_\[\]<>#$|~{}&^])", r"\\\1", text)


def inline(text: str) -> str:
    """Return a paragraph as Markdown on one line: prose, `code`, and formulas as the role the site typesets."""
    found = []
    for kind, said in pieces(text):
        if kind == "math":
            found.append(f"{{formula}}`{said}`")
        elif kind == "code":
            fence = "``" if "`" in said else "`"
            found.append(f"{fence}{said}{fence}")
        else:
            found.append(escaped(said))
    line = " ".join("".join(found).split())
    line = re.sub(r"(?<=\w)\{formula\}`", r" {formula}`", line)  # a role begins a word
    return re.sub(r"^([-+]|\d+[.)])(?=\s)", r"\\\1", line)


def prose(text: str, level: int = 0) -> str:
    """Return paragraphs, lists and set-off lines as Markdown; with a level, paragraphs that begin with a head get a heading."""
    return "\n\n".join(_block(block, level) for block in _blocks(text))


def _blocks(text: str) -> Iterator[str]:
    """Yield the blocks between empty lines; a list's items and what follows them indented stay together."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.strip():
            yield block.rstrip()


def _block(block: str, level: int) -> str:
    lines = block.split("\n")
    if all(line.startswith("    ") for line in lines):
        return "```text\n" + inspect.cleandoc(block) + "\n```"
    if re.match(r"[*-] ", lines[0]):
        items = re.split(r"\n(?=[*-] )", block)
        return "\n".join(f"* {inline(item[2:])}" for item in items)
    head = HEADS.match(block) if level else None
    if head is None:
        return inline(block)
    rest = block[head.end() :].lstrip(":. \n")
    if _is_word(rest):
        rest = rest[0].upper() + rest[1:]
    return f"{'#' * level} {head.group(1)}\n\n{inline(rest)}"


def _is_word(text: str) -> bool:
    """Return whether a text begins with a word of prose, whose first letter may be made a capital."""
    first = text.split()[0] if text else ""
    return len(first) > 2 and first.replace("-", "").isalpha()


def definitions(section: str) -> list[tuple[str, str]]:
    """Return (name, text) of a section in numpy's form: names at the margin, what is said of them indented."""
    found: list[tuple[str, str]] = []
    for line in section.split("\n"):
        if line and not line[0].isspace():
            found.append((line.strip(), ""))
        elif found:
            name, said = found[-1]
            found[-1] = (name, f"{said}\n{line.strip()}")
    return found


def listed(section: str) -> str:
    """Return a section's definitions as a Markdown definition list."""
    rows = []
    for name, said in definitions(section):
        rows.append(f"`{name}`\n: {prose_of_definition(said)}" if said.strip() else f"`{name}`")
    return "\n\n".join(rows)


def prose_of_definition(said: str) -> str:
    """Return what is said of a name, its paragraphs indented under it."""
    return "\n\n  ".join(inline(part) for part in re.split(r"\n\s*\n", said.strip()))


def references(section: str) -> str:
    """Return the references, an entry a line: one ends where the next begins with an author's initial."""
    entries = re.split(r"\n(?=[A-Z][^\s]*\.? )", section.strip())
    return "\n".join(f"* {escaped(' '.join(entry.split()))}" for entry in entries if entry.strip())
