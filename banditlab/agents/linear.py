"""What agents with linear scores show of their state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.running_norm import SCALE
from banditlab.problem import Problem


class LinearScores:
    """What agents whose state holds V show of it."""

    state: Any
    problem: Problem

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d), a view."""
        return self.state.V[: self.problem.n_features, : self.problem.n_classes].T


class ScaledScores(LinearScores):
    """What agents show whose weights are a scale times V (see `banditlab.numerics.running_norm`)."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d): a view as long as nothing was projected."""
        scale, W = self.state.norm[SCALE], super().weights
        return W if scale == 1.0 else scale * W
