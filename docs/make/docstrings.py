"""A Sphinx extension: docstrings as reStructuredText, where only formulas, code, lists and sections are markup."""

from __future__ import annotations

import re
from typing import Any

HEADS = "Problem|Prediction|Update rule|Update|Guarantee|Cost|Errata|Memory|Rounding|Saving|Features|Units"
PIECE = re.compile(
    r"(?P<markup>^( *)\.\. math::[^\n]*\n(?:\2 +[^\n]*\n|\n)*"  # a set-off formula
    r"|^[^\n]+\n-{3,}$|^[*\w, ]+(?=\n {4}\S)"  # a section's title, and the names it defines
    r"|:math:`[^`]*`|^ *\* (?=\S))"
    r"|(?P<ticks>`+)(?P<code>.+?)(?P=ticks)|(?P<sign>[\\*_|])",
    re.MULTILINE | re.DOTALL,
)


def as_rst(text: str) -> str:
    """Return a docstring in which `code` is literal and every other sign of markup stands for itself."""
    text = PIECE.sub(_piece, text + "\n")
    text = re.sub(rf"(?<=\n\n)({HEADS})\b", r"**\1**", text)
    body, title, references = text.partition("References\n----------\n")
    entries = re.sub(r"\n(?!\n|\Z)", "\n  ", references)
    return body + title + re.sub(r"^ *(?=[A-Z]\.[- A-Z])", "* ", entries, flags=re.MULTILINE)


def _piece(found: re.Match[str]) -> str:
    if found["markup"]:
        return found["markup"]
    if found["sign"]:
        return "\\" + found["sign"]
    glued = found.string[found.end() : found.end() + 1].isalnum()
    return f"``{' '.join(found['code'].split())}``" + ("\\ " if glued else "")


def escaped(text: str) -> str:
    """Return prose in which Markdown sees formulas, `$...$`, and code, and no other markup."""
    return re.sub(r"(\$\S[^$]*\$|`[^`]*`)|([\\`*_\[\]<>#$|~{}])", lambda found: found[1] or "\\" + found[2], text)


def _process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    said = "\n".join(lines)
    lines[:] = [] if said.startswith("Alias for field number") else as_rst(said).split("\n")


def _skip(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods that scikit-learn adds to every estimator."""
    return True if getattr(thing, "__module__", "banditlab").startswith("sklearn") else None


def setup(app: Any) -> dict[str, Any]:
    """Rewrite docstrings before numpydoc reads their sections."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("autodoc-skip-member", _skip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
