"""What the experts of StackCB see of a context: two linear views and blocks of Fourier features, scaled as columns were seen.

With mean_j, sd_j, low_j, high_j of column j over the contexts of a memory, n columns that vary, and 1/2 behind each view:

    standardised    v_j = clip((x_j - mean_j) / sd_j, -3, 3);  the view is v / sqrt(n)
    by range        clip((x_j - low_j) / (high_j - low_j), -1, 2) / sqrt(n)
    Fourier block   (cos 2 pi t_1, ..., cos 2 pi t_F, sin 2 pi t_1, ..., sin 2 pi t_{F-1}) / sqrt(F),  t_i = w_i'v / m

m is the median distance of two v of the memory (Rahimi and Recht, NIPS 2007, with the bandwidth in units of it). A column
that does not vary is 0 in all three. So a column in another unit or with another zero gives the same views.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.simd import WIDTH, all_lanes, eight, put
from banditlab.numerics.simd_math import cosine, sine, turned

Floats = NDArray[np.float64]

CLIP = 3.0
"""How many standard deviations a standardised entry may be away."""
LOWEST, HIGHEST = -1.0, 2.0
"""How far an entry of the view by range may leave [0, 1], which later contexts do."""
CONSTANT = 0.5
"""What stands behind every view."""
PAIRS = 256
"""Most pairs of contexts whose distances the median is taken of."""
LEAST_SPREAD = 1e-12
"""Standard deviation, in units of the column's largest entry, up to which a column is taken for constant."""
LEAST_MEDIAN = 1e-6
LEAST_SCALE = 1e-290
"""Largest entry, up to which a column is taken for 0: what is divided by it must stay finite."""


class Scale(NamedTuple):
    """mean, per_sd, low, per_range (d,): centres, and one over the spreads, 0 for constant columns.

    whole (2,): one over the root of the number of columns that vary, and one over the median distance.
    Scratch: v (d,), distances (PAIRS,).
    """

    mean: Floats
    per_sd: Floats
    low: Floats
    per_range: Floats
    whole: Floats
    v: Floats
    distances: Floats


NORM, PER_MEDIAN = 0, 1
"""Places in `Scale.whole`."""


def unseen(d: int) -> Scale:
    """Return the scale of a memory with no contexts: every column is taken for constant."""
    mean, per_sd, low, per_range, v = (np.zeros(d) for _ in range(5))
    return Scale(mean, per_sd, low, per_range, whole=np.ones(2), v=v, distances=np.zeros(PAIRS))


BANDWIDTHS = ((1.4, 1.0), (0.8, 1.0), (1.4, 0.5), (0.8, 0.5))
"""Of the pairs of Fourier blocks in turn: bandwidth in units of the median distance, share of the columns they read."""


def frequencies(rng: np.random.Generator, d: int, n_blocks: int, size: int) -> Floats:
    """Return W (n_blocks, size/16, d, 8): w_i of eight features at a time, in turns, for blocks of `size` features."""
    groups = size // (2 * WIDTH)
    W = np.zeros((n_blocks, groups, d, WIDTH))
    for block in range(n_blocks):
        bandwidth, share = BANDWIDTHS[block // 2 % len(BANDWIDTHS)]
        own = rng.standard_normal((groups, d, WIDTH)) / (bandwidth * math.tau)
        if share < 1.0:
            own[:, rng.permutation(d)[max(1, round(share * d)) :]] = 0.0
        W[block] = own
    return W


# ------------------------------------------------------------------------------------------------------- scale of a memory


@njit
def measure(scale, X, first, n):
    """Take the scale of n contexts, rows first, first + 1, ... of X (N, d), after the last the first."""
    X, mean, per_sd = borrow(X), borrow(scale.mean), borrow(scale.per_sd)
    low, per_range = borrow(scale.low), borrow(scale.per_range)
    N, d = X.shape
    varying = 0
    for j in range(d):
        # Mean and extremes, then the deviations in units of the largest entry, whose squares do not underflow.
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
    scale.whole[PER_MEDIAN] = 1.0 / median_distance(scale, X, first, n)


@njit
def median_distance(scale, X, first, n):
    """Return the median distance of standardised contexts: of the last `half` with the `half` before, 1 if it is 0."""
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
    """Sort values_0 ... values_{n-1} by insertion: numpy's sort allocates."""
    for i in range(1, n):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@inline
def standardised(scale, x, j):
    return max(-CLIP, min(CLIP, (x - scale.mean[j]) * scale.per_sd[j]))


# ------------------------------------------------------------------------------------------------------------------- views


@njit
def see_views(scale, W, x, views):
    """Write the views of x (d,) into views (2 (d + 1) + n_blocks F,), one behind the other; see the module."""
    x, v, views, W = borrow(x), borrow(scale.v), borrow(views), borrow(W)
    d, norm = x.shape[0], scale.whole[NORM]
    for j in range(d):
        s = standardised(scale, x[j], j)
        v[j] = s * scale.whole[PER_MEDIAN]
        views[j] = s * norm
        views[d + 1 + j] = max(LOWEST, min(HIGHEST, (x[j] - scale.low[j]) * scale.per_range[j])) * norm
    views[d] = views[2 * d + 1] = CONSTANT
    n_blocks, groups = W.shape[0], W.shape[1]
    size = 2 * WIDTH * groups
    norm = 1.0 / math.sqrt(0.5 * size)
    for block in range(n_blocks):
        start = 2 * (d + 1) + block * size
        for g in range(groups):
            t = turned(angles(W, (block * groups + g) * d * WIDTH, v, d))
            put(views, start + WIDTH * g, cosine(t) * norm)
            put(views, start + size // 2 + WIDTH * g, sine(t) * norm)
        views[start + size - 1] = CONSTANT  # in the place of the last sine


@inline
def angles(W, i, v, d):
    """Return w'v of eight frequencies, from entry i of W on; columns of even and odd number are added apart."""
    even = odd = all_lanes(0.0)
    for j in range(0, d - 1, 2):
        even = even + eight(W, i + WIDTH * j) * v[j]
        odd = odd + eight(W, i + WIDTH * (j + 1)) * v[j + 1]
    if d % 2 == 1:
        even = even + eight(W, i + WIDTH * (d - 1)) * v[d - 1]
    return even + odd


def size_of_views(d: int, n_blocks: int, size: int) -> int:
    """Return how many numbers `see_views` writes."""
    return 2 * (d + 1) + n_blocks * size
