"""Oza's online boosting (Oza, 2005)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from banditlab.boosting.booster import Booster, uniform_best
from banditlab.boosting.weak.weak_learner import Floats
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import number, one_of, positive


class Oza(Booster):
    r"""Online AdaBoost: AdaBoost's reweighting with one example at a time.

    Problem: online multiclass classification with weak learners; the label is revealed.

    Update rule (Figure 2): an example starts with the weight :math:`\lambda = 1` and is passed to the learners in turn.
    Learner i is updated with it k times, :math:`k \sim \text{Poisson}(\lambda)`. If its prediction is then right,
    :math:`\lambda_{sc} \mathrel{+}= \lambda` and :math:`\lambda \mathrel{\cdot}= n / (2 \lambda_{sc})`; otherwise
    :math:`\lambda_{sw} \mathrel{+}= \lambda` and :math:`\lambda \mathrel{\cdot}= n / (2 \lambda_{sw})`. Here n is the
    number of examples so far, and each learner has its own :math:`\lambda_{sc}` and :math:`\lambda_{sw}`. The action is
    the class with most votes. Learner i votes with the weight :math:`\ln((1 - \epsilon) / \epsilon)`,
    :math:`\epsilon = \lambda_{sw} / (\lambda_{sw} + \lambda_{sc})`. Ties are broken at random.

    Guarantee: none; `bound` returns None.

    Cost: two predictions and an update of every weak learner per round.

    Parameters
    ----------
    n_learners
        N, the number of weak learners.
    weak_learner
        Id of the weak learners.
    sampling
        "poisson", or "weight": every learner is updated once, with the weight :math:`\lambda`.
    largest_weight
        Upper limit of :math:`\lambda`. Without it, a learner that is rarely wrong could give one example the weight n.
    least_error
        Lower limit of :math:`\epsilon`, in (0, 1/2), so no vote is infinite. A learner with :math:`\epsilon` above
        1/2 has no vote.
    tuning_seed
        Seed of the trees' tuning. The seed 1 gives the tuning in the code of Jung, Goetz and Tewari. Without a seed,
        every run draws a new tuning.
    weak_settings
        Settings of the weak learners, by name.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is unknown.

    References
    ----------
    N. C. Oza. Online bagging and boosting. IEEE SMC 2005.
    """

    id = "oza"
    summary = "Oza's online boosting: AdaBoost's weights, one example at a time"
    reference = "Oza, IEEE SMC 2005, Figure 2"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        n_learners: int = 100,
        weak_learner: str = "hoeffding-tree",
        sampling: Literal["poisson", "weight"] = "poisson",
        largest_weight: float = 100.0,
        least_error: float = 0.001,
        tuning_seed: int | None = None,
        **weak_settings: Any,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, tuning_seed)
        self.sampling = one_of("sampling", sampling, ("poisson", "weight"))
        self.largest_weight = positive("largest_weight", largest_weight)
        self.least_error = number("least_error", least_error)
        if not 0.0 < self.least_error < 0.5:
            raise UsageError(f"least_error must lie strictly between 0 and 1/2, got {self.least_error:g}")
        self.rounds = 0
        self.right, self.wrong = np.zeros((2, self.n_learners))

    def errors(self) -> Floats:
        r"""Return :math:`\epsilon` (N,), for each learner the fraction of weight on which it was wrong; 1/2 before the
        first round.
        """
        total = self.right + self.wrong
        return np.divide(self.wrong, total, out=np.full(self.n_learners, 0.5), where=total > 0.0)

    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        eps = np.clip(self.errors(), self.least_error, 0.5)
        totals = np.zeros(self.problem.n_classes)
        for learner, vote in zip(self.learners, np.log((1.0 - eps) / eps).tolist(), strict=True):
            totals[learner.predict(view)] += vote
        return uniform_best(totals), np.empty(0)

    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        self.rounds += 1
        lam = 1.0
        for i, learner in enumerate(self.learners):
            learner.update(view, label, float(self._ties.poisson(lam)) if self.sampling == "poisson" else lam)
            if learner.needs_label:
                learner.peek(label)
            sums = self.right if learner.predict(view) == label else self.wrong
            sums[i] += lam
            lam = min(self.largest_weight, lam * self.rounds / (2.0 * sums[i]))

    def diagnostics(self) -> dict[str, Any]:
        r"""Return each learner's weighted error :math:`\epsilon` and its vote."""
        eps = self.errors().tolist()
        cut = [min(0.5, max(self.least_error, e)) for e in eps]
        return {f"error.{i}": e for i, e in enumerate(eps, 1)} | {
            f"vote.{i}": math.log((1.0 - e) / e) for i, e in enumerate(cut, 1)
        }
