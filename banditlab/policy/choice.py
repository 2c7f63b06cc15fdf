"""A policy's choice, and the record of it that is needed for an update when feedback arrives."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError, nearest
from banditlab.problem import Decision

Name = str | int | float | bool
"""The name of a class, as in the table."""
LONGEST_NAME = 1000
"""The largest number of characters of an added name, which a policy's file and every response contain."""
LARGEST_NAME = 2**63
"""Whole numbers of this size or larger cannot occur in a table."""
TOLD = 100
"""The largest number of classes that an error names."""


def as_name(name: Any) -> Name:
    """Return a valid name of a class, which is text or a JSON number, or raise a UsageError."""
    name = name.item() if isinstance(name, np.generic) else name
    if isinstance(name, str):
        if len(name) > LONGEST_NAME or any("\ud800" <= sign <= "\udfff" for sign in name):  # half of a surrogate pair
            raise UsageError(
                f"a class's name must be text of at most {LONGEST_NAME:,} valid Unicode characters, got {short(name)}"
            )
    elif isinstance(name, int | float):
        if not (math.isfinite(name) if isinstance(name, float) else -LARGEST_NAME <= name < LARGEST_NAME):
            raise UsageError("a class's name must be text, a finite number, or an integer of at most 64 bits")
    else:
        raise UsageError(f"a class's name must be text or a number, got {short(name)}")
    return name


def are_alike(one: Name, other: Name) -> bool:
    """Return whether two equal values name the same class: 1 and 1.0 do, as in JSON, but 1 and True do not."""
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
    """Return a value as one line of at most 60 characters, for an error message."""
    text = repr(value[:60] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Choice:
    """A policy's choice for one row, drawn from its agent's distribution p (K,).

    Attributes
    ----------
    id
        Identifies this decision in `Policy.feedback`.
    action
        The name of the chosen class, as in the table.
    probability
        The probability with which the class was chosen, by which off-policy evaluation divides.
    scores
        The probability of choosing each class, by its name; 0 for classes that were not allowed. The scores sum to 1 up
        to rounding. They are not probabilities of being right.
    cost
        The mean cost of that class in the training table, or None if it is not known.
    """

    __slots__ = ("_classes", "_p", "action", "cost", "id", "probability")

    def __init__(
        self, id: str, action: int, p: NDArray[np.float64], classes: list[Name], cost: float | None = None
    ) -> None:
        self.id, self.action, self.probability = id, classes[action], p.item(action)
        # The list may grow when a class is added, but its first K names are those of p.
        self._p, self._classes, self.cost = p, classes, cost

    @property
    def scores(self) -> dict[Name, float]:
        """The distribution by class name, computed on first use."""
        return dict(zip(self._classes, self._p.tolist(), strict=False))

    def __repr__(self) -> str:
        """Return the choice as one line of text."""
        return f"Choice(id={self.id!r}, action={self.action!r}, probability={self.probability!r})"

    def to_json(self) -> str:
        """Return the choice as a JSON object, in which the names of classes under "scores" are strings."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data, with its cost if known."""
        found = {"id": self.id, "action": self.action, "probability": self.probability, "scores": self.scores}
        return found if self.cost is None else {**found, "cost": self.cost}


class Held(NamedTuple):
    """How a decision was made under a holdback, where another policy makes a fraction of the decisions."""

    held: bool
    """Whether the other policy made the decision."""
    share: float
    other: float
    """The probability with which the other policy would have chosen the action."""


class Record(NamedTuple):
    """A decision with the arguments of its later update.

    An agent's update uses only its arguments and the current state. Numbers that it needs from the state at the time of
    the decision are in the payload. Late feedback therefore updates the current state with the context, action,
    distribution and payload of its round.
    """

    context: NDArray[np.float64]
    """(d,), the encoded row."""
    action: int
    probabilities: NDArray[np.float64]
    """(K,), the distribution from which the action was drawn."""
    explored: bool | None
    payload: NDArray[np.float64] | None
    generation: int
    """The number of classes added before. Feedback on decisions among fewer classes is recorded without an update."""
    held: Held | None = None
    """How the decision was made under a holdback; None without one."""

    def decision(self) -> Decision:
        """Return the decision as an argument of `learn`."""
        return Decision(self.action, self.probabilities, self.explored, self.payload)
