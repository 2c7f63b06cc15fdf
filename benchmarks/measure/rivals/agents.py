"""Agents of the registry on a stream, with random Fourier features where a setting says so."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure.fourier import fourier
from benchmarks.measure.one_pass import one_pass
from benchmarks.measure.rivals.tables import Stream

RELATIVE = "3e-4 R^2"
"""A regularization that goes with the bound of the contexts' norms."""


class Chosen(NamedTuple):
    """An agent's id, its settings as pairs, and what is made of the contexts: nothing, "Fourier", "Fourier and linear"."""

    id: str
    settings: tuple[tuple[str, Any], ...] = ()
    features: str = ""

    def line(self) -> str:
        """Return the settings as one text."""
        return " ".join(f"{name}={value}" for name, value in self.settings)


def play(stream: Stream, chosen: Chosen, seed: int) -> float:
    """Return the share of mistakes of one pass."""
    X, radius = contexts(stream, chosen.features, seed)
    settings = dict(chosen.settings)
    if settings.get("regularization") == RELATIVE:
        settings["regularization"] = 3e-4 * radius**2
    _, trace = one_pass(chosen.id, X, stream.y, stream.n_classes, radius, seed, settings)
    return float(1.0 - trace.correct.mean())


def contexts(stream: Stream, features: str, seed: int) -> tuple[NDArray[np.float64], float]:
    """Return the contexts that the agent meets, and the bound of their norms.

    "Fourier" are 600 features of norm 1; "and linear" puts the columns behind them, clipped at 3 standard deviations and
    divided by the longest row: norm at most the root of 2.
    """
    if not features:
        return stream.X, stream.radius
    Z = fourier(stream.X, seed)
    if features == "Fourier":
        return Z, 1.0
    V = np.clip(stream.X, -3.0, 3.0)
    V = V * ((1.0 - 1e-12) / (np.linalg.norm(V, axis=1).max() or 1.0))
    return np.hstack([Z, V]), float(np.sqrt(2.0))
