"""`Problem`, the information before a run, and `Decision`, the output of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import HorizonRequiredError, UsageError

LEAST_RADIUS, MOST_RADIUS = 1e-100, 1e100  # its square must not overflow or underflow


@dataclass(frozen=True, slots=True)
class Problem:
    r"""The information that a player receives before the first round.

    Parameters
    ----------
    n_features
        d, the number of features of a context.
    n_classes
        K, the number of classes, at least 2.
    radius
        R in [1e-100, 1e100], with :math:`\|x_t\|_2 \le R` for every context, including the intercept if there is one.
    horizon
        T, the number of rounds, or None if unknown; "theory" settings that need it then raise an error.
    """

    n_features: int
    n_classes: int
    radius: float
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise UsageError(f"n_features must be at least 1, got {self.n_features}")
        if self.n_classes < 2:
            raise UsageError(f"n_classes must be at least 2, got {self.n_classes}")
        if not LEAST_RADIUS <= self.radius <= MOST_RADIUS:
            raise UsageError(f"radius must lie between {LEAST_RADIUS:g} and {MOST_RADIUS:g}, got {self.radius}")
        if self.horizon is not None and self.horizon < 1:
            raise UsageError(f"horizon must be at least 1 or None, got {self.horizon}")

    def known_horizon(self, setting: str, anytime: str) -> int:
        """Return T, or raise an error that names the setting that needs T, and the alternative `anytime`."""
        if self.horizon is None:
            raise HorizonRequiredError(f"{setting} needs the horizon, which is unknown in this problem; {anytime}")
        return self.horizon


class Decision(NamedTuple):
    r"""An agent's decision: the action with the probabilities from which it was drawn.

    Attributes
    ----------
    action
        The chosen class, :math:`0, \dots, K-1`.
    probabilities
        (K,), the distribution from which the action was drawn, given the agent's internal draws.
    explored
        Whether the action came from forced exploration; None for agents without forced exploration.
    payload
        The data that `learn` needs from `act`, opaque to other code. Being part of the decision, it allows for late or
        missing feedback.
    """

    action: int
    probabilities: NDArray[np.float64]
    explored: bool | None = None
    payload: Any = None

    def __repr__(self) -> str:
        """Return one line, with at most ten probabilities and the shape of the payload."""
        p = np.asarray(self.probabilities)
        shown = np.array2string(p, max_line_width=10_000, threshold=10, edgeitems=3, precision=4)
        payload = f"array of shape {self.payload.shape}" if isinstance(self.payload, np.ndarray) else repr(self.payload)
        return f"Decision(action={self.action}, probabilities={shown}, explored={self.explored}, payload={payload})"
