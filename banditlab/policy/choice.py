"""What a policy answers: one choice, and the record of it that learning needs when feedback comes."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.problem import Decision

Name = str | int | float | bool
"""The name of a class, as the table has it."""


class Choice:
    """A policy's answer to one row.

    Attributes
    ----------
    id
        Names this decision in `Policy.feedback`.
    action
        The class chosen, by its name in the table.
    probability
        The probability with which it was chosen: what off-policy evaluation divides by.
    scores
        The probability with which each class would have been chosen, by its name; 0 for classes that were not allowed.
        They sum to 1, to rounding. It is what the agent plays with, no forecast of being right.
    """

    __slots__ = ("_classes", "_p", "action", "id", "probability")

    def __init__(self, id: str, action: int, p: NDArray[np.float64], classes: list[Name]) -> None:
        self.id, self.action, self.probability = id, classes[action], p.item(action)
        # The list may get longer, when a class is added; its first K names stay those of p.
        self._p, self._classes = p, classes

    @property
    def scores(self) -> dict[Name, float]:
        """The distribution by the classes' names, made when it is asked for."""
        return dict(zip(self._classes, self._p.tolist(), strict=False))

    def __repr__(self) -> str:
        """Return one line for any K."""
        return f"Choice(id={self.id!r}, action={self.action!r}, probability={self.probability!r})"

    def to_json(self) -> str:
        """Return the choice as one JSON object; the names of classes under "scores" are texts there, as JSON asks."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {"id": self.id, "action": self.action, "probability": self.probability, "scores": self.scores}


class Record(NamedTuple):
    """A decision as `learn` wants it back: feedback may come at any time, and is exact with it.

    An agent's contract is that learning uses its arguments and the agent's state only: what it needs of the state at the
    time of the decision travels in the payload. So late feedback is learnt with the context, action, distribution and
    payload of its own round, into the state of now.
    """

    context: NDArray[np.float64]
    """(d,)"""
    action: int
    probabilities: NDArray[np.float64]
    """(K,), what the action was drawn from."""
    explored: bool | None
    payload: NDArray[np.float64] | None
    generation: int
    """How many classes had been added: what was decided among fewer classes is recorded and not learnt from."""

    def decision(self) -> Decision:
        """Return the decision to hand to the agent."""
        return Decision(self.action, self.probabilities, self.explored, self.payload)
