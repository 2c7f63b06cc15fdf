"""The package's errors. Every message is one line that names the file, key or argument and says what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence


class BanditlabError(Exception):
    """Base class of the errors that this package raises."""


class UsageError(BanditlabError, ValueError):
    """Invalid input, for instance a setting, a key or a file; the exit code of the command line is 2."""


class ClusterError(BanditlabError):
    """A cluster cannot be reached or does not respond; finished runs are stored, and the exit code is 2."""


class FaultError(UsageError):
    """One fault of a table. All faults are collected and reported together, with the command that corrects them.

    Attributes
    ----------
    options
        The options of the command line that correct it, such as ("--drop-column", "id"); empty if there are none.
    """

    def __init__(self, message: str, *options: str) -> None:
        super().__init__(message)
        self.options = options


class FaultyTableError(UsageError):
    """All faults of a table, and the command that corrects them.

    Attributes
    ----------
    faults
        The faults, one line of text each.
    command
        The corrected `banditlab compare ...` command; "" if a fault has no option that corrects it.
    loss
        The rows and classes that this command leaves out; "" if there are none.
    """

    def __init__(self, faults: Sequence[str], command: str, loss: str = "") -> None:
        several = len(faults) > 1
        head = f"{len(faults)} faults: " if several else ""
        corrected = f"corrected{f' ({loss})' if loss else ''}: {command}"
        super().__init__(head + "; ".join(faults) + (f"; {corrected}" if command and several else ""))
        self.faults, self.command, self.loss = list(faults), command, loss


class IncompatibleError(BanditlabError):
    """The agent or forecaster does not support the problem (for example AIOLI with :math:`K > 2`); a sweep skips such runs."""


class HorizonRequiredError(IncompatibleError):
    """A "theory" setting needs the horizon T, and the problem's horizon is unknown."""


class PlayerError(BanditlabError):
    """An agent or forecaster violated its contract, for example by probabilities with a wrong sum."""


class EnvironmentContractError(BanditlabError):
    """An environment violated its contract during a run."""


class UnknownDecisionError(UsageError):
    """Feedback on a decision that is not open: it is unknown, already has feedback, or was closed as too old."""


class LogError(BanditlabError):
    """A policy's log cannot be read or written; acknowledged requests are stored, and the failed request is not."""


CLOSE = 0.6
"""The least similarity, in [0, 1], with which a known name is suggested: "fastcb" for "fastbc", but not "envs" for "nonsense".
"""


MOST_LISTED = 20
"""The largest number of known names that are listed next to a suggestion; without a suggestion all are listed."""


def nearest(name: str, known: Iterable[str], *, keep_order: bool = False) -> str:
    """Return "; did you mean 'x'?" if a known name is similar, followed by the list of known names, each once.

    If there is a suggestion, a list of more than `MOST_LISTED` names is left out.
    The namespace and version of an environment are ignored: "Sparse" is close to "banditlab/Sparse-v0". The list is
    sorted, or in the given order with `keep_order`.
    """
    names = list(dict.fromkeys(known)) if keep_order else sorted(set(known))
    likeness = {known: max(_likeness(name, known), _likeness(_bare(name), _bare(known))) for known in names}
    best = max(names, key=likeness.__getitem__, default="")
    hint = f"; did you mean {best!r}?" if best and likeness[best] >= CLOSE else ""
    if hint and len(names) > MOST_LISTED:
        return hint
    return f"{hint} (known: {', '.join(names) or 'none'})"


def _likeness(name: str, known: str) -> float:
    return difflib.SequenceMatcher(None, known, name).ratio()


def _bare(name: str) -> str:
    """Return, for example, "sparse" for "banditlab/Sparse-v0"."""
    return re.sub(r"-v\d+$", "", name.rpartition("/")[2].lower())
