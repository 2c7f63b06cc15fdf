"""Contexts in the form that kernels require, without compiled code, for modules that only pass contexts on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_contexts(contexts: Any) -> NDArray[np.float64]:
    """Return contexts of any shape as a C-contiguous read-only float64 array, so kernels are compiled for one type only."""
    return read_only(np.ascontiguousarray(contexts, dtype=np.float64))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view
