"""Kernels of linear learners, in plain loops: sums and steps along a context, dense or sparse, and along a row of
numbers.

A loop over a context x goes over its `size(x)` entries; `entry(x, i)` is the place of one and its value. So a kernel is
written once for both kinds of contexts. Weights W (K, d) are as `matrix` makes them; z, r (K,) hold a number a class.

The compiler chooses the order of a `reduction`'s sums by what the processor can do, and inlines it nowhere: on one machine a
sum has the same bits wherever it is taken, in blocks as in single rounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context
from banditlab.numerics.jit import njit, reduction, stand_alone
from banditlab.numerics.packed_symmetric import zeros

MOST_BY_ROWS = 1024
"""Most features of weights that lie in memory class by class; above, the numbers of all classes at a place lie together."""


def matrix(n_classes: int, n_features: int, value: float = 0.0) -> NDArray[np.float64]:
    """Return W (K, d), each entry `value`; with many features in column order, so that a sparse context reads little memory."""
    W = zeros(n_classes, n_features) if n_features <= MOST_BY_ROWS else zeros(n_features, n_classes).T
    W[:] = value
    return W


# ------------------------------------------------------------------------------------------------- entries of a context


def _size(x):
    """Return how many entries of a context a loop goes over."""
    return x.shape[0]


def _sparse_size(x):
    return x.indices.shape[0]


def _entry(x, i):
    """Return the place of entry i and its value."""
    return i, x[i]


def _sparse_entry(x, i):
    return x.indices[i], x.values[i]


size = by_context(_size, _sparse_size, inlined=True)
entry = by_context(_entry, _sparse_entry, inlined=True)


# ------------------------------------------------------------------------------------------------------------------- sums


@reduction
def squared_norm(x):
    r"""Return :math:`\|x\|^2` of a context."""
    stand_alone()
    total = 0.0
    for i in range(size(x)):
        _, xj = entry(x, i)
        total += xj * xj
    return total


@reduction
def scores(W, x, z):
    """:math:`z = W x`."""
    stand_alone()
    K = z.shape[0]
    if K < 4:
        for k in range(K):
            total = 0.0
            for i in range(size(x)):
                j, xj = entry(x, i)
                total += W[k, j] * xj
            z[k] = total
        return
    # Four rows share a look at x. The last four overlap those before, so that equal rows have equal scores.
    for first in range(0, K, 4):
        k, a, b, c, e = min(first, K - 4), 0.0, 0.0, 0.0, 0.0
        for i in range(size(x)):
            j, xj = entry(x, i)
            a += W[k, j] * xj
            b += W[k + 1, j] * xj
            c += W[k + 2, j] * xj
            e += W[k + 3, j] * xj
        z[k], z[k + 1], z[k + 2], z[k + 3] = a, b, c, e


# ------------------------------------------------------------------------------------------------------------------ steps


@njit
def add(W, k, c, x):
    r""":math:`W_k \mathrel{+}= c x`."""
    for i in range(size(x)):
        j, xj = entry(x, i)
        W[k, j] += c * xj


@reduction
def descend(W, x, r, gains):
    r""":math:`W \mathrel{-}= r x'`; :math:`\text{gains}_k` is what that adds to :math:`\|W_k\|^2`."""
    stand_alone()
    for k in range(r.shape[0]):
        gain = 0.0
        for i in range(size(x)):
            j, xj = entry(x, i)
            old = W[k, j]
            W[k, j] = old - r[k] * xj
            gain += (W[k, j] - old) * (W[k, j] + old)
        gains[k] = gain
