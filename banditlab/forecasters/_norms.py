"""Norms of weights that sparse updates keep up to date, so that a projection costs the entries of a context.

W = scale V: a projection changes the scale, an update the entries of V and, by their difference, the square of its norm.
Rounding gathers in that difference, so the square is measured anew after as many updates as there are features, or once it
has fallen to a small part of what it was: O(K) a round in the mean.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from banditlab.forecasters._scores import descend
from banditlab.kernels import by_context, inline, njit

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
def note(norm, gain, most):  # type: ignore[no-untyped-def]
    """Add an update's gain to the square; whether it must now be measured, `most` the updates after which it must."""
    norm[SQUARE] += gain
    norm[LARGEST] = max(norm[LARGEST], norm[SQUARE])
    norm[UPDATES] += 1.0
    return norm[UPDATES] >= most or norm[SQUARE] < FALL * norm[LARGEST]


@inline
def measured(norm, square):  # type: ignore[no-untyped-def]
    """Take over a square that was just measured."""
    norm[SQUARE] = norm[LARGEST] = square
    norm[UPDATES] = 0.0


@njit
def squares(V, column):  # type: ignore[no-untyped-def]
    """Write the sums of squares of V's columns into column (Kp,), eight rows at a time, and return their sum."""
    d, Kp = V.shape
    for k in range(Kp):
        column[k] = 0.0
    whole = d - d % 8
    for j in range(0, whole, 8):
        for k in range(Kp):
            low = V[j, k] ** 2 + V[j + 1, k] ** 2 + V[j + 2, k] ** 2 + V[j + 3, k] ** 2
            high = V[j + 4, k] ** 2 + V[j + 5, k] ** 2 + V[j + 6, k] ** 2 + V[j + 7, k] ** 2
            column[k] += low + high
    for j in range(whole, d):
        for k in range(Kp):
            column[k] += V[j, k] ** 2
    total = 0.0
    for k in range(Kp):
        total += column[k]
    return total


@njit
def fold(V, norm):  # type: ignore[no-untyped-def]
    """Multiply the scale into V and measure its norm."""
    square = 0.0
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            V[j, k] *= norm[SCALE]
            square += V[j, k] * V[j, k]
    norm[SCALE] = 1.0
    measured(norm, square)


@njit
def project(V, D, column):  # type: ignore[no-untyped-def]
    """Rescale V to Frobenius norm D where it is longer and return its square; column (Kp,) is scratch and ends as zeros."""
    column[:] = 0.0
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            column[k] += V[j, k] * V[j, k]
    square = column.sum()
    column[:] = 0.0
    norm = math.sqrt(square)
    if norm > D:
        V *= D / norm
    return min(square, D * D)


def _descend_in_ball(V, x, r, norm):  # type: ignore[no-untyped-def]
    """Take r x' off W = scale V' and rescale W into the norm's ball (Frobenius); r (Kp,) ends as anything."""
    D = norm[RADIUS]
    if norm[SCALE] != 1.0:  # a sparse update came before
        fold(V, norm)
    descend(V, x, r)
    if not math.isinf(D):
        measured(norm, project(V, D, r))


def _sparse_descend_in_ball(V, x, r, norm):  # type: ignore[no-untyped-def]
    D = norm[RADIUS]
    if math.isinf(D):
        descend(V, x, r)
        return
    gain = 0.0
    for i in range(x.indices.shape[0]):
        j, xj = x.indices[i], x.values[i] / norm[SCALE]
        for k in range(V.shape[1]):
            old = V[j, k]
            V[j, k] = old - xj * r[k]
            gain += (V[j, k] - old) * (V[j, k] + old)
    if note(norm, gain, V.shape[0]):
        fold(V, norm)
    size = norm[SCALE] * math.sqrt(norm[SQUARE])
    if size > D:
        norm[SCALE] *= D / size
        if norm[SCALE] < LEAST_SCALE:
            fold(V, norm)


descend_in_ball = by_context(_descend_in_ball, _sparse_descend_in_ball)


def _squared_norm(x):  # type: ignore[no-untyped-def]
    """Return ||x||^2, its squares added in order."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
    return total


def _sparse_squared_norm(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.values.shape[0]):
        total += x.values[i] * x.values[i]
    return total


squared_norm = by_context(_squared_norm, _sparse_squared_norm, inlined=True)
