"""Norms of weights that updates keep up to date, so that a projection onto a ball costs one number.

W = scale V: a projection changes the scale, an update the entries of V and the square of its norm. A dense update measures
the square on its way, a sparse one adds what its entries' squares gained. Rounding gathers in that gain. So the square is
measured anew after as many updates as there are features, or once it has fallen to a small part of what it was: O(K) a
round in the mean. V is in the layouts of `linear_scores`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context, by_layout
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.linear_scores import by_class, descend, features
from banditlab.numerics.simd import WIDTH, all_lanes, eight, first, fma, one_lane, put, total

FALL = 1e-4
"""How far a running square may fall below its largest value: it then still has about 12 digits."""
LEAST_SCALE = 1e-9
"""A smaller scale is multiplied into V."""

SCALE, SQUARE, LARGEST, UPDATES, RADIUS = range(5)
"""Slots of a running norm: W = scale V; ||V||^2, its largest value and the updates since it was measured; the ball's D."""


def running_norm(radius: float = math.inf) -> NDArray[np.float64]:
    """Return the running norm of V = 0, scale 1, in a ball of this radius."""
    return np.array([1.0, 0.0, 0.0, 0.0, radius])


@inline
def note(norm, gain, most):
    """Add an update's gain to the square; whether it must now be measured, `most` the updates after which it must."""
    norm[SQUARE] += gain
    # The error of the sum is relative to the largest it has been.
    norm[LARGEST] = max(norm[LARGEST], norm[SQUARE])
    norm[UPDATES] += 1.0
    return norm[UPDATES] >= most or norm[SQUARE] < FALL * norm[LARGEST]


@inline
def measured(norm, square):
    """Take over a square that was just measured."""
    norm[SQUARE] = norm[LARGEST] = square
    norm[UPDATES] = 0.0


def _squared_norm(x):
    """Return ||x||^2: lane l sums the features l, l + 8, ..."""
    x, squares = borrow(x), all_lanes(0.0)
    d = x.shape[0]
    whole = d - d % WIDTH
    for j in range(0, whole, WIDTH):
        squares = fma(eight(x, j), eight(x, j), squares)
    # The features left over, in the lanes they would have.
    if whole < d:
        rest = first(x, whole, d - whole)
        squares = fma(rest, rest, squares)
    return total(squares)


def _sparse_squared_norm(x):
    squares = all_lanes(0.0)
    for i in range(x.values.shape[0]):
        squares = fma(one_lane(x.indices[i] & 7, x.values[i]), x.values[i], squares)
    return total(squares)


squared_norm = by_context(_squared_norm, _sparse_squared_norm)


def _squares(V, column):
    """Write ||W_k||^2 into column, as long as `per_class` makes it."""
    d, Kp = V.shape
    for k in range(Kp):
        column[k] = 0.0
    whole = d - d % 8
    # Eight features a pass, added pairwise, for all classes side by side.
    for j in range(0, whole, 8):
        for k in range(Kp):
            low = V[j, k] ** 2 + V[j + 1, k] ** 2 + V[j + 2, k] ** 2 + V[j + 3, k] ** 2
            high = V[j + 4, k] ** 2 + V[j + 5, k] ** 2 + V[j + 6, k] ** 2 + V[j + 7, k] ** 2
            column[k] += low + high
    for j in range(whole, d):
        for k in range(Kp):
            column[k] += V[j, k] ** 2


def _row_squares(V, column):
    W = by_class(V)
    for k in range(column.shape[0]):
        column[k] = squared_norm(W[k])


squares = by_layout(_squares, _row_squares)


def _descend_measured(V, x, r, column):
    """Take r x' off W and write ||W_k||^2 into column, which may be r itself; both as long as `per_class` makes them."""
    descend(V, x, r)
    squares(V, column)


@inline
def _moved(W, w, x, r, sums):
    """Take r x off eight entries of W and return sums plus their squares."""
    new = eight(W, w) - x * r
    put(W, w, new)
    return fma(new, new, sums)


def _row_descend_measured(V, x, r, column):
    W, x, r, column = by_class(V), borrow(x), borrow(r), borrow(column)
    d, K, wide = x.shape[0], r.shape[0], W.shape[1]
    for k in range(0, K - K % 4, 4):  # four sums, so that an addition need not wait for the last
        a = b = c = e = all_lanes(0.0)
        r0, r1, r2, r3 = r[k], r[k + 1], r[k + 2], r[k + 3]
        for j in range(0, d, WIDTH):
            xj, w = features(x, j), k * wide + j
            a = _moved(W, w, xj, r0, a)
            b = _moved(W, w + wide, xj, r1, b)
            c = _moved(W, w + 2 * wide, xj, r2, c)
            e = _moved(W, w + 3 * wide, xj, r3, e)
        column[k], column[k + 1], column[k + 2], column[k + 3] = total(a), total(b), total(c), total(e)
    for k in range(K - K % 4, K):
        a, r0 = all_lanes(0.0), r[k]
        for j in range(0, d, WIDTH):
            a = _moved(W, k * wide + j, features(x, j), r0, a)
        column[k] = total(a)


descend_measured = by_layout(_descend_measured, _row_descend_measured)


@njit
def fold(V, norm):
    """Multiply the scale into V and measure its norm."""
    square = 0.0
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            V[j, k] *= norm[SCALE]
            square += V[j, k] * V[j, k]
    # ||V|| is now ||W||
    norm[SCALE] = 1.0
    measured(norm, square)


@njit
def shrink(V, norm):
    """Rescale W = scale V into the norm's ball, by its scale."""
    # ||W|| = scale ||V||, brought to D by the scale alone
    size, D = norm[SCALE] * math.sqrt(norm[SQUARE]), norm[RADIUS]
    if size > D:
        norm[SCALE] *= D / size
        if norm[SCALE] < LEAST_SCALE:
            fold(V, norm)


def _descend_in_ball(V, x, r, norm):
    """Take r x' off W = scale V' and rescale W into the norm's ball (Frobenius); r, of `per_class`, ends as anything."""
    if math.isinf(norm[RADIUS]):
        descend(V, x, r)
        return
    # scale V - r x' = scale (V - (r/scale) x')
    for k in range(r.shape[0]):
        r[k] /= norm[SCALE]
    descend_measured(V, x, r, r)
    # r now holds the ||V_k||^2, whose sum is ||V||^2
    square = 0.0
    for k in range(r.shape[0]):
        square += r[k]
    measured(norm, square)
    shrink(V, norm)


def _sparse_descend_in_ball(V, x, r, norm):
    if math.isinf(norm[RADIUS]):
        descend(V, x, r)
        return
    # new^2 - old^2 = (new - old) (new + old), entry by entry
    gain = 0.0
    for i in range(x.indices.shape[0]):
        j, xj = x.indices[i], x.values[i] / norm[SCALE]
        for k in range(r.shape[0]):
            old = V[j, k]
            V[j, k] = old - xj * r[k]
            gain += (V[j, k] - old) * (V[j, k] + old)
    if note(norm, gain, V.shape[0]):
        fold(V, norm)
    shrink(V, norm)


descend_in_ball = by_context(_descend_in_ball, _sparse_descend_in_ball)
