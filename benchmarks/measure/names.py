"""Options that are names with commas between them."""

from __future__ import annotations

from collections.abc import Iterable

from banditlab.errors import UsageError, nearest


def picked(option: str, text: str | None, known: Iterable[str]) -> list[str]:
    """Return the names that an option's text gives, each of the known ones; all of these where it gives none."""
    names = list(dict.fromkeys(known))
    wanted = [name.strip() for name in text.split(",")] if text else names
    for name in wanted:
        if name not in names:
            raise UsageError(f"--{option}: {name!r} is not known{nearest(name, names, keep_order=True)}")
    return wanted
