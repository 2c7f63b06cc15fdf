"""The agents' contract: `Agent` for any Python class, `KernelAgent` for algorithms whose two verbs are compiled."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any

from banditlab.numerics.jit import bind
from banditlab.players.actor import Actor, Floats, KernelActor, RoundActor, Trace, checked
from banditlab.players.inputs import as_bit
from banditlab.players.rounds import no_look, play_rounds
from banditlab.problem import Decision

__all__ = ["Agent", "Floats", "KernelAgent", "RoundAgent", "Trace", "checked"]


class Agent(Actor):
    """An agent that sees one bit: was the action right?

    Nothing else ever reaches it: `learn` uses its arguments and the agent's state only, so feedback may come late or
    never, and replacing the labels of wrong rounds by other wrong labels leaves every action identical.
    """

    feedback = "bit"

    @abstractmethod
    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Learn whether the decision taken at `context` (d,) was right."""

    def _outcome(self, action: int, label: int) -> bool:
        return action == label


class RoundAgent(RoundActor, Agent):
    """An agent written as two verbs: see `RoundActor`; the outcome that `_receive` meets is a bool."""

    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Learn whether the decision taken at `context` (d,) was right.

        Raises
        ------
        UsageError
            A context of another shape, not finite or of a norm beyond R, feedback that is no bit, or a decision that is
            none of this agent's: its action, probabilities, payload. Nothing was learnt then.
        """
        self._learn(context, decision, as_bit(correct))


class KernelAgent(KernelActor, RoundAgent):
    """An agent made of a state of arrays and two compiled kernels; both ways of playing call the same two.

    A subclass sets, beside `state` in its constructor,

    * `act_kernel(state, x, u, p, payload) -> (action, explored)`: u (2,) are the round's uniforms (coin, draw); writes
      the action's distribution into p (K,) and what learning needs into payload (payload_size,);
    * `learn_kernel(state, x, action, p, payload, correct)`: only the bit.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`; they allocate nothing. Where they touch x
    through functions made by `banditlab.kernels.by_context` only, the class says `sparse = True`: blocks of sparse contexts
    then go through the same kernels, x a `banditlab.kernels.SparseRow`.
    """

    def _loop(self) -> Any:
        return _bound(*self.kernels(), self.look(), self.kernel_owner())


@cache
def _bound(act: Any, learn: Any, look: Any, owner: str) -> Any:
    name = owner if look is no_look else f"{owner} looking ahead"
    return bind(play_rounds, name, act_kernel=act, learn_kernel=learn, look_kernel=look)
