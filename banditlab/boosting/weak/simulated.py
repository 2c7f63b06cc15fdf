"""A weak learner with a known edge, for testing theorems; it observes the label before it predicts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from banditlab.boosting.weak.weak_learner import Floats, WeakLearner
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import number, one_of, positive, probability


class Simulated(WeakLearner):
    r"""A learner that observes the label before it predicts, and whose edge over a uniform guess is known.

    Purpose: it replaces a weak learner in experiments that test a booster's theorem. It has no use in practice.

    Prediction: let y be the label, and :math:`u_{\gamma}^y` the distribution with :math:`(1 - \gamma)/k` on every class
    and :math:`\gamma` more on y.

    * "random": a draw from :math:`u_{\gamma}^y`, whatever the costs. It satisfies Definition 1 of the paper for every
      edge below :math:`\gamma`, with the excess loss "simulated_excess" of `banditlab.bounds`.
    * "adversarial": the class with the largest cost, :math:`l = \arg\max_l D(y, l)` (ties are broken at random), where
      :math:`D(y)` is the vector of the booster's costs minus the cost of y, normalised to sum 1. If
      :math:`D(y, l)` is above the balance :math:`S + \sum_t w_t ((1 - \gamma)/k - D_t(y_t, l_t))` of the past rounds,
      the label is predicted instead. So with weights in [0, 1] the balance never becomes negative, and Equation (1)
      holds with certainty for every T. The balance stays small, so the learner is hardly better than Equation (1)
      requires. Without costs every wrong class costs :math:`1/(k-1)`.

    It has no updates. A prediction draws one uniform.

    Parameters
    ----------
    edge
        :math:`\gamma` in the paper, in [0, 1].
    spread
        Half the width of the interval from which each learner's edge is drawn once:
        :math:`[\text{edge} - \text{spread}, \text{edge} + \text{spread}]` cut to [0, 1].
    behaviour
        "random" or "adversarial".
    excess
        S in the paper, at least 1: the initial balance of the adversarial learner.

    Attributes
    ----------
    own_edge
        The edge that this learner drew; `edge` if the spread is 0.
    reads_costs
        Whether predictions depend on the costs; a booster may omit the costs of a learner if this is False.

    Raises
    ------
    UsageError
        A setting is outside its range, or a prediction was requested without a new label.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Definition 1 and the proof of Theorem 4.
    """

    id = "simulated"
    needs_label = True
    summary = "observes the label and has a known edge over a uniform guess; for testing theorems"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Definition 1"

    state_constants = ("reads_costs",)

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        edge: float = 0.1,
        spread: float = 0.0,
        behaviour: Literal["random", "adversarial"] = "random",
        excess: float = 1.0,
    ) -> None:
        super().__init__(problem, rng)
        self.edge = probability("edge", edge)
        self.spread = probability("spread", spread)
        self.behaviour = one_of("behaviour", behaviour, ("random", "adversarial"))
        self.excess = positive("excess", number("excess", excess))
        if self.excess < 1.0:
            raise UsageError(f"excess must be at least 1, the cost of one mistake, got {self.excess:g}")
        away = self.spread * (2.0 * self.rng.random() - 1.0)
        self.own_edge = min(1.0, max(0.0, self.edge + away))
        self.account = self.excess
        self.reads_costs = self.behaviour == "adversarial"
        self._label, self._cost, self._fair = -1, 0.0, 0.0

    def peek(self, label: int) -> None:
        """Observe the label of the next context."""
        self._label = label

    def predict(self, context: Any, costs: Floats | None = None) -> int:
        """Return a class for the context whose label `peek` received."""
        y, K, u = self._label, self.problem.n_classes, self.rng.random()
        if y < 0:
            raise UsageError("simulated: call peek(label) before predict, because the learner needs the label")
        self._label = -1
        if self.behaviour == "random":
            return y if u < self.own_edge else min(int((u - self.own_edge) / (1.0 - self.own_edge) * K), K - 1)
        row = _normalized(y, K, costs)
        worst = np.flatnonzero(row == row.max())
        l = int(worst[min(int(u * len(worst)), len(worst) - 1)])
        l = l if row[l] <= self.account else y
        self._cost = float(row[l])
        self._fair = (
            (1.0 - self.own_edge) / K * float(row.sum() > 0.0)
        )  # all costs are equal: the balance does not change
        return l

    def update(self, context: Any, label: int, weight: float) -> None:
        """Update the balance with the cost of the last prediction."""
        if self.behaviour == "adversarial":
            self.account += weight * (self._fair - self._cost)


def _normalized(y: int, K: int, costs: Floats | None) -> Floats:
    """Return each prediction's cost minus the cost of y (K,), divided by the sum of these differences, or zeros if that
    is 0.
    """
    row = np.ones(K) if costs is None else np.maximum(costs[y] - costs[y, y], 0.0)
    row[y] = 0.0
    total = float(row.sum())
    return row / total if total > 0.0 else row
