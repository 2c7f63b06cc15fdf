"""The contract of references: agents that play under the same protocol but are told the label after every round.

They are there for scale, and are never ranked with agents that see one bit. `LabelAgent` is no `Agent`: the engine hands
a label to instances of this class only, whatever their attributes say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.jit import bind
from banditlab.players.agent import Floats, Trace, checked
from banditlab.players.inputs import as_block, as_class, as_context, as_vector
from banditlab.players.player import Player
from banditlab.players.rounds import play_told_rounds
from banditlab.problem import Decision, Problem


class LabelAgent(Player, ABC):
    """An agent that is told the label after each round, whatever it played.

    `act` answers as a bit agent's does, before the label is known; `learn` uses its arguments and the state only.
    """

    feedback = "label"
    group = "reference"
    explores: ClassVar[bool] = False
    """There is nothing to explore for: `Decision.explored` is None."""
    expected_kind: ClassVar[str] = "unconditional"

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
    def learn(self, context: Floats, decision: Decision, label: int) -> None:
        """Learn the label of the round in which `decision` was taken at `context` (d,)."""


class KernelLabelAgent(LabelAgent):
    """A label agent made of a state of arrays and two compiled kernels; both ways of playing call the same two.

    A subclass sets, beside `state` in its constructor,

    * `act_kernel(state, x, u, p, payload) -> action`: u (2,) are the round's uniforms; writes the action's distribution
      into p (K,) and what learning needs into payload (payload_size,);
    * `learn_kernel(state, x, action, p, payload, label)`.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`; they allocate nothing.
    """

    act_kernel: ClassVar[Callable[..., Any]]
    learn_kernel: ClassVar[Callable[..., Any]]
    state: Any
    payload_size: int = 0
    compiled = True

    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,).

        Raises
        ------
        UsageError
            A context of another shape.
        """
        x = as_context(context, self.problem.n_features)
        u = self.rng.random(2)
        p, payload = np.empty(self.problem.n_classes), np.empty(self.payload_size)
        action = type(self).act_kernel(self.state, x, u, p, payload)
        return Decision(int(action), p, None, payload)

    def learn(self, context: Floats, decision: Decision, label: int) -> None:
        """Learn the label of the round in which `decision` was taken at `context` (d,).

        Raises
        ------
        UsageError
            A context of another shape, a label out of range, or a decision that is none of this agent's.
        """
        K, x = self.problem.n_classes, as_context(context, self.problem.n_features)
        action = as_class("the decision's action", decision.action, K)
        p = as_vector("the decision's probabilities", decision.probabilities, K)
        payload = as_vector("the decision's payload", decision.payload, self.payload_size)
        type(self).learn_kernel(self.state, x, action, p, payload, as_class("the label", label, K))

    def play_block(self, X: Floats, y: NDArray[np.int64], trace: Trace) -> None:
        """Play n rounds at compiled speed: X (n, d), dense or CSR, y (n,); fills `trace`. The label comes after the action.

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
        cls = type(self)
        loop = _loop(cls.act_kernel, cls.learn_kernel, f"{cls.__module__}.{cls.__qualname__}")
        played = loop(self.state, X, y, U, p, payload, *columns)
        if played < len(y):
            checked(Decision(int(trace.action[played]), p), K, self)


@cache
def _loop(act: Any, learn: Any, owner: str) -> Any:
    return bind(play_told_rounds, owner, act_kernel=act, learn_kernel=learn)
