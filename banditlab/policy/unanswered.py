"""Which decisions of a log count: a prefix of them in their order, so that late answers cannot look like a change.

A mistake rate over answers in order of arrival is wrong where hits are answered sooner than misses. Here decision i counts only
when it and every decision before it were answered or are past their deadline. X_1, X_2, ... is then the same sequence at
whatever time one looks, and only its length depends on the answers: what holds for all lengths at once holds.

An answer after the deadline leaves its decision out, as no answer does. Were it counted, the newest decisions would be those
that are answered fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WINDOW = 1000
"""Later decisions within which an answer counts, where no time was set."""
Floats = NDArray[np.float64]


class Answers(NamedTuple):
    """Answers to the n decisions of a log, each (n,), in the decisions' order; NaN where there is none."""

    place: Floats
    """Place of the answer among all events."""
    at: Floats
    """Time of the answer, seconds since 1970."""
    correct: Floats
    """1.0 where it says right, 0.0 where it says wrong."""


def matched(seq: Floats, answers: Floats) -> Answers:
    """Return the answers to the decisions at the places seq (n,) from the rows place, time, decision and bit, (4, m)."""
    found = np.full((3, len(seq)), np.nan)
    answers = answers[:, np.isin(answers[2], seq)]  # of decisions that were removed from the log
    found[:, np.searchsorted(seq, answers[2])] = answers[[0, 1, 3]]
    return Answers(*found)


class Counted(NamedTuple):
    """Which of n decisions count."""

    places: NDArray[np.intp]
    """(m,) those that count, increasing."""
    waiting: int
    """How many may still be answered in time."""
    in_time: NDArray[np.bool_]
    """(p,) of the first p, whose deadlines are over: whether they were answered before."""

    @property
    def left_out(self) -> int:
        """How many were not answered in time."""
        return int(np.count_nonzero(~self.in_time))


def counted(seq: Floats, answers: Answers) -> Counted:
    """Return which decisions count of those at the places seq (n,) among all events."""
    deadline = np.concatenate([seq[WINDOW:], np.full(min(len(seq), WINDOW), np.inf)])
    in_time, past = answers.place < deadline, np.isfinite(deadline)
    open_ = ~(in_time | past)
    end = int(open_.argmax()) if open_.any() else len(seq)
    return Counted(np.flatnonzero(in_time[:end]), int(np.count_nonzero(open_)), in_time[past])
