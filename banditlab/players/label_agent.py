"""Base classes of reference agents, which observe the label after every round.

They are never ranked with bandit agents. `LabelAgent` is not an `Agent`: the engine passes labels to instances of this
class only.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any

from numpy.typing import NDArray

from banditlab.numerics.jit import bind
from banditlab.players.actor import Actor, Floats, KernelActor, RoundActor
from banditlab.players.inputs import as_class
from banditlab.players.rounds import play_label_rounds
from banditlab.problem import Decision


class LabelAgent(Actor):
    """An agent that observes the label after each round.

    `act` chooses before the label is known, as for a bandit agent; `learn` uses only its arguments and the state.
    """

    feedback = "label"
    group = "reference"
    explores = False  # no exploration, so `Decision.explored` is None

    @abstractmethod
    def learn(self, context: Floats, decision: Decision, label: int) -> None:
        """Update with the label of the round in which `decision` was made at `context` (d,)."""

    def _outcome(self, correct: bool, y: NDArray[Any], t: int) -> int:
        return int(y[t])


class RoundLabelAgent(RoundActor, LabelAgent):
    """Base class of a label agent written as two methods, `_decide` and `_receive` (see `RoundActor`).

    `_receive` gets the label as its outcome.
    """

    def learn(self, context: Floats, decision: Decision, label: int) -> None:
        """Update with the label of the round in which `decision` was made at `context` (d,).

        Raises
        ------
        UsageError
            The context has a wrong shape, is not finite or has a norm above R; the label is out of range; or the
            decision cannot be from this agent. The state does not change then.
        """
        self._learn(context, decision, as_class("the label", label, self.problem.n_classes))


class KernelLabelAgent(KernelActor, RoundLabelAgent):
    """A label agent with a state of arrays and two compiled kernels, which are used in single rounds and in blocks.

    A subclass sets `state` in its constructor, and

    * `act_kernel(state, x, u, p, payload) -> action`: u (2,) are the round's uniforms. It writes the action's
      distribution into p (K,) and the input of the update into payload (payload_size,).
    * `learn_kernel(state, x, action, p, payload, label)`: updates the state with the label.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`, and do not allocate memory.
    """

    def _loop(self) -> Any:
        return _bound(*self.kernels(), self.kernel_owner())


@cache
def _bound(act: Any, learn: Any, owner: str) -> Any:
    return bind(play_label_rounds, owner, act_kernel=act, learn_kernel=learn)
