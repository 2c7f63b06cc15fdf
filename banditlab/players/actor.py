"""Players that choose an action for a context: the common base of bandit agents and full-information agents.

`Actor` is the interface. `RoundActor` checks the callers' input, draws the round's two uniforms, runs blocks and
reports an invalid decision. `KernelActor` has compiled methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import PlayerError, UsageError
from banditlab.numerics.draws import is_valid_decision
from banditlab.numerics.right_actions import is_right, probability_right
from banditlab.players.inputs import as_block, as_class, as_context, as_vector
from banditlab.players.player import Player
from banditlab.players.rounds import no_prefetch
from banditlab.problem import Decision, Problem

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """The record of a block of rounds, with arrays of shape (n,).

    `action` is the chosen class, `correct` whether it was right, and `explored` whether it came from exploration.
    `p_true` is the agent's probability of the hidden label, or the sum over all right actions; 1 - `p_true` is the
    probability of a mistake.
    """

    action: NDArray[np.int64]
    correct: NDArray[np.bool_]
    p_true: Floats
    explored: NDArray[np.bool_]

    @classmethod
    def empty(cls, n: int) -> Trace:
        """Return uninitialised arrays for n rounds."""
        return cls(np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n), np.empty(n, np.bool_))

    def part(self, rounds: slice) -> Trace:
        """Return the trace of some of the rounds, without a copy."""
        return Trace(self.action[rounds], self.correct[rounds], self.p_true[rounds], self.explored[rounds])

    def of_length(self, n: int) -> Trace:
        """Return the trace itself if it is for n rounds, or raise a UsageError."""
        shapes = [column.shape for column in self]
        if shapes != [(n,)] * 4:
            raise UsageError(
                f"the trace must have arrays for {n} rounds, as Trace.empty({n}) returns, got arrays of shapes {shapes}"
            )
        return self

    def put(self, t: int, decision: Decision, y: NDArray[Any]) -> bool:
        """Write round t of a block with labels (n,) or bits (n, K); return whether the action was right."""
        correct = bool(is_right(y, t, decision.action))
        self.action[t], self.correct[t], self.explored[t] = decision.action, correct, bool(decision.explored)
        self.p_true[t] = probability_right(y, t, decision.probabilities)
        return correct


def checked(decision: Decision, K: int, agent: Player) -> Decision:
    """Return the decision, or raise a PlayerError that names the agent and the invalid value.

    The result is a plain `Decision` with a copy of the probabilities. The agent therefore cannot change it later, or
    find out which entry is read, which would reveal the label.
    """
    name = agent.id or type(agent).__name__
    try:
        action, p = (
            decision.action,
            np.array(decision.probabilities, dtype=np.float64),
        )  # writable: `is_valid_decision` has one type
    except AttributeError:
        raise PlayerError(f"{name}: act must return a Decision, got {type(decision).__name__}") from None
    if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < K:
        raise PlayerError(f"{name}: action {action!r} is not an integer in 0 ... {K - 1}")
    if p.shape == (K,) and is_valid_decision(int(action), p):
        explored = getattr(decision, "explored", None)
        return Decision(
            int(action), p, None if explored is None else bool(explored), getattr(decision, "payload", None)
        )
    if p.shape == (K,) and is_valid_decision(int(np.argmax(p)), p):
        raise PlayerError(f"{name}: chose class {action}, to which it gave probability 0")
    shown = np.array2string(p, max_line_width=10_000, threshold=12)  # one line for any K
    raise PlayerError(f"{name}: probabilities {shown} are not a distribution over {K} classes (sum {p.sum():.12g})")


class Actor(Player, ABC):
    """A player that acts: `act` returns a `Decision` for a context, `learn` receives the feedback."""

    explores: ClassVar[bool] = True
    """Whether the agent has forced exploration, so `Decision.explored` is a bool and not None."""
    expected_kind: ClassVar[str] = "unconditional"
    """ "conditional" if the probabilities are given internal draws and are then one-hot (Thompson sampling)."""
    rng: np.random.Generator

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        if rng is None:
            raise UsageError(f"{type(self).__name__} draws actions: rng must be a numpy Generator, got None")
        super().__init__(problem, rng)

    @abstractmethod
    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,), consuming exactly two uniforms of the generator."""

    @abstractmethod
    def learn(self, context: Floats, decision: Decision, outcome: Any, /) -> None:
        """Update with the feedback on `decision`, which was made at `context` (d,)."""

    @abstractmethod
    def _outcome(self, correct: bool, y: NDArray[Any], t: int) -> Any:
        """Return the feedback that `learn` receives for round t of a block, whose action was right if `correct`."""


def _read_only(decision: Decision) -> Decision:
    """Return the decision with read-only copies of its arrays."""
    p, payload = np.array(decision.probabilities), decision.payload
    p.flags.writeable = False
    if isinstance(payload, np.ndarray):
        payload = payload.copy()
        payload.flags.writeable = False
    return Decision(decision.action, p, decision.explored, payload)


class RoundActor(Actor):
    """An actor that a subclass defines by two methods, which receive checked input only.

    * `_decide(view, u) -> Decision`: u (2,) are the round's uniforms (coin flip, draw);
    * `_receive(view, decision, outcome)`: the decision's arrays have shapes (K,) and (payload_size,).

    `view` is the form in which the two methods read a context: the context itself (d,), unless the method `view`
    returns something else. Blocks are run round by round with the same two methods; a subclass with its own loop
    overrides `_play`.
    """

    payload_size: int = 0

    @abstractmethod
    def _decide(self, view: Any, u: Floats) -> Decision:
        """Return the decision at a context, drawn with the round's uniforms u (2,)."""

    @abstractmethod
    def _receive(self, view: Any, decision: Decision, outcome: Any) -> None:
        """Update with the feedback on a decision."""

    def view(self, x: Floats) -> Any:
        """Return the form in which the two methods read a context (d,)."""
        return x

    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,), consuming exactly two uniforms of the generator.

        The decision's arrays are read-only copies, which later updates do not change.

        Raises
        ------
        UsageError
            The context has another shape, is not finite, or has a norm above R. Nothing is drawn then.
        """
        x = as_context(context, self.problem)
        return _read_only(self._decide(self.view(x), self.rng.random(2)))

    def _learn(self, context: Any, decision: Decision, outcome: Any) -> None:
        """Check the context and the decision that `learn` received, and update with an outcome that was already checked."""
        K, x = self.problem.n_classes, as_context(context, self.problem)
        action = as_class("the decision's action", decision.action, K)
        p = as_vector("the decision's probabilities", decision.probabilities, K)
        payload = as_vector("the decision's payload", decision.payload, self.payload_size)
        # copies, because an update must not change the decision, and kernels require the array type of blocks
        self._receive(self.view(x), Decision(action, p.copy(), decision.explored, payload.copy()), outcome)

    def play_block(self, X: Floats, y: NDArray[Any], trace: Trace) -> None:
        """Run n rounds with contexts X (n, d), dense or CSR, and fill the arrays (n,) of `trace`.

        y contains labels (n,) or, for an `Agent`, possibly bits (n, K) bool. In each round `_receive` gets the feedback
        that `learn` would get, after the action, and an `Agent` never gets the label.

        Raises
        ------
        UsageError
            Contexts, labels or the trace have other shapes, a context is not finite or has a norm above R, or a label
            is out of range. No round is run then.
        PlayerError
            An action is out of range, or probabilities are not a distribution.
        """
        K, several = self.problem.n_classes, self.feedback == "bit"
        X, y = as_block(X, y, self.problem, K, sparse=self.sparse, several=several)
        trace = trace.of_length(len(y))
        self._play(X, y, self.rng.random((len(y), 2)), trace)

    def _play(self, X: Any, y: NDArray[Any], U: Floats, trace: Trace) -> None:
        """Run a checked block with the uniforms U (n, 2)."""
        for t in range(len(y)):
            self._play_round(t, X[t], y, U[t], trace)

    def _play_round(self, t: int, x: Floats, y: NDArray[Any], u: Floats, trace: Trace) -> None:
        """Run round t of a block."""
        view = self.view(x)
        decision = checked(self._decide(view, u), self.problem.n_classes, self)
        correct = trace.put(t, decision, y)
        self._receive(view, decision, self._outcome(correct, y, t))

    def _report(self, played: int, p: Floats, trace: Trace) -> None:
        """Raise the PlayerError for the round at which a compiled loop stopped; p (K,) contains the probabilities."""
        if played < len(trace.action):
            checked(Decision(int(trace.action[played]), p), self.problem.n_classes, self)


class KernelActor(RoundActor):
    """An actor with a state of arrays and two compiled kernels, which are used in single rounds and in blocks."""

    act_kernel: ClassVar[Callable[..., Any]]
    learn_kernel: ClassVar[Callable[..., Any]]
    state: Any
    plays_blocks = True

    def kernels(self) -> tuple[Any, Any]:
        """Return (act_kernel, learn_kernel) for this object; those of a wrapper depend on the wrapped player."""
        return type(self).act_kernel, type(self).learn_kernel

    def prefetch(self) -> Any:
        """Return the kernel `prefetch(state, X, t)` for this object's blocks, or `no_prefetch` if there is none.

        The kernel is called before each round t of a block X, and once at the end with :math:`t = n`. The last call
        discards prepared results for later rounds, so the state equals the state after single rounds.
        """
        return no_prefetch

    def kernel_owner(self) -> str:
        """Return a name unique to these kernels, for the disk cache."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @abstractmethod
    def _loop(self) -> Any:
        """Return the loop over a block with these kernels bound into it (see `banditlab.players.rounds`)."""

    def _decide(self, view: Any, u: Floats) -> Decision:
        p, payload = (
            np.zeros(self.problem.n_classes),
            np.zeros(self.payload_size),
        )  # kernels may not write every entry
        answer = self.kernels()[0](self.state, view, u, p, payload)
        action, explored = answer if isinstance(answer, tuple) else (answer, False)
        return Decision(int(action), p, bool(explored) if self.explores else None, payload)

    def act_at(self, x: Floats) -> Decision:
        """Choose as `act` does, without checks. The context (d,) must be read-only, finite and of norm at most R."""
        return self._decide(x, self.rng.random(2))

    def learn_at(self, x: Floats, decision: Decision, outcome: Any) -> None:
        """Update as `learn` does, without checks, with a decision of `act_at` at x (d,). The arguments are not modified."""
        action, p, explored, payload = decision
        self._receive(x, Decision(action, p.copy(), explored, payload.copy()), outcome)

    def _receive(self, view: Any, decision: Decision, outcome: Any) -> None:
        action, p, _, payload = decision
        self.kernels()[1](self.state, view, action, p, payload, outcome)

    def _play(self, X: Any, y: NDArray[Any], U: Floats, trace: Trace) -> None:
        play_kernels(self, self._loop(), X, y, U, trace)


def play_kernels(
    player: KernelActor, loop: Any, X: Any, y: NDArray[Any], U: Floats, trace: Trace, more: tuple[Any, ...] = ()
) -> None:
    """Run a checked block in a compiled loop, with further arguments `more`, without calling methods of the player.

    Raises
    ------
    PlayerError
        An action is out of range, or probabilities are not a distribution.
    """
    p, payload = np.zeros(player.problem.n_classes), np.zeros(player.payload_size)
    played = loop(player.state, X, y, U, p, payload, *more, *trace)
    if played < len(y):
        checked(Decision(int(trace.action[played]), p), player.problem.n_classes, player)
