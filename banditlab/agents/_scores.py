"""What linear agents share beside the scores themselves, which forecasters have, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.forecasters._norms import SCALE
from banditlab.forecasters._scores import add, descend, matrix, padded, per_class, scores, zero_weights
from banditlab.kernels import inline
from banditlab.problem import Problem

__all__ = [
    "LinearScores",
    "ScaledScores",
    "add",
    "argmax",
    "descend",
    "matrix",
    "padded",
    "per_class",
    "runner_up",
    "scores",
    "zero_weights",
]


@inline
def argmax(z, K):  # type: ignore[no-untyped-def]
    """Return the first of the largest of z_0 ... z_{K-1}."""
    best, top = 0, z[0]
    for k in range(1, K):
        better = z[k] > top
        best = k if better else best
        top = z[k] if better else top
    return best


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
