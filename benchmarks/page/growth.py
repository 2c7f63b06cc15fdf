"""How the time of a round grows with d and with K, beside what the operations and the floor do over the same cells.

Exponents are least squares of log(time) on log(d) over FEATURES (all K together, an intercept each) and on log(K) over
CLASSES (all d together). The same fit to the declared operations gives what the implemented form must show at these sizes
(lower terms, and the fixed part of a round, flatten it below its theoretical order), and to the floor what caches add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

TOLERANCE = 0.15
"""A measured exponent is steep where it exceeds the declared one by more."""
LEAST_FEATURES = 64
"""Exponents in K are fitted from this d on; below, a round's fixed cost is most of it."""


class Point(NamedTuple):
    """A measured cell: nanoseconds a round, of the floor, and declared operations."""

    K: int
    d: int
    time: float
    floor: float
    operations: float


class Growth(NamedTuple):
    """Exponents (in d, in K) of the measured time, of the operations and of the floor; None where cells are missing."""

    time: tuple[float | None, float | None]
    operations: tuple[float | None, float | None]
    floor: tuple[float | None, float | None]


def slope(points: Iterable[tuple[int, int, float]]) -> float | None:
    """Return the common slope of log(value) on log(x) over groups, (group, x, value); None where no group has two x."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for group, x, value in points:
        if value > 0.0:
            groups.setdefault(group, []).append((np.log(x), np.log(value)))
    centred = [np.array(g) - np.mean(g, axis=0) for g in groups.values() if len(g) > 1]
    if not centred:
        return None
    x, v = np.concatenate(centred).T
    return float(x @ v / (x @ x))


def grow(points: list[Point]) -> Growth:
    """Return a player's exponents."""

    def both(value: Callable[[Point], float]) -> tuple[float | None, float | None]:
        wide = [p for p in points if p.d >= LEAST_FEATURES]
        return slope((p.K, p.d, value(p)) for p in wide), slope((p.d, p.K, value(p)) for p in wide)

    return Growth(both(lambda p: p.time), both(lambda p: p.operations), both(lambda p: p.floor))


def verdict(growth: Growth, note: str) -> str:
    """Return "" where nothing is steep, else in what and why: the floor grows so too (caches), or the player's note."""
    found = []
    for name, time, operations, floor in zip("dK", growth.time, growth.operations, growth.floor, strict=True):
        if time is None or operations is None or time <= operations + TOLERANCE:
            continue
        caches = floor is not None and time <= floor + TOLERANCE
        why = "the floor grows so too: the state leaves a cache" if caches else note or "NOT EXPLAINED"
        found.append(f"steeper in {name}: {why}")
    return "; ".join(found)
