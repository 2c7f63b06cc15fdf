"""Twins that observe the bit of every action: what an agent with a model per class would do if nothing were hidden."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from banditlab import make_agent
from banditlab.agents import KernelLabelAgent
from banditlab.kernels import bind
from banditlab.problem import Problem
from banditlab.validation import one_of, true_or_false

SHARPEST = 1e12
"""A sharpness at which an action other than the best is played less than once in 10^11 rounds, but for ties."""
EXPLORING: dict[str, dict[str, Any]] = {"fastcb": {"challenger": 0.0}, "squarecb": {"challenger": 0.0}, "linucb": {}}
"""The settings of the agents that explore: their defaults, with a single set of models."""
GREEDY = {
    "fastcb": {"challenger": 0.0, "sharpness": SHARPEST},
    "squarecb": {"challenger": 0.0, "sharpness": SHARPEST},
    "linucb": {"confidence": 0.0},
}
"""The settings at which they play the action of the highest forecast."""


def act(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    """Template: return the agent's action alone, as agents that observe the label do."""
    return act_kernel(state, x, u, p, payload)[0]  # type: ignore[name-defined]  # noqa: F821


def learn_all(state, x, action, p, payload, label):  # type: ignore[no-untyped-def]
    """Template: pass the bit of each action to its model, in the place of the bit of the action that was played."""
    for k in range(p.shape[0]):
        learn_kernel(state, x, k, p, payload, k == label)  # type: ignore[name-defined]  # noqa: F821


def learn_all_once(state, x, action, p, payload, label):  # type: ignore[no-untyped-def]
    """Template: the same for an agent whose exploration fades with the rounds learnt: K bits of one round are one."""
    for k in range(p.shape[0]):
        learn_kernel(state, x, k, p, payload, k == label)  # type: ignore[name-defined]  # noqa: F821
    state.rounds[0] -= p.shape[0] - 1


class AllBits(KernelLabelAgent):
    """An agent with a model per class that observes the bits of all K actions after each round, and learns from each.

    Problem: online multiclass classification; the label is revealed after each round. A reference for scale: what remains
    of the agent's mistakes when it observes K bits in the place of one.

    Update rule: act as the agent does; then pass the bit of each class to that class's model, by the agent's own update.
    What the agent counts in rounds, it counts once a round.

    Guarantee: none; `bound` returns None.

    Cost: the agent's, with K updates a round.

    Parameters
    ----------
    agent
        "fastcb", "squarecb" (both with a single set of models, `challenger = 0`) or "linucb", at their defaults.
    greedy
        Whether the action of the highest forecast is played every round: `confidence = 0`, or a `sharpness` of 1e12.

    Raises
    ------
    UsageError
        Another agent, or a `greedy` that is no truth value.
    """

    id = "lab-all-bits"
    group = "reference"
    summary = "an agent with a model per class that observes the bits of all actions"
    reference = "made here"
    version = 1

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        agent: Literal["fastcb", "squarecb", "linucb"] = "fastcb",
        greedy: bool = False,
    ) -> None:
        super().__init__(problem, rng)
        self.agent = one_of("agent", agent, tuple(EXPLORING))
        self.greedy = true_or_false("greedy", greedy)
        settings = (GREEDY if self.greedy else EXPLORING)[self.agent]
        self._inner: Any = make_agent(self.agent, problem, seed=0, **settings)
        self.state, self.payload_size = self._inner.state, self._inner.payload_size

    def kernels(self) -> tuple[Any, Any]:
        """Return the agent's act, and its learn for every class in turn."""
        return _bound(*self._inner.kernels(), self._inner.kernel_owner(), hasattr(self.state, "rounds"))

    def kernel_owner(self) -> str:
        """Return a name unique to these kernels, for the disk cache."""
        return f"{super().kernel_owner()} of {self._inner.kernel_owner()}"


@cache
def _bound(act_kernel: Any, learn_kernel: Any, owner: str, counts_rounds: bool) -> tuple[Any, Any]:
    template = learn_all_once if counts_rounds else learn_all
    name = f"lab-all-bits of {owner}"
    return bind(act, name, act_kernel=act_kernel), bind(template, name, learn_kernel=learn_kernel)
