r"""Running norms of weights :math:`W = \text{scale}\, V`, so a projection onto a ball changes one number only.

A projection changes the scale. An update changes entries of V, and adds the change of their squares to :math:`\|V\|^2`.
Rounding errors accumulate in :math:`\|V\|^2`. It is therefore recomputed after as many updates as there are features,
or if it has fallen to a small fraction of its largest value. That costs :math:`O(K)` per round on average. There is one
ball for all of W, or one for each row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import njit, reduction, stand_alone
from banditlab.numerics.vectors import add, descend

FALL = 1e-4
"""The fraction of its largest value to which a running square may fall, with which it still has about 12 digits."""
LEAST_SCALE = 1e-9
"""A scale below this is multiplied into V."""


class Norms(NamedTuple):
    r"""For each of n balls: the scale; :math:`\|V\|^2`, its largest value, and the number of updates since it was recomputed.

    n is 1 or K. With an infinite radius the scale stays 1, and the other entries 0.
    """

    scale: NDArray[np.float64]
    square: NDArray[np.float64]
    largest: NDArray[np.float64]
    updates: NDArray[np.float64]

    @classmethod
    def of(cls, n: int) -> Norms:
        """Return the norms of n balls at :math:`V = 0` with scale 1."""
        return cls(np.ones(n), np.zeros(n), np.zeros(n), np.zeros(n))


@reduction
def measure(V, norms):
    """Multiply V by the scales, and recompute its norms."""
    stand_alone()
    n = norms.scale.shape[0]
    rows = V.shape[0] // n
    for i in range(n):
        square = 0.0
        for k in range(i * rows, i * rows + rows):
            for j in range(V.shape[1]):
                V[k, j] *= norms.scale[i]
                square += V[k, j] * V[k, j]
        norms.scale[i], norms.square[i], norms.largest[i], norms.updates[i] = 1.0, square, square, 0.0


@njit
def add_gains(V, norms, gains):
    r"""Add the change of each :math:`\|V_k\|^2` in an update of V."""
    n, worn = norms.scale.shape[0], False
    rows = gains.shape[0] // n
    for i in range(n):
        gain = 0.0
        for k in range(i * rows, i * rows + rows):
            gain += gains[k]
        norms.square[i] += gain
        norms.largest[i] = max(norms.largest[i], norms.square[i])  # rounding errors are relative to it
        norms.updates[i] += 1.0
        worn |= norms.updates[i] >= V.shape[1] or norms.square[i] < FALL * norms.largest[i]
    if worn:
        measure(V, norms)


@njit
def descend_in_balls(V, x, r, norms, radius, gains):
    r"""Subtract :math:`r x'` from W, then rescale the rows of each ball to the radius if they are longer.

    With an infinite radius the norms are not computed. Otherwise r and `gains` are overwritten.
    """
    if radius == math.inf:
        for k in range(r.shape[0]):
            add(V, k, -r[k], x)
        return
    n = norms.scale.shape[0]
    rows = r.shape[0] // n
    for i in range(n):
        share = 1.0 / norms.scale[i]
        for k in range(i * rows, i * rows + rows):
            r[k] *= share  # scale V - r x' = scale (V - (r/scale) x')
    descend(V, x, r, gains)
    add_gains(V, norms, gains)
    least = 1.0
    for i in range(n):
        norm = norms.scale[i] * math.sqrt(norms.square[i])
        if norm > radius:
            norms.scale[i] *= radius / norm
            least = min(least, norms.scale[i])
    if least < LEAST_SCALE:
        measure(V, norms)
