"""A forecaster as an agent that observes every label and decodes its action from the forecast."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.around_forecaster import AroundForecaster
from banditlab.bounds.decoding import decoded_forecast, mistakes_per_nat
from banditlab.numerics.contexts import row
from banditlab.numerics.decoding import DECODINGS, Decoding, decoded_softmax
from banditlab.numerics.draws import draw, is_valid_decision
from banditlab.numerics.jit import bind, borrow, njit
from banditlab.numerics.sparse_rows import rows_of
from banditlab.players.agent import Floats, Trace
from banditlab.players.forecaster import KernelForecaster, Kernels
from banditlab.players.inputs import as_vector
from banditlab.players.label_agent import RoundLabelAgent
from banditlab.problem import Decision, Problem


@njit
def decide(z, u, rule, p):
    r"""Write the decoding of :math:`\mathrm{softmax}(z)` into p (K,) and return a draw from it."""
    decoded_softmax(rule, z, p)
    return draw(p, u[1])


def rounds_with_labels(state, X, y, U, rate, rule, z, p, action, correct, p_true, explored):
    """Run one block of rounds, in which labels are queried with probability `rate`.

    `update_kernel` writes into z the forecast before the update; actions do not change the state. Returns the number
    of rounds in the block, or the index of the first round whose decision is invalid because its logits are not finite.
    """
    state, X, y, U, z, p = borrow(state), borrow(X), borrow(y), borrow(U), borrow(z), borrow(p)
    for t in range(y.shape[0]):
        if U[t, 0] < rate:
            update_kernel(state, row(X, t), y[t], z)  # type: ignore[name-defined]  # noqa: F821
        else:
            predict_kernel(state, row(X, t), z)  # type: ignore[name-defined]  # noqa: F821
        a = decide(z, U[t], rule, p)
        action[t] = a
        correct[t] = a == y[t]
        p_true[t] = p[y[t]]
        explored[t] = False
        if not is_valid_decision(a, p):
            return t
    return y.shape[0]


class Sampled(AroundForecaster, RoundLabelAgent):
    r"""Turn a forecaster into an agent that observes the label and draws its action from the decoded forecast.

    Problem: online multiclass classification, adversarial stream; the label is revealed after each round. The agent
    serves as a reference and is never ranked with agents that observe one bit. It is the counterpart of the exploration
    reduction under full information.

    Update rule: in every round play a draw from :math:`h(\mathrm{softmax}(\text{forecast}))`, where h is the decoding,
    then update the forecaster with :math:`(x_t, y_t)`.

    Guarantee (adaptive adversary): :math:`\mathbb{E}[M] \le f (L + \mathrm{Reg}(T))`. L is the loss in nats of any U in
    the forecaster's ball, Reg is its regret bound, and f is the decoding's largest expected number of mistakes per nat
    of log loss. f is 1 for a draw ("sample"), which is wrong with probability :math:`1 - p_y \le -\ln p_y`. It is
    0.7213 for half-log, the least possible value (for :math:`K = 2` by Cesa-Bianchi et al., JACM 1997; for more classes
    see docs/theory/half-log.md). `bound` is None if the forecaster has no proved bound in nats.

    Cost: that of the forecaster, one exponential per class and a draw. Memory: that of the forecaster.

    Parameters
    ----------
    forecaster
        Id of the forecaster.
    decoding
        Decoding rule: "half-log", "sample", "sparsemax", "randomized", "gap" or "thresholded"
        (`banditlab.numerics.decoding`).
    inner_settings
        Settings of the forecaster, by name.

    Raises
    ------
    UsageError
        The forecaster, a setting or the decoding is unknown.
    IncompatibleError
        The forecaster does not support the problem.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022, Section 5
    (from log loss to mistakes).
    """

    id = "sampled"
    summary = "any forecaster's forecast, decoded, full information"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Section 5, with full information"
    wraps = "forecaster"
    query_rate = 1.0  # the fraction of rounds whose label is queried

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        forecaster: str = "folklore",
        decoding: Decoding = "half-log",
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng)
        self._play_through(forecaster, decoding, inner_settings)

    @property
    def bound_adversary(self) -> str:  # type: ignore[override]
        """The forecaster's adversary, because labels are observed whatever the action."""
        return self._inner.bound_adversary

    def _decide(self, view: Floats, u: Floats) -> Decision:
        K = self.problem.n_classes
        p = np.empty(K)
        z = as_vector("the forecaster's logits", self._inner.predict(view), K)
        action = decide(z, u, DECODINGS.index(self.decoding), p)
        return Decision(int(action), p)

    def _receive(self, view: Floats, decision: Decision, outcome: int) -> None:
        self._inner.update(view, outcome)

    def _play(self, X: Any, y: NDArray[np.int64], U: Floats, trace: Trace) -> None:
        inner, K = self._inner, self.problem.n_classes
        if not isinstance(inner, KernelForecaster):
            return super()._play(X, y, U, trace)
        z, p, rule = np.zeros(K), np.empty(K), DECODINGS.index(self.decoding)

        def play(part: slice) -> None:
            rows, filled = (rows_of(X, part), y[part], U[part]), trace.part(part)
            self._report(_loop(inner.kernels)(inner.state, *rows, self.query_rate, rule, z, p, *filled), p, filled)

        inner.play_in_parts(X, lambda: U[:, 0] < self.query_rate, play)

    def bound(self, rounds: int) -> float | None:
        """Return f times the forecaster's regret bound: a bound on the expected mistakes minus f times the comparator's
        loss.

        f is the decoding's largest expected number of mistakes per nat of log loss.
        """
        regret = self._inner.bound(rounds) if self._inner.bound_unit == "nats" else None
        return None if regret is None else decoded_forecast(regret, self.problem.n_classes, self.decoding)

    def certificate(self) -> float:
        """Return f times the forecaster's certificate, with f as in `bound`.

        Expected mistakes are at most this value plus f times any comparator's loss. It is NaN at `decoding = "sample"`.
        """
        if self.decoding == "sample":
            return math.nan
        return mistakes_per_nat(self.decoding, self.problem.n_classes) * self._inner.certificate()


@cache
def _loop(inner: Kernels) -> Any:
    kernels = {"predict_kernel": inner.predict, "update_kernel": inner.update}
    return bind(rounds_with_labels, f"{__name__}.Sampled of {inner.owner}", **kernels)
