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


class EnvironmentContractError(BanditlabError):
    """An environment broke its contract during a run."""


CLOSE = 0.6
"""Likeness, of 1, from which a name is suggested for another: "fastbc" for "fastcb", never "envs" for "nonsense"."""


def nearest(name: str, known: Iterable[str], *, keep_order: bool = False) -> str:
    """Return "; did you mean 'x'?" if a known name is close, then the list of all of them, each once.

    The list is sorted, or in the order given where that order means something (`keep_order`).
    """
    names = list(dict.fromkeys(known)) if keep_order else sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=CLOSE)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint} (known: {', '.join(names) or 'none'})"
