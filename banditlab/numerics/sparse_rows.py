"""Sparse contexts for compiled loops: rows in CSR form, which are checked once.

A kernel for dense and sparse contexts is written once. It reads x only through functions made by
`banditlab.numerics.contexts.by_context`, which have one form for arrays and one for a `SparseRow`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.read_only import read_only

Floats = NDArray[np.float64]

MOST_DENSE = 8192
"""The most features with which blocks of sparse contexts are made dense (64 MiB), for players without sparse kernels."""


class SparseRow(NamedTuple):
    """One context in a kernel: the increasing columns of its entries, and their values."""

    indices: NDArray[np.uint32]
    values: Floats


class CSR(NamedTuple):
    """Contexts in a kernel: row t is values[indptr[t]:indptr[t+1]] in columns indices[indptr[t]:indptr[t+1]].

    All arrays are read-only.
    """

    values: Floats
    indices: NDArray[np.uint32]
    indptr: NDArray[np.int64]

    def row(self, t: int) -> SparseRow:
        """Return context t. For Python code; kernels use `banditlab.numerics.contexts.row(X, t)`."""
        start, stop = self.indptr[t], self.indptr[t + 1]
        return SparseRow(self.indices[start:stop], self.values[start:stop])


class SparseRows:
    """Contexts (n, d) in CSR form that satisfy the assumptions of compiled loops; slices of rows are views.

    In every row the column indices increase strictly and lie in 0 ... d-1; every value is finite. `csr` is the tuple
    of arrays that compiled functions take.
    """

    __slots__ = ("csr", "shape")
    ndim = 2

    def __init__(self, csr: CSR, n_features: int) -> None:
        self.csr = csr
        self.shape = (len(csr.indptr) - 1, n_features)

    @classmethod
    def of(cls, contexts: Any, whose: str = "the contexts") -> Self:
        """Check sparse contexts, a scipy.sparse array or `SparseRows`, and return them without a copy.

        If column indices are unsorted or duplicated, a copy is sorted and duplicates are summed.

        Raises
        ------
        UsageError
            A column index is outside 0 ... d-1, a value is not finite, or a row pointer is invalid.
        """
        if isinstance(contexts, cls):
            return contexts
        found = contexts.tocsr()
        d, fault = found.shape[1], ""
        csr = _as_csr(found, d)
        if csr is None:
            fault = f"have entries outside their shape {found.shape}"
        elif not _is_ordered(csr):
            ordered = found.astype(np.float64)  # a copy; sums of small integers would overflow
            # flags that it stored earlier may be out of date
            ordered.has_canonical_format = ordered.has_sorted_indices = False
            ordered.sum_duplicates()
            csr = _as_csr(ordered, d)
        if csr is not None and not np.isfinite(csr.values).all():  # sums, too
            fault = "are not finite"
        if fault or csr is None:
            raise UsageError(f"{whose} {fault}")
        return cls(csr, d)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> SparseRows:
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise UsageError(f"sparse rows can be sliced only with a step of 1, got a step of {step}")
        csr = self.csr._replace(indptr=self.csr.indptr[start : max(start, stop) + 1])
        return SparseRows(csr, self.shape[1])

    def toarray(self) -> Floats:
        """Return the rows as a dense array (n, d)."""
        values, indices, indptr = self.csr
        dense = np.zeros(self.shape)
        first, last = indptr[0], indptr[-1]
        dense[np.repeat(np.arange(len(self)), np.diff(indptr)), indices[first:last]] = values[first:last]
        return dense

    def made_dense(self) -> Floats:
        """Return the rows as a dense array, for kernels that accept dense contexts only.

        Raises
        ------
        IncompatibleError
            d is above `MOST_DENSE`.
        """
        refuse_dense(self.shape[1])
        return self.toarray()


def is_sparse(contexts: Any) -> bool:
    """Return whether contexts are sparse: a scipy.sparse array, or `SparseRows`."""
    return isinstance(contexts, SparseRows) or hasattr(contexts, "tocsr")


def n_rows(X: Floats | CSR) -> int:
    """Return n, the number of contexts in a kernel's argument. (`len` of a `CSR`, a tuple of three arrays, is 3.)"""
    return len(X.indptr) - 1 if isinstance(X, CSR) else len(X)


def rows_of(X: Floats | CSR, part: slice) -> Floats | CSR:
    """Return the contexts `part.start` ... `part.stop - 1` of a kernel's argument. Kernels cannot call it."""
    return X._replace(indptr=X.indptr[part.start : part.stop + 1]) if isinstance(X, CSR) else X[part]


def refuse_dense(d: int) -> None:
    """Raise an IncompatibleError if sparse contexts of d features are too long for a dense array."""
    if d > MOST_DENSE:
        raise IncompatibleError(
            f"no kernels for sparse contexts, and d = {d:,} is too large for dense ones (at most {MOST_DENSE:,})"
        )


def _as_csr(found: Any, d: int) -> CSR | None:
    """Return a scipy.sparse CSR array in the form that kernels require, or None if an entry lies outside its shape."""
    indptr = np.asarray(found.indptr, dtype=np.int64)
    # Pointers must not decrease, and must lie within the arrays.
    whole = len(indptr) > 0 and indptr[0] >= 0 and indptr[-1] <= min(len(found.data), len(found.indices))
    if not whole or (np.diff(indptr) < 0).any():
        return None
    places = np.ascontiguousarray(found.indices)
    used = places[indptr[0] : indptr[-1]]
    # Column indices must lie within 0 ... d-1, and fit into 32 bits.
    if len(used) and (used.min() < 0 or used.max() >= min(d, 2**32)):
        return None
    indices = places.view(np.uint32) if places.dtype == np.int32 else places.astype(np.uint32)
    values = np.ascontiguousarray(found.data, dtype=np.float64)
    return CSR(read_only(values), read_only(indices), read_only(indptr))


def _is_ordered(csr: CSR) -> bool:
    """Return whether the column indices of every row increase strictly."""
    first, last = csr.indptr[0], csr.indptr[-1]
    used = csr.indices[first:last]
    # Between neighbouring entries of a row the index must increase; at the start of a row it may decrease.
    rises = used[1:] > used[:-1]
    starts = csr.indptr[1:-1] - first
    rises[starts[(starts > 0) & (starts < len(used))] - 1] = True
    return bool(rises.all())
