"""Allowed ranges of a state's integers, which compiled code uses as indices without a check.

Named tuples for kernels have a method that returns the allowed ranges of their integer arrays:

    def limits(self) -> Limits:
        return {"place": (0, len(self.value) - 1), "rounds": COUNT}

A saved state with an integer outside its range is rejected (see `banditlab.players.saved`). Kernels keep integers
within these ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Limits = Mapping[str, tuple[Any, ...]]
"""By field ("points", or "store.places" for a nested tuple): the least and largest value, as numbers or arrays, and
optionally a divisor.
"""
COUNT = (0, 2**53)
"""The limits of a count."""
WORD = (-(2**63), 2**63 - 1)
"""The limits of a key, which is any 64-bit integer."""


def constant(value: Any) -> tuple[Any, Any]:
    """Return the limits of an array whose values the settings determine."""
    return value.copy(), value.copy()
