"""A forecaster that plays: an action drawn from its forecast, told the label every round."""

from __future__ import annotations

from collections.abc import Callable
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
from banditlab.players.agent import Floats, Trace, checked
from banditlab.players.forecaster import Forecaster, KernelForecaster, Kernels
from banditlab.players.inputs import as_block, as_class, as_context, as_vector
from banditlab.players.label_agent import LabelAgent
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


class Sampled(AroundForecaster, LabelAgent):
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
        self.compiled = isinstance(self._inner, KernelForecaster)
        self.sparse = getattr(self._inner, "sparse", False)

    @property
    def inner(self) -> Forecaster:
        """The forecaster."""
        return self._inner

    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,)."""
        x, K = as_context(context, self.problem.n_features), self.problem.n_classes
        u, p = self.rng.random(2), np.empty(K)
        action = decide(as_vector("the forecaster's logits", self._inner.predict(x), K), u, p)
        return Decision(int(action), p)

    def learn(self, context: Floats, decision: Decision, label: int) -> None:
        """Pass (context, label) to the forecaster."""
        K = self.problem.n_classes
        as_class("the decision's action", decision.action, K)
        self._inner.update(as_context(context, self.problem.n_features), as_class("the label", label, K))

    @property
    def play_block(self) -> Callable[[Floats, NDArray[np.int64], Trace], None]:
        """Play n rounds at compiled speed: `play_block(X (n, d), y (n,), trace)`.

        Raises
        ------
        AttributeError
            The forecaster has no kernels.
        UsageError
            Contexts, labels or a trace of other shapes, or labels out of range.
        PlayerError
            The forecaster's logits are not finite.
        """
        if not self.compiled:
            raise AttributeError(f"the forecaster {self.forecaster!r} has no kernels: play with act and learn")
        return self._play_block

    def _play_block(self, X: Floats, y: NDArray[np.int64], trace: Trace) -> None:
        inner, K = self._inner, self.problem.n_classes
        assert isinstance(inner, KernelForecaster)
        X, y = as_block(X, y, self.problem.n_features, K, sparse=self.sparse)
        columns = trace.holds(len(y))
        U = self.rng.random((len(y), 2))
        z, p = np.zeros(K), np.empty(K)

        def play(part: slice) -> None:
            given, filled = (rows_of(X, part), y[part], U[part]), [column[part] for column in columns]
            played = part.start + _loop(inner.kernels)(inner.state, *given, z, p, *filled)
            if played < part.stop:
                checked(Decision(int(trace.action[played]), p), K, self)

        inner.play_in_parts(X, lambda: np.ones(len(y), bool), play)

    def bound(self, rounds: int) -> float | None:
        """Return the forecaster's regret bound, which bounds the expected mistakes beyond the comparator's loss."""
        return self._inner.bound(rounds) if self._inner.bound_unit == "nats" else None


@cache
def _loop(inner: Kernels) -> Any:
    return bind(rounds_told, f"{__name__}.Sampled of {inner.owner}", update_kernel=inner.update)
