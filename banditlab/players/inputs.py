"""Checks of the callers' input, because compiled code checks no bounds and an invalid number would remain in the state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.sparse_rows import CSR, SparseRows, is_sparse, n_rows
from banditlab.numerics.squared_norms import first_beyond
from banditlab.problem import Problem

TOLERANCE = 1e-9
"""The relative tolerance for norms above R, because normalised contexts may exceed R by rounding."""


def as_context(context: Any, space: int | Problem) -> NDArray[np.float64]:
    r"""Return one context (d,) in the form that kernels require, or raise a UsageError.

    Its entries must be finite. `space` is d or a `Problem`. A norm above :math:`R (1 + \text{TOLERANCE})`, with the
    R of the `Problem`, is also rejected.
    """
    d, limit = limits(space)
    x = _as_floats("the context", as_contexts, context)
    if x.shape != (d,):
        raise UsageError(f"the context must be of shape ({d},), got {x.shape}")
    if _first_refused(x[None], limit) == 0:
        raise UsageError(f"the context must {_demand(x, limit)}")
    return x


def as_rows(contexts: Any, space: int | Problem, *, sparse: bool = False) -> Any:
    """Return contexts (n, d) in the form that kernels require, or raise a UsageError; for `space`, see `as_context`.

    Sparse contexts are returned as a `CSR` if `sparse`. Otherwise they are made dense; an IncompatibleError is raised
    if d is too large for that.
    """
    d, limit = limits(space)
    if is_sparse(contexts):
        rows = SparseRows.of(contexts)
        if rows.shape[1] != d:
            raise UsageError(f"the contexts must be of shape (n, {d}), got {rows.shape}")
        if sparse:
            fits = _sparse_squares(rows.csr) <= limit  # the entries were already checked to be finite
            if not fits.all():
                t = int(np.argmin(fits))
                raise UsageError(f"context {t} of the block must {_demand(rows.csr.row(t).values, limit)}")
            return rows.csr
        contexts = rows.made_dense()
    X = _as_floats("the contexts", as_contexts, contexts)
    if X.ndim != 2 or X.shape[1] != d:
        raise UsageError(f"the contexts must be of shape (n, {d}), got {X.shape}")
    t = _first_refused(X, limit)
    if t < len(X):
        raise UsageError(f"context {t} of the block must {_demand(X[t], limit)}")
    return X


def as_block(
    contexts: Any, labels: Any, space: int | Problem, K: int, *, sparse: bool = False, several: bool = False
) -> tuple[Any, NDArray[Any]]:
    r"""Return contexts (n, d) and labels (n,) in :math:`0, \dots, K-1` in the form that compiled loops require.

    For `sparse`, see `as_rows`. If `several` actions may be right, `labels` may also be a bool array (n, K) that
    states for each action whether it is right.
    """
    X, y = as_rows(contexts, space, sparse=sparse), np.asarray(labels)
    if several and y.ndim == 2:
        if y.shape != (n_rows(X), K) or y.dtype != np.bool_:
            raise UsageError(f"the bits must be of shape ({n_rows(X)}, {K}) and bool, got {y.shape} {y.dtype}")
        return X, np.ascontiguousarray(y)
    if y.shape != (n_rows(X),):
        raise UsageError(f"the labels must be of shape ({n_rows(X)},), one for every context, got {y.shape}")
    if y.dtype.kind not in "iu":
        raise UsageError(f"the labels must be integers in 0 ... {K - 1}, got an array of {y.dtype}")
    if len(y) and not (y.min() >= 0 and y.max() < K):
        raise UsageError(f"the labels must lie in 0 ... {K - 1}, got {y.min()} ... {y.max()}")
    return X, np.ascontiguousarray(y, dtype=np.int64)


def as_class(name: str, value: Any, K: int) -> int:
    r"""Return a label or an action in :math:`0, \dots, K-1` as an int, or raise a UsageError that calls it `name`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < K:
        raise UsageError(f"{name} must be an integer in 0 ... {K - 1}, got {value!r}")
    return int(value)


def as_bit(value: Any) -> bool:
    """Return feedback given as True, False, 1 or 0 (of Python or numpy) as a bool, or raise a UsageError."""
    if not isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating) or value not in (0, 1):
        raise UsageError(f"correct must be True, False, 1 or 0, got {value!r}")
    return bool(value)


def as_vector(name: str, values: Any, size: int) -> NDArray[np.float64]:
    """Return `size` numbers as a C-contiguous float64 vector, or raise a UsageError."""
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


def limits(space: int | Problem) -> tuple[int, float]:
    """Return d and the largest allowed squared norm, which is infinite if no `Problem` is given."""
    if isinstance(space, Problem):
        return space.n_features, (space.radius * (1.0 + TOLERANCE)) ** 2
    return space, math.inf


def _first_refused(X: NDArray[np.float64], limit: float) -> int:
    """Return the index of the first row of X (n, d) that is not finite or has a squared norm above the limit, or n.

    R lies in [1e-100, 1e100], so squares need no scaling: a square overflows only for an entry above any R, and
    underflows only for one that is negligible compared with R.
    """
    if limit < math.inf:
        return int(first_beyond(X, limit))
    finite = np.isfinite(X).all(axis=1)
    return len(X) if finite.all() else int(np.argmin(finite))


def _sparse_squares(csr: CSR) -> NDArray[np.float64]:
    """Return the squared norm of every row (n,)."""
    first, last = csr.indptr[0], csr.indptr[-1]
    squares = np.zeros(len(csr.indptr) - 1)
    filled = csr.indptr[1:] > csr.indptr[:-1]  # reduceat does not accept empty parts
    with np.errstate(over="ignore"):
        entries = np.square(csr.values[first:last])
        if len(entries):
            squares[filled] = np.add.reduceat(entries, csr.indptr[:-1][filled] - first)
    return squares


def _demand(x: NDArray[np.float64], limit: float) -> str:
    """Return the message for a rejected context: the requirement, and the value found."""
    if not np.isfinite(x).all():
        return f"be finite, got {x[~np.isfinite(x)][0]} at {int(np.argmin(np.isfinite(x)))}"
    largest = np.abs(x).max()
    norm = largest * np.linalg.norm(x / largest)  # without overflow
    return f"have a norm of at most R = {math.sqrt(limit) / (1.0 + TOLERANCE):.10g}, got {norm:.10g}"
