"""River's very fast decision tree as a weak learner (Domingos and Hulten, KDD 2000)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from banditlab.boosting.trees.tuned_tree import TunedTree, category
from banditlab.boosting.weak.weak_learner import Floats
from banditlab.distributions import library
from banditlab.problem import Problem
from banditlab.validation import one_of


class HoeffdingTree(TunedTree):
    """A very fast decision tree: a leaf splits once enough weight has shown which feature is best.

    The classes' shares at the leaf are the estimate; classes never seen there have none, and before the first example all
    are equal. Features are numeric, with Gaussian estimates of each class at a leaf, as river does by default, but for those
    of `one_hot`, which are nominal: counts at a leaf, and a branch for each category where one is split.

    Cost: whatever river takes, in dictionaries: at d = 5 about 3 us a prediction, which reads the leaf's counts where river's
    own `predict_proba_one` copies them, and 15 us an update, 40 with the attempts to split. A nominal column read as such
    instead of as one-hot columns saves as many times as it has categories: five times the time on UCI's car.

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
    ordered
        Which of them, counted from 0, have categories in their order: each is one numeric feature, its category's number,
        -1 where all its columns are 0.

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
        grace_period: float | Literal["random"] = "random",
        split_confidence: float | Literal["random"] = "random",
        tie_threshold: float | Literal["random"] = "random",
        leaf_prediction: Literal["mc", "nb", "nba"] = "mc",
        one_hot: list[int] | None = None,
        ordered: list[int] | None = None,
    ) -> None:
        super().__init__(problem, rng, grace_period, split_confidence, tie_threshold, one_hot, ordered)
        self.leaf_prediction = one_of("leaf_prediction", leaf_prediction, ("mc", "nb", "nba"))
        library("river.tree", self.id)
        from banditlab.boosting.trees.river_tree import OpenHoeffdingTree, SteadyGaussianSplitter

        settings: dict[str, Any] = {
            "grace_period": self.grace_period,
            "delta": self.split_confidence,
            "tau": self.tie_threshold,
            "leaf_prediction": self.leaf_prediction,
            "nominal_attributes": [first for first, _ in self._nominal],
        }
        self._tree = OpenHoeffdingTree(**settings, splitter=SteadyGaussianSplitter())

    def view(self, context: Floats) -> dict[int, float]:
        """Return the context as river reads it: the number of a feature's first column, and its value or category."""
        values = context.tolist()
        categories = {first: category(values[first:end]) for first, end in [*self._nominal, *self._ordered]}
        return categories | dict(enumerate(values[self._numeric :], self._numeric))

    def estimate(self, context: Any, q: Floats) -> None:
        """Write the leaf's estimate into q (K,)."""
        features = context if isinstance(context, dict) else self.view(context)
        counted = self.leaf_prediction == "mc"
        found = self._tree.weights_one(features) if counted else self._tree.predict_proba_one(features)
        total = sum(found.values())
        if not total > 0.0:
            q.fill(1.0)  # nothing is known
            return
        q.fill(0.0)
        scale = 1.0 / total if counted else 1.0
        for label, weight in found.items():
            q[label] = weight * scale

    def update(self, context: Any, label: int, weight: float) -> None:
        """Learn an example; at weight 0 nothing happens."""
        if weight > 0.0:
            features = context if isinstance(context, dict) else self.view(context)
            self._tree.learn_one(features, int(label), w=weight)
