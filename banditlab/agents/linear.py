"""What agents with linear scores show of their state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class LinearScores:
    """What agents whose state holds W show of it."""

    state: Any

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d), a view."""
        return self.state.W


class ScaledScores:
    """What agents show whose weights are a scale times V (see `banditlab.numerics.running_norm`)."""

    state: Any

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d)."""
        return self.state.norm.scale[0] * self.state.V
