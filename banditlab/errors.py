"""Errors by cause. Every message is one line that names the file, key or argument and says what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BanditlabError(Exception):
    """Base of every error this package raises on purpose."""


class UsageError(BanditlabError, ValueError):
    """The request was wrong (a setting, a key, a file): the command line exits with 2."""


class IncompatibleError(BanditlabError):
    """This player cannot meet this problem (AIOLI at K > 2): a sweep records the pair as skipped, with the reason."""


class HorizonRequiredError(IncompatibleError):
    """A "theory" setting needs the horizon T and the problem declares it unknown."""


class PlayerError(BanditlabError):
    """A player broke its contract during a run: an action out of range, probabilities that do not sum to 1."""


class EnvironmentError_(BanditlabError):
    """An environment broke its contract during a run."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known name, then the list of all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint} (known: {', '.join(known) or 'none'})"
