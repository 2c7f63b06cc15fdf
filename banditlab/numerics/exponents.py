"""Powers of two that scale numbers before squaring if a square would overflow or underflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL, LARGE = 1e-100, 1e100
"""Numbers between these two limits are squared and summed without scaling."""


def exponent(largest: Any) -> NDArray[np.int64]:
    r"""Return e with :math:`\text{largest}\, 2^{-e}` in [1/2, 1), entry by entry.

    e is 0 where `largest` is 0 or lies between `SMALL` and `LARGE`.
    """
    top = np.asarray(largest, dtype=np.float64)
    plain = (top == 0.0) | ((top >= SMALL) & (top <= LARGE))
    return np.where(plain, 0, np.frexp(top)[1]).astype(np.int64)


def divided(X: Any, e: Any) -> Any:
    r"""Return :math:`X\, 2^{-e}`, or X itself if every e is 0."""
    return np.ldexp(X, -e) if np.any(e) else X
