"""river's Hoeffding tree as a weak learner (Domingos and Hulten, KDD 2000)."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import numpy as np

from banditlab.boosting._library import river
from banditlab.boosting._weak import Floats, ProbableLearner
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least, number, one_of

GRACE_PERIODS = (5, 20)
LOOSENESS = (0.01, 0.9)
"""Ranges of "random" in the experiments of Jung, Goetz and Tewari: the grace period's, and the other two's."""


class HoeffdingTree(ProbableLearner):
    """A very fast decision tree: a leaf splits once enough weight has shown which feature is best.

    The classes' shares at the leaf are the estimate; classes never seen there have none, and before the first example all
    are equal. Features are numeric, with Gaussian estimates of each class at a leaf, as river does by default, but for those
    of `one_hot`, which are nominal: counts at a leaf, and a branch for each category where one is split.

    Cost: whatever river takes, about 15 us a prediction and 30 us an update at d = 5, in dictionaries. A nominal column read
    as such instead of as one-hot columns saves as many times as it has categories: five times the time on UCI's car.

    Parameters
    ----------
    grace_period
        Weight a leaf must see between two attempts to split, at least 1; "random" draws an integer of 5 ... 20.
    split_confidence
        delta, the probability in (0, 1) of a wrong split that is put up with (river's `delta`); "random" draws it
        log-uniform in [0.01, 0.9].
    tie_threshold
        tau in (0, 1): a difference between features below it is a tie, and the leaf splits (river's `tau`); "random" as
        above.
    leaf_prediction
        "mc", the classes' shares, as in the experiments of the paper; "nb", naive Bayes; "nba", the better of the two,
        river's default.
    one_hot
        How many columns each nominal feature has been made, for instance [4, 4, 3] where the first 11 columns are three
        nominal features of 4, 4 and 3 categories, one-hot; columns after them are numeric. A feature whose columns are all
        0 is of one category more.

    Raises
    ------
    UsageError
        A setting out of range, or river is not installed.

    References
    ----------
    P. Domingos, G. Hulten. Mining high-speed data streams. KDD 2000.
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Appendix E.
    J. Montiel et al. River: machine learning for streaming data in Python. JMLR 22, 2021.
    """

    id = "hoeffding-tree"
    requires = ("river",)
    extra = "boosting"
    summary = "river: a very fast decision tree"
    reference = "Domingos and Hulten, KDD 2000; Montiel et al., JMLR 2021"
    excluded_checks = {
        "saving": "is river's: a Python object, which only pickle can write",
        "bounded_memory": "grows with what it sees, as trees do",
    }

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        grace_period: int | Literal["random"] = "random",
        split_confidence: float | Literal["random"] = "random",
        tie_threshold: float | Literal["random"] = "random",
        leaf_prediction: Literal["mc", "nb", "nba"] = "mc",
        one_hot: list[int] | None = None,
    ) -> None:
        super().__init__(problem, rng)
        low, high = GRACE_PERIODS
        drawn_period = int(self.rng.integers(low, high, endpoint=True))
        least, most = (math.log(end) for end in LOOSENESS)
        drawn = np.exp(self.rng.uniform(least, most, size=2)).tolist()  # drawn whether used or not
        self.grace_period = at_least("grace_period", drawn_period if grace_period == "random" else grace_period, 1)
        self.split_confidence = _share(
            "split_confidence", drawn[0] if split_confidence == "random" else split_confidence
        )
        self.tie_threshold = _share("tie_threshold", drawn[1] if tie_threshold == "random" else tie_threshold)
        self.leaf_prediction = one_of("leaf_prediction", leaf_prediction, ("mc", "nb", "nba"))
        self.one_hot = [at_least("one_hot", size, 1) for size in one_hot or ()]
        ends = list(itertools.accumulate(self.one_hot))
        self._numeric = ends[-1] if ends else 0
        if self._numeric > problem.n_features:
            raise UsageError(f"one_hot: {self._numeric} columns, but contexts have {problem.n_features}")
        self._nominal = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
        self._tree = river("river.tree", self.id).HoeffdingTreeClassifier(
            grace_period=self.grace_period,
            delta=self.split_confidence,
            tau=self.tie_threshold,
            leaf_prediction=self.leaf_prediction,
            nominal_attributes=[first for first, _ in self._nominal],
        )

    def view(self, context: Floats) -> dict[int, float]:
        """Return the context as river reads it: the number of a feature's first column, and its value or category."""
        values = context.tolist()
        categories = {first: _category(values[first:end]) for first, end in self._nominal}
        return categories | dict(enumerate(values[self._numeric :], self._numeric))

    def estimate(self, context: Any, q: Floats) -> None:
        """Write the leaf's estimate into q (K,)."""
        features = context if isinstance(context, dict) else self.view(context)
        q[:] = 0.0
        for label, share in self._tree.predict_proba_one(features).items():
            q[label] = share
        if not q.any():
            q[:] = 1.0  # nothing is known

    def update(self, context: Any, label: int, weight: float) -> None:
        """Learn an example; at weight 0 nothing happens."""
        if weight > 0.0:
            features = context if isinstance(context, dict) else self.view(context)
            self._tree.learn_one(features, int(label), w=weight)


def _category(columns: list[float]) -> float:
    """Return the number of the largest of one-hot columns, -1 where none is positive."""
    largest = max(columns)
    return float(columns.index(largest)) if largest > 0.0 else -1.0


def _share(name: str, value: object) -> float:
    share = number(name, value, "random")
    if not 0.0 < share < 1.0:
        raise UsageError(f"{name} must lie strictly between 0 and 1, got {share:g}")
    return share
