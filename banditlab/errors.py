"""Errors by cause. Every message is one line that names the file, key or argument and says what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence


class BanditlabError(Exception):
    """Base of every error this package raises on purpose."""


class UsageError(BanditlabError, ValueError):
    """The request was wrong (a setting, a key, a file): the command line exits with 2."""


class ClusterError(BanditlabError):
    """A cluster cannot be reached or does nothing: finished runs are stored, the command line exits with 2."""


class FaultError(UsageError):
    """One fault of a table. Several are collected before they are reported, with the command that corrects them all.

    Attributes
    ----------
    options
        The command line's options that correct it: ("--drop-column", "id"); empty where none does.
    """

    def __init__(self, message: str, *options: str) -> None:
        super().__init__(message)
        self.options = options


class FaultyTableError(UsageError):
    """All faults of a table, and the command that corrects them.

    Attributes
    ----------
    faults
        One line each.
    command
        The corrected `banditlab compare ...`; "" where some fault has no option that corrects it.
    loss
        What that leaves out of the rows and classes; "" for nothing.
    """

    def __init__(self, faults: Sequence[str], command: str, loss: str = "") -> None:
        several = len(faults) > 1
        head = f"{len(faults)} faults: " if several else ""
        corrected = f"corrected{f' ({loss})' if loss else ''}: {command}"
        super().__init__(head + "; ".join(faults) + (f"; {corrected}" if command and several else ""))
        self.faults, self.command, self.loss = list(faults), command, loss


class IncompatibleError(BanditlabError):
    """This player cannot play this problem (AIOLI at :math:`K > 2`): a sweep records the pair as skipped, with the
    reason.
    """


class HorizonRequiredError(IncompatibleError):
    """A "theory" setting needs the horizon T and the problem declares it unknown."""


class PlayerError(BanditlabError):
    """A player broke its contract during a run: an action out of range, probabilities that do not sum to 1."""


class EnvironmentContractError(BanditlabError):
    """An environment broke its contract during a run."""


class UnknownDecisionError(UsageError):
    """Feedback for a decision that is not open: never taken here, answered before, or given up as too old."""


class LogError(BanditlabError):
    """A policy's log cannot be read or written: acknowledged requests are stored, the failed one is not."""


CLOSE = 0.6
"""Likeness, of 1, from which a name is suggested for another: "fastbc" for "fastcb", never "envs" for "nonsense"."""


def nearest(name: str, known: Iterable[str], *, keep_order: bool = False) -> str:
    """Return "; did you mean 'x'?" if a known name is close, then the list of all of them, each once.

    An environment's name may be given without its room and version: "Sparse" is close to "banditlab/Sparse-v0". The list
    is sorted, or in the order given where that order means something (`keep_order`).
    """
    names = list(dict.fromkeys(known)) if keep_order else sorted(set(known))
    likeness = {known: max(_likeness(name, known), _likeness(_bare(name), _bare(known))) for known in names}
    best = max(names, key=likeness.__getitem__, default="")
    hint = f"; did you mean {best!r}?" if best and likeness[best] >= CLOSE else ""
    return f"{hint} (known: {', '.join(names) or 'none'})"


def _likeness(name: str, known: str) -> float:
    return difflib.SequenceMatcher(None, known, name).ratio()


def _bare(name: str) -> str:
    """Return "sparse" of "banditlab/Sparse-v0"."""
    return re.sub(r"-v\d+$", "", name.rpartition("/")[2].lower())
