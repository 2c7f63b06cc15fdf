"""Distinct contexts with their label counts, so a sum over all past rounds needs one term per distinct context."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Distinct:
    """Contexts X (m, d), all different, and label counts C (m, K), in the order of their first occurrence."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        self._X = np.zeros((16, n_features))
        self._C = np.zeros((16, n_classes))
        self._rows: dict[bytes, int] = {}

    @property
    def X(self) -> Floats:
        """The distinct contexts (m, d), a view."""
        return self._X[: len(self._rows)]

    @property
    def C(self) -> Floats:
        """The label counts (m, K), a view."""
        return self._C[: len(self._rows)]

    def row(self, context: Floats) -> int:
        """Return the index of the row of `context` (d,); a new context gets a new row with zero counts."""
        key = (context + 0.0).tobytes()  # -0.0 + 0.0 is 0.0
        row = self._rows.setdefault(key, len(self._rows))
        # Double the capacity if it is full.
        if row == len(self._X):
            self._X, self._C = (np.concatenate([A, np.zeros_like(A)]) for A in (self._X, self._C))
        self._X[row] = context
        return row

    def count(self, context: Floats, label: int, weight: float = 1.0) -> int:
        """Add `weight` (default one) to the count of `label` at `context` (d,), and return the row's index."""
        row = self.row(context)
        self._C[row, label] += weight
        return row

    def arrays(self) -> dict[str, Floats]:
        """Return copies of X and C, which can be saved as a state."""
        return {"X": self.X.copy(), "C": self.C.copy()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore the state from the result of `arrays`; raise a ValueError for other arrays."""
        X, C = arrays["X"], arrays["C"]
        for name, A, width in (("X", X, self._X.shape[1]), ("C", C, self._C.shape[1])):
            fits = isinstance(A, np.ndarray) and A.dtype == np.float64 and A.shape == (len(X), width)
            if not fits or not np.isfinite(A).all():
                raise ValueError(f"the contexts' array {name} must have rows of {width} finite numbers")
        self._rows.clear()
        for context, counts in zip(X, C, strict=True):
            row = self.row(context)  # may replace self._C with a longer array
            self._C[row] = counts
