"""Kernels of linear learners: inner products with a context or a vector, and additions of multiples of them.

A loop over a context x runs over its `size(x)` entries, and `entry(x, i)` is the position and value of entry i. A
kernel is therefore written once for dense and sparse contexts. Weights W (K, d), padded, come from `matrix`,
which appends columns; z, r (K,) contain one number per class.

Sums over a sparse context are in the order of its entries. A function with the decorator `sum_over_entries` is never
inlined for dense contexts, and the order of its additions then depends only on the processor. On the same machine its
sums are therefore equal to the last bit in blocks and in single rounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context, sum_over_entries
from banditlab.numerics.jit import njit, stand_alone
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.row_products import times

MOST_BY_ROWS = 1024
"""Up to this number of features, weights are stored in row order (by class), above it in column order (by feature)."""


def matrix(n_classes: int, n_features: int, value: float = 0.0) -> NDArray[np.float64]:
    """Return W with all entries `value`: (K, D), D = d rounded up to a multiple of eight, so each row begins a cache line.

    With many features W is (K, d) in column order, which suits sparse contexts. Columns beyond d keep `value`.
    """
    W = zeros(n_classes, width(n_features)) if n_features <= MOST_BY_ROWS else zeros(n_features, n_classes).T
    W[:] = value
    return W


# ------------------------------------------------------------------------------------------------- entries of a context


def _size(x):
    """Return the number of entries of a context over which a loop runs."""
    return x.shape[0]


def _sparse_size(x):
    return x.indices.shape[0]


def _entry(x, i):
    """Return the position and the value of entry i."""
    return i, x[i]


def _sparse_entry(x, i):
    return x.indices[i], x.values[i]


size = by_context(_size, _sparse_size, inlined=True)
entry = by_context(_entry, _sparse_entry, inlined=True)


# ------------------------------------------------------------------------------------------------------------------- sums


@sum_over_entries
def squared_norm(x):
    r"""Return :math:`\|x\|^2` of a context."""
    stand_alone()
    total = 0.0
    for i in range(size(x)):
        _, xj = entry(x, i)
        total += xj * xj
    return total


@njit
def looped_scores(W, x, z):
    """Write :math:`W x` into z (K,), each sum in the order of the entries."""
    K = z.shape[0]
    for k in range(0, K, 2):  # two rows per pass over x, the last one twice if K is odd
        other, a, b = min(k + 1, K - 1), 0.0, 0.0
        for i in range(size(x)):
            j, xj = entry(x, i)
            a += W[k, j] * xj
            b += W[other, j] * xj
        z[k], z[other] = a, b


def _dense_scores(W, x, z):
    """Write :math:`W x` into z (K,)."""
    if W.strides[1] == W.itemsize:
        times(W, x, z)
    else:  # column order
        looped_scores(W, x, z)


scores = by_context(_dense_scores, looped_scores)


# ------------------------------------------------------------------------------------------------------------------ steps


@njit
def add(W, k, c, x):
    r"""Add :math:`c x` to :math:`W_k`."""
    for i in range(size(x)):
        j, xj = entry(x, i)
        W[k, j] += c * xj


@sum_over_entries
def descend(W, x, r, gains):
    r"""Subtract :math:`r x'` from W, and write the resulting change of :math:`\|W_k\|^2` into :math:`\text{gains}_k`."""
    stand_alone()
    for k in range(r.shape[0]):
        gain = 0.0
        for i in range(size(x)):
            j, xj = entry(x, i)
            old = W[k, j]
            W[k, j] = old - r[k] * xj
            gain += (W[k, j] - old) * (W[k, j] + old)
        gains[k] = gain
