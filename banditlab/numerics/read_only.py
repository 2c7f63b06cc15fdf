"""Contexts as kernels take them. Nothing here is compiled: who only hands contexts on imports this, not `contexts`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_contexts(contexts: Any) -> NDArray[np.float64]:
    """Return contexts (any shape) as a C-contiguous read-only float64 view: one signature, hence one compilation."""
    array = np.ascontiguousarray(contexts, dtype=np.float64).view()
    array.flags.writeable = False
    return array
