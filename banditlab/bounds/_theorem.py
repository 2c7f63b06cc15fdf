"""How a theorem is registered: a pure function, numbers in, number out, with its source beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., float])


@dataclass(frozen=True)
class Theorem:
    """One registered bound: what `banditlab list bounds` shows."""

    name: str
    function: Callable[..., float]
    source: str
    unit: str
    assumes: str
    printed: str
    summary: str


THEOREMS: dict[str, Theorem] = {}


def theorem(*, source: str, unit: str, assumes: str, printed: str = "as here") -> Callable[[F], F]:
    """Register a bound with its source, the unit of the comparator's loss, its assumptions and the erratum if any."""

    def register(function: F) -> F:
        if function.__name__ in THEOREMS:
            raise ValueError(f"two theorems are called {function.__name__}")
        summary = (function.__doc__ or "").strip().split("\n")[0]
        THEOREMS[function.__name__] = Theorem(function.__name__, function, source, unit, assumes, printed, summary)
        return function

    return register
