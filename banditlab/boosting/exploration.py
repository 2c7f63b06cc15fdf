"""The exploration reduction for boosters: boosting with one bit of feedback."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.boosting.booster import Booster
from banditlab.errors import UsageError
from banditlab.numerics.decoding import DECODINGS, Decoding, decode_forecast
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.players.agent import Floats, RoundAgent
from banditlab.problem import Decision, Problem
from banditlab.registry import registry
from banditlab.validation import one_of, probability


class BoostedExploration(RoundAgent):
    r"""Turn a booster into a bandit agent that explores with probability :math:`\gamma`.

    Problem: bandit multiclass, adversarial stream.

    Update rule (Algorithm 2 of Agarwal, Kale and Zimmert with a booster instead of the forecaster): with probability
    :math:`\gamma`, play a uniform class and, if it was right, update the booster with :math:`(x, y)`. Otherwise play a
    draw from :math:`h(p)`, where p is the booster's distribution and h the decoding (none by default), without an
    update. The reported probabilities are :math:`\gamma/K + (1 - \gamma) h(p)`.

    Guarantee: none is proved. The booster is updated in each round with probability :math:`\gamma/K`. `bound` returns
    None.

    Cost: the booster's prediction in every round, and its update in a fraction :math:`\gamma/K` of the rounds.

    Parameters
    ----------
    booster
        Id of the booster.
    gamma
        Exploration rate in [0, 1].
    decoding
        Decoding rule: "sample" (unchanged), "half-log", "sparsemax", "randomized", "gap" or "thresholded"
        (`banditlab.numerics.decoding`). No bound on the log loss of a booster is known, so no decoding has a guarantee
        here.
    inner_settings
        Settings of the booster and its weak learners, by name; a name that both have is written `booster.NAME`.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1]; the decoding, the booster or a setting is unknown; or weak learners need the label
        before they predict.
    IncompatibleError
        The booster does not support the problem.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022, Algorithm 2.
    S.-T. Chen, H.-T. Lin, C.-J. Lu. Boosting with online binary learners for the multiclass bandit problem. ICML 2014.
    """

    id = "boosted-exploration"
    group = "practice"
    summary = "a booster that learns from explored hits only"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2, around a booster"
    expected_kind = "conditional"
    wraps = "booster"
    plays_blocks = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        booster: str = "adaboost-olm",
        gamma: float = 0.1,
        decoding: Decoding = "sample",
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng)
        self.booster = booster
        self.gamma = probability("gamma", gamma)
        self.decoding = one_of("decoding", decoding, DECODINGS)
        cls = registry().load("boosters", booster)
        settings = {key.removeprefix("booster."): value for key, value in inner_settings.items()}
        if len(settings) < len(inner_settings):
            raise UsageError(f"a setting of {booster} is given twice, once as booster.NAME: {sorted(inner_settings)}")
        self._inner: Booster = cls(problem, self.rng.spawn(1)[0], **settings)
        if self._inner.inner.needs_label:
            raise UsageError(
                f"weak_learner must be one that predicts without the label, got {self._inner.weak_learner!r}"
            )
        self.payload_size = self._inner.payload_size

    @property
    def inner(self) -> Booster:
        """The booster."""
        return self._inner

    def view(self, x: Floats) -> Any:
        """Return the context (d,) converted to the form that the booster's weak learners use."""
        return self._inner.view(x)

    def _decide(self, view: Any, u: Floats) -> Decision:
        K, gamma = self.problem.n_classes, self.gamma
        p, payload = self._inner._respond(view)
        decode_forecast(DECODINGS.index(self.decoding), p)
        explored = bool(u[0] < gamma)
        action = draw_uniform(K, u[1]) if explored else draw(p, u[1])
        return Decision(int(action), gamma / K + (1.0 - gamma) * p, explored, payload)

    def _receive(self, view: Any, decision: Decision, outcome: bool) -> None:
        if decision.explored and outcome:
            self._inner._absorb(view, decision.payload, decision.action)
