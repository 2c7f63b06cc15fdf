"""A policy's choice, and the record of the choice that an update needs when feedback arrives."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError, nearest
from banditlab.problem import Decision

Name = str | int | float | bool
"""The name of a class, as the table has it."""
LONGEST_NAME = 1000
"""Characters of a name that is added later: a policy's file and every answer hold it."""
LARGEST_NAME = 2**63
"""Whole numbers beyond are no table's."""
TOLD = 100
"""So many classes are named in an error."""


def as_name(name: Any) -> Name:
    """Return a valid name of a class, a text or a JSON number, or raise a UsageError."""
    name = name.item() if isinstance(name, np.generic) else name
    if isinstance(name, str):
        if len(name) > LONGEST_NAME or not _is_unicode(name):
            raise UsageError(
                f"a class's name must be text of up to {LONGEST_NAME:,} characters of Unicode, got {short(name)}"
            )
    elif isinstance(name, int | float):
        if not (math.isfinite(name) if isinstance(name, float) else -LARGEST_NAME <= name < LARGEST_NAME):
            raise UsageError("a class's name must be text, a finite number, or an integer of at most 64 bits")
    else:
        raise UsageError(f"a class's name must be text or a number, got {short(name)}")
    return name


def are_alike(one: Name, other: Name) -> bool:
    """Return whether two equal values name the same class: 1 and 1.0 do (they are equal in JSON), 1 and True do not."""
    return type(one) is type(other) or (not isinstance(one, bool) and not isinstance(other, bool))


def unknown_class(name: Any, classes: list[Name]) -> UsageError:
    """Return the one-line error for an unknown class name."""
    if (other := next((each for each in classes if str(each) == str(name)), None)) is not None:
        kind = "text" if isinstance(other, str) else "number" if type(other) is not bool else "truth value"
        return UsageError(f"no class is called {short(name)}; did you mean the {kind} {short(other)}?")
    known = [" ".join(str(known).split())[:60] for known in classes[:TOLD]]
    more = f", and {len(classes) - TOLD:,} more" if len(classes) > TOLD else ""
    return UsageError(f"no class is called {short(name)}{nearest(str(name)[:60], known, keep_order=True)}{more}")


def short(value: Any) -> str:
    """Return a value for an error message: one line of at most 60 characters."""
    text = repr(value[:60] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


class Choice:
    """A policy's answer to one row, drawn from the distribution p (K,) of its agent.

    Attributes
    ----------
    id
        Identifies this decision in `Policy.feedback`.
    action
        The name of the chosen class, as in the table.
    probability
        The probability with which the class was chosen, which off-policy evaluation divides by.
    scores
        The probability with which each class would have been chosen, by its name; 0 for classes that were not allowed.
        The scores sum to 1 up to rounding. They are the agent's action probabilities, not forecasts of being right.
    cost
        The mean cost of that class in the training table, or None if it is not known.
    """

    __slots__ = ("_classes", "_p", "action", "cost", "id", "probability")

    def __init__(
        self, id: str, action: int, p: NDArray[np.float64], classes: list[Name], cost: float | None = None
    ) -> None:
        self.id, self.action, self.probability = id, classes[action], p.item(action)
        # The list may get longer, when a class is added; its first K names stay those of p.
        self._p, self._classes, self.cost = p, classes, cost

    @property
    def scores(self) -> dict[Name, float]:
        """The distribution by class name, computed on first use."""
        return dict(zip(self._classes, self._p.tolist(), strict=False))

    def __repr__(self) -> str:
        """Return one line for any K."""
        return f"Choice(id={self.id!r}, action={self.action!r}, probability={self.probability!r})"

    def to_json(self) -> str:
        """Return the choice as one JSON object; JSON requires that the names of classes under "scores" are strings."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data, with its cost if known."""
        found = {"id": self.id, "action": self.action, "probability": self.probability, "scores": self.scores}
        return found if self.cost is None else {**found, "cost": self.cost}


class Held(NamedTuple):
    """How a decision was made when a holdback policy makes a share of the decisions."""

    held: bool
    """Whether the other policy took it."""
    share: float
    other: float
    """The probability with which the other policy would have chosen the action."""


class Record(NamedTuple):
    """A decision with everything that `learn` needs, so late feedback leads to the exact update.

    An agent's update may use only its arguments and the agent's state. Whatever it needs of the state at the time of
    the decision is stored in the payload. Late feedback therefore updates the current state with the context, action,
    distribution and payload of its round.
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
    held: Held | None = None
    """None without a holdback."""

    def decision(self) -> Decision:
        """Return the decision in the form that the agent takes."""
        return Decision(self.action, self.probabilities, self.explored, self.payload)
