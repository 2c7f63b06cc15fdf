"""The settings `second_order`, `sketch_size` and `precision`: what agents with a d x d matrix for every class keep of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from banditlab.errors import UsageError
from banditlab.numerics.frequent_directions import SHRINKS, Directions, share_outside
from banditlab.validation import at_least, one_of

SECOND_ORDERS = ("full", "diagonal", "sketch")
PRECISIONS = ("double", "single")
SKETCH_SIZE = 32
"""sketch_size where nothing is said. Its cost a round, about 2 m d + K m^2 / 2 multiplications, is then that of the K d of the
scores at K = 50, and 2 m rows of d = 1,024 are half a megabyte, what a core's second cache holds."""

SMALLEST_RIDGE = 1e-5
"""Least regularization of matrices in float32, in units of R^2; one over it is the largest. A matrix begins at one over the
regularization, and float32 rounds that by 6e-8 of itself, which must stay below what a thousand lessons leave."""
RADII = (1e-12, 1e12)
"""Bounds R at which such matrices, of entries down to 1e-10 of their largest, are float32 numbers."""


class Kept(NamedTuple):
    """What is kept of each matrix, and in which numbers: the three settings."""

    second_order: str = "full"
    sketch_size: int = SKETCH_SIZE
    precision: str = "double"


def settled(second_order: str, sketch_size: int, precision: str = "double") -> Kept:
    """Return the settings, or raise a UsageError: another word, no size, or one that nothing would read."""
    kept = one_of("second_order", second_order, SECOND_ORDERS)
    size = at_least("sketch_size", sketch_size, 1)
    if size != SKETCH_SIZE and kept != "sketch":
        raise UsageError(f"sketch_size is read by second_order = 'sketch' only, and this one is {kept!r}")
    numbers = one_of("precision", precision, PRECISIONS)
    if numbers != "double" and kept != "full":
        raise UsageError(f"precision is read by second_order = 'full' only, and this one is {kept!r}")
    return Kept(kept, size, numbers)


def representable(kept: Kept, regularization: float, radius: float) -> None:
    """Raise a UsageError where float32 cannot tell what was learnt from what was not: see `SMALLEST_RIDGE`, `RADII`."""
    if kept.precision == "double":
        return
    low, high = RADII
    if not low <= radius <= high:
        raise UsageError(
            f"precision = 'single' takes contexts with a bound R in {low:g} ... {high:g}, got R = {radius:g}"
        )
    if not SMALLEST_RIDGE <= regularization / radius**2 <= 1.0 / SMALLEST_RIDGE:
        raise UsageError(
            f"precision = 'single' takes a regularization in {SMALLEST_RIDGE:g} R^2 ... {1 / SMALLEST_RIDGE:g} R^2, "
            f"got {regularization:g} at R = {radius:g}"
        )


def least_bytes(n_classes: int, n_features: int, settings: Mapping[str, Any], sets: float = 1.0) -> float:
    """Return how many bytes so many sets of K models take at least, from settings as given, which may be none."""
    second_order, sketch_size = settings.get("second_order"), settings.get("sketch_size", SKETCH_SIZE)
    K, d = n_classes * sets, n_features
    if second_order == "diagonal":
        return 16.0 * K * d
    if second_order == "sketch":
        m = max(1.0, min(float(sketch_size), d)) if isinstance(sketch_size, int | float) else 1.0
        return K * (8.0 * d + 4.0 * m * m) + 24.0 * m * d
    return (2.0 if settings.get("precision") == "single" else 4.0) * K * d * d


def told(sketch: Directions) -> dict[str, Any]:
    """Return how often the basis was turned, and the share of |x|^2 that lay outside of it, over the rounds learnt."""
    return {"sketch_shrinks": int(sketch.counts[SHRINKS]), "sketch_outside": share_outside(sketch)}
