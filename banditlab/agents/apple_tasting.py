"""Apple tasting with any forecaster: the forecaster is updated with accepted items only."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from banditlab.agents.around_forecaster import AroundForecaster
from banditlab.bounds.apple_tasting import apple_tasting
from banditlab.errors import IncompatibleError, UsageError
from banditlab.losses import softmax
from banditlab.players.agent import Floats, RoundAgent
from banditlab.players.inputs import as_vector
from banditlab.problem import Decision, Problem
from banditlab.validation import number, positive

REJECT, ACCEPT = 0, 1


class AppleTasting(AroundForecaster, RoundAgent):
    r"""Turn a forecaster into an agent for two classes where only action 1, "accept", gives feedback.

    Problem: two classes. The bit of action 0, "reject", is never used and need not arrive (in a spec, `[feedback]` with
    `answered = [0, 1]`). Examples are fraud detection and moderation: a blocked item never reveals its label.

    Update rule: f is the forecast probability that the item is good, and :math:`g = 1 - 2 f`. The agent accepts with
    certainty if :math:`g \le 0`, otherwise with probability :math:`1/(1 + \gamma g)`. After accepting, it updates the
    forecaster with :math:`(x_t, y_t)`. The rule is inverse gap weighting of a regression oracle, in a problem where the
    bit of action 1 reveals the losses of both actions.

    Guarantee (`well_specified_bound`): assume that labels are drawn from a model in the forecaster's ball. Then the
    expected mistakes exceed those of the best action in each round by at most
    :math:`T/\gamma + \gamma\, \mathrm{Reg}(T)/2`, where Reg is the forecaster's regret bound in nats. For adversarial
    labels nothing is proved, so `bound` returns None.

    Cost: one forecast per round, and one update for each accepted item. Memory: that of the forecaster.

    Parameters
    ----------
    forecaster
        Id of the forecaster.
    sharpness
        :math:`\gamma > 0`, or "theory": :math:`\sqrt{2 T/\mathrm{Reg}(T)}`, which needs the horizon and a forecaster with a
        proved bound.
    inner_settings
        Settings of the forecaster, by name.

    Raises
    ------
    UsageError
        Unknown forecaster or setting, a sharpness that is not positive, or "theory" with a forecaster that has no
        proved bound in nats.
    HorizonRequiredError
        `sharpness = "theory"` and the horizon is unknown.
    IncompatibleError
        The number of classes is not two, or the forecaster does not support the problem.

    References
    ----------
    D. Helmbold, N. Littlestone, P. Long. Apple tasting. Information and Computation 161(2), 2000 (the problem).

    D. Foster, A. Rakhlin. Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML 2020 (inverse
    gap weighting).
    """

    id = "apple-tasting"
    group = "theory"
    summary = "a forecaster that learns from accepted items only (two classes)"
    reference = "inverse gap weighting (Foster and Rakhlin, ICML 2020) with one informative action, derived here"
    wraps = "forecaster"
    explores = False

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        forecaster: str = "folklore",
        sharpness: float | Literal["theory"] = "theory",
        **inner_settings: Any,
    ) -> None:
        if problem.n_classes != 2:
            raise IncompatibleError(f"apple-tasting is binary: it needs n_classes = 2, got {problem.n_classes}")
        super().__init__(problem, rng)
        self._play_through(forecaster, "sample", inner_settings)
        self.plays_blocks, self.sparse = True, False  # round by round, contexts made dense
        self.sharpness = (
            self._theory() if sharpness == "theory" else positive("sharpness", number("sharpness", sharpness, "theory"))
        )

    def _theory(self) -> float:
        T = self.problem.known_horizon("sharpness = 'theory'", "give sharpness as a number")
        regret = self._inner.bound(T) if self._inner.bound_unit == "nats" else None
        if regret is None or not regret > 0.0:
            raise UsageError(
                f"sharpness = 'theory' needs a forecaster with a proved bound in nats, which {self.forecaster} does not have "
                "at these settings; give sharpness as a number"
            )
        return math.sqrt(2.0 * T / regret)

    def _decide(self, view: Floats, u: Floats) -> Decision:
        good = softmax(as_vector("the forecaster's logits", self._inner.predict(view), 2))[ACCEPT]
        accept = 1.0 / (1.0 + self.sharpness * max(0.0, 1.0 - 2.0 * good))
        return Decision(ACCEPT if u[1] < accept else REJECT, np.array([1.0 - accept, accept]))

    def _receive(self, view: Floats, decision: Decision, outcome: bool) -> None:
        if decision.action == ACCEPT:
            self._inner.update(view, ACCEPT if outcome else REJECT)

    def well_specified_bound(self, rounds: int) -> float | None:
        """Return a bound on the expected mistakes in excess of the best action's, for labels drawn from a model in the
        forecaster's ball.

        Returns None if the forecaster has no proved bound in nats.
        """
        regret = self._inner.bound(rounds) if self._inner.bound_unit == "nats" else None
        return None if regret is None else apple_tasting(rounds, self.sharpness, regret)
