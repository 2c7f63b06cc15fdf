"""Decisions without feedback: the rule for them, and which decisions of a log count.

Decisions count in their order, so late feedback cannot look like a change. (A mistake rate over feedback in order of
arrival is biased if feedback on hits arrives sooner.) Decision i counts only if it and every decision before it have
feedback or are past their deadline. The sequence of counted decisions is then the same at any time of inspection, and
only its length depends on the arrivals. Statements that hold for all lengths simultaneously are therefore valid.

A decision whose feedback arrives after the deadline is left out, like one without feedback. Otherwise the newest
decisions that count would be those with fast feedback.
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
"""The number of later decisions within which feedback counts, if no time is set."""
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0, "days": 86400.0}
"""Seconds per unit of a duration."""
DURATION = re.compile(f"([0-9]{{1,9}}(?:[.][0-9]{{1,9}})?) ?({'|'.join(UNITS)})")
UNEQUAL = 0.001
"""The level of the test of whether all groups of decisions get feedback equally often."""
FEWEST = 5.0
"""The least expected numbers of decisions with and without feedback per group in that test (Cochran's rule)."""
Floats = NDArray[np.float64]


class Unanswered(NamedTuple):
    """The rule for decisions whose feedback does not arrive in time; created by `checked`."""

    treated_as: str = "ignored"
    """ "ignored": no update. "wrong": the decision is closed with feedback that the action was wrong."""
    after: str = ""
    """The deadline of feedback, for instance "30 min"; "" for none."""

    @property
    def seconds(self) -> float:
        """The deadline of feedback in seconds."""
        number, _, unit = self.after.partition(" ")
        return float(number) * UNITS[unit] if self.after else np.inf


def checked(unanswered: str | None = None, after: str | None = None) -> Unanswered | None:
    """Return the rule for the two settings, or None if neither is given.

    Raises
    ------
    UsageError
        `unanswered` is neither "ignored" nor "wrong", `after` is given alone, "wrong" is given without `after`, or
        `after` is not a duration above 0.
    """
    if unanswered is None and not after:
        return None
    one_of("unanswered", str(unanswered)[:60], ("ignored", "wrong"))
    match = DURATION.fullmatch(str(after or ""))
    if match and float(match[1]) > 0.0:
        return Unanswered(str(unanswered), f"{match[1]} {match[2]}")
    if after or unanswered == "wrong":
        raise UsageError(
            f'after must be a duration above 0 such as "30 min" (units: {", ".join(UNITS)}), got {short(after)}'
        )
    return Unanswered()


class Counted(NamedTuple):
    """The decisions, of n, that count."""

    places: NDArray[np.intp]
    """(m,) the indices of the decisions that count, in increasing order."""
    waiting: int
    """The number of decisions whose feedback may still arrive in time."""
    in_time: NDArray[np.bool_]
    """(p,) whether each of the first p decisions, whose deadlines have passed, got feedback in time."""


def counted(seq: Floats, at: Floats, place: Floats, moment: Floats, last: float, rule: Unanswered) -> Counted:
    """Return which decisions count.

    Parameters
    ----------
    seq, at
        (n,) the decisions' numbers among all events, and their times in seconds since 1970-01-01 UTC.
    place, moment
        (n,) the numbers and times of their feedback; NaN if there is none. A closed decision counts as having feedback.
    last
        The time of the log's last event.
    rule
        The rule for deadlines. If it sets no time, the deadline of a decision is `WINDOW` decisions later.
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
    """Return the groups with the most and the least frequent feedback, each with the frequency, or [] if the
    differences between groups are not significant.

    The arguments have one entry per decision (n,): whether it has feedback, and its group from 0. The test is Pearson's
    chi-squared test at the level `UNEQUAL`, without groups that are too small. The expected fraction is that of all
    decisions, so for L groups the chi-squared distribution with L degrees of freedom gives an asymptotic upper bound on
    the p-value.
    """
    sizes, share = np.bincount(group), answered.sum() / max(len(answered), 1)
    large = np.flatnonzero(sizes * min(share, 1.0 - share) >= FEWEST)
    shares = np.bincount(group, answered)[large] / sizes[large]
    statistic = (sizes[large] * (shares - share) ** 2).sum()
    if len(large) < 2 or chdtrc(len(large), statistic / (share * (1.0 - share))) >= UNEQUAL:
        return []
    return [(int(large[at]), float(shares[at])) for at in (shares.argmax(), shares.argmin())]
