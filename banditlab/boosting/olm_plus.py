"""AdaBoost.OLM++ (Foster, Kale, Luo, Mohri and Sridharan, COLT 2018; Agarwal, Kale and Zimmert, ALT 2022)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from banditlab.boosting.compiled_rounds import Loops, loops
from banditlab.boosting.expert_booster import ExpertBooster
from banditlab.boosting.losses import SHARES
from banditlab.boosting.regression import FORECASTERS, STEPS, BoostingRegression, Regressions
from banditlab.bounds.boosting import olm_plus_best_expert
from banditlab.problem import Problem
from banditlab.validation import nonnegative, number, one_of, positive


class AdaBoostOLMPlus(ExpertBooster):
    r"""AdaBoost.OLM with votes from improper logistic regression instead of gradient descent.

    Problem: online multiclass classification with weak learners, adversarial stream; the label is revealed.

    Update rule (Algorithm 4): learner i receives the costs :math:`C^i` of (C.1) and predicts l. The costs are the
    gradients of the multiclass logistic loss at the votes :math:`s^{i-1}`, shifted to 0 at the label and divided by K.
    Then :math:`s^i = \text{BoostReg}^i(s^{i-1}, l)`, the boosting regression of Algorithm 3 (see `BoostingRegression`).
    Expert i predicts :math:`\arg\max s^i` and is followed with probability proportional to :math:`\exp(-M_i)`, where
    :math:`M_i` is its number of mistakes. Learner i is updated with :math:`(x, y)` and the weight
    :math:`1 - \mathrm{softmax}(s^{i-1})_y`, the sum of the label's row of costs.

    Guarantee (Proposition 12 with the constants of (C.5)): with the empirical edges :math:`\gamma_i` and the
    regression's regret :math:`R(T)`, :math:`\min_i M_i \le 4 [T \ln K + N R(T)] / \sum_i \gamma_i^2`. By Theorem 13,
    :math:`R(T) = O(\ln(T)^2)` (`BoostingRegression.bound`). Expected mistakes are at most
    :math:`(e/(e-1)) (\min_i M_i + \ln N)`. In `banditlab.bounds`, "hedge_mistakes_with_confidence" bounds the mistakes
    with probability :math:`1 - \delta`, and "olm_plus_weak_learners" those under the weak learning condition.
    `diagnostics` returns both sides of the first bound. There is no comparator, so `bound` returns None.

    Cost: that of the weak learners, :math:`O(N K^2)`, and N scalar root-finding problems. Memory: :math:`9 N` numbers
    besides the learners.

    Parameters
    ----------
    n_learners
        N, the number of weak learners.
    weak_learner
        Id of the weak learners.
    regression
        "folklore" as in Algorithm 3, or "aioli", which according to the paper works as well.
    clip
        Largest half-margin in the regression; "theory" is :math:`\ln T`, which needs the horizon.
    regression_bound
        B of the regression's binary forecaster: 2 in the paper; :math:`\sqrt{2}` suffices for :math:`\alpha` in [-2,
        2].
    weight_scale
        Factor of the weights, which are in [0, 1]. "random" draws a factor in [5, 200] for each learner.
    tuning_seed
        Seed of the trees' tuning and of "random" weights. The seed 1 gives the values in the code of Jung, Goetz and
        Tewari. Without a seed, every run draws new values.
    weak_settings
        Settings of the weak learners, by name.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is unknown.
    HorizonRequiredError
        `clip = "theory"` and the horizon is unknown.

    References
    ----------
    D. Foster, S. Kale, H. Luo, M. Mohri, K. Sridharan. Logistic regression: the importance of being improper. COLT 2018.
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    id = "adaboost-olm++"
    summary = "adaptive boosting: votes by improper logistic regression, Hedge over the numbers of learners"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Algorithms 3 and 4"
    loss_code = SHARES

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        n_learners: int = 100,
        weak_learner: str = "hoeffding-tree",
        regression: Literal["folklore", "aioli"] = "folklore",
        clip: float | Literal["theory"] = "theory",
        regression_bound: float = 2.0,
        weight_scale: float | Literal["random"] = 1.0,
        tuning_seed: int | None = None,
        **weak_settings: Any,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, weight_scale, tuning_seed)
        self.regression = one_of("regression", regression, tuple(FORECASTERS))
        if clip == "theory":
            clip = math.log(problem.known_horizon("clip = 'theory'", "give clip as a number"))
        self.clip = nonnegative("clip", number("clip", clip, "theory"))
        self.regression_bound = positive("regression_bound", regression_bound)
        self._regressions = BoostingRegression(
            self.n_learners, clip=self.clip, forecaster=self.regression, norm_bound=self.regression_bound
        )
        self._tops = np.ones(self.n_learners)
        self._zero[:] = 1.0 / problem.n_classes  # votes are stored as their softmax

    def _rule(self) -> tuple[Loops, Regressions]:
        return loops(__name__, STEPS), self._regressions.states

    def _best_expert_bound(self) -> float:
        regret = self._regressions.bound(self.rounds)
        if regret is None:
            return math.nan
        squares = float((self.edges.measured() ** 2).sum())
        return olm_plus_best_expert(self.rounds, self.problem.n_classes, self.n_learners, squares, regret)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return everything that changes from round to round, including the state of all regressions."""
        state = super().get_state()
        del state["_regressions"]
        return state | {"regression_states": self._regressions.states}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an object with the same settings."""
        self.regression_states = self._regressions.states
        super().set_state(state)
        self._regressions.states = self.__dict__.pop("regression_states")
