"""Settings that are a number or a word standing for one."""

from __future__ import annotations

from banditlab.validation import number, one_of, positive


def resolve(name: str, value: float | str, words: dict[str, float]) -> float:
    """Return the number above 0 that `value` is or, as a word, stands for.

    Raises
    ------
    UsageError
        Another word, or a number that is not above 0.
    """
    if isinstance(value, str):
        return words[one_of(name, value, tuple(words))]
    return positive(name, number(name, value, *words))
