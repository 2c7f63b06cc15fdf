"""The exploration reduction (Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.around_forecaster import AroundForecaster
from banditlab.bounds.decoding import mistakes_per_nat
from banditlab.bounds.exploration import exploration, exploration_well_specified, theorem_9_gamma
from banditlab.errors import UsageError
from banditlab.numerics.contexts import row, stretch
from banditlab.numerics.decoding import DECODINGS, Decoding, decoded_softmax
from banditlab.numerics.draws import draw_uniform, is_valid_decision, mixed_draw
from banditlab.numerics.jit import bind, borrow, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.right_actions import are_right, is_right, probability_right
from banditlab.numerics.sparse_rows import rows_of
from banditlab.players.agent import Floats, RoundAgent, Trace
from banditlab.players.forecaster import KernelForecaster, Kernels
from banditlab.players.inputs import as_vector
from banditlab.problem import Decision, Problem
from banditlab.validation import number, probability

STRETCH = 128
"""The largest number of rounds that are forecast in one batch."""


@njit
def decide(z, u, gamma, rule, p):
    r"""Draw an action from the logits z (K,): :math:`p = \gamma/K + (1 - \gamma) h(\mathrm{softmax}(z))` with the
    decoding h.

    Returns (action, explored).
    """
    decoded_softmax(rule, z, p)
    return mixed_draw(gamma, u, p)


def rounds_one_by_one(state, X, y, U, gammas, rule, z, p, action, correct, p_true, explored):
    """Run one block of rounds, with the exploration rate `gammas[t]` in round t and forecasts decoded by the rule.

    At rate 1 no forecast is computed. Returns n, or the first round whose decision is invalid because its logits are
    not finite; the agent is not updated with that round.
    """
    state, X, y, U, z, p = borrow(state), borrow(X), borrow(y), borrow(U), borrow(z), borrow(p)
    gammas = borrow(gammas)
    for t in range(y.shape[0]):
        if gammas[t] < 1.0:
            predict_kernel(state, row(X, t), z)  # type: ignore[name-defined]  # noqa: F821
        a, explored[t] = decide(z, U[t], gammas[t], rule, p)
        hit = is_right(y, t, a)
        action[t] = a
        correct[t] = hit
        p_true[t] = probability_right(y, t, p)
        if not is_valid_decision(a, p):
            return t
        if explored[t] and hit:  # Algorithm 2: the forecaster is updated after an explored hit only
            update_kernel(state, row(X, t), a, z)  # type: ignore[name-defined]  # noqa: F821
    return y.shape[0]


def rounds_in_stretches(state, X, y, U, gammas, rule, Z, z, p, action, correct, p_true, explored):
    """Run one block of rounds, with forecasts computed in batches between two updates.

    Coin flips, exploration rates (which do not increase) and uniform actions do not depend on the state. This loop also
    has the labels or bits, so it can determine the next round in which the agent explores and its action is right. Only
    such rounds change the state. Returns what `rounds_one_by_one` returns.
    """
    state, X, y, U, Z, z, p = borrow(state), borrow(X), borrow(y), borrow(U), borrow(Z), borrow(z), borrow(p)
    gammas = borrow(gammas)
    n, K = y.shape[0], p.shape[0]
    start = 0
    while start < n:
        stop, learns = start, False
        while stop < n and stop - start < Z.shape[0] and not learns:
            learns = U[stop, 0] < gammas[stop] and is_right(y, stop, draw_uniform(K, U[stop, 1]))
            stop += 1
        if gammas[stop - 1] < 1.0:
            predict_many_kernel(state, stretch(X, start, stop), Z[: stop - start])  # type: ignore[name-defined]  # noqa: F821
        for t in range(start, stop):
            a, explored[t] = decide(Z[t - start], U[t], gammas[t], rule, p)
            action[t] = a
            correct[t] = is_right(y, t, a)
            p_true[t] = probability_right(y, t, p)
            if not is_valid_decision(a, p):
                return t
        if learns:
            update_kernel(state, row(X, stop - 1), action[stop - 1], z)  # type: ignore[name-defined]  # noqa: F821
        start = stop
    return n


class Exploration(AroundForecaster, RoundAgent):
    r"""Turn a forecaster into a bandit agent that explores with probability :math:`\gamma`.

    Problem: bandit multiclass, adversarial stream.

    Update rule (Algorithm 2): with probability :math:`\gamma`, play a uniform class and, if it was right, update the
    forecaster with :math:`(x_t, y_t)`. Otherwise play a draw from :math:`h(\mathrm{softmax}(\text{forecast}))`, where h
    is the decoding, without an update. The reported probabilities are those before the coin flip,
    :math:`\gamma/K + (1 - \gamma) h(\mathrm{softmax}(\text{forecast}))`. The paper's rule is `decoding = "sample"`.

    Guarantee (oblivious adversary; docs/results/adaptive.md has an adaptive adversary for which it fails). Let
    :math:`\mathrm{Reg}(n)` be the forecaster's regret bound after n updates in nats, concave in n, and L the loss of
    any W in its ball. Let f be the decoding's largest expected number of mistakes per nat of log loss (1 for "sample",
    0.7213 for half-log). Then

    .. math::

        \mathbb{E}[\text{mistakes}] \le f L + \gamma (1 - 1/K) T + (1 - \gamma) f (K/\gamma)\, \mathrm{Reg}(\gamma T/K).

    At :math:`\gamma = \sqrt{f K\, \mathrm{Reg}(T)/T}` the right side is at most
    :math:`f L + 2 \sqrt{f K T\, \mathrm{Reg}(T)}`. For "sample" this bound is Theorem 9, whose statement omits the
    factor 2 of its proof. The extension to other decodings is new: see docs/theory/half-log.md.

    With `gamma = "anytime"`, round t explores with probability
    :math:`\gamma_t = \min(1, \sqrt{f K\, \mathrm{Reg}(t)/t})`. This is the theorem's rate for the horizon t, so no
    horizon is needed. If the labels are drawn from the comparator, :math:`y_t \sim \mathrm{softmax}(U x_t)` with U in
    the ball and any contexts,

    .. math::

        \mathbb{E}[\text{mistakes}] \le f L + (1 - 1/K) \sum_t \gamma_t + (1 - \gamma_T) f (K/\gamma_T)
        \mathrm{Reg}(\sum_t \gamma_t/K) \le f L + 3 \sqrt{f K T\, \mathrm{Reg}(T)}

    (`well_specified_bound`). For adversarial labels nothing is proved, so `bound` returns None. The proof fails because
    later updates represent more rounds than earlier ones: a bound on a sum of regrets does not bound their weighted
    sum, as early regrets may be very negative. A restart at :math:`T = 1, 2, 4, \dots` would give
    :math:`f L + 6.9 \sqrt{f K T\, \mathrm{Reg}(T)}`, but would discard past updates, so this class never restarts.

    Cost: one forecast per round and about :math:`\gamma T / K` updates. Between two updates the forecaster does not
    change, and forecasts are computed in batches if it supports them. Memory: that of the forecaster.

    Parameters
    ----------
    forecaster
        Id of the forecaster (Alg in the paper).
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper), "theory" or "anytime". "theory" is
        :math:`\min(1, \sqrt{f K\, \mathrm{Reg}(T)/T})`, which needs the horizon and a forecaster with a proved bound.
        "anytime" is the schedule above, which needs the proved bound only.
    decoding
        Decoding rule: "half-log", "sample" as in the paper, "sparsemax", "randomized", "gap" or "thresholded"
        (`banditlab.numerics.decoding`).
    inner_settings
        Settings of the forecaster, by name. If the reduction has a setting of the same name, write `forecaster.NAME`.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1]; the decoding, the forecaster or a setting is unknown; or `gamma` is "theory" or
        "anytime" and the forecaster has no proved bound.
    HorizonRequiredError
        `gamma = "theory"` and the horizon is unknown.
    IncompatibleError
        The forecaster does not support the problem.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    id = "exploration"
    group = "theory"
    summary = "a forecaster that learns from explored hits only"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2"
    wraps = "forecaster"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        forecaster: str = "folklore",
        gamma: float | Literal["theory", "anytime"] = "theory",
        decoding: Decoding = "half-log",
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng)
        self._play_through(forecaster, decoding, inner_settings)
        self.gamma: float | str = self._resolved(gamma)
        # Progress of the schedule: the number of decisions, and the exploration rate of the last one.
        self.acted, self.rate = 0, 1.0

    def limits(self) -> Limits:
        """Return the allowed ranges of the numbers in the state of the schedule."""
        return {"acted": COUNT, "rate": (0.0, 1.0)}

    def _resolved(self, gamma: float | str) -> float | str:
        if gamma not in ("theory", "anytime"):
            return probability("gamma", number("gamma", gamma, "theory", "anytime"))
        T = 1
        if gamma == "theory":
            T = self.problem.known_horizon("gamma = 'theory'", "give gamma as a number, or 'anytime'")
        regret = self._inner.bound(T) if self._inner.bound_unit == "nats" else None
        if regret is None:
            raise UsageError(
                f"gamma = {gamma!r} needs a forecaster with a proved bound in nats, which {self.forecaster} does not "
                "have at these settings; give gamma as a number"
            )
        return "anytime" if gamma == "anytime" else float(self._known(self._theory_rate(T, regret)))

    def _known(self, rates: Any) -> Any:
        """Return the rates; raise a UsageError if one is NaN, which means that the forecaster's bound is NaN or negative."""
        if np.isnan(rates).any():
            raise UsageError(
                f"gamma = 'theory' and 'anytime' need a bound of at least 0, which {self.forecaster} does not have at these "
                "settings; give gamma as a number"
            )
        return rates

    def _theory_rate(self, T: int, regret: float) -> float:
        r"""Return :math:`\min(1, \sqrt{f K\, \mathrm{Reg}(T)/T})`, the rate of Theorem 9 if :math:`f = 1`."""
        return theorem_9_gamma(T, self.problem.n_classes, self._per_nat * regret)

    @property
    def _per_nat(self) -> float:
        """The factor f: the decoding's largest expected number of mistakes per nat of log loss."""
        return mistakes_per_nat(self.decoding, self.problem.n_classes)

    def _rates(self, acted: int, rate: float, n: int) -> Floats:
        r"""Return :math:`\gamma_t` of the n rounds that follow the first `acted` rounds: non-increasing, and at most
        `rate`.
        """
        if not isinstance(self.gamma, str):
            return np.full(n, self.gamma)
        bound, K, factor = self._inner.bound, self.problem.n_classes, self._per_nat
        rates = np.array([theorem_9_gamma(t, K, factor * bound(t)) for t in range(acted + 1, acted + n + 1)])  # type: ignore[operator]
        self._known(rates)
        return np.minimum(np.minimum.accumulate(rates), rate)

    def _next_rates(self, n: int) -> Floats:
        r"""Return :math:`\gamma_t` of the next n rounds."""
        rates = self._rates(self.acted, self.rate, n)
        self.acted += n
        self.rate = float(rates[-1]) if n else self.rate
        return rates

    def _decide(self, view: Floats, u: Floats) -> Decision:
        K, gamma = self.problem.n_classes, float(self._next_rates(1)[0])
        p = np.empty(K)
        z = as_vector("the forecaster's logits", self._inner.predict(view), K) if gamma < 1.0 else np.zeros(K)
        action, explored = decide(z, u, gamma, DECODINGS.index(self.decoding), p)
        return Decision(int(action), p, bool(explored))

    def _receive(self, view: Floats, decision: Decision, outcome: bool) -> None:
        if decision.explored and outcome:
            self._inner.update(view, decision.action)

    def _play(self, X: Any, y: NDArray[Any], U: Floats, trace: Trace) -> None:
        inner, K = self._inner, self.problem.n_classes
        if not isinstance(inner, KernelForecaster):
            return super()._play(X, y, U, trace)
        gammas = self._next_rates(len(y))
        z, p, rule = np.zeros(K), np.empty(K), DECODINGS.index(self.decoding)

        def learns() -> NDArray[np.bool_]:  # as `rounds_in_stretches` sees it
            explored: NDArray[np.bool_] = U[:, 0] < gammas
            return explored & are_right(y, np.minimum((U[:, 1] * K).astype(np.int64), K - 1))

        def play(part: slice) -> None:
            scratch = (z, p) if inner.kernels.predict_many is None else (np.zeros((STRETCH, K)), z, p)
            rows, filled = (rows_of(X, part), y[part], U[part], gammas[part]), trace.part(part)
            self._report(_loop(inner.kernels)(inner.state, *rows, rule, *scratch, *filled), p, filled)

        inner.play_in_parts(X, learns, play)

    def bound(self, rounds: int) -> float | None:
        """Return a bound on the expected mistakes minus f times the comparator's loss in nats, or None if the
        forecaster has no bound.

        Returns None for `gamma = "anytime"`; see `well_specified_bound`.
        """
        if isinstance(self.gamma, str) or self.gamma == 0.0 or self._inner.bound_unit != "nats":
            return None
        K = self.problem.n_classes
        regret = self._inner.bound(self.gamma * rounds / K)  # type: ignore[arg-type]  # a mean number of updates
        return None if regret is None else exploration(rounds, K, self.gamma, self._per_nat * regret)

    def certificate(self) -> float:
        r"""Return :math:`\gamma (1 - 1/K) t` plus :math:`(1 - \gamma) f (K/\gamma)` times the forecaster's certificate.

        t is the number of rounds so far. This value uses the forecaster's regret over its updates in this run instead
        of the worst case. Its mean over the coin flips is at most `bound`, but its value in a single run is not a
        bound. It is NaN if :math:`\gamma` is 0 or varies, if the forecaster has no certificate, and for
        `decoding = "sample"`.
        """
        if isinstance(self.gamma, str) or self.gamma == 0.0 or self.decoding == "sample":
            return math.nan
        return exploration(self.acted, self.problem.n_classes, self.gamma, self._per_nat * self._inner.certificate())

    def well_specified_bound(self, rounds: int) -> float | None:
        r"""Return a bound on the same difference as `bound`, also for `gamma = "anytime"`.

        It holds if the labels are drawn from a comparator U: :math:`y \sim \mathrm{softmax}(U x)`.
        """
        gammas = self._rates(0, 1.0, rounds)
        if gammas[-1] == 0.0 or self._inner.bound_unit != "nats":
            return None
        K, total = self.problem.n_classes, float(gammas.sum())
        regret = self._inner.bound(total / K)  # type: ignore[arg-type]  # a mean number of updates
        last = float(gammas[-1])
        return None if regret is None else exploration_well_specified(K, total, last, self._per_nat * regret)


@cache
def _loop(inner: Kernels) -> Any:
    kernels = {"predict_kernel": inner.predict, "update_kernel": inner.update}
    template: Callable[..., Any] = rounds_one_by_one
    if inner.predict_many is not None:
        kernels = {"predict_many_kernel": inner.predict_many, "update_kernel": inner.update}
        template = rounds_in_stretches
    return bind(template, f"{__name__}.Exploration of {inner.owner}", **kernels)
