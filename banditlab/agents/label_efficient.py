"""Label-efficient prediction with any forecaster, which observes the label in rounds queried at random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from banditlab.agents.sampled import Sampled
from banditlab.bounds.decoding import decoded_forecast
from banditlab.bounds.label_efficient import label_efficient
from banditlab.errors import UsageError
from banditlab.numerics.decoding import Decoding
from banditlab.players.agent import Floats
from banditlab.problem import Decision, Problem
from banditlab.validation import positive


class LabelEfficient(Sampled):
    r"""Turn a forecaster into an agent that observes the label in a random subset of the rounds.

    Problem: online multiclass classification against an oblivious adversary; the label is revealed in queried rounds
    only. The agent serves as a reference and is never ranked with agents that observe one bit: a query reveals more
    than one bit, and most rounds reveal nothing.

    Update rule: play a draw from :math:`h(\mathrm{softmax}(\text{forecast}))`, where h is the decoding. Then, with
    probability :math:`\epsilon`, query the label and update the forecaster with :math:`(x_t, y_t)`.

    Guarantee (oblivious adversary): let Reg be the forecaster's regret bound in nats, concave in the number of
    updates, and L the loss of any U in the forecaster's ball. Let f be the decoding's largest expected number of
    mistakes per nat of log loss (see `Sampled`). Then
    :math:`\mathbb{E}[M] \le f (L + \mathrm{Reg}(\epsilon T)/\epsilon)`. The mean number of queries is
    :math:`\epsilon T`.

    Cost: that of the forecaster, one exponential per class and a draw. Memory: that of the forecaster.

    Parameters
    ----------
    forecaster
        Id of the forecaster.
    decoding
        Decoding rule: "half-log", "sample", "sparsemax", "randomized", "gap" or "thresholded"
        (`banditlab.numerics.decoding`).
    query_rate
        Probability :math:`\epsilon` in (0, 1] with which the label of a round is queried.
    inner_settings
        Settings of the forecaster, by name.

    Raises
    ------
    UsageError
        The forecaster, a setting or the decoding is unknown, or the query rate is outside (0, 1].
    IncompatibleError
        The forecaster does not support the problem.

    References
    ----------
    N. Cesa-Bianchi, G. Lugosi, G. Stoltz. Minimizing regret with label efficient prediction. IEEE Transactions on
    Information Theory 51(6), 2005 (queries at random, for experts; the extension to any forecaster is derived here).
    """

    id = "label-efficient"
    summary = "any forecaster's forecast, decoded; observes the label in rounds queried at random"
    reference = "Cesa-Bianchi, Lugosi and Stoltz, IEEE Trans. IT 2005, for any forecaster (derived here)"
    bound_adversary = "oblivious"
    payload_size = 1  # whether the round is queried

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        forecaster: str = "folklore",
        decoding: Decoding = "half-log",
        query_rate: float = 0.1,
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng, forecaster=forecaster, decoding=decoding, **inner_settings)
        self.query_rate = positive("query_rate", query_rate)
        if self.query_rate > 1.0:
            raise UsageError(f"query_rate must be at most 1, got {query_rate}")

    def _decide(self, view: Floats, u: Floats) -> Decision:
        return super()._decide(view, u)._replace(payload=np.array([float(u[0] < self.query_rate)]))

    def _receive(self, view: Floats, decision: Decision, outcome: int) -> None:
        if decision.payload[0]:
            super()._receive(view, decision, outcome)

    def bound(self, rounds: int) -> float | None:
        r"""Return a bound on the expected mistakes minus f times the comparator's loss: f times
        :math:`\mathrm{Reg}(\epsilon T)/\epsilon`, with T = `rounds`.

        It is None if the forecaster has no regret bound in nats.
        """
        if self._inner.bound_unit != "nats":
            return None
        regret = self._inner.bound(self.query_rate * rounds)  # type: ignore[arg-type]  # a mean number of updates
        if regret is None:
            return None
        return decoded_forecast(label_efficient(regret, self.query_rate), self.problem.n_classes, self.decoding)

    def certificate(self) -> float:
        """Return NaN, because the regret over the queried rounds does not bound the regret over all rounds."""
        return math.nan
