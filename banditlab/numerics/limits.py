"""Ranges of a state's integers, which compiled code uses as indices without a check.

A named tuple that kernels read has a method that returns the allowed range of each of its integer arrays:

    def limits(self) -> Limits:
        return {"place": (0, len(self.value) - 1), "rounds": COUNT}

A saved state with an integer outside its range is rejected (see `banditlab.players.saved`). Kernels never leave a
range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Limits = Mapping[str, tuple[Any, ...]]
"""By field ("points", or "store.places" of a tuple inside): least and largest value, numbers or arrays; then a divisor."""
COUNT = (0, 2**53)
"""Limits of what is counted."""
WORD = (-(2**63), 2**63 - 1)
"""Limits of a key: any integer of 64 bits."""


def constant(value: Any) -> tuple[Any, Any]:
    """Return the limits of an array whose values the settings determine."""
    return value.copy(), value.copy()
