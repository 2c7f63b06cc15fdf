"""The agents' contract: `Agent` for any Python class, `KernelAgent` for algorithms whose two verbs are compiled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import PlayerError, UsageError
from banditlab.numerics.draws import is_answer
from banditlab.numerics.jit import bind
from banditlab.players.inputs import as_block, as_class, as_context, as_vector
from banditlab.players.player import Player
from banditlab.players.rounds import no_look, play_rounds
from banditlab.problem import Decision, Problem

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """What a block of rounds leaves behind; each of shape (n,).

    `p_true` is the probability the agent gave to the hidden label: 1 - p_true is the round's expected mistake.
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
        """Return the trace of some of the rounds, as views."""
        return Trace(self.action[rounds], self.correct[rounds], self.p_true[rounds], self.explored[rounds])

    def holds(self, n: int) -> Trace:
        """Return the trace itself if it has room for n rounds, or raise a UsageError."""
        shapes = [column.shape for column in self]
        if shapes != [(n,)] * 4:
            raise UsageError(
                f"the trace must have room for {n} rounds, Trace.empty({n}), got columns of shapes {shapes}"
            )
        return self


def checked(decision: Decision, K: int, agent: Player) -> Decision:
    """Return the decision, or raise a PlayerError that names the agent and what it answered."""
    name = agent.id or type(agent).__name__
    try:
        action, p = decision.action, np.ascontiguousarray(decision.probabilities, dtype=np.float64)
    except AttributeError:
        raise PlayerError(f"{name}: act must return a Decision, got {type(decision).__name__}") from None
    if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < K:
        raise PlayerError(f"{name}: action {action!r} is not an integer in 0 ... {K - 1}")
    if p.shape == (K,) and is_answer(int(action), p):
        return decision._replace(action=int(action))
    if p.shape == (K,) and is_answer(int(np.argmax(p)), p):
        raise PlayerError(f"{name}: played class {action}, to which it gave probability 0")
    shown = np.array2string(p, max_line_width=10_000, threshold=12)  # one line for any K
    raise PlayerError(f"{name}: probabilities {shown} are no distribution over {K} classes (sum {p.sum():.12g})")


class Agent(Player, ABC):
    """An agent that sees one bit: was the action right?

    Nothing else ever reaches it: `learn` uses its arguments and the agent's state only, so feedback may come late or
    never, and replacing the labels of wrong rounds by other wrong labels leaves every action identical.
    """

    feedback = "bit"
    explores: ClassVar[bool] = True
    """Whether `Decision.explored` is a bool (a forced-exploration coin exists) or None."""
    expected_kind: ClassVar[str] = "unconditional"
    """ "conditional" for agents whose probabilities are one-hot given internal draws (Thompson sampling)."""

    compiled: bool = False
    """Whether `play_block` exists: the run then goes through compiled kernels over blocks of rounds."""
    sparse: bool = False
    """Whether `play_block` takes sparse contexts as they are; else they are made dense, where they are short enough."""
    rng: np.random.Generator

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        if rng is None:
            raise UsageError(f"{type(self).__name__} draws actions: rng must be a numpy Generator, got None")
        super().__init__(problem, rng)

    @abstractmethod
    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,), consuming exactly two uniforms of the generator."""

    @abstractmethod
    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Learn whether the decision taken at `context` (d,) was right."""


class KernelAgent(Agent):
    """An agent made of a state of arrays and two compiled kernels; both ways of playing call the same two.

    A subclass sets, beside `state` in its constructor,

    * `act_kernel(state, x, u, p, payload) -> (action, explored)`: u (2,) are the round's uniforms (coin, draw); writes
      the action's distribution into p (K,) and what learning needs into payload (payload_size,);
    * `learn_kernel(state, x, action, p, payload, correct)`: only the bit.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`; they allocate nothing. Where they touch x
    through functions made by `banditlab.kernels.by_context` only, the class says `sparse = True`: blocks of sparse contexts
    then go through the same kernels, x a `banditlab.kernels.SparseRow`.
    """

    act_kernel: ClassVar[Callable[..., Any]]
    learn_kernel: ClassVar[Callable[..., Any]]
    state: Any
    payload_size: int = 0
    compiled = True

    def kernels(self) -> tuple[Any, Any]:
        """Return (act_kernel, learn_kernel) for this object; a wrapper's depend on what it wraps."""
        return type(self).act_kernel, type(self).learn_kernel

    def look(self) -> Any:
        """Return the kernel `look(state, X, t)` for this object's blocks, `no_look` where nothing is gained.

        Before each round of a block it is told that context t of X comes next, at the end that none does (t = n): what it
        has prepared for the rounds to come is then cleared away, and the state is what rounds one by one would leave.
        """
        return no_look

    def kernel_owner(self) -> str:
        """Return a name unique to these kernels, for the disk cache."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,).

        Raises
        ------
        UsageError
            A context of another shape.
        """
        x = as_context(context, self.problem.n_features)
        u = self.rng.random(2)
        p = np.empty(self.problem.n_classes)
        payload = np.empty(self.payload_size)
        action, explored = self.kernels()[0](self.state, x, u, p, payload)
        return Decision(int(action), p, bool(explored) if self.explores else None, payload)

    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Learn whether the decision taken at `context` (d,) was right.

        Raises
        ------
        UsageError
            A context of another shape, or a decision that is none of this agent's: its action, probabilities, payload.
        """
        K, x = self.problem.n_classes, as_context(context, self.problem.n_features)
        action = as_class("the decision's action", decision.action, K)
        p = as_vector("the decision's probabilities", decision.probabilities, K)
        payload = as_vector("the decision's payload", decision.payload, self.payload_size)
        self.kernels()[1](self.state, x, action, p, payload, bool(correct))

    def play_block(self, X: Floats, y: NDArray[np.int64], trace: Trace) -> None:
        """Play n rounds at compiled speed: X (n, d), dense or CSR, y (n,); fills `trace`, each (n,).

        The labels stand outside the agent: the loop hands `learn_kernel` the bit only.

        Raises
        ------
        UsageError
            Contexts, labels or a trace of other shapes, or labels out of range.
        PlayerError
            The agent's kernels answered an action out of range or probabilities that are no distribution.
        """
        K = self.problem.n_classes
        X, y = as_block(X, y, self.problem.n_features, K, sparse=self.sparse)
        columns = trace.holds(len(y))
        U = self.rng.random((len(y), 2))
        p, payload = np.empty(K), np.empty(self.payload_size)
        played = _loop(*self.kernels(), self.look(), self.kernel_owner())(self.state, X, y, U, p, payload, *columns)
        if played < len(y):
            checked(Decision(int(trace.action[played]), p), K, self)


@cache
def _loop(act: Any, learn: Any, look: Any, owner: str) -> Any:
    name = owner if look is no_look else f"{owner} looking ahead"
    return bind(play_rounds, name, act_kernel=act, learn_kernel=learn, look_kernel=look)
