"""Text for a terminal, in which control characters from files or plug-ins have no effect."""

from __future__ import annotations

import unicodedata
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def plain(text: str) -> str:
    """Replace the control characters of a text, except line ends and tabs, by their escapes."""
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else ascii(c)[1:-1] for c in text)


def one_line(text: object) -> str:
    """Return a text without its line breaks."""
    return " ".join(str(text).split())


def say(out: Console, text: str, style: str | None = None) -> None:
    """Print a text; on a terminal, long lines are broken at spaces only."""
    lines = plain(text).split("\n")
    if out.is_terminal:
        lines = [fill(line, out.width, break_long_words=False, break_on_hyphens=False) for line in lines]
    out.print("\n".join(lines), style=style, markup=False, highlight=False, emoji=False, soft_wrap=True)
