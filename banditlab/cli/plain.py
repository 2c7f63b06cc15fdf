"""Text for a terminal: what comes from a file, a column's name or a plug-in is shown and steers nothing."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """Return a text in which control characters, but line ends and tabs, stand as their escapes."""
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else ascii(c)[1:-1] for c in text)


def escape(text: str) -> str:
    """Return a text as rich prints it letter by letter: no markup, no control characters."""
    from rich.markup import escape as escape_markup  # takes a moment, which `--help` need not wait for

    return escape_markup(plain(text))
