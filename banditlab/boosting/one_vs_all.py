"""The two one-vs-all methods in the comparison of Jung, Goetz and Tewari (NIPS 2017, Appendix E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from banditlab.boosting.booster import Booster, uniform_best
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.weak.weak_learner import Floats, ProbableLearner, WeakLearner
from banditlab.errors import IncompatibleError
from banditlab.problem import Problem

MINE, OTHER = 0, 1
"""Labels of a binary problem "class k or not"."""


class AdaBoostOLOneVsAll(Booster):
    r"""One binary AdaBoost.OL per class; the class whose booster has the highest confidence is chosen.

    Problem: online multiclass classification with binary weak learners; the label is revealed.

    Update rule: booster k is AdaBoost.OLM for two classes, with the labels "class k" and "not class k". Its confidence
    is the weight of its experts that predict "class k". The action is the class with the largest confidence; ties are
    broken at random. All K boosters are updated with every label.

    Guarantee: none for the K classes; `bound` returns None.

    Cost: K times that of AdaBoost.OLM with binary weak learners.

    Parameters
    ----------
    n_learners
        N, the number of weak learners for each class.
    weak_learner
        Id of the weak learners.
    derivative
        :math:`f'` at right predictions, as in AdaBoost.OLM.
    weight_scale
        Factor of the weights, or "random", as in AdaBoost.OLM.
    tuning_seed
        Seed of the trees' tuning and of "random" weights. The seed 1 gives the values in the code of Jung, Goetz and
        Tewari. Without a seed, every run draws new values.
    weak_settings
        Settings of the weak learners, by name.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is unknown.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Appendix E ("OvA").
    A. Beygelzimer, S. Kale, H. Luo. Optimal and adaptive algorithms for online boosting. ICML 2015.
    """

    id = "adaboost-ol-ova"
    summary = "one binary AdaBoost.OL per class; the class with the highest confidence is chosen"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Appendix E"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        n_learners: int = 100,
        weak_learner: str = "hoeffding-tree",
        derivative: Literal["exact", "printed", "coded"] = "exact",
        weight_scale: float | Literal["random"] = 1.0,
        tuning_seed: int | None = None,
        **weak_settings: Any,
    ) -> None:
        self.derivative = derivative
        self.weight_scale = weight_scale
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, tuning_seed)

    def _make(self, cls: type[WeakLearner], streams: Sequence[np.random.Generator]) -> None:
        binary = replace(self.problem, n_classes=2)
        self.members = [
            AdaBoostOLM(
                binary,
                stream,
                n_learners=self.n_learners,
                weak_learner=self.weak_learner,
                derivative=self.derivative,
                weight_scale=self.weight_scale,
                tuning_seed=self.tuning_seed,
                **{f"weak_learner.{name}": value for name, value in self._written.items()},
            )
            for stream in self._ties.spawn(self.problem.n_classes)
        ]
        self.payload_size = self.problem.n_classes * self.members[0].payload_size

    @property
    def inner(self) -> WeakLearner:
        """The first weak learner of the first class."""
        return self.members[0].inner

    def peek(self, label: int) -> None:
        """Pass to each class's simulated learners whether the next label is that class."""
        for k, member in enumerate(self.members):
            member.peek(MINE if label == k else OTHER)

    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        answers = [member._respond(view) for member in self.members]
        sure = np.array([p[MINE] for p, _ in answers])
        return uniform_best(sure), np.concatenate([payload for _, payload in answers])

    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        for k, (member, part) in enumerate(zip(self.members, np.split(payload, len(self.members)), strict=True)):
            member._absorb(view, part, MINE if label == k else OTHER)

    def diagnostics(self) -> dict[str, Any]:
        """Return each class's edges and experts' weights: "class.1.edge.3" is the edge of the third learner for class
        1.
        """
        named = ("edge.", "expert_weight.")
        return {
            f"class.{k}.{name}": value
            for k, member in enumerate(self.members)
            for name, value in member.diagnostics().items()
            if name.startswith(named)
        }


class OneVsAllLearner(ProbableLearner):
    """K binary weak learners, "class k or not", as one multiclass weak learner.

    Its estimate for class k is the k-th learner's estimate of "class k". (Estimates need not sum to 1, because their
    scale does not affect which class costs least.)
    """

    id = "one-vs-all"
    summary = "a binary weak learner for each class"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        cls: type[WeakLearner],
        settings: dict[str, Any],
    ) -> None:
        super().__init__(problem, rng)
        if not issubclass(cls, ProbableLearner):
            raise IncompatibleError(f"one-vs-all needs weak learners that estimate probabilities, got {cls.id}")
        binary = replace(problem, n_classes=2)
        self.members: list[ProbableLearner] = [
            cls(binary, stream, **settings) for stream in self.rng.spawn(problem.n_classes)
        ]
        self._both = np.zeros(2)

    def estimate(self, context: Any, q: Floats) -> None:
        """Write each class's estimate into q (K,), or equal values if all estimates are 0."""
        for k, member in enumerate(self.members):
            member.estimate(context, self._both)
            q[k] = self._both[MINE] / self._both.sum()
        if not q.any():
            q[:] = 1.0

    def trees(self) -> list[Any]:
        """Return the trees that compiled loops use instead of this learner, one per class; an empty list if some
        learners are not trees.
        """
        groups = [member.trees() if hasattr(member, "trees") else [] for member in self.members]
        return [tree for group in groups for tree in group] if all(len(group) == 1 for group in groups) else []

    def update(self, context: Any, label: int, weight: float) -> None:
        """Update every binary learner with whether the label is its class."""
        for k, member in enumerate(self.members):
            member.update(context, MINE if label == k else OTHER, weight)


class AdaOVA(AdaBoostOLM):
    """AdaBoost.OLM with weak learners that each consist of one binary learner per class.

    Problem: online multiclass classification with binary weak learners; the label is revealed.

    Update rule: that of AdaBoost.OLM. Learner i's estimate of class k is the estimate of its k-th binary learner for
    "class k or not". All K binary learners of learner i are updated with the weight of learner i.

    Guarantee: that of AdaBoost.OLM.

    Cost: that of AdaBoost.OLM, with K binary weak learners per learner.

    Parameters
    ----------
    See AdaBoost.OLM: `n_learners` (each has K binary weak learners, with the same tuning if there is a `tuning_seed`),
    `weak_learner`, `loss`, `derivative`, `weight_scale`, `tuning_seed` and `weak_settings`.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is unknown.
    IncompatibleError
        A weak learner does not estimate probabilities.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Appendix E ("AdaOVA").
    """

    id = "adaova"
    summary = "AdaBoost.OLM over one-vs-all groups of binary weak learners"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Appendix E"

    def _learner(self, cls: type[WeakLearner], stream: np.random.Generator, settings: dict[str, Any]) -> WeakLearner:
        return OneVsAllLearner(self.problem, stream, cls, settings)

    @property
    def inner(self) -> WeakLearner:
        """The first binary weak learner of the first group."""
        first = self.learners[0]
        assert isinstance(first, OneVsAllLearner)
        return first.members[0]
