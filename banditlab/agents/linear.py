"""Attributes of agents with linear scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import number, positive


class LinearScores:
    """Attributes of agents whose state has the weights W."""

    problem: Problem
    state: Any

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d), a view."""
        return self.state.W[:, : self.problem.n_features]


class ScaledScores:
    """Attributes of agents whose weights are a scale times V (see `banditlab.numerics.running_norm`)."""

    problem: Problem
    state: Any

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d)."""
        return self.state.norm.scale[0] * self.state.V[:, : self.problem.n_features]


class InFrobeniusBall:
    """Attributes of agents whose comparators lie in a Frobenius ball."""

    problem: Problem
    norm_bound: float

    @property
    def frobenius_bound(self) -> float:
        r"""The least radius :math:`D = \sqrt{K} B` of a Frobenius ball that contains all W with :math:`\|W_k\| \le B`."""
        return math.sqrt(self.problem.n_classes) * self.norm_bound


def resolved_step(step: float | str, gamma: float, theory: Callable[[bool], float]) -> float | str:
    """Return a number or "adaptive" unchanged, `theory(False)` for "theory", and `theory(True)` for "wide".

    "theory" and "wide" need gamma above 0.
    """
    if step == "adaptive":
        return "adaptive"
    if step not in ("theory", "wide"):
        return positive("step", number("step", step, "theory", "wide", "adaptive"))
    if gamma == 0.0:
        raise UsageError(f"step = {step!r} is proportional to gamma: it needs gamma above 0, got 0")
    return theory(step == "wide")
