"""Collapse a stream to its unique contexts with label counts, so the time to fit the comparator depends on these only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators.ball import ComparatorError
from banditlab.errors import UsageError
from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.sparse_rows import SparseRows, is_sparse
from banditlab.validation import at_least

Floats = NDArray[np.float64]

CHUNK = 16384  # rows added at a time, by which storage grows at most
MOST_BYTES = 4 * 2**30
"""The largest size of the unique contexts and counts of a stream with a comparator."""
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@njit
def _slot(bits, mask):
    h = np.uint64(1469598103934665603)
    for j in range(bits.shape[0]):
        h = (h ^ bits[j]) * _PRIME
        h ^= h >> _SHIFT
    return np.int64(h & mask)


@njit
def _count_rows(bits, labels, rows, counts, size, table):
    """Add 1 to `counts[i, label]` for each row of `bits` (n, d) uint64, where i is the index of an equal row in `rows`.

    A row that is not yet in `rows` is appended. `table` is an open-addressing hash table of the indices.
    """
    n, d = bits.shape
    last = table.shape[0] - 1
    mask = np.uint64(last)
    for t in range(n):
        s = _slot(bits[t], mask)
        while True:
            i = table[s]
            if i < 0:
                i = size[0]
                size[0] += 1
                table[s] = i
                overwrite(rows[i], bits[t])
                break
            j = 0
            while j < d and rows[i, j] == bits[t, j]:
                j += 1
            if j == d:
                break
            s = (s + 1) & last
        counts[i, labels[t]] += 1.0


@njit
def _fill_table(rows, size, table):
    """Insert rows 0 to size - 1, which are all different, into the empty table."""
    last = table.shape[0] - 1
    mask = np.uint64(last)
    for i in range(size[0]):
        s = _slot(rows[i], mask)
        while table[s] >= 0:
            s = (s + 1) & last
        table[s] = i


class StreamCounts:
    """Label counts of the unique contexts of a stream that arrives in blocks.

    Two contexts are equal if all their float64 values have equal bytes, where -0.0 counts as 0.0. Cost: :math:`O(d)`
    per round for a stream of any length. Memory: that of the unique contexts.

    Parameters
    ----------
    n_features
        d.
    n_classes
        K.
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.n_features = at_least("n_features", n_features, 1)
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.rounds = 0
        self._rows = np.empty((0, n_features), dtype=np.uint64)
        self._counts = np.zeros((0, n_classes))
        self._size = np.zeros(1, dtype=np.int64)
        self._table = np.empty(0, dtype=np.int64)

    def add(self, X: Any, y: Any) -> None:
        r"""Add the rounds of one block: contexts X (n, d), dense or CSR, labels y (n,).

        Raises
        ------
        UsageError
            Shapes do not match, contexts are not finite, or labels are outside :math:`0, \dots, K-1`.
        IncompatibleError
            Sparse contexts have too many features for a dense array (`banditlab.numerics.sparse_rows.MOST_DENSE`).
        ComparatorError
            The unique contexts would take more than MOST_BYTES.
        """
        X = SparseRows.of(X, "X").made_dense() if is_sparse(X) else np.asarray(X)
        given = np.atleast_1d(y)
        with np.errstate(invalid="ignore"):
            labels = np.ascontiguousarray(given, dtype=np.int64)
        if X.ndim != 2 or X.shape[1] != self.n_features or labels.shape != X.shape[:1]:
            raise UsageError(f"X must be (n, {self.n_features}) and y (n,), got {X.shape} and {labels.shape}")
        if (labels != given).any():
            raise UsageError(f"labels must be whole numbers, got {given[labels != given][0]!r}")
        if labels.size and not 0 <= labels.min() <= labels.max() < self.n_classes:
            raise UsageError(f"labels must lie in 0 ... {self.n_classes - 1}, got {labels.min()} ... {labels.max()}")
        for start in range(0, X.shape[0], CHUNK):
            block = np.ascontiguousarray(X[start : start + CHUNK], dtype=np.float64) + 0.0  # -0.0 + 0.0 = 0.0
            if not np.isfinite(block).all():
                raise UsageError("X must be finite, got NaN or infinity")
            self._reserve(int(self._size[0]) + block.shape[0])
            here = labels[start : start + CHUNK].copy()
            _count_rows(block.view(np.uint64), here, self._rows, self._counts, self._size, self._table)
            self.rounds += block.shape[0]

    def collapsed(self) -> tuple[Floats, Floats]:
        """Return U (m, d), the unique contexts in order of first appearance (read-only), and their counts (m, K)."""
        m = int(self._size[0])
        U = self._rows[:m].view(np.float64)
        U.flags.writeable = False
        return U, self._counts[:m].copy()

    def _reserve(self, size: int) -> None:
        if size > self._rows.shape[0]:
            most, used = MOST_BYTES // (8 * (self.n_features + self.n_classes)), int(self._size[0])
            if size > most:
                raise ComparatorError(
                    f"the comparator stores a stream's unique contexts: after {self.rounds:,} rounds there are {used:,}, and "
                    f"{MOST_BYTES / 2**30:g} GiB are nearly used up; set fewer rounds, or no comparator in the spec "
                    "(norm_bounds = [])"
                )
            capacity = max(size, min(2 * self._rows.shape[0], most))
            rows, counts = np.empty((capacity, self.n_features), np.uint64), np.zeros((capacity, self.n_classes))
            rows[:used], counts[:used] = self._rows[:used], self._counts[:used]
            self._rows, self._counts = rows, counts
        if 2 * size > self._table.shape[0]:
            self._table = np.full(1 << (2 * size).bit_length(), -1, dtype=np.int64)
            _fill_table(self._rows, self._size, self._table)


def collapse(X: Any, y: Any, n_classes: int) -> tuple[Floats, Floats]:
    r"""Return the unique contexts U (m, d) of X (n, d) and their label counts (m, K); see `StreamCounts`.

    Parameters
    ----------
    X
        Contexts, shape (n, d).
    y
        Labels in :math:`0, \dots, K-1`, shape (n,).
    n_classes
        K.

    Raises
    ------
    UsageError
        X is not a matrix, or a label is not a class.
    """
    if len(np.shape(X)) != 2:
        raise UsageError(f"X must be (n, d), got shape {np.shape(X)}")
    stream = StreamCounts(X.shape[1], n_classes)
    stream.add(X, y)
    return stream.collapsed()
