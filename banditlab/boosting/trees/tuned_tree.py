"""What both very fast decision trees are told: their tuning, drawn where it is "random", and which columns are nominal."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

import numpy as np

from banditlab.boosting.weak.tuning import GRACE_PERIODS, LOOSENESS
from banditlab.boosting.weak.weak_learner import ProbableLearner
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least, number


class TunedTree(ProbableLearner):
    """A tree's tuning, drawn where it is "random", and which columns are nominal features."""

    state_constants: ClassVar[tuple[str, ...]] = ("_numeric", "_ordered", "_nominal")

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        grace_period: float | str,
        split_confidence: float | str,
        tie_threshold: float | str,
        one_hot: list[int] | None,
        ordered: list[int] | None,
    ) -> None:
        super().__init__(problem, rng)
        low, high = GRACE_PERIODS
        drawn_period = int(self.rng.integers(low, high, endpoint=True))
        least, most = (math.log(end) for end in LOOSENESS)
        drawn = np.exp(self.rng.uniform(least, most, size=2)).tolist()  # drawn whether used or not
        self.grace_period = number("grace_period", drawn_period if grace_period == "random" else grace_period, "random")
        if not 1.0 <= self.grace_period < math.inf:
            raise UsageError(f"grace_period must be at least 1 and finite, got {self.grace_period:g}")
        self.split_confidence = _share(
            "split_confidence", drawn[0] if split_confidence == "random" else split_confidence
        )
        self.tie_threshold = _share("tie_threshold", drawn[1] if tie_threshold == "random" else tie_threshold)
        self.one_hot = _integers("one_hot", one_hot, 1)
        ends = list(itertools.accumulate(self.one_hot))
        self._numeric = ends[-1] if ends else 0
        if self._numeric > problem.n_features:
            raise UsageError(f"one_hot: {self._numeric} columns, but contexts have {problem.n_features}")
        self.ordered = _integers("ordered", ordered, 0)
        if len(set(self.ordered)) < len(self.ordered) or max(self.ordered, default=-1) >= len(ends):
            raise UsageError(f"ordered must be different numbers of features of one_hot, got {self.ordered}")
        groups = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
        self._ordered = [groups[i] for i in self.ordered]
        self._nominal = [group for group in groups if group not in self._ordered]


def category(columns: list[float]) -> float:
    """Return the number of the largest of one-hot columns, -1 where none is positive."""
    largest = max(columns)
    return float(columns.index(largest)) if largest > 0.0 else -1.0


def _integers(name: str, given: object, least: int) -> list[int]:
    """Return a list of integers that are `least` or above; None is the empty list."""
    if given is not None and not isinstance(given, list | tuple):
        raise UsageError(f"{name} must be a list of integers, got {given!r}")
    return [at_least(name, value, least) for value in given or ()]


def _share(name: str, value: object) -> float:
    share = number(name, value, "random")
    if not 0.0 < share < 1.0:
        raise UsageError(f"{name} must lie strictly between 0 and 1, got {share:g}")
    return share
