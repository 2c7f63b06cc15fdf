r"""A learner in the span of the contexts it has learnt: coordinates there, from the contexts' Gram matrix.

A learner whose answers depend on the contexts through their inner products only, and whose A is :math:`\lambda I` where
it has learnt nothing, answers the same in any orthonormal coordinates. With X (r, d) independent contexts learnt and
:math:`L L' = X X'` (Cholesky), the rows of :math:`Q = L^{-1} X` are such coordinates of their span, and a context has

.. math::

    \xi = Q x = L^{-1} X x, \quad \text{and one more, } \|x - Q'\xi\| = (\|x\|^2 - \|\xi\|^2)^{1/2},
    \text{ along what sets it apart from the span.}

The quadratic is then that of :math:`K (r + 1)` numbers, not of :math:`K d`. Nothing is approximated; Q itself is never
formed, so that X may be sparse. A factor of :math:`X X'` alone would square the condition of X: coordinates of contexts
that are learnt, and with them the rows of L, are corrected once by what is left outside of the span (the corrected
seminormal equations: Björck, Linear Algebra and its Applications 88/89, 1987). The inner products that the learner sees
are then those of the contexts to about 1e-11 where contexts a part of 1e-6 apart are learnt, and to about 1e-8 where
such a part is too small to be kept.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from banditlab.numerics.context_store import Stored, begin, finish, keep, products, products_many, seen_by, take
from banditlab.numerics.contexts import row
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import BATCH
from banditlab.numerics.limits import Limits
from banditlab.numerics.symmetric import dot

INDEPENDENT = 1e-8
"""A context is taken to lie in the span where it stands out by less than this part of its length and of those of the
contexts kept, each times what of it there is in the context. Beyond that one correction is not enough."""


class Span(NamedTuple):
    """rank (1,): r, below or at `capacity`: X, the contexts, (capacity, d) or `Stored`;
    L (capacity, capacity); r rows of them count.

    lost (1,) is the sum of the lengths that contexts learnt had outside of the span and that were left out. The others
    are scratch: xi (capacity,) the last context's coordinates; w (capacity,), v (d,); W (capacity BATCH,), rest (BATCH,),
    Xi (BATCH, capacity) for a batch.
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
        """Return the range of every integer."""
        found: Limits = {"rank": (0, self.capacity)}
        if isinstance(self.X, Stored):
            found = {**found, "X.places": (0, len(self.v) - 1), "X.length": (0, self.X.places.shape[1])}
        return found

    @classmethod
    def empty(cls, capacity: int, d: int, width: int | None = None) -> Span:
        """Return the span of nothing; with a width, sparse contexts of up to so many entries are kept."""
        xi, w = np.zeros((2, capacity))
        X = np.zeros((capacity, d)) if width is None else Stored.empty(capacity, width)
        batch = np.zeros(capacity * BATCH), np.zeros(BATCH), np.zeros((BATCH, capacity))
        return cls(np.zeros(1, np.int64), X, np.zeros((capacity, capacity)), np.zeros(1), xi, w, np.zeros(d), *batch)

    @property
    def capacity(self) -> int:
        """How many independent contexts fit."""
        return len(self.L)

    @property
    def width(self) -> int | None:
        """How many entries of a sparse context fit; None where contexts are dense."""
        return self.X.places.shape[1] if isinstance(self.X, Stored) else None

    @staticmethod
    def size(capacity: int, d: int, width: int | None) -> int:
        """Return about how many bytes the arrays take."""
        return 8 * (capacity * d if width is None else d + 2 * capacity * width) + 8 * capacity * (capacity + 2 * BATCH)

    def basis(self) -> NDArray[np.float64]:
        """Return Q (r, d), of dense contexts."""
        r = self.rank[0]
        Q: NDArray[np.float64] = solve_triangular(self.L[:r, :r], self.X[:r], lower=True)
        return Q

    def wider(self, capacity: int, width: int | None) -> Span:
        """Return the same span with a larger capacity; with a width, dense contexts become sparse ones."""
        r, wide = self.rank[0], Span.empty(capacity, len(self.v), width)
        wide.rank[0], wide.L[:r, :r], wide.lost[0] = r, self.L[:r, :r], self.lost[0]
        if width is None:
            wide.X[:r] = self.X[:r]
            return wide
        return wide._replace(X=(self.X if isinstance(self.X, Stored) else Stored.of(self.X)).wider(capacity, width))


class Spanned(NamedTuple):
    """A learner's state in the span's coordinates."""

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
    r"""Write the coordinates of x (d,) into xi: those in the span, then what it has outside of it; return :math:`\|x\|^2`."""
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
    """Row i of :math:`L^{-1} W` in the place of W, l the row of L, the rows before it being done."""
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
    """Write the coordinates of x (d,) into xi, corrected once; return (whether x stands out from the span, by how much)."""
    span, x = borrow(span), borrow(x)
    L, xi, w, r = span.L, span.xi, span.w, span.rank[0]
    square = locate(span, x)
    for i in range(r):
        w[i] = xi[i]
    solve_transposed(L, r, w)
    reach = math.sqrt(square)  # the length of the steps that lead to x by way of the contexts kept
    for i in range(r):
        reach += abs(w[i]) * math.sqrt(dot(L[i, : i + 1], L[i, : i + 1]))
    begin(span.X, x, span.v)
    take(span.X, r, w, span.v)  # x - Q'xi, and what of it still lies in the span:
    seen_by(span.X, r, span.v, w)
    solve(L, r, w)
    for i in range(r):
        xi[i] += w[i]
    solve_transposed(L, r, w)
    take(span.X, r, w, span.v)
    # what is left, by itself: |x|^2 - |xi|^2 has no digit left where it is 1e-16 |x|^2
    outside = math.sqrt(finish(span.X, x, r, span.v))
    if r == xi.shape[0]:
        return False, outside
    xi[r] = outside if outside > INDEPENDENT * reach else 0.0
    return outside > INDEPENDENT * reach, outside


@njit(arrays="new")
def extend(span, x):
    """Write the coordinates of x (d,) into xi and add x to the span unless it lies there."""
    span, x = borrow(span), borrow(x)
    new, outside = coordinates(span, x)
    if not new:
        span.lost[0] += outside
        return
    r = span.rank[0]
    keep(span.X, x, r)
    for i in range(r + 1):
        span.L[r, i] = span.xi[i]
    span.rank[0] = r + 1


@njit
def stands_out(span, X, t):
    """Return whether context t of X would be added to the span."""
    return coordinates(span, row(X, t))[0]
