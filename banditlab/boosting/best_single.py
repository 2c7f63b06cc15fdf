"""The best of N weak learners, without boosting: the baseline."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from banditlab.boosting.booster import Booster
from banditlab.boosting.weak.weak_learner import Floats
from banditlab.players.inputs import as_class
from banditlab.problem import Problem


class BestSingle(Booster):
    """Train N independent weak learners and follow the one with the fewest mistakes so far.

    Problem: online multiclass classification with weak learners; the label is revealed.

    Update rule: every learner is updated with every example, and no costs are passed to it. A learner gives all
    examples the same weight. The action is the prediction of the learner with the fewest mistakes; ties go to the first
    learner.

    In the paper's tables "best decision tree" is the best learner in hindsight, which is not known in advance.
    `diagnostics` returns its mistakes as `best_mistakes`, and those of all learners as `mistakes.1` ... `mistakes.N`.

    Guarantee: none; `bound` returns None. Cost: that of the weak learners.

    Parameters
    ----------
    n_learners
        N, the number of weak learners.
    weak_learner
        Id of the weak learners.
    weight_scale
        The weight of every example. With "random" it is 10 for the first learner, and drawn from [5, 200] for each
        other learner. In the paper's experiments the boosters' weights are multiplied by these numbers.
    tuning_seed
        Seed of the trees' random settings and of "random" weights. The seed 1 gives the values in the code of Jung,
        Goetz and Tewari. Without a seed, every run draws new values.
    weak_settings
        Settings of the weak learners, by name.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is unknown.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Section 5.
    """

    id = "best-single"
    summary = "the weak learner with the fewest mistakes so far, no boosting"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Section 5 (best decision tree)"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        n_learners: int = 100,
        weak_learner: str = "hoeffding-tree",
        weight_scale: float | Literal["random"] = 1.0,
        tuning_seed: int | None = None,
        **weak_settings: Any,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, tuning_seed)
        self.weight_scale = weight_scale
        self._scales = self._tuning.weight_scales(weight_scale, self._ties)
        self.payload_size = self.n_learners
        self.mistakes = np.zeros(self.n_learners)

    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        votes = np.array([learner.predict(view) for learner in self.learners], dtype=np.float64)
        p = np.zeros(self.problem.n_classes)
        p[as_class("the leader's class", int(votes[np.argmin(self.mistakes)]), len(p))] = 1.0
        return p, votes

    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        self.mistakes += payload != label
        for learner, weight in zip(self.learners, self._scales.tolist(), strict=True):
            learner.update(view, label, weight)

    def diagnostics(self) -> dict[str, Any]:
        """Return the mistakes of each learner, and those of the best one in hindsight."""
        each = {f"mistakes.{i}": m for i, m in enumerate(self.mistakes.tolist(), 1)}
        return each | {"best_mistakes": float(self.mistakes.min())}
