"""AIOLI models in a row, as `class_models` has them, over matrices of O(d) numbers: diagonals, or blocks in a shared sketch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import HEARSAY, lesson
from banditlab.numerics.argmax import runner_up
from banditlab.numerics.compact_inverses import move, read, recall
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.tanh_root import aioli_roots


class CompactModels(NamedTuple):
    """inverses, P_i and h_i in either form; c (M,), curvatures; w (1,). Scratch: m, q, z (Mp,).

    Mp is M rounded up to a multiple of eight; entries from M on stay 0.
    """

    inverses: Any
    c: NDArray[np.float64]
    w: NDArray[np.float64]
    m: NDArray[np.float64]
    q: NDArray[np.float64]
    z: NDArray[np.float64]


def untaught(inverses: Any, curvature: float, virtual_weight: float, n_models: int) -> CompactModels:
    """Return models that have learnt nothing, over fresh inverses."""
    room = width(n_models)
    return CompactModels(
        inverses, np.full(n_models, curvature), np.array([virtual_weight]), zeros(room), zeros(room), zeros(room)
    )


@inline
def margins(models, x, z):
    """Write into z_0 ... z_{M-1} the margins the models predict at x, a context or the sketch that holds it."""
    read(models.inverses, x, models.m, models.q)
    aioli_roots(models.m, models.q, models.w[0], models.z)
    for i in range(models.c.shape[0]):
        z[i] = models.z[i]


@inline
def learn(models, x, k, z, y):
    """Teach model k the outcome y = +-1 at the margin z."""
    m, q = recall(models.inverses, x, k)
    step, weight, down = lesson(models.c[k], z, y, m, q)
    move(models.inverses, x, k, step, weight, down)


@njit
def learn_all(models, x, k, z, y):
    """Learn at z (K,) as a challenger: on a hit the best other class learns that it was wrong, if it knows x well."""
    learn(models, x, k, z[k], y)
    if y < 0.0:
        return
    j = runner_up(z, k, z.shape[0])
    m, q = recall(models.inverses, x, j)
    if q <= HEARSAY:
        step, weight, down = lesson(models.c[j], z[j], -1.0, m, q)
        move(models.inverses, x, j, step, weight, down)
