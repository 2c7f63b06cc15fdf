"""What callers hand over, checked: compiled code checks no bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.sparse_rows import SparseRows, is_sparse, n_rows


def as_context(context: Any, d: int) -> NDArray[np.float64]:
    """Return one context (d,) as kernels take it, or raise a UsageError."""
    x = _as_floats("the context", as_contexts, context)
    if x.shape != (d,):
        raise UsageError(f"the context must be of shape ({d},), got {x.shape}")
    return x


def as_rows(contexts: Any, d: int, *, sparse: bool = False) -> Any:
    """Return contexts (n, d) as kernels take them, or raise a UsageError.

    Sparse ones come as a `CSR` where the kernels take that (`sparse`); else they are made dense, and an IncompatibleError
    is raised where they are too long for it.
    """
    if is_sparse(contexts):
        rows = SparseRows.of(contexts)
        if rows.shape[1] != d:
            raise UsageError(f"the contexts must be of shape (n, {d}), got {rows.shape}")
        return rows.csr if sparse else as_contexts(rows.made_dense())
    X = _as_floats("the contexts", as_contexts, contexts)
    if X.ndim != 2 or X.shape[1] != d:
        raise UsageError(f"the contexts must be of shape (n, {d}), got {X.shape}")
    return X


def as_block(contexts: Any, labels: Any, d: int, K: int, *, sparse: bool = False) -> tuple[Any, NDArray[np.int64]]:
    """Return contexts (n, d) and labels (n,) in 0 ... K-1 as compiled loops take them; see `as_rows`."""
    X, y = as_rows(contexts, d, sparse=sparse), np.asarray(labels)
    if y.shape != (n_rows(X),):
        raise UsageError(f"the labels must be of shape ({n_rows(X)},), one for every context, got {y.shape}")
    if y.dtype.kind not in "iu":
        raise UsageError(f"the labels must be integers in 0 ... {K - 1}, got an array of {y.dtype}")
    if len(y) and not (y.min() >= 0 and y.max() < K):
        raise UsageError(f"the labels must lie in 0 ... {K - 1}, got {y.min()} ... {y.max()}")
    return X, np.ascontiguousarray(y, dtype=np.int64)


def as_class(name: str, value: Any, K: int) -> int:
    """Return a label or an action in 0 ... K-1 (`name` says which) as an int, or raise a UsageError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < K:
        raise UsageError(f"{name} must be an integer in 0 ... {K - 1}, got {value!r}")
    return int(value)


def as_vector(name: str, values: Any, size: int) -> NDArray[np.float64]:
    """Return `size` numbers as a C-contiguous float64 vector, or raise a UsageError; None is no number."""
    given = () if values is None else values
    vector = _as_floats(name, lambda a: np.ascontiguousarray(a, dtype=np.float64), given)
    if vector.shape != (size,):
        raise UsageError(f"{name} must be of shape ({size},), got {None if values is None else vector.shape}")
    return vector


def _as_floats(name: str, convert: Callable[[Any], Any], given: Any) -> Any:
    try:
        return convert(given)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be an array of numbers, got a {type(given).__name__}") from None
