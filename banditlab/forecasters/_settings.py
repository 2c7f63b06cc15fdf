"""Settings that are a number or a word standing for one."""

from __future__ import annotations

from banditlab.errors import UsageError
from banditlab.validation import number, positive


def resolve(name: str, value: float | str, words: dict[str, float]) -> float:
    """Return the number above 0 that `value` is or, as a word, stands for.

    Raises
    ------
    UsageError
        Another word, or a number that is not above 0.
    """
    if not isinstance(value, str):
        return positive(name, number(name, value, *words))
    if value not in words:
        raise UsageError(f"{name} must be one of {', '.join(map(repr, words))} or a number above 0, got {value!r}")
    return words[value]
