"""Execution of one run, either in compiled blocks, if the environment and the player allow them, or in the Gymnasium loop.

Both give the same actions for the same seeds. Results are stored at checkpoints only, so memory does not grow with the
rounds.

If the environment has labels, or states all right actions, the engine counts mistakes by them, not by the reward that a
wrapper returns. It reads each decision before the player's update.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.engine.blocks import (
    BIT,
    LABEL,
    REFERENCE,
    Contexts,
    Floats,
    Loop,
    block_loop,
    kind_of,
    late_loop,
    steps_equal_blocks,
    trace_of_forecast,
)
from banditlab.engine.feedback import Schedule, as_feedback
from banditlab.engine.first_pass import FirstPass
from banditlab.errors import IncompatibleError, PlayerError, UsageError
from banditlab.numerics.pending import arrival
from banditlab.numerics.right_actions import times_right
from banditlab.numerics.sparse_rows import SparseRows, is_sparse, refuse_dense
from banditlab.players.agent import Trace, checked
from banditlab.players.inputs import as_block
from banditlab.players.player import Player
from banditlab.problem import Decision, Problem
from banditlab.results.schema import LATE, ONE_RIGHT, UNCOVERED

BLOCK = 1024  # rounds per block; a constant, so that batched products round the same way in every run

Truth = NDArray[Any]
"""Labels (n,) int64, or the bit of every action, (n, K) bool, if several actions may be right."""
Blocks = Iterable[tuple[Any, Truth]]
"""Contexts (n, d), dense or CSR, and labels or bits."""
Piece = tuple[Contexts, Truth, bool]
"""Contexts, labels or bits, and whether the block ends at a checkpoint."""


@dataclass
class Played:
    r"""The result of a run: one entry per checkpoint in each list, cumulative from the first round.

    In an environment without labels, mistakes are rounds with bit 0, and expected mistakes are equal to mistakes. Their
    variance, the log loss and :math:`p_t(y_t)` are NaN. If several actions may be right, :math:`p_t(y_t)` is the
    probability of all right actions, and the log loss is NaN.

    Attributes
    ----------
    rounds, mistakes
        The checkpoint's round, and the number of mistakes so far.
    expected_mistakes
        Sum of :math:`1 - p_t(y_t)`, with :math:`p_t` the distribution from which the action was drawn.
    mistakes_variance
        Sum of :math:`p_t(y_t) (1 - p_t(y_t))`. Its mean is the variance of the difference `mistakes` -
        `expected_mistakes`, if actions are drawn from :math:`p_t`.
    first_sight_rounds, first_sight_mistakes, first_sight_expected_mistakes
        The same counts over the first pass of a table; without a table, over all rounds.
    constant_mistakes, first_sight_constant_mistakes
        Mistakes so far of the best constant action in hindsight; None if unknown.
    log_loss
        Sum of :math:`-\ln p_t(y_t)` in nats, with :math:`p_t` the distribution of the action (agents) or the forecast
        (forecasters). It is infinite once the label had probability 0.
    explored
        Number of rounds of forced exploration so far; NaN for players without forced exploration.
    bound, certificate
        The player's regret bound after this round, in its `bound_unit`, and its certificate, in nats; NaN if there is
        none.
    no_bound
        The reason if the player has a bound that does not hold here: its theorem excludes adaptive environments,
        several right actions, or late, lost or wrong bits. Otherwise "".
    seconds
        Time spent in the player since the first round, including scoring.
    diagnostics
        The values of the player's `diagnostics()` at each checkpoint, by name; NaN for a missing value. `mean_cost` is
        the mean cost of the chosen actions over the first pass, if costs are known.
    row_losses
        Expected mistakes of each row of a table in the first pass (see `results.schema`); None without a table.
    kind
        The kind of player: "bit" (an agent), "label" (a forecaster) or "reference" (an agent that observes labels).
    path
        How the run was executed: "blocks" or "steps".
    trace
        Every round's action, correctness, :math:`p_t(y_t)` and exploration, if requested.
    """

    rounds: list[int] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)
    expected_mistakes: list[float] = field(default_factory=list)
    mistakes_variance: list[float] = field(default_factory=list)
    first_sight_rounds: list[int] = field(default_factory=list)
    first_sight_mistakes: list[int] = field(default_factory=list)
    first_sight_expected_mistakes: list[float] = field(default_factory=list)
    constant_mistakes: list[int | None] = field(default_factory=list)
    first_sight_constant_mistakes: list[int | None] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)
    explored: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    certificate: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    diagnostics: dict[str, list[float]] = field(default_factory=dict)
    no_bound: str = ""
    row_losses: bytes | None = None
    kind: str = BIT
    path: Literal["blocks", "steps"] = "blocks"
    trace: Trace | None = None


class _Score:
    """Running sums, which are appended to a `Played` at each checkpoint."""

    def __init__(self, player: Player, env: Any, rounds: int, keep: bool, schedule: Schedule | None) -> None:
        self.player, self.first, self.labelled = player, FirstPass(env, rounds), env.labelled
        several = env.several_right
        self.known = self.labelled or several
        covered = hasattr(env, "blocks") or player.bound_adversary == "adaptive"
        self.no_bound = ONE_RIGHT if several else "" if covered else UNCOVERED
        self.schedule = schedule
        if schedule is not None and schedule.latest() > player.bound_late:
            self.no_bound = LATE
        self.played = Played(kind=kind_of(player))
        self.parts: list[Trace] | None = [] if keep else None
        self.rounds, self.mistakes, self.expected, self.log_loss, self.explored, self.seconds = 0, 0, 0.0, 0.0, 0, 0.0
        self.variance, self.first_mistakes, self.first_expected = 0.0, 0, 0.0
        self.times_right = np.zeros(player.problem.n_classes, np.int64)
        self.first_times_right, self.first_rounds = self.times_right.copy(), 0

    def add(self, trace: Trace, y: Truth | None, seconds: float, loss: float | None = None) -> None:
        """Add the rounds of a trace.

        `loss` is the sum of the log losses of these rounds. If it is None, the sum is computed from `p_true`, which
        underflows to 0 if the loss of a round is above 745 nats.
        """
        wrong: Floats = 1.0 - (trace.correct.astype(np.float64) if y is None else trace.p_true)
        new = self.first.among(self.rounds, len(wrong))
        self.first.add(self.rounds, wrong, trace.action, new)
        self.first_mistakes += int(np.count_nonzero(~trace.correct[new]))
        self.first_expected += float(np.sum(wrong[new]))
        self.first_rounds += int(np.count_nonzero(new))
        if y is not None:
            self.times_right += times_right(y, len(self.times_right))
            self.first_times_right += times_right(y[new], len(self.times_right))
        self.rounds += len(trace.correct)
        self.mistakes += int(len(trace.correct) - np.count_nonzero(trace.correct))
        self.expected += float(np.sum(wrong))
        self.variance += float(np.sum(trace.p_true * wrong))
        with np.errstate(divide="ignore"):
            loss = -float(np.sum(np.log(trace.p_true))) if loss is None else loss
        self.log_loss += loss if self.labelled else math.nan
        self.explored += int(np.count_nonzero(trace.explored))
        self.seconds += seconds
        if self.parts is not None:
            self.parts.append(trace)

    def close_row(self) -> None:
        has_coin = self.played.kind != LABEL and getattr(self.player, "explores", False)
        bound, certificate = self.player.bound(self.rounds), float(self.player.certificate())
        if self.no_bound:
            self.played.no_bound = "" if bound is None else self.no_bound
            bound, certificate = None, math.nan
        row = {
            "rounds": self.rounds,
            "mistakes": self.mistakes,
            "expected_mistakes": self.expected,
            "mistakes_variance": self.variance,
            "first_sight_rounds": self.first_rounds,
            "first_sight_mistakes": self.first_mistakes,
            "first_sight_expected_mistakes": self.first_expected,
            "constant_mistakes": self._constant(self.rounds, self.times_right),
            "first_sight_constant_mistakes": self._constant(self.first_rounds, self.first_times_right),
            "log_loss": self.log_loss,
            "explored": float(self.explored) if has_coin else math.nan,
            "bound": math.nan if bound is None else float(bound),
            "certificate": certificate,
            "seconds": self.seconds,
        }
        for name, value in row.items():
            getattr(self.played, name).append(value)
        late = {} if self.schedule is None else self.schedule.diagnostics()
        self._note(self.player.diagnostics() | late | self.first.diagnostics())

    def _constant(self, rounds: int, times_right: NDArray[np.int64]) -> int | None:
        return rounds - int(times_right.max()) if self.known else None

    def _note(self, found: dict[str, Any]) -> None:
        """Append a player's numeric diagnostics to the latest row; a new name is NaN in earlier rows."""
        columns, rows = self.played.diagnostics, len(self.played.rounds)
        for name, value in found.items():
            if isinstance(value, int | float | np.integer | np.floating):  # a bool is 0 or 1; others are left out
                columns.setdefault(name, [math.nan] * (rows - 1)).append(float(value))
        for column in columns.values():
            column += [math.nan] * (rows - len(column))

    def finish(self, path: Literal["blocks", "steps"]) -> Played:
        self.played.row_losses, self.played.path = self.first.row_losses(), path
        if self.parts:
            self.played.trace = Trace(*(np.concatenate(columns) for columns in zip(*self.parts, strict=True)))
        return self.played


def play(
    env: Any,
    player: Player,
    *,
    seed: int,
    rounds: int | None = None,
    checkpoints: Sequence[int] | None = None,
    path: Literal["auto", "blocks", "steps"] = "auto",
    keep_trace: bool = False,
    blocks: Blocks | None = None,
    feedback: Mapping[str, Any] | None = None,
) -> Played:
    """Execute one run from the first round and return its results at the checkpoints.

    Parameters
    ----------
    env
        A banditlab environment, with or without wrappers; it is reset with `seed`. With a wrapper other than those of
        `gymnasium.make`, rounds are run one by one, because the wrapper may change contexts or rewards. Mistakes are
        counted from the labels if the environment has them, else from the bits.
    player
        An agent (observes the bit), or a label agent or forecaster (observes the label after the round), before any
        update.
    seed
        The environment's seed; the player has its own generator.
    rounds
        Number of rounds, by default the environment's horizon.
    checkpoints
        Increasing rounds at which results are stored. The last round is always included.
    path
        "blocks": compiled kernels over blocks. "steps": the Gymnasium loop. "auto": blocks if environment and player
        allow them (`engine.blocks`). A plug-in's own `play_block` or `forecast_block` is never called.
    keep_trace
        Whether to store each round's action, correctness, :math:`p_t(y_t)` and exploration (memory grows with the
        rounds).
    blocks
        The blocks of this environment and seed, if already computed.
    feedback
        When the bits of an agent arrive, whether they arrive, and which are wrong: the keys `delay`, `batch`,
        `answered`, `timeout` and `flip` of a spec's `[feedback]`. A compiled agent runs in blocks, any other agent in
        the Gymnasium loop. Mistakes are counted in the round in which they occur.

    Raises
    ------
    UsageError
        rounds or checkpoints are out of range, `feedback` is not allowed, or `path="blocks"` is combined with an
        adaptive environment, a wrapper that may change the environment, or a player without a block loop.
    PlayerError
        An action is out of range, probabilities are not a distribution, or a logit is not finite.
    IncompatibleError
        Sparse contexts have more than `MOST_DENSE` features (`numerics.sparse_rows`) and the player's kernels accept
        dense contexts only; or a player that observes labels is combined with an environment without labels, or with
        `feedback`.
    """
    base, feedback = env.unwrapped, as_feedback(feedback or {})
    refuse_unlabelled(player, env)
    refuse_feedback(player, feedback)
    stops = _stops(base.problem.horizon, rounds, checkpoints)
    rounds = stops[-1]
    schedule = Schedule(feedback, base, seed, rounds) if feedback else None
    loop = block_loop(player) if schedule is None else late_loop(player, schedule)
    loop = loop if steps_equal_blocks(env, rounds) else None
    if path == "blocks" and loop is None:
        raise UsageError(
            "path='blocks' requires an oblivious environment without a wrapper that may change it, and a learner with "
            "a block loop of this package"
        )
    if path == "steps" or loop is None:
        return _play_steps(env, player, seed, stops, keep_trace, schedule)
    refuse_contexts(player, env)
    if blocks is None or getattr(base, "rows_per_pass", None) is not None:
        env.reset(seed=seed)
    score = _Score(player, base, rounds, keep_trace, schedule)
    blocks = base.blocks(rounds, BLOCK) if blocks is None else blocks
    own = player.problem
    checked_against = Problem(int(own.n_features), int(own.n_classes), float(own.radius))
    for piece in cut_at(checked_blocks(blocks, checked_against, rounds, several=base.several_right), stops):
        _play_piece(loop, piece, score)
    return score.finish("blocks")


def _stops(horizon: int | None, rounds: int | None, checkpoints: Sequence[int] | None) -> list[int]:
    """Return the rounds at which results are stored, in order; the last is the number of rounds."""
    rounds = horizon if rounds is None else rounds
    if rounds is None or rounds < 1 or (horizon is not None and rounds > horizon):
        raise UsageError(f"rounds must lie between 1 and the environment's horizon {horizon}, got {rounds}")
    wanted = [] if checkpoints is None else [int(at) for at in checkpoints]
    stops = sorted({*wanted, rounds})
    if stops[0] < 1 or stops[-1] > rounds:
        raise UsageError(f"checkpoints must lie between 1 and {rounds}, got {wanted}")
    return stops


def refuse_unlabelled(player: Player, env: Any) -> None:
    """Raise an IncompatibleError if an environment has no labels and the player observes them."""
    if not env.unwrapped.labelled and kind_of(player) != BIT:
        raise IncompatibleError(
            "the learner observes one label per round, and several actions may be right in this environment"
            if env.unwrapped.several_right
            else "the learner observes the label, and the environment has none"
        )


def refuse_feedback(player: Player, feedback: Mapping[str, Any]) -> None:
    """Raise an IncompatibleError if bits are late, lost or wrong and the player observes labels."""
    if feedback and kind_of(player) != BIT:
        raise IncompatibleError(
            "the learner observes the label, and [feedback] applies to the bit of an agent's action"
        )


def refuse_contexts(player: Player, env: Any) -> None:
    """Raise an IncompatibleError if sparse contexts are too long for a player with a dense block loop.

    Other players receive contexts as dense vectors, one at a time, in the Gymnasium loop.
    """
    base = env.unwrapped
    if base.sparse and not player.sparse and block_loop(player) is not None:
        refuse_dense(base.problem.n_features)


# -------------------------------------------------------------------------------------------------------------- the two paths


def _play_piece(loop: Loop, piece: Piece, score: _Score) -> None:
    X, y, stop = piece
    begin = time.perf_counter()
    trace, loss = loop(X, y)
    score.add(trace, y, time.perf_counter() - begin, loss)
    if stop:
        score.close_row()


def checked_blocks(
    blocks: Blocks, problem: Problem, rounds: int, *, several: bool = False
) -> Iterator[tuple[Contexts, Truth]]:
    """Check the first `rounds` rounds of a stream and yield them in blocks in the form that kernels require.

    Sparse contexts stay sparse; they are converted later for kernels that require dense ones. If `several` actions may
    be right, a block has one bit per action (right or not) instead of a label.

    Raises
    ------
    UsageError
        A block has a wrong shape, a context is not finite or has a norm above R, a label is out of range, or the stream
        is too short.
    """
    left = rounds
    for X, y in blocks:
        try:
            X = SparseRows.of(X)[:left] if is_sparse(X) else X[:left]
            rows, y = as_block(X, y[:left], problem, problem.n_classes, sparse=True, several=several)
        except UsageError as error:
            raise UsageError(f"a block of the environment: {error}") from None
        yield X if is_sparse(X) else rows, y
        left -= len(y)
        if left == 0:
            return
    raise UsageError(f"the environment's stream ended {left} rounds early")


def cut_at(blocks: Blocks, stops: list[int]) -> Iterator[Piece]:
    """Yield (X, y, is_checkpoint) in blocks that are also cut at the checkpoints."""
    done, ahead = 0, iter(stops)
    stop = next(ahead)
    for X, y in blocks:
        start = 0
        while start < len(y):
            end = min(len(y), start + stop - done)
            done += end - start
            yield X[start:end], y[start:end], done == stop
            start = end
            stop = next(ahead, stop) if done == stop else stop


class _LateSteps:
    """An agent whose rounds are run one by one, with a queue of pending bits ordered by arrival, then by round."""

    def __init__(self, agent: Any, schedule: Schedule) -> None:
        self.agent, self.schedule = agent, schedule
        self.waiting: defaultdict[int, list[tuple[Floats, Decision, bool]]] = defaultdict(list)

    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Schedule the bit of a round, and update the agent with the bits that arrive at the round's end."""
        schedule, now = self.schedule, self.schedule.done
        asked = (schedule.rules, schedule.draws(1), 0, now, correct, decision.action, schedule.too_late)
        arrives, bit = arrival(*asked)
        if arrives < schedule.rules.rounds:
            self.waiting[arrives].append((context, decision, bool(bit)))
        for round_ in self.waiting.pop(now, ()):
            self.agent.learn(*round_)


def _play_steps(
    env: Any, player: Any, seed: int, stops: list[int], keep_trace: bool, schedule: Schedule | None
) -> Played:
    context, _ = env.reset(seed=seed)
    score = _Score(player, env.unwrapped, stops[-1], keep_trace, schedule)
    learner = player if schedule is None else _LateSteps(player, schedule)
    kind = score.played.kind  # fixed here, because a plug-in may change its class
    for t in range(1, stops[-1] + 1):
        if not np.isfinite(context).all():
            raise UsageError("the environment returned a context that is not finite")
        context = _shown(context)
        begin = time.perf_counter()
        loss = None
        if kind == LABEL:
            (trace, loss), context = _forecast_step(env, player, context)
        else:
            trace, context = _agent_step(env, player, learner, context, full=kind == REFERENCE)
        score.add(trace, _finished_round(env), time.perf_counter() - begin, loss)
        if t in stops:
            score.close_row()
    return score.finish("steps")


def _shown(context: Any) -> Floats:
    """Return a read-only copy of a context, because the base of a view may contain later contexts."""
    shown = np.array(context, dtype=np.float64)
    shown.flags.writeable = False
    return shown


def _finished_round(env: Any) -> Truth | None:
    """Return the label (1,) or the bits (1, K) of the round just finished, or None if unknown."""
    base = env.unwrapped
    if base.several_right:
        return np.asarray(base.right()[None])
    return np.array([base.label()]) if base.labelled else None


def _agent_step(env: Any, agent: Any, learner: Any, context: Floats, full: bool) -> tuple[Trace, Floats]:
    decision = checked(agent.act(context), agent.problem.n_classes, agent)
    following, reward, *_ = env.step(decision.action)
    y, feedback = _finished_round(env), reward > 0.5
    # The decision is read before the update, which may change its arrays.
    if y is None:
        trace = Trace(*(np.array([v]) for v in (decision.action, feedback, math.nan, bool(decision.explored))))
    else:
        trace = Trace.empty(1)
        trace.put(0, decision, y)
    learner.learn(context, decision, int(y[0]) if full and y is not None else feedback)
    return trace, following


def _forecast_step(env: Any, forecaster: Any, context: Floats) -> tuple[tuple[Trace, float], Floats]:
    logits = np.array(
        forecaster.predict(context), dtype=np.float64
    )  # a copy, because `update` may overwrite the forecaster's array
    K = forecaster.problem.n_classes
    if logits.shape != (K,):
        raise PlayerError(
            f"{forecaster.id or type(forecaster).__name__}: logits of shape {logits.shape}, expected ({K},)"
        )
    following, *_ = env.step(int(np.argmax(logits)))
    label = env.unwrapped.label()
    forecaster.update(context, label)
    return trace_of_forecast(logits[None], np.array([label])), following
