"""Random Fourier features of standardised rows (Rahimi and Recht, NIPS 2007)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FEATURES = 600


def fourier(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return 600 Fourier features of norm 1 of standardised rows, the bandwidth their median distance."""
    rng = np.random.default_rng([seed, 2])
    half = min(len(X) // 2, 256)
    V = np.clip(X, -3.0, 3.0)
    median = float(np.median(np.linalg.norm(V[:half] - V[half : 2 * half], axis=1)))
    Z = V @ rng.standard_normal((X.shape[1], FEATURES // 2)) / (median or 1.0)
    return np.hstack([np.cos(Z), np.sin(Z)]) * ((1.0 - 1e-12) / math.sqrt(FEATURES // 2))
