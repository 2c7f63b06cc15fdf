"""Checks of settings: each returns the value as it is stored, or raises one line that names it and what is allowed."""

from __future__ import annotations

import math

from banditlab.errors import UsageError


def positive(name: str, value: float) -> float:
    """Return a finite number above 0."""
    value = float(value)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} must be a number above 0, got {value:g}")
    return value


def nonnegative(name: str, value: float) -> float:
    """Return a finite number that is 0 or above."""
    value = float(value)
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{name} must be a number that is 0 or above, got {value:g}")
    return value


def probability(name: str, value: float) -> float:
    """Return a number in [0, 1]."""
    value = float(value)
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{name} must lie in [0, 1], got {value:g}")
    return value


def at_least(name: str, value: int, least: int) -> int:
    """Return an integer that is `least` or above."""
    if value < least:
        raise UsageError(f"{name} must be at least {least}, got {value}")
    return int(value)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return a string that is among `allowed`."""
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def number(name: str, value: object, *words: str) -> float:
    """Return a number; `words` are the strings the caller has already dealt with, named in the message."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        allowed = "".join(f" or {word!r}" for word in words)
        raise UsageError(f"{name} must be a number{allowed}, got {value!r}")
    return float(value)
