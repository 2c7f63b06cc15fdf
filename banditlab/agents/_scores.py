"""What linear agents share beside the scores themselves, which forecasters have, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.forecasters._lanes import WIDTH, all_lanes, eight, first, larger, largest, only, place
from banditlab.forecasters._norms import SCALE
from banditlab.forecasters._scores import add, descend, matrix, padded, per_class, scores, zero_weights
from banditlab.kernels import borrow, draw_uniform, inline
from banditlab.problem import Problem

__all__ = [
    "LinearScores",
    "ScaledScores",
    "add",
    "argmax",
    "descend",
    "greedy_or_uniform",
    "matrix",
    "padded",
    "per_class",
    "runner_up",
    "scores",
    "zero_weights",
]


MANY = 16
"""Classes from which on the largest of them is looked for eight at a time."""


@inline
def argmax(z, K):  # type: ignore[no-untyped-def]
    """Return the first of the largest of z_0 ... z_{K-1}; NaN is never larger, and where z_0 is NaN nothing is."""
    if K >= MANY:
        return _argmax(z, K)
    best, top = 0, z[0]
    for k in range(1, K):
        better = z[k] > top
        best = k if better else best
        top = z[k] if better else top
    return best


@inline
def _argmax(z, K):  # type: ignore[no-untyped-def]
    """`argmax` of K >= 8 numbers, eight at a time."""
    z, whole, n = borrow(z), K - K % WIDTH, K % WIDTH
    most = larger(eight(z, 0), all_lanes(-math.inf))  # of NaN and a number the number
    for k in range(WIDTH, whole, WIDTH):
        most = larger(eight(z, k), most)
    rest = only(first(z, whole, n), n, -math.inf)
    top = largest(larger(rest, most))
    for k in range(0, whole, WIDTH):
        lane = place(eight(z, k), top)
        if lane < WIDTH:
            return k + lane if z[0] == z[0] else 0
    return whole + place(rest, top) if z[0] == z[0] else 0


@inline
def greedy_or_uniform(best, gamma, u, p):  # type: ignore[no-untyped-def]
    """Write P = (1 - gamma) e_best + gamma/K into p and draw from it, by a coin and a uniform class; say whether explored."""
    K = p.shape[0]
    for k in range(K):
        p[k] = gamma / K
    p[best] += 1.0 - gamma
    if u[0] < gamma:
        return draw_uniform(K, u[1]), True
    return best, False


@inline
def runner_up(v, y, K):  # type: ignore[no-untyped-def]
    """Return the first of the largest of v_0 ... v_{K-1} but v_y."""
    best = 1 if y == 0 else 0
    top = v[best]
    for k in range(best + 1, K):
        better = k != y and v[k] > top
        best = k if better else best
        top = v[k] if better else top
    return best


class LinearScores:
    """What agents whose state holds V show of it."""

    state: Any
    problem: Problem

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d), a view."""
        return self.state.V[: self.problem.n_features, : self.problem.n_classes].T


class ScaledScores(LinearScores):
    """What agents show whose weights are a scale times V (see `banditlab.forecasters._norms`)."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d): a view as long as nothing was projected."""
        scale, W = self.state.norm[SCALE], super().weights
        return W if scale == 1.0 else scale * W
