r"""Inputs of StackCB's experts ("views"): contexts with scaled columns, and blocks of random Fourier features.

Let :math:`m_j`, :math:`s_j`, :math:`l_j` and :math:`h_j` be the mean, standard deviation, least and largest entry of
column j over the contexts of a memory, and n the number of columns that vary. Each view except the centred one has 1/2
as its last entry:

* standardised: :math:`v / \sqrt{n}` with :math:`v_j = \mathrm{clip}((x_j - m_j) / s_j, -3, 3)`;
* by range: :math:`\mathrm{clip}((x_j - l_j) / (h_j - l_j), -1, 2) / r`, where r is :math:`\sqrt{n}`, or, if the
  memory's rows are sparse (seven of eight entries are 0), the number that makes their mean square 1;
* centred, if there is a ridge expert: the standardised view with 0 as its last entry;
* a Fourier block: :math:`(\cos 2 \pi t_1, \dots, \cos 2 \pi t_F, \sin 2 \pi t_1, \dots, \sin 2 \pi t_{F-1})`
  times :math:`F^{-1/2}`, with :math:`t_i = w_i'v / m` and random normal vectors :math:`w_i` (`frequencies`).

In a Fourier block m is the median distance between two vectors v of contexts in the memory (Rahimi and Recht, NIPS
2007). A column that does not vary is 0 in all views. The turns :math:`w_i'v / m` of the context 0 are stored, and a
context adds only the change by its nonzero entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.simd import WIDTH, all_lanes, eight, put
from banditlab.numerics.simd_math import cosine, sine, turn_fraction

Floats = NDArray[np.float64]

CLIP = 3.0
"""Largest absolute value of a standardised entry, in standard deviations."""
LOWEST, HIGHEST = -1.0, 2.0
"""Limits of an entry of the view by range; entries of later contexts may lie outside [0, 1]."""
CONSTANT = 0.5
"""The constant appended to every view."""
PAIRS = 256
"""Largest number of pairs of contexts from whose distances the median is computed."""
LEAST_SPREAD = 1e-12
"""Standard deviation, in units of the column's largest entry, up to which a column counts as constant."""
SPARSE = 8
"""Rows are sparse if fewer than one in this many entries differ from 0."""
LEAST_MEDIAN, LEAST_SCALE = 1e-6, 1e-290
"""The least median distance, and the largest entry with which a column counts as 0, so quotients by it stay finite."""


class Scale(NamedTuple):
    r"""The scale of each column (d,): centres `mean` and `low`, and inverse spreads `per_sd` and `per_range`, 0 if
    constant.

    `whole` (4,) is :math:`1/\sqrt{n}`, :math:`1/m`, :math:`1/r` and the number of contexts. For the context 0, `zero`
    (d,) is :math:`v/m`, and `turns` (blocks, F/2) has :math:`w_i'v/m`. Work arrays: `places` (d,), the positions of a
    context's nonzero entries; `changes` (d,), by how much they change :math:`v/m`; `distances` (PAIRS,).
    """

    mean: Floats
    per_sd: Floats
    low: Floats
    per_range: Floats
    whole: Floats
    zero: Floats
    turns: Floats
    places: NDArray[np.int64]
    changes: Floats
    distances: Floats

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"places": (0, len(self.places) - 1)}


NORM, PER_MEDIAN, PER_NORM_BY_RANGE, CONTEXTS = range(4)
"""Indices of `Scale.whole`."""


def empty_scale(d: int, n_blocks: int, size: int) -> Scale:
    """Return the scale of an empty memory, in which every column counts as constant."""
    mean, per_sd, low, per_range = (np.zeros(d) for _ in range(4))
    return Scale(
        mean, per_sd, low, per_range, whole=np.ones(4), zero=np.zeros(d), turns=np.zeros((n_blocks, size // 2)),
        places=np.zeros(d, np.int64), changes=np.zeros(d), distances=np.zeros(PAIRS),
    )  # fmt: skip


BANDWIDTHS = ((1.4, 1.0), (0.8, 1.0), (1.4, 0.5), (0.8, 0.5))
"""For successive pairs of Fourier blocks: bandwidth in units of the median distance, and share of the columns."""


def frequencies(rng: np.random.Generator, d: int, n_blocks: int, size: int) -> Floats:
    """Return W (n_blocks, size/16, d, 8), the :math:`w_i` of blocks of `size` features, in groups of eight. Their unit
    is turns, not radians.
    """
    W = np.zeros((n_blocks, size // (2 * WIDTH), d, WIDTH))
    for block in range(n_blocks):
        bandwidth, share = BANDWIDTHS[block // 2 % len(BANDWIDTHS)]
        W[block] = rng.standard_normal(W.shape[1:]) / (bandwidth * math.tau)
        if share < 1.0:
            W[block, :, rng.permutation(d)[max(1, round(share * d)) :]] = 0.0
    return W


@njit
def measure(scale, W, X, first, n):
    """Estimate the scale from n contexts: rows first, first + 1, ... of the ring X (N, d)."""
    measure_columns(scale, X, first, n)
    scale.whole[CONTEXTS] = n
    scale.whole[PER_MEDIAN] = 1.0 / median_distance(scale, X, first, n)
    squares, entries_not_zero = 0.0, 0
    for i in range(n):
        for j in range(X.shape[1]):
            x = X[(first + i) % X.shape[0], j]
            squares += ranged(scale, x, j) ** 2 / n
            entries_not_zero += x != 0.0
    is_sparse = squares > 0.0 and SPARSE * entries_not_zero < n * X.shape[1]
    scale.whole[PER_NORM_BY_RANGE] = 1.0 / math.sqrt(squares) if is_sparse else scale.whole[NORM]
    for j in range(X.shape[1]):
        scale.zero[j] = entry(scale, 0.0, j)
    for group in range(W.shape[0] * W.shape[1]):
        turns = all_lanes(0.0)
        for j in range(X.shape[1]):
            turns = turns + eight(W, WIDTH * (group * X.shape[1] + j)) * scale.zero[j]
        put(scale.turns, WIDTH * group, turns)


@njit
def has_moved(scale, X, first, n):
    """Return whether the columns' means over n contexts differ from those of the scale by over two standard errors.

    Difference and standard error, in standard deviations, are root mean squares over the varying columns. The standard
    error is that of independent contexts if the scale was estimated from m of the n contexts.
    """
    squares, m = 0.0, scale.whole[CONTEXTS]
    for j in range(X.shape[1]):
        mean = 0.0
        for i in range(n):
            mean += X[(first + i) % X.shape[0], j] / n
        squares += ((mean - scale.mean[j]) * scale.per_sd[j]) ** 2
    return squares * scale.whole[NORM] ** 2 > 4.0 * (1.0 / m - 1.0 / n)


@njit
def measure_columns(scale, X, first, n):
    """Compute centres and spreads of every column."""
    X, mean, per_sd = borrow(X), borrow(scale.mean), borrow(scale.per_sd)
    low, per_range = borrow(scale.low), borrow(scale.per_range)
    N, d = X.shape
    varying = 0
    for j in range(d):
        low[j] = high = X[first % N, j]
        total = 0.0
        for i in range(n):
            x = X[(first + i) % N, j]
            total += x / n
            low[j], high = min(low[j], x), max(high, x)
        mean[j] = total
        most, squares = max(abs(low[j]), abs(high)), 0.0
        per_sd[j] = per_range[j] = 0.0
        if most > LEAST_SCALE:
            for i in range(n):
                squares += ((X[(first + i) % N, j] - total) / most) ** 2
            spread = math.sqrt(squares / n)
            if spread > LEAST_SPREAD:
                per_sd[j], per_range[j] = 1.0 / (most * spread), 1.0 / (high - low[j])
                varying += 1
    scale.whole[NORM] = 1.0 / math.sqrt(max(1, varying))


@njit
def median_distance(scale, X, first, n):
    """Return the median distance between the last `half` standardised contexts and the `half` before them; 1 if it is 0."""
    N, d = X.shape
    half = min(n // 2, PAIRS)
    if half == 0:
        return 1.0
    for i in range(half):
        a, b = (first + n - 1 - i) % N, (first + n - 1 - half - i) % N
        square = 0.0
        for j in range(d):
            square += (standardised(scale, X[a, j], j) - standardised(scale, X[b, j], j)) ** 2
        scale.distances[i] = math.sqrt(square)
    sort(scale.distances, half)
    median = 0.5 * (scale.distances[(half - 1) // 2] + scale.distances[half // 2])
    return max(LEAST_MEDIAN, median) if median > 0.0 else 1.0


@inline
def sort(values, n):
    """Sort the first n values (Shell 1959), without the allocation of numpy's sort."""
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 2


@inline
def standardised(scale, x, j):
    return max(-CLIP, min(CLIP, (x - scale.mean[j]) * scale.per_sd[j]))


@inline
def ranged(scale, x, j):
    return max(LOWEST, min(HIGHEST, (x - scale.low[j]) * scale.per_range[j]))


@inline
def entry(scale, x, j):
    """Return the input of the Fourier blocks for entry x of column j: x standardised, divided by the median distance."""
    return standardised(scale, x, j) * scale.whole[PER_MEDIAN]


@njit
def write_views(scale, W, size, x, views):
    """Write the views of x (d,) into views (V (d + 1) + n_blocks F,), V = 2, or 3 with the centred view; size is F."""
    n_blocks, groups, norm = W.shape[0], size // (2 * WIDTH), 1.0 / math.sqrt(0.5 * size)
    views, start = borrow(views), views.shape[0] - n_blocks * size
    write_linear_views(scale, x, views[:start])
    n = write_changes(scale, x) if n_blocks > 0 else 0
    for block in range(n_blocks):
        for g in range(groups):
            t = turn_fraction(turns_of(scale, W, block * groups + g, n))
            put(views, start + WIDTH * g, cosine(t) * norm)
            put(views, start + size // 2 + WIDTH * g, sine(t) * norm)
        start += size
        views[start - 1] = CONSTANT  # in the place of the last sine


@njit
def write_linear_views(scale, x, views):
    """Write the views of x (d,) that are not Fourier blocks into views (V (d + 1),)."""
    x, views = borrow(x), borrow(views)
    d, norm, by_range = x.shape[0], scale.whole[NORM], scale.whole[PER_NORM_BY_RANGE]
    for j in range(d):
        views[j] = standardised(scale, x[j], j) * norm
        views[d + 1 + j] = ranged(scale, x[j], j) * by_range
    views[d] = views[2 * d + 1] = CONSTANT
    if views.shape[0] > 2 * (d + 1):
        for j in range(d):
            views[2 * (d + 1) + j] = views[j]
        views[3 * d + 2] = 0.0


@njit
def write_changes(scale, x):
    """Write the positions of the nonzero entries of x, and their `changes`, into `scale`. Return how many there are."""
    n, zero, changes = 0, borrow(scale.zero), borrow(scale.changes)
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            scale.places[n], changes[n] = j, entry(scale, x[j], j) - zero[j]
            n += 1
    return n


@inline
def turns_of(scale, W, group, n):
    """Return :math:`w'v/m` for eight frequencies: the value at the context 0 plus the changes by n nonzero entries."""
    W, changes, places, d = borrow(W), borrow(scale.changes), borrow(scale.places), scale.places.shape[0]
    even, odd, first = eight(scale.turns, group * WIDTH), all_lanes(0.0), group * d
    for i in range(0, n - 1, 2):
        even = even + eight(W, WIDTH * (first + places[i])) * changes[i]
        odd = odd + eight(W, WIDTH * (first + places[i + 1])) * changes[i + 1]
    if n % 2 == 1:
        even = even + eight(W, WIDTH * (first + places[n - 1])) * changes[n - 1]
    return even + odd


def size_of_views(d: int, n_blocks: int, size: int, centred: bool = False) -> int:
    """Return the number of entries that `write_views` writes."""
    return (3 if centred else 2) * (d + 1) + n_blocks * size
