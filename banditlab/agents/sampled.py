"""A forecaster that plays: an action drawn from its forecast, told the label every round."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.around_forecaster import AroundForecaster, build_forecaster
from banditlab.numerics.contexts import row
from banditlab.numerics.draws import draw, is_answer
from banditlab.numerics.jit import bind, borrow, njit
from banditlab.numerics.softmax import softmax_into
from banditlab.numerics.sparse_rows import rows_of
from banditlab.players.agent import Floats, Trace
from banditlab.players.forecaster import Forecaster, KernelForecaster, Kernels
from banditlab.players.inputs import as_vector
from banditlab.players.label_agent import RoundLabelAgent
from banditlab.problem import Decision, Problem


@njit
def decide(z, u, p):
    """Write softmax(z) into p (K,) and return a draw from it."""
    softmax_into(z, p)
    return draw(p, u[1])


def rounds_told(state, X, y, U, z, p, action, correct, p_true, explored):
    """Play one block; `update_kernel` writes into z what was forecast before it learnt, and no action moves the state.

    Returns n, or the first round whose answer is none (logits that are not finite).
    """
    state, X, y, U, z, p = borrow(state), borrow(X), borrow(y), borrow(U), borrow(z), borrow(p)
    for t in range(y.shape[0]):
        update_kernel(state, row(X, t), y[t], z)  # type: ignore[name-defined]  # noqa: F821
        a = decide(z, U[t], p)
        action[t] = a
        correct[t] = a == y[t]
        p_true[t] = p[y[t]]
        explored[t] = False
        if not is_answer(a, p):
            return t
    return y.shape[0]


class Sampled(AroundForecaster, RoundLabelAgent):
    """Any forecaster as a player that is told the label: it plays a draw from its forecast.

    Problem: online multiclass classification, adversarial stream; the label is revealed after each round. A reference
    for scale, never ranked with agents that see one bit: what the exploration reduction would do with nothing hidden.

    Update rule: play a draw from softmax(forecast), then pass (x_t, y_t) to the forecaster, every round.

    Guarantee: E[M] <= L + Reg(T), with L the loss in nats of any U of the forecaster's ball and Reg its regret bound:
    a draw errs with probability 1 - p_y <= -ln p_y. None where the forecaster has no proved bound in nats.

    Cost: the forecaster's, one exponential a class and a draw. Memory: the forecaster's.

    Parameters
    ----------
    forecaster
        Id of the forecaster.
    inner_settings
        Settings of the forecaster, by name.

    Raises
    ------
    UsageError
        A forecaster or a setting that does not exist.
    IncompatibleError
        The forecaster cannot meet the problem.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022, Section 5 (the
    step from log loss to mistakes).
    """

    id = "sampled"
    summary = "a draw from any forecaster's forecast, told the label"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Section 5, with nothing hidden"
    bound_unit = "nats"
    wraps = "forecaster"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        forecaster: str = "folklore",
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng)
        self.forecaster = forecaster
        self._inner = build_forecaster(type(self), problem, self.rng, forecaster, inner_settings)
        self.plays_blocks, self.sparse = isinstance(self._inner, KernelForecaster), self._inner.sparse

    @property
    def inner(self) -> Forecaster:
        """The forecaster."""
        return self._inner

    def _decide(self, view: Floats, u: Floats) -> Decision:
        K = self.problem.n_classes
        p = np.empty(K)
        action = decide(as_vector("the forecaster's logits", self._inner.predict(view), K), u, p)
        return Decision(int(action), p)

    def _receive(self, view: Floats, decision: Decision, outcome: int) -> None:
        self._inner.update(view, outcome)

    def _play(self, X: Any, y: NDArray[np.int64], U: Floats, trace: Trace) -> None:
        inner, K = self._inner, self.problem.n_classes
        if not isinstance(inner, KernelForecaster):
            return super()._play(X, y, U, trace)
        z, p = np.zeros(K), np.empty(K)

        def play(part: slice) -> None:
            rows, filled = (rows_of(X, part), y[part], U[part]), trace.part(part)
            self._report(_loop(inner.kernels)(inner.state, *rows, z, p, *filled), p, filled)

        inner.play_in_parts(X, lambda: np.ones(len(y), bool), play)

    def bound(self, rounds: int) -> float | None:
        """Return the forecaster's regret bound, which bounds the expected mistakes beyond the comparator's loss."""
        return self._inner.bound(rounds) if self._inner.bound_unit == "nats" else None


@cache
def _loop(inner: Kernels) -> Any:
    return bind(rounds_told, f"{__name__}.Sampled of {inner.owner}", update_kernel=inner.update)
