r"""Stored contexts X, an array (capacity, d) or sparse (`Stored`), and functions that accept both.

* `products`, `products_many` compute :math:`X x`, and :math:`X Y'` for many contexts.
* `spread` sets :math:`v = x`; `subtract_rows` then sets :math:`v \mathrel{-}= X'w`; `end_residual` returns
  :math:`\|v\|^2`, the squared norm of the residual of x.
* `residual_products` computes :math:`X v`.
* `store` adds a row.

All but `spread` have a dense and a sparse form, chosen by the type of X. In the sparse forms v (d,) is a work array
that is 0 between calls. The context is written to v, so its product with a stored row reads only that row's entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context, row
from banditlab.numerics.jit import njit
from banditlab.numerics.symmetric import dot
from banditlab.numerics.vectors import entry, size


class Stored(NamedTuple):
    """Sparse contexts: row i has the values `values[i, :length[i]]` in the columns `places[i, :length[i]]`.

    Both arrays have shape (capacity, width); `length` has shape (capacity,).
    """

    places: NDArray[np.uint32]
    values: NDArray[np.float64]
    length: NDArray[np.int64]

    @classmethod
    def empty(cls, capacity: int, width: int) -> Stored:
        """Return empty arrays for contexts of up to `width` entries."""
        return cls(np.zeros((capacity, width), np.uint32), np.zeros((capacity, width)), np.zeros(capacity, np.int64))

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> Stored:
        """Return X (capacity, d) in sparse form, with the width of its fullest row."""
        stored = cls.empty(len(X), int(np.count_nonzero(X, axis=1).max(initial=1)))
        for i, x in enumerate(X):
            places = np.flatnonzero(x)
            stored.length[i] = n = len(places)
            stored.places[i, :n], stored.values[i, :n] = places, x[places]
        return stored

    def wider(self, capacity: int, width: int) -> Stored:
        """Return the same contexts with a larger capacity."""
        wide = Stored.empty(capacity, width)
        r, n = self.places.shape
        wide.places[:r, :n], wide.values[:r, :n], wide.length[:r] = self
        return wide


@njit
def spread(x, v):
    """Write the context x into v (d,); v must be 0 on entry if x is sparse."""
    for i in range(size(x)):
        j, xj = entry(x, i)
        v[j] = xj


@njit
def square_and_clear(x, v):
    """Return the sum of squares of v at x's entries, and set v to 0 there."""
    square = 0.0
    for i in range(size(x)):
        j, _ = entry(x, i)
        square += v[j] * v[j]
        v[j] = 0.0
    return square


@njit
def copy_entries(x, places, values):
    """Write the positions and values of x's nonzero entries into places and values, and return their number."""
    n = 0
    for i in range(size(x)):
        j, xj = entry(x, i)
        if xj != 0.0:
            places[n], values[n] = j, xj
            n += 1
    return n


@njit
def products_spread(X, r, v, out):
    """Write the products of the first r stored rows with v (d,) into out."""
    # Row by row, over its entries only.
    for i in range(r):
        total = 0.0
        for e in range(X.length[i]):
            total += X.values[i, e] * v[X.places[i, e]]
        out[i] = total


def _products(X, x, r, v, out):
    r"""Write :math:`X x` for the first r stored contexts into out, and return :math:`\|x\|^2`."""
    np.dot(X[:r], x, out[:r])
    return dot(x, x)


def _products_sparse(X, x, r, v, out):
    spread(x, v)
    products_spread(X, r, v, out)
    return square_and_clear(x, v)


def _products_many(X, Y, r, v, out, W, squares):
    r"""Write :math:`X Y'` into W (r, n) and the n values :math:`\|y\|^2` into squares, for n contexts Y."""
    np.dot(X[:r], Y.T, W)  # one matrix product
    for t in range(Y.shape[0]):
        squares[t] = dot(Y[t], Y[t])


def _products_many_sparse(X, Y, r, v, out, W, squares):
    for t in range(W.shape[1]):
        squares[t] = products(X, row(Y, t), r, v, out)
        for i in range(r):
            W[i, t] = out[i]


def _subtract_rows(X, r, w, v):
    r"""Subtract :math:`X'w` from v, for the first r stored contexts and w (r,)."""
    for i in range(r):
        weight, stored = w[i], X[i]
        for j in range(v.shape[0]):
            v[j] -= weight * stored[j]


def _subtract_rows_sparse(X, r, w, v):
    for i in range(r):
        for e in range(X.length[i]):
            v[X.places[i, e]] -= w[i] * X.values[i, e]


def _residual_products(X, r, v, out):
    """Write X v for the first r stored contexts into out."""
    np.dot(X[:r], v, out[:r])


def _end_residual(X, x, r, v):
    r"""Return :math:`\|v\|^2`, and set v to 0 if contexts are sparse."""
    square = 0.0
    for j in range(v.shape[0]):
        square += v[j] * v[j]
    return square


def _end_residual_sparse(X, x, r, v):
    # v is 0 except where a stored row or x has an entry; each position is added once, then set to 0.
    square = 0.0
    for i in range(r):
        for e in range(X.length[i]):
            j = X.places[i, e]
            square += v[j] * v[j]
            v[j] = 0.0
    return square + square_and_clear(x, v)


def _store(X, x, r):
    """Store x as row r."""
    for j in range(x.shape[0]):
        X[r, j] = x[j]


def _store_sparse(X, x, r):
    X.length[r] = copy_entries(x, X.places[r], X.values[r])


# Choose the form by the type of the stored contexts X.
products = by_context(_products, _products_sparse, kind=Stored, name="X", arrays="new")
products_many = by_context(_products_many, _products_many_sparse, kind=Stored, name="X", arrays="new")
subtract_rows = by_context(_subtract_rows, _subtract_rows_sparse, kind=Stored, name="X")
_plain = getattr(products_spread, "py_func", products_spread)  # with NUMBA_DISABLE_JIT the function is not compiled
residual_products = by_context(_residual_products, _plain, kind=Stored, name="X", arrays="new")
end_residual = by_context(_end_residual, _end_residual_sparse, kind=Stored, name="X")
store = by_context(_store, _store_sparse, kind=Stored, name="X")
