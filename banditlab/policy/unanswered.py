"""Decisions without feedback: the rule for them, and which decisions of a log count.

Decisions count in their order, so late answers cannot look like a change. (A mistake rate over answers in order of
arrival is wrong if hits are answered sooner than misses.) Decision i counts only if it and every decision before it
were answered or are past their deadline. X_1, X_2, ... is then the same sequence at any time of inspection, and only
its length depends on the answers. A statement for all lengths at once therefore holds.

A decision whose feedback arrives after the deadline is left out, like one without feedback. Otherwise the newest
decisions that count would be those with fast answers.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from banditlab.errors import UsageError
from banditlab.policy.choice import short
from banditlab.validation import one_of

WINDOW = 1000
"""Later decisions within which an answer counts, where no time was set."""
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0, "days": 86400.0}
"""Seconds in a unit of a duration."""
DURATION = re.compile(f"([0-9]{{1,9}}(?:[.][0-9]{{1,9}})?) ?({'|'.join(UNITS)})")
UNEQUAL = 0.001
"""Level of the test whether all groups of decisions are answered equally often."""
FEWEST = 5.0
"""Expected decisions with and without an answer that a group has in that test (Cochran's rule)."""
Floats = NDArray[np.float64]


class Unanswered(NamedTuple):
    """The rule for decisions whose feedback does not arrive in time; created by `checked`."""

    treated_as: str = "ignored"
    """ "ignored": nothing is learnt from it. "wrong": it is closed, and learnt from, as an action that was wrong."""
    after: str = ""
    """How long an answer may take, for instance "30 min"; "" is for ever."""

    @property
    def seconds(self) -> float:
        """The deadline of an answer."""
        number, _, unit = self.after.partition(" ")
        return float(number) * UNITS[unit] if self.after else np.inf


def checked(unanswered: str | None = None, after: str | None = None) -> Unanswered | None:
    """Return the rule for the two settings, or None if neither is given.

    Raises
    ------
    UsageError
        A word is unknown, `after` is given alone, "wrong" has no `after`, or `after` is not a duration above 0.
    """
    if unanswered is None and not after:
        return None
    one_of("unanswered", str(unanswered)[:60], ("ignored", "wrong"))
    match = DURATION.fullmatch(str(after or ""))
    if match and float(match[1]) > 0.0:
        return Unanswered(str(unanswered), f"{match[1]} {match[2]}")
    if after or unanswered == "wrong":
        raise UsageError(f'after must be a duration above 0 such as "30 min" ({", ".join(UNITS)}), got {short(after)}')
    return Unanswered()


class Counted(NamedTuple):
    """Which of n decisions count."""

    places: NDArray[np.intp]
    """(m,) those that count, increasing."""
    waiting: int
    """How many may still be answered in time."""
    in_time: NDArray[np.bool_]
    """(p,) of the first p, whose deadlines are over: whether they were answered before."""


def counted(seq: Floats, at: Floats, place: Floats, moment: Floats, last: float, rule: Unanswered) -> Counted:
    """Return which decisions count.

    Parameters
    ----------
    seq, at
        (n,) the decisions' places among all events, and their times in seconds since 1970.
    place, moment
        (n,) the places and times of their answers; NaN where there is none. A decision that was closed is answered.
    last
        Time of the log's last event.
    rule
        The rule for a decision's deadline; without a time, the deadline is `WINDOW` later decisions.
    """
    deadline, answered, past = np.full(len(seq), np.inf), place, np.zeros(len(seq), np.bool_)
    if rule.treated_as == "ignored" and rule.after:
        deadline, answered, past = at + rule.seconds, moment, at + rule.seconds < last
    elif rule.treated_as == "ignored":
        deadline[:-WINDOW], past[:-WINDOW] = seq[WINDOW:], True
    in_time = answered <= deadline
    open_ = ~(in_time | past)
    end = int(open_.argmax()) if open_.any() else len(seq)
    return Counted(np.flatnonzero(in_time[:end]), int(np.count_nonzero(open_)), in_time[past])


def unequal(answered: NDArray[np.bool_], group: NDArray[np.int64]) -> list[tuple[int, float]]:
    """Return the groups whose decisions get feedback most and least often, with their shares, or [] if the shares do
    not differ significantly.

    The arguments have one entry per decision (n,): whether it was answered, and its group, numbered from 0. The test is
    Pearson's chi-squared test at the level `UNEQUAL`, without groups that are too small. The expected share is that of
    all decisions, so the statistic of L groups is asymptotically at most chi-squared with L degrees of freedom.
    """
    sizes, share = np.bincount(group), answered.sum() / max(len(answered), 1)
    large = np.flatnonzero(sizes * min(share, 1.0 - share) >= FEWEST)
    shares = np.bincount(group, answered)[large] / sizes[large]
    statistic = (sizes[large] * (shares - share) ** 2).sum()
    if len(large) < 2 or chdtrc(len(large), statistic / (share * (1.0 - share))) >= UNEQUAL:
        return []
    return [(int(large[at]), float(shares[at])) for at in (shares.argmax(), shares.argmin())]
