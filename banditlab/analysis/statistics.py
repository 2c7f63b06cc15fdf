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
        low and high are NaN where there is one repetition only, or where a value is infinite.
    n
        How many repetitions it stands on.
    method
        "t", "BCa", or "none" where there is no interval.
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

    def cut(self, low: float, high: float) -> Interval:
        """Return the interval without what lies outside [low, high], where the quantity cannot be."""
        return Interval(
            self.mean, float(np.clip(self.low, low, high)), float(np.clip(self.high, low, high)), self.n, self.method
        )


def mean_interval(values: ArrayLike, *, level: float = LEVEL, seed: int = SEED) -> Interval:
    """Return the mean of the values that are there with its interval: t below 20 of them, BCa bootstrap from there.

    NaN is a missing value and left out; an infinite value is one, and makes the mean infinite without an interval.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    return _interval(x[~np.isnan(x)], level, seed)


def _interval(x: Floats, level: float, seed: int) -> Interval:
    n = len(x)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, "none")
    mean, low, high, method = mean_intervals(x[None, :], level=level, seed=seed)
    return Interval(float(mean[0]), float(low[0]), float(high[0]), n, method if np.isfinite(low[0]) else "none")


def mean_intervals(values: ArrayLike, *, level: float = LEVEL, seed: int = SEED) -> tuple[Floats, Floats, Floats, str]:
    """Return mean, low, high, each (m,), of m series of n repetitions, shape (m, n), and the method used.

    One seeded set of resamples serves all series, so the intervals of a curve move together and are the same on
    every call. A series with a value that is not finite has no interval (NaN).
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[1]
    with np.errstate(invalid="ignore"):  # inf - inf
        mean = x.mean(axis=1)
    low, high = np.full(len(x), np.nan), np.full(len(x), np.nan)
    if n < 2:
        return mean, low, high, "none"
    finite = np.isfinite(x).all(axis=1)
    low[finite] = high[finite] = mean[finite]
    if n < BOOTSTRAP_FROM:
        from scipy.stats import t

        half = t.ppf(0.5 + level / 2, n - 1) * x[finite].std(axis=1, ddof=1) / math.sqrt(n)
        low[finite] -= half
        high[finite] += half
        return mean, low, high, "t"
    varies = finite & (x != x[:, :1]).any(axis=1)  # a constant series has a bootstrap distribution of one point
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
        there = ~np.isnan(x) & ~np.isnan(y)
        with np.errstate(invalid="ignore"):  # inf - inf
            return _interval(x[there] - y[there], level, seed)
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    n = min(len(x), len(y))
    with np.errstate(invalid="ignore"):
        gap = float(np.subtract(x.mean(), y.mean())) if n else math.nan
    if n < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
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
    unsure
        Whether too few repetitions stand behind the position: fewer than two between this row, or a row tied with it
        or next to it, and the first of a group.
    behind_first
        Interval of (this row - the first row); the first row's own is exactly 0.
    behind_group
        Interval of (this row - the first of its tie group), or, for a row that opens a group, of (this row - the
        first of the group before).
    """

    index: int
    position: int
    tied: bool
    unsure: bool
    behind_first: Interval
    behind_group: Interval

    @property
    def text(self) -> str:
        """The position as it is printed: "1", "2=", or "?" where nothing but the order of the means speaks for it."""
        return "?" if self.unsure else f"{self.position}{'=' if self.tied else ''}"


def rank(values: ArrayLike, *, paired: bool = True) -> list[Place]:
    """Rank rows by their mean, least first, ties shown.

    A row is tied with the first row of the group before it if the interval of their difference contains 0. Where
    there is no interval (one repetition), only equal means tie, and both rows' positions are unsure.

    Parameters
    ----------
    values
        Shape (rows, repetitions), NaN where a run is missing; a row without any value is left out.
    """
    x = np.asarray(values, dtype=np.float64)
    rows = [i for i in range(len(x)) if not np.isnan(x[i]).all()]
    order = sorted(rows, key=lambda i: (float(np.nanmean(x[i])), i))
    places: list[tuple[int, int, Interval, Interval]] = []
    head, unsure = -1, set()
    for seat, i in enumerate(order, start=1):
        behind_first = difference(x[i], x[order[0]], paired=paired)
        if head < 0:
            position, head, behind = seat, i, behind_first
        else:
            behind = difference(x[i], x[head], paired=paired)
            unsure |= {i, head} if behind.n < 2 else set()
            if behind.contains(0.0) or behind.mean == 0.0:
                position = places[-1][1]
            else:
                position, head = seat, i
        places.append((i, position, behind_first, behind))
    taken = [position for _, position, _, _ in places]
    doubtful = {position for i, position, _, _ in places if i in unsure}
    return [
        Place(i, position, taken.count(position) > 1, position in doubtful, first, group)
        for i, position, first, group in places
    ]


def first_half(repetitions: Sequence[int]) -> list[int]:
    """Return the repetitions of the first half, rounded down; the others are the second half."""
    ordered = sorted(repetitions)
    return ordered[: len(ordered) // 2]


@dataclass(frozen=True)
class Choice:
    """The setting chosen among several, by cross-fitting.

    Attributes
    ----------
    index
        The row chosen on all repetitions: the one to name, and to use from now on.
    reported
        Shape (repetitions,): the row each repetition is reported at, chosen on the half it is not in.
    held_out
        Whether no repetition took part in the choice of the row it is reported at.
    agree
        Whether both halves chose the same row.
    among
        Of how many rows it was chosen.
    """

    index: int
    reported: tuple[int, ...]
    held_out: bool
    agree: bool
    among: int


def choose(values: ArrayLike, first: ArrayLike) -> Choice:
    """Choose the row with the least mean, each half of the repetitions judged by the choice of the other.

    So every repetition is reported, and none at a setting it helped to choose. The two halves depend on each other
    through the choices: with 2 to 10 repetitions and 4 or 12 settings of equal merit, the worst case, the 95 % t
    interval of the mean covered 93 to 95 % of the time in simulation, and 94 to 95 % where settings differ.

    A single row needs no choice and is held out by definition. Where the other half has no run yet, a repetition is
    reported at the row chosen on all; so are all of them should nothing be reported otherwise.

    Parameters
    ----------
    values
        Shape (settings, repetitions), NaN where a run is missing.
    first
        Shape (repetitions,), bool: the first half.
    """
    x = np.asarray(values, dtype=np.float64)
    half = np.asarray(first, dtype=bool)
    repetitions = np.arange(x.shape[1])
    best = _least(x)
    if len(x) == 1:
        return Choice(0, (0,) * len(repetitions), True, True, 1)
    rows, held_out = np.full(len(repetitions), best), True
    for mine in (half, ~half):
        others = x[:, ~mine]
        if not np.isnan(others).all():
            rows[mine] = _least(others)
        elif not np.isnan(x[:, mine]).all():
            held_out = False
    if np.isnan(x[rows, repetitions]).all():
        rows[:], held_out = best, False
    return Choice(best, tuple(rows.tolist()), held_out, len(set(rows.tolist())) == 1, len(x))


def _least(x: Floats) -> int:
    """Return the row of least mean among those with as many runs as the fullest row.

    So an unfinished sweep does not prefer a setting for having met easier streams.
    """
    seen = (~np.isnan(x)).sum(axis=1)
    full = np.flatnonzero(seen == seen.max())
    return int(full[np.argmin(np.nanmean(x[full], axis=1))])


def holm(p: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: the level at which each of the hypotheses falls when all are tested together."""
    values = np.asarray(p, dtype=np.float64).ravel()
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values))))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def growth_exponent(x: ArrayLike, y: ArrayLike, *, least: int = 3) -> float:
    """Return the least-squares slope of ln y in ln x: the a of y = c x^a.

    NaN for fewer than `least` points, or where a y is not positive or missing, so that it has no logarithm.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) < least or not (y > 0).all():
        return math.nan
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
