"""Intervals, paired differences, ranks with ties, and the choice of a setting: pure functions on arrays.

Every array of repetitions may hold NaN where a run is missing; such entries are left out, and of a pair both are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
LEVEL = 0.95
BOOTSTRAP_FROM = 20
"""From this many repetitions on the interval is a BCa bootstrap; below, Student's t."""
RESAMPLES = 4_999
SEED = 20_140_607


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval.

    Attributes
    ----------
    mean, low, high
        low and high are NaN where there is one repetition only.
    n
        How many repetitions it stands on.
    method
        "t", "BCa", or "none" with fewer than two repetitions.
    """

    mean: float
    low: float
    high: float
    n: int
    method: str

    def contains(self, value: float) -> bool:
        """Return whether `value` lies in the interval; False where there is none."""
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Interval:
        """Return the interval of the same quantity in another unit (factor > 0)."""
        return Interval(self.mean * factor, self.low * factor, self.high * factor, self.n, self.method)


def mean_interval(values: ArrayLike, *, level: float = LEVEL, seed: int = SEED) -> Interval:
    """Return the mean of the finite values with its interval: t below 20 of them, BCa bootstrap from there."""
    x = np.asarray(values, dtype=np.float64).ravel()
    x = x[np.isfinite(x)]
    n = len(x)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, "none")
    mean, low, high, method = mean_intervals(x[None, :], level=level, seed=seed)
    return Interval(float(mean[0]), float(low[0]), float(high[0]), n, method)


def mean_intervals(values: ArrayLike, *, level: float = LEVEL, seed: int = SEED) -> tuple[Floats, Floats, Floats, str]:
    """Return mean, low, high, each (m,), of m series of n repetitions, shape (m, n), and the method used.

    One seeded set of resamples serves all series, so the intervals of a curve move together and are the same on
    every call.
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[1]
    mean = x.mean(axis=1)
    if n < 2:
        nothing = np.full(len(x), np.nan)
        return mean, nothing, nothing.copy(), "none"
    if n < BOOTSTRAP_FROM:
        from scipy.stats import t

        half = t.ppf(0.5 + level / 2, n - 1) * x.std(axis=1, ddof=1) / math.sqrt(n)
        return mean, mean - half, mean + half, "t"
    low, high = mean.copy(), mean.copy()
    varies = np.ptp(x, axis=1) > 0  # a constant series has a bootstrap distribution of one point
    if varies.any():
        low[varies], high[varies] = _bca(x[varies], level, seed)
    return mean, low, high, "BCa"


def _bca(x: Floats, level: float, seed: int) -> tuple[Floats, Floats]:
    from scipy.stats import bootstrap

    batch = max(1, 2_000_000 // x.size)  # resamples held in memory at once; does not change the result
    result = bootstrap(
        (x,),
        np.mean,
        axis=1,
        n_resamples=RESAMPLES,
        batch=batch,
        confidence_level=level,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    return np.asarray(result.confidence_interval.low), np.asarray(result.confidence_interval.high)


def difference(a: ArrayLike, b: ArrayLike, *, paired: bool = True, level: float = LEVEL, seed: int = SEED) -> Interval:
    """Return the interval of mean(a - b).

    Parameters
    ----------
    a, b
        Shape (n,), one entry per repetition, in the same order.
    paired
        Whether entry i of both was measured on the same stream. If not (adaptive environments), Welch's interval.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if paired:
        return mean_interval(x - y, level=level, seed=seed)
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    n = min(len(x), len(y))
    gap = float(x.mean() - y.mean()) if n else math.nan
    if n < 2:
        return Interval(gap, math.nan, math.nan, n, "none")
    va, vb = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    if va + vb == 0:
        return Interval(gap, gap, gap, n, "t")
    from scipy.stats import t

    freedom = (va + vb) ** 2 / (va**2 / (len(x) - 1) + vb**2 / (len(y) - 1))
    half = float(t.ppf(0.5 + level / 2, freedom) * math.sqrt(va + vb))
    return Interval(gap, gap - half, gap + half, n, "t")


@dataclass(frozen=True)
class Place:
    """Where one row of `rank` came.

    Attributes
    ----------
    index
        The row of the array that was ranked.
    position
        1 for the first; tied rows share theirs.
    tied
        Whether another row has the same position.
    behind_first
        Interval of (this row - the first row); the first row's own is exactly 0.
    behind_group
        Interval of (this row - the first of its tie group), or, for a row that opens a group, of (this row - the
        first of the group before).
    """

    index: int
    position: int
    tied: bool
    behind_first: Interval
    behind_group: Interval

    @property
    def text(self) -> str:
        """The position as it is printed: "1", "2="."""
        return f"{self.position}{'=' if self.tied else ''}"


def rank(values: ArrayLike, *, paired: bool = True) -> list[Place]:
    """Rank rows by their mean, least first, ties shown.

    A row is tied with the first row of the group before it if the interval of their difference contains 0. Where
    there is no interval (one repetition), only equal means tie.

    Parameters
    ----------
    values
        Shape (rows, repetitions), NaN where a run is missing; a row without any value is left out.
    """
    x = np.asarray(values, dtype=np.float64)
    rows = [i for i in range(len(x)) if np.isfinite(x[i]).any()]
    order = sorted(rows, key=lambda i: (float(np.nanmean(x[i])), i))
    places: list[tuple[int, int, Interval, Interval]] = []
    head = -1
    for seat, i in enumerate(order, start=1):
        behind_first = difference(x[i], x[order[0]], paired=paired)
        if head < 0:
            position, head, behind = seat, i, behind_first
        else:
            behind = difference(x[i], x[head], paired=paired)
            if behind.contains(0.0) or behind.mean == 0.0:
                position = places[-1][1]
            else:
                position, head = seat, i
        places.append((i, position, behind_first, behind))
    taken = [position for _, position, _, _ in places]
    return [Place(i, position, taken.count(position) > 1, first, group) for i, position, first, group in places]


def split(repetitions: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the repetitions on which a setting is chosen (the first half, rounded down) and those reported (the rest).

    With one repetition both are that one; what is reported is then not held out.
    """
    ordered = sorted(repetitions)
    half = len(ordered) // 2
    return (ordered[:half], ordered[half:]) if half else (ordered, ordered)


@dataclass(frozen=True)
class Choice:
    """The setting chosen among several: its row, whether it is reported on repetitions it was not chosen on, of how
    many settings it was chosen."""

    index: int
    held_out: bool
    among: int


def choose(values: ArrayLike, chooses: ArrayLike, reports: ArrayLike) -> Choice:
    """Choose the row with the least mean over the choosing repetitions.

    Only rows with as many of these repetitions as the fullest row compete, so that an unfinished sweep does not prefer
    a setting for having met easier streams. A single row needs no choice and is held out by definition.

    Parameters
    ----------
    values
        Shape (settings, repetitions), NaN where a run is missing.
    chooses, reports
        Shape (repetitions,), bool: the repetitions to choose on and to report. Where no run of the former is there
        yet, the choice falls on all there are, and is not held out.
    """
    x = np.asarray(values, dtype=np.float64)
    on, off = np.asarray(chooses, dtype=bool), np.asarray(reports, dtype=bool)
    if len(x) == 1:
        return Choice(0, True, 1)
    held_out = not (on & off).any()
    if not np.isfinite(x[:, on]).any():
        on, held_out = np.ones_like(on), False
    seen = np.isfinite(x[:, on]).sum(axis=1)
    full = np.flatnonzero(seen == seen.max())
    best = int(full[np.argmin(np.nanmean(x[full][:, on], axis=1))])
    if not np.isfinite(x[best, off]).any():
        held_out = False
    return Choice(best, held_out, len(x))
