r"""Intervals, paired differences, ranks with ties, and the choice of a setting: pure functions on arrays.

Arrays of repetitions may have NaN for missing runs. Such entries are left out; if a
repetition is missing in one of two paired arrays, it is left out of both.

A mean over repetitions has two sources of variation. The first is the variation between repetitions, covered by
Student's t. The second exists if all repetitions use the rows of one table: another table from the same source would
have other rows. Let :math:`e_{ri}` be the deviation of row i's loss in repetition r from that repetition's mean,
divided by the number of rows n. Then, for R repetitions,

.. math::

    \text{variance of the mean} = s^2/R + (n/(n - 1)) \sum_i (\text{mean}_r\, e_{ri})^2,

where :math:`s^2` is the variance between repetitions. The degrees of freedom follow Satterthwaite's rule, from
:math:`R - 1` and :math:`n - 1` for the two parts. Variation that depends on both the row and the repetition counts in
both parts. That is conservative for few repetitions. It also compensates for the effect of a row on the losses of later
rows, through the player's update on that row (`docs/results/intervals.md` shows the measured coverage). If rows are
played in order, blocks of rows replace rows (`moving_blocks`).

Numbers of mistakes may be equal in all repetitions by chance. The variance is then the binomial variance of the rounds
(`_binomial`), so no interval of a mistake rate has width 0. Below `LEAST` repetitions no difference is significant
(`leads`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
LEVEL = 0.95
LEAST = 3
"""The smallest number of repetitions for a significant difference. With two, 22 of 100 pairs of equal players differed
significantly on pure noise."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval.

    Attributes
    ----------
    mean, low, high
        The mean and its interval; low and high are NaN with one repetition only, or if a value is infinite.
    n
        The number of repetitions.
    method
        "t" over the repetitions, "t, rows" if the interval includes the sampling of a table's rows, "none" if there is
        no interval.
    """

    mean: float
    low: float
    high: float
    n: int
    method: str

    def __neg__(self) -> Interval:
        return Interval(-self.mean, -self.high, -self.low, self.n, self.method)

    def contains(self, value: float) -> bool:
        """Return whether `value` lies in the interval; False if there is none."""
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit (factor above 0)."""
        return Interval(self.mean * factor, self.low * factor, self.high * factor, self.n, self.method)

    def cut(self, low: float, high: float) -> Interval:
        """Return the interval clipped to [low, high], the range of the quantity."""
        return Interval(
            self.mean, float(np.clip(self.low, low, high)), float(np.clip(self.high, low, high)), self.n, self.method
        )


def leads(gap: Interval) -> bool:
    """Return whether a difference, positive if the first is better, is significant: its interval is above 0, with at
    least `LEAST` repetitions.
    """
    return gap.n >= LEAST and gap.low > 0.0 and gap.high > gap.low


def mean_interval(values: ArrayLike, *, rows: Floats | None = None, rounds: float = math.inf) -> Interval:
    """Return the mean of the values without NaN, with its interval.

    An infinite value makes the mean infinite, without an interval.

    Parameters
    ----------
    values
        Shape (R,), one entry per repetition.
    rows
        Shape (R, rows), the deviations :math:`e_{ri}` of the rows (or groups of rows) of one table, or the result of
        `moving_blocks`; None if every repetition has its own stream.
    rounds
        The number of rounds if the values are shares of mistakes; infinity for other quantities.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    there = ~np.isnan(x)
    found = _spread(x[there], None if rows is None else rows[there])
    return found.at_least(_binomial(x[there], rounds), rounds).interval()


@dataclass(frozen=True)
class _Spread:
    """A mean with its variance, the variance's degrees of freedom, and the number of repetitions."""

    mean: float
    variance: float
    freedom: float
    n: int
    method: str

    def at_least(self, variance: float, rounds: float) -> _Spread:
        """Return this object, with the given variance if the values differ by less than a millionth of a mistake."""
        constant = self.variance * self.n < (1e-6 / rounds) ** 2
        return replace(self, variance=variance, freedom=self.n - 1.0) if constant else self

    def interval(self, level: float = LEVEL, family: int = 2) -> Interval:
        if math.isnan(self.variance):
            return Interval(self.mean, math.nan, math.nan, self.n, "none")
        half = critical(level, self.freedom, family) * math.sqrt(self.variance) if self.variance > 0 else 0.0
        return Interval(self.mean, self.mean - half, self.mean + half, self.n, self.method)


def _spread(x: Floats, rows: Floats | None) -> _Spread:
    n = len(x)
    if n == 0:
        return _Spread(math.nan, math.nan, math.nan, 0, "none")
    with np.errstate(invalid="ignore"):  # inf - inf
        mean = float(x.mean())
    if n < 2 or not np.isfinite(x).all():
        return _Spread(mean, math.nan, math.nan, n, "none")
    parts = [(float(x.var(ddof=1)) / n, n - 1.0)]
    if rows is not None:
        parts.append(_of_rows(rows.mean(axis=0)))
    return _sum(mean, parts, n, "t" if rows is None else "t, rows")


def _binomial(shares: Floats, rounds: float) -> float:
    """Return the variance of the mean share of mistakes for independent rounds with mistake probability
    :math:`(k + 1)/(n + 2)`, where k is the number of mistakes in the n rounds of all repetitions.
    """
    trials = rounds * len(shares)
    p = (float(shares.sum()) * rounds + 1.0) / (trials + 2.0) if math.isfinite(trials) else 0.0
    return p * (1.0 - p) / trials if trials else math.nan


def moving_blocks(deviations: Floats) -> Floats:
    """Return scaled block sums of the deviations (R, m) of ordered rows, in the shape (R, b, -1) for `mean_interval`.

    Neighbouring rows may depend on one another, so blocks of l rows are the units that vary. The variance is the
    sum of the squares of all m block sums, each divided by sqrt(l) before it is squared (Kuensch: The jackknife
    and the bootstrap for general stationary observations, Annals of Statistics 17, 1989), with b - 1 degrees of
    freedom. The blocks of the last rows continue with the first rows. There are b = floor(sqrt(m)) blocks of length
    l = floor(m / b).
    """
    R, m = deviations.shape
    b = max(1, math.isqrt(m))
    length = m // b
    sums = np.cumsum(np.hstack([np.zeros((R, 1)), deviations, deviations[:, :length]]), axis=1)
    blocks = (sums[:, length : length + m] - sums[:, :m]) / math.sqrt(length)
    return np.pad(blocks, ((0, 0), (0, -m % b))).reshape(R, b, -1)


def _of_rows(deviations: Floats) -> tuple[float, float]:
    """Return the variance due to the sampling of rows, from their mean deviations (m, ...), and its degrees of
    freedom.
    """
    m = len(deviations)
    freedom = max(1.0, m - 1.0)  # the deviation of a single row is 0
    return m / freedom * float(np.square(deviations).sum()), freedom


def _sum(mean: float, parts: list[tuple[float, float]], n: int, method: str) -> _Spread:
    """Return a mean whose variance is the sum over `parts`, pairs of a variance and its degrees of freedom.

    The degrees of freedom of the sum follow Satterthwaite's rule.
    """
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / of for part, of in parts) if variance > 0 else parts[0][1]
    return _Spread(mean, variance, freedom, n, method)


def mean_intervals(values: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return the mean, low and high, each (m,), of m series of n repetitions (m, n).

    The interval (low, high) is NaN if there is only one repetition, or if the series has a value that is not finite.
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[1]
    mean, half = np.full(len(x), np.nan), np.full(len(x), np.nan)
    if n:
        with np.errstate(invalid="ignore"):  # inf - inf
            mean = x.mean(axis=1)
    if n > 1:
        finite = np.isfinite(x).all(axis=1)
        half[finite] = critical(LEVEL, n - 1.0) * x[finite].std(axis=1, ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half


@functools.lru_cache(maxsize=4096)
def critical(level: float, freedom: float, family: int = 2) -> float:
    """Return half the width of a difference's interval in standard errors: a quantile of Student's t with Sidak's
    correction for all pairs.

    The intervals of all `family` (`family` - 1) / 2 differences then hold simultaneously with at least the probability
    `level` (Sidak: Rectangular confidence regions for the means of multivariate normal distributions, JASA 62, 1967).
    Intervals from the studentized range (Tukey, Games and Howell) are shorter, but too short here, because each pair
    has its own standard error: for ten equal players and six repetitions, 9 of 100 tables then have a significant
    difference.
    """
    from scipy.special import stdtrit  # what scipy.stats.t.ppf calls; importing scipy.stats takes most of a second

    pairs = max(1, family * (family - 1) // 2)
    return float(stdtrit(freedom, 0.5 + level ** (1.0 / pairs) / 2))


def difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    rows: tuple[Floats, Floats] | None = None,
    paired: bool = True,
    rounds: float = math.inf,
    level: float = LEVEL,
    family: int = 2,
) -> Interval:
    """Return the interval of mean(a - b).

    Parameters
    ----------
    a, b
        Shape (R,), one entry per repetition, in the same order.
    rows
        The deviations of both, each of shape (R, rows) (see `mean_interval`).
    paired
        Whether entry i of both was measured on the same stream. If not (adaptive environments), the interval is
        Welch's.
    rounds
        The number of rounds if the values are shares of mistakes (see `mean_interval`).
    family
        The number of means whose differences are covered simultaneously.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    both = ~np.isnan(x) & ~np.isnan(y) if paired else slice(None)
    floor = sum(_binomial(each[~np.isnan(each)], rounds) for each in (x[both], y[both]))
    return _gap(x, y, rows, paired).at_least(floor, rounds).interval(level, family)


def p_value(a: ArrayLike, b: ArrayLike, *, rows: tuple[Floats, Floats] | None = None, paired: bool = True) -> float:
    r"""Return the two-sided p-value of :math:`\text{mean}(a - b) = 0`, with the standard errors of `difference`.

    It is NaN if `difference` has no interval. 1 - p is the level of the widest interval that does not contain 0. If the
    variance is 0, p is 1 if the means are equal, otherwise 0.
    """
    from scipy.special import stdtr

    gap = _gap(a, b, rows, paired)
    if math.isnan(gap.variance):
        return math.nan
    if gap.variance == 0.0:
        return float(gap.mean == 0.0)
    return float(2.0 * stdtr(gap.freedom, -abs(gap.mean) / math.sqrt(gap.variance)))


def _gap(a: ArrayLike, b: ArrayLike, rows: tuple[Floats, Floats] | None, paired: bool) -> _Spread:
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if paired:
        there = ~np.isnan(x) & ~np.isnan(y)
        with np.errstate(invalid="ignore"):  # inf - inf
            return _spread(x[there] - y[there], None if rows is None else (rows[0] - rows[1])[there])
    if rows is not None:
        rows = rows[0][~np.isnan(x)], rows[1][~np.isnan(y)]
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    n = min(len(x), len(y))
    with np.errstate(invalid="ignore"):
        gap = float(np.subtract(x.mean(), y.mean())) if n else math.nan
    if n < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return _Spread(gap, math.nan, math.nan, n, "none")
    parts = [(float(each.var(ddof=1)) / len(each), len(each) - 1.0) for each in (x, y)]
    if rows is not None:
        parts.append(_of_rows(rows[0].mean(axis=0) - rows[1].mean(axis=0)))
    return _sum(gap, parts, n, "t" if rows is None else "t, rows")


@dataclass(frozen=True)
class Place:
    """The position of one row in `rank`.

    Attributes
    ----------
    index
        The row's index in the ranked array.
    position
        1 for the first; tied rows have the same position.
    tied
        Whether another row has the same position.
    unsure
        Whether there is no evidence for the position: there are fewer than `LEAST` repetitions, or a difference that
        determines the position has no interval.
    behind_first
        Interval of (this row - the first row); for the first row it is exactly 0.
    behind_group
        Interval of (this row - the first of its tie group), or, for the first row of a group, of (this row - the first
        of the group before).
    """

    index: int
    position: int
    tied: bool
    unsure: bool
    behind_first: Interval
    behind_group: Interval

    @property
    def text(self) -> str:
        """The position as a string: "1", "2=", or "?" if there is no evidence for it."""
        return "?" if self.unsure else f"{self.position}{'=' if self.tied else ''}"


def rank(
    values: ArrayLike,
    *,
    rows: Floats | None = None,
    paired: bool = True,
    rounds: float = math.inf,
    family: int | None = None,
) -> list[Place]:
    """Rank rows by their mean, smallest first, with ties.

    A row is tied with the first row of the group before it if the interval of their difference contains 0. Below three
    repetitions every position is unsure. The intervals hold for the differences of all pairs simultaneously, because
    the order of the rows determines which pairs are compared.

    Parameters
    ----------
    values
        Shape (players, repetitions), NaN for missing runs; a row without any value is left out.
    rows
        Shape (players, repetitions, rows of the table): the deviations (see `mean_interval`).
    rounds
        The number of rounds if the values are shares of mistakes (see `mean_interval`).
    family
        The number of compared means, by default the number of ranked players; larger if each player is the best of
        several settings.
    """
    x = np.asarray(values, dtype=np.float64)
    listed = [i for i in range(len(x)) if not np.isnan(x[i]).all()]
    order = sorted(listed, key=lambda i: (float(np.nanmean(x[i])), i))
    family = max(2, len(order) if family is None else family)

    def behind(i: int, j: int) -> Interval:
        pair = None if rows is None else (rows[i], rows[j])
        return difference(x[i], x[j], rows=pair, paired=paired, rounds=rounds, family=family)

    places: list[tuple[int, int, Interval, Interval]] = []
    unsure: set[int] = set()
    for nth, i in enumerate(order, start=1):
        behind_first = behind(i, order[0])
        if not places:
            behind_first = behind_first.cut(0.0, 0.0)
            position, head, gap = nth, i, behind_first
        else:
            gap = behind(i, head)
            alike = gap.contains(0.0) or gap.mean == 0.0
            unsure |= {i, head} if gap.n < LEAST or not (alike or leads(gap)) else set()
            if alike:
                position = places[-1][1]
            else:
                position, head = nth, i
        places.append((i, position, behind_first, gap))
    taken = [position for _, position, _, _ in places]
    doubtful = {position for i, position, _, _ in places if i in unsure}
    return [
        Place(i, position, taken.count(position) > 1, position in doubtful, first, group)
        for i, position, first, group in places
    ]


def first_half(repetitions: Sequence[int]) -> list[int]:
    """Return the first half of the repetitions, without the middle one if their number is odd."""
    ordered = sorted(repetitions)
    return ordered[: len(ordered) // 2]


@dataclass(frozen=True)
class Choice:
    """The setting chosen among several, by cross-fitting.

    Attributes
    ----------
    index
        The row chosen on all repetitions, which is the one to use afterwards.
    reported
        Shape (repetitions,): the row reported for each repetition, chosen on the half that does not contain it.
    held_out
        Whether no repetition was used to choose the row reported for it.
    agree
        Whether both halves chose the same row.
    among
        The number of rows to choose from.
    """

    index: int
    reported: tuple[int, ...]
    held_out: bool
    agree: bool
    among: int


def choose(values: ArrayLike, first: ArrayLike) -> Choice:
    """Choose the row with the smallest mean; in each half of the repetitions, report the row chosen on the other half.

    Every repetition is therefore reported for a row that was chosen without it. The results of the two halves are not
    independent, because each half determines the row of the other. In simulations with 2 to 10 repetitions and 4 or 12
    settings, the 95 % t interval of the mean had a coverage of 93 to 95 % if all settings were equally good (the worst
    case), and of 94 to 95 % otherwise.

    A single row needs no choice and counts as held out. If the other half has no run yet, a repetition reports the row
    chosen on all repetitions. If no repetition has a run of its reported row, all repetitions report the row chosen on
    all repetitions.

    Parameters
    ----------
    values
        Shape (settings, repetitions), NaN for missing runs.
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
    """Return the row with the smallest mean among those with the largest number of runs.

    This prevents that, in an unfinished sweep, a setting is chosen only because its finished runs had easier streams.
    """
    seen = (~np.isnan(x)).sum(axis=1)
    full = np.flatnonzero(seen == seen.max())
    if not seen.max():
        return 0
    return int(full[np.argmin(np.nanmean(x[full], axis=1))])


def holm(p: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: the smallest level at which each hypothesis is rejected if all are tested
    together.
    """
    values = np.asarray(p, dtype=np.float64).ravel()
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values))))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def growth_exponent(x: ArrayLike, y: ArrayLike, *, least: int = 3) -> float:
    r"""Return the least-squares slope of :math:`\ln y` in :math:`\ln x`, which is the a of :math:`y = c x^a`.

    The result is NaN for fewer than `least` points, or if a y is missing or not positive.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) < least or not (y > 0).all():
        return math.nan
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
