"""Direct calls of an agent's two kernels on its state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.entry import entry
from banditlab.players.actor import KernelActor
from banditlab.players.agent import Agent
from banditlab.policy.choice import Record

OWN = ("view", "act_at", "learn_at", "_decide", "_receive")
"""Methods of `KernelActor` that `Direct` replaces."""


def is_direct(agent: Agent) -> bool:
    """Return whether an agent uses the methods of `KernelActor` unchanged."""
    kind = type(agent)
    return isinstance(agent, KernelActor) and all(getattr(kind, name) is getattr(KernelActor, name) for name in OWN)


class Direct:
    """Direct calls of an agent's compiled kernels: the results of `act_at` and `learn_at` in a third of the time.

    Parameters
    ----------
    agent
        An agent for which `is_direct` is true. Its state's arrays may change, but the caller must check that the state
        object is not replaced.
    x
        A context (d,), read-only.
    """

    __slots__ = ("_act", "_explores", "_learn", "_sizes", "state")

    def __init__(self, agent: Any, x: NDArray[np.float64]) -> None:
        act, learn = agent.kernels()
        self.state, self._explores = agent.state, agent.explores
        self._sizes = agent.problem.n_classes, agent.payload_size
        p, payload = np.empty(self._sizes[0]), np.empty(self._sizes[1])
        self._act = entry(act, self.state, x, np.empty(2), p, payload)
        self._learn = entry(learn, self.state, x, 0, p, payload, True)

    def decide(self, agent: Any, x: NDArray[np.float64]) -> tuple[int, NDArray[np.float64], bool | None, Any]:
        """Return action, distribution (K,), whether the agent explored, and payload at a valid context x (d,)."""
        p, payload = np.zeros(self._sizes[0]), np.zeros(self._sizes[1])  # kernels may not write every entry
        answer = self._act(self.state, x, agent.rng.random(2), p, payload)
        if type(answer) is tuple:
            return answer[0], p, answer[1] if self._explores else None, payload
        return answer, p, False if self._explores else None, payload

    def learn(self, record: Record, correct: bool) -> None:
        """Update with feedback on a recorded decision; the kernel receives copies of its distribution and payload."""
        payload: Any = record.payload
        self._learn(self.state, record.context, record.action, record.probabilities.copy(), payload.copy(), correct)
