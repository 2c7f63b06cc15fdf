"""Any forecaster of this package as a weak learner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from banditlab.agents.around_forecaster import build_forecaster
from banditlab.boosting.weak.weak_learner import Floats, ProbableLearner
from banditlab.numerics.softmax import softmax_into
from banditlab.players.forecaster import Forecaster
from banditlab.players.inputs import as_class, as_context, as_vector
from banditlab.problem import Problem


class Forecasting(ProbableLearner):
    r"""A weak learner whose estimate is the forecast of a forecaster.

    Forecasters do not accept weighted examples. An example of weight w is therefore passed to the forecaster
    :math:`\mathrm{floor}(w)` times, and once more with probability :math:`w - \mathrm{floor}(w)`, as in the paper for
    weights in [0, 1] (Section 2.2). Every update draws one random number, whatever w is.

    Cost: that of the forecaster.

    Parameters
    ----------
    forecaster
        Id of the forecaster.
    inner_settings
        Settings of the forecaster, by name.

    Raises
    ------
    UsageError
        The forecaster or a setting is unknown.
    IncompatibleError
        The forecaster does not support the problem.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Section 2.2.
    """

    id = "forecaster"
    summary = "a forecaster's forecast; an example of weight w is passed to it w times on average"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Section 2.2"
    wraps = "forecaster"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        forecaster: str = "ogd",
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng)
        self.forecaster = forecaster
        self._inner = build_forecaster(type(self), problem, self.rng, forecaster, inner_settings)

    @property
    def inner(self) -> Forecaster:
        """The forecaster."""
        return self._inner

    def estimate(self, context: Any, q: Floats) -> None:
        """Write the softmax of the forecast into q (K,)."""
        x, K = as_context(context, self.problem), self.problem.n_classes
        softmax_into(as_vector("the forecaster's logits", self._inner.predict(x), K), q)

    def update(self, context: Any, label: int, weight: float) -> None:
        """Pass (context, label) to the forecaster `weight` times on average."""
        x, y = as_context(context, self.problem), as_class("the label", label, self.problem.n_classes)
        whole = math.floor(weight)
        for _ in range(whole + (self.rng.random() < weight - whole)):
            self._inner.update(x, y)
