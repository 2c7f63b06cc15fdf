"""Base classes of agents: `Agent` for any Python class, `KernelAgent` for algorithms whose two methods are compiled."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any

from numpy.typing import NDArray

from banditlab.numerics.jit import bind
from banditlab.players.actor import Actor, Floats, KernelActor, RoundActor, Trace, checked
from banditlab.players.inputs import as_bit
from banditlab.players.rounds import no_prefetch, play_rounds, play_rounds_late
from banditlab.problem import Decision

__all__ = ["Agent", "Floats", "KernelAgent", "RoundAgent", "Trace", "checked"]


class Agent(Actor):
    """An agent with bandit feedback, which observes one bit: whether its action was right.

    `learn` uses only its arguments and the agent's state, so feedback may be late or missing. Actions depend on the
    labels only through the bits of chosen actions.
    """

    feedback = "bit"

    @abstractmethod
    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Update with the bit of the decision that was made at `context` (d,)."""

    def _outcome(self, correct: bool, y: NDArray[Any], t: int) -> bool:
        return correct


class RoundAgent(RoundActor, Agent):
    """An agent that a subclass defines by two methods (see `RoundActor`); the outcome passed to `_receive` is a bool."""

    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Update with the bit of the decision that was made at `context` (d,).

        Raises
        ------
        UsageError
            The context has another shape, is not finite or has a norm above R; the feedback is not a bit; or the
            decision's action, probabilities or payload cannot be from this agent. The state does not change then.
        """
        self._learn(context, decision, as_bit(correct))


class KernelAgent(KernelActor, RoundAgent):
    """An agent with a state of arrays and two compiled kernels, which are used in single rounds and in blocks.

    A subclass sets `state` in its constructor, and

    * `act_kernel(state, x, u, p, payload) -> (action, explored)`: u (2,) are the round's uniforms (coin flip, draw). It
      writes the action's distribution into p (K,) and the input of the update into payload (payload_size,).
    * `learn_kernel(state, x, action, p, payload, correct)`: updates the state with the bit `correct`.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`, and do not allocate memory. If they read
    x only through functions made by `banditlab.kernels.by_context`, the class sets `sparse = True`. Blocks of sparse
    contexts then use the same kernels, with x a `banditlab.kernels.SparseRow`.
    """

    def _loop(self) -> Any:
        return _bound(*self.kernels(), self.prefetch(), self.kernel_owner())

    def _late_loop(self) -> Any:
        """Return `play_rounds_late` with these kernels bound to it."""
        return _bound_late(*self.kernels(), self.kernel_owner())


@cache
def _bound(act: Any, learn: Any, prefetch: Any, owner: str) -> Any:
    name = owner if prefetch is no_prefetch else f"{owner} with prefetch"
    return bind(play_rounds, name, act_kernel=act, learn_kernel=learn, prefetch_kernel=prefetch)


@cache
def _bound_late(act: Any, learn: Any, owner: str) -> Any:
    return bind(play_rounds_late, owner, act_kernel=act, learn_kernel=learn)
