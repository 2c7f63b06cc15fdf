r"""Coordinates in the space that the contexts of a learner's updates span, computed from their Gram matrix.

Some learners depend on contexts only through inner products, and their matrix A is :math:`\lambda I` outside the span
of the contexts of their updates. Their predictions are the same in any orthonormal coordinates of that span. Let X
(r, d) be independent contexts and :math:`L L' = X X'` (Cholesky). The rows of :math:`Q = L^{-1} X` span the same space,
and a context has the coordinates

.. math::

    \xi = Q x = L^{-1} X x, \quad \text{and one more coordinate, } \|x - Q'\xi\| = (\|x\|^2 - \|\xi\|^2)^{1/2},
    \text{ for its part orthogonal to the span.}

The learner then needs :math:`K (r + 1)` coordinates instead of :math:`K d`, without approximation. Q itself is never
formed, so X may be sparse. Using only the factor of :math:`X X'` would square the condition number of X. The
coordinates of contexts in updates, which are also the rows of L, are therefore corrected once by the residual (the
corrected seminormal equations: Björck, Linear Algebra and its Applications 88/89, 1987). Inner products then have an
error of about 1e-11 for contexts whose relative difference is 1e-6. A context with a smaller relative residual is not
stored, and its inner products have an error of about 1e-8.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from banditlab.numerics.context_store import (
    Stored,
    end_residual,
    products,
    products_many,
    residual_products,
    spread,
    store,
    subtract_rows,
)
from banditlab.numerics.contexts import row
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import BATCH
from banditlab.numerics.limits import Limits
from banditlab.numerics.symmetric import dot

INDEPENDENT = 1e-8
"""A context counts as inside the span if its residual is below this times the sum of its norm and of the norms of its
components along the stored contexts. Below that, one correction is not accurate enough.
"""


class Span(NamedTuple):
    """The span of r contexts: `rank` (1,) is r, at most `capacity`. X is an array (capacity, d) of them, or a `Stored`.

    L has shape (capacity, capacity), and its first r rows are used. `lost` (1,) is the sum of the residual norms of
    updates' contexts that were not stored. The other arrays are work arrays: `xi` (capacity,), the last context's
    coordinates; w (capacity,); v (d,); and for a batch W (capacity BATCH,), `rest` (BATCH,) and `Xi` (BATCH, capacity).
    """

    rank: NDArray[np.int64]
    X: Any
    L: NDArray[np.float64]
    lost: NDArray[np.float64]
    xi: NDArray[np.float64]
    w: NDArray[np.float64]
    v: NDArray[np.float64]
    W: NDArray[np.float64]
    rest: NDArray[np.float64]
    Xi: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        found: Limits = {"rank": (0, self.capacity)}
        if isinstance(self.X, Stored):
            found = {**found, "X.places": (0, len(self.v) - 1), "X.length": (0, self.X.places.shape[1])}
        return found

    @classmethod
    def empty(cls, capacity: int, d: int, width: int | None = None) -> Span:
        """Return an empty span; if `width` is given, contexts are stored as sparse rows of up to `width` entries."""
        xi, w = np.zeros((2, capacity))
        X = np.zeros((capacity, d)) if width is None else Stored.empty(capacity, width)
        batch = np.zeros(capacity * BATCH), np.zeros(BATCH), np.zeros((BATCH, capacity))
        return cls(np.zeros(1, np.int64), X, np.zeros((capacity, capacity)), np.zeros(1), xi, w, np.zeros(d), *batch)

    @property
    def capacity(self) -> int:
        """The largest number of independent contexts."""
        return len(self.L)

    @property
    def width(self) -> int | None:
        """The largest number of entries of a sparse context; None if contexts are dense."""
        return self.X.places.shape[1] if isinstance(self.X, Stored) else None

    @staticmethod
    def size(capacity: int, d: int, width: int | None) -> int:
        """Estimate the bytes of the arrays."""
        return 8 * (capacity * d if width is None else d + 2 * capacity * width) + 8 * capacity * (capacity + 2 * BATCH)

    def basis(self) -> NDArray[np.float64]:
        """Return Q (r, d) for dense contexts."""
        r = self.rank[0]
        Q: NDArray[np.float64] = solve_triangular(self.L[:r, :r], self.X[:r], lower=True)
        return Q

    def wider(self, capacity: int, width: int | None) -> Span:
        """Return the same span with a larger capacity; if `width` is given, contexts are stored as sparse rows."""
        r, wide = self.rank[0], Span.empty(capacity, len(self.v), width)
        wide.rank[0], wide.L[:r, :r], wide.lost[0] = r, self.L[:r, :r], self.lost[0]
        if width is None:
            wide.X[:r] = self.X[:r]
            return wide
        return wide._replace(X=(self.X if isinstance(self.X, Stored) else Stored.of(self.X)).wider(capacity, width))


class Spanned(NamedTuple):
    """A span, and the state of a learner whose contexts are given by their coordinates in it."""

    span: Span
    learner: Any


@njit
def solve(L, r, w):
    """Overwrite the first r entries of w with :math:`L^{-1} w`."""
    for i in range(r):
        w[i] = (w[i] - dot(L[i, :i], w[:i])) / L[i, i]


@njit
def solve_transposed(L, r, w):
    """Overwrite the first r entries of w with :math:`(L')^{-1} w`."""
    for i in range(r - 1, -1, -1):
        w[i] /= L[i, i]
        for j in range(i):
            w[j] -= L[i, j] * w[i]


@njit(arrays="new")
def locate(span, x):
    r"""Write the coordinates of x (d,) in the span and the residual's norm into xi; return :math:`\|x\|^2`."""
    L, xi, r = span.L, span.xi, span.rank[0]
    square = products(span.X, x, r, span.v, xi)
    solve(L, r, xi)
    rest = square
    for i in range(r):
        rest -= xi[i] * xi[i]
    for i in range(r, xi.shape[0]):
        xi[i] = 0.0
    if r < xi.shape[0]:
        xi[r] = 0.0 if rest < 0.0 else math.sqrt(rest)
    return square


@njit(arrays="new")
def locate_many(span, X, n):
    """Write the coordinates of the n contexts X, at most `BATCH`, into the first n rows of Xi."""
    L, Xi, rest, r = span.L, span.Xi, span.rest, span.rank[0]
    capacity = Xi.shape[1]
    W = span.W[: r * n].reshape(r, n)
    products_many(span.X, X, r, span.v, span.w, W, rest)
    for t in range(n):
        for i in range(r, capacity):
            Xi[t, i] = 0.0
    for i in range(r):
        solve_row(L[i], i, W)
        for t in range(n):
            rest[t] -= W[i, t] * W[i, t]
            Xi[t, i] = W[i, t]
    if r < capacity:
        for t in range(n):
            Xi[t, r] = 0.0 if rest[t] < 0.0 else math.sqrt(rest[t])


@njit
def solve_row(l, i, W):
    """Overwrite row i of W with row i of :math:`L^{-1} W`; l is row i of L, and earlier rows are already overwritten."""
    w = W[i]
    whole = i // 4 * 4
    for j in range(0, whole, 4):
        a, b, c, e, p, q, s, u = l[j], l[j + 1], l[j + 2], l[j + 3], W[j], W[j + 1], W[j + 2], W[j + 3]
        for t in range(w.shape[0]):
            w[t] -= (a * p[t] + b * q[t]) + (c * s[t] + e * u[t])
    for j in range(whole, i):
        for t in range(w.shape[0]):
            w[t] -= l[j] * W[j, t]
    for t in range(w.shape[0]):
        w[t] /= l[i]


@njit(arrays="new")
def coordinates(span, x):
    """Write the coordinates of x (d,), corrected once, into xi; return whether x is outside the span, and how far."""
    span, x = borrow(span), borrow(x)
    L, xi, w, r = span.L, span.xi, span.w, span.rank[0]
    square = locate(span, x)
    for i in range(r):
        w[i] = xi[i]
    solve_transposed(L, r, w)
    reach = math.sqrt(square)  # ||x|| plus the norms of the components w_i x_i
    for i in range(r):
        reach += abs(w[i]) * math.sqrt(dot(L[i, : i + 1], L[i, : i + 1]))
    # xi += Q (x - Q'xi), the correction of the seminormal equations
    spread(x, span.v)
    subtract_rows(span.X, r, w, span.v)
    residual_products(span.X, r, span.v, w)
    solve(L, r, w)
    for i in range(r):
        xi[i] += w[i]
    solve_transposed(L, r, w)
    subtract_rows(span.X, r, w, span.v)
    # ||x - Q'xi|| from the vector itself, because ||x||^2 - ||xi||^2 would cancel
    outside = math.sqrt(end_residual(span.X, x, r, span.v))
    if r == xi.shape[0]:
        return False, outside
    xi[r] = outside if outside > INDEPENDENT * reach else 0.0
    return outside > INDEPENDENT * reach, outside


@njit(arrays="new")
def extend(span, x):
    """Write the coordinates of x (d,) into xi, and add x to the span if it lies outside."""
    span, x = borrow(span), borrow(x)
    new, outside = coordinates(span, x)
    if not new:
        span.lost[0] += outside
        return
    r = span.rank[0]
    store(span.X, x, r)
    for i in range(r + 1):
        span.L[r, i] = span.xi[i]
    span.rank[0] = r + 1


@njit
def stands_out(span, X, t):
    """Return whether context t of X would be added to the span."""
    return coordinates(span, row(X, t))[0]
