r"""Frequent directions (Liberty, 2013): an m-row sketch of the matrix whose rows are the contexts of all updates.

Problem. Contexts :math:`x_t \in \mathbb{R}^d` arrive one by one. The sketch replaces their :math:`d \times d` matrix of
second moments. The sketch consists of an orthonormal basis Q (r, d), :math:`r \le m`, of the contexts' main directions,
and a matrix M (r, r). In any direction, :math:`Q'M Q` is at most :math:`\sum x_t x_t'`, and less by at most
:math:`\sum \|x_t\|^2/m`.

Update. A context is represented by its coordinates and its squared residual,

.. math::

    a = Q x, \qquad \text{rest} = \|x\|^2 - \|a\|^2. \tag{1}

While :math:`r < m` a context outside the span adds its own direction to Q (`widen`), so M is exact up to m dimensions.
After that, a context with a residual is buffered. Other contexts are added to M, :math:`M \mathrel{+}= a a'`. A full
buffer has m contexts :math:`x_i = Q'a_i + E'l_i`. Here E is orthonormal and orthogonal to Q, and L has the rows
:math:`l_i`:

.. math::

    L L' = X X' - A A' \text{ (Cholesky)}, \qquad
    T = [M + A'A,\, A'L;\; L'A,\, L'L] \quad (2m \times 2m). \tag{2}

Let :math:`T = V'\mathrm{diag}(w) V` with :math:`w_1 \ge w_2 \ge \dots`. The first m rows (R, S) of V are the new basis,
and :math:`w_{m+1}` is subtracted from the m largest eigenvalues (`shrink`):

.. math::

    Q \leftarrow R Q + S E = (R - W A) Q + W X, \quad W L = S; \qquad M \leftarrow \mathrm{diag}(w_i - w_{m+1}). \tag{3}

:math:`R = Q_{\text{new}} Q_{\text{old}}'` rotates coordinates. Numbers that are stored in these coordinates are rotated
between `shrink` and `replace_basis`. Basis and buffer together have :math:`2 m` rows, so a shrink occurs at most every
m rounds (E. Liberty's fast form), at a cost of :math:`O(m d + m^2)` per round.

Rounding. The relative error of E is about the machine epsilon times :math:`\|x_i\|^2/l_{ii}^2`. These errors are summed
(DRIFT), and Q is orthonormalised again before the error reaches 1e-10. A context with a residual below
:math:`10^{-6} \|x\|^2` is not buffered, but is added to M as if it were in the span. A residual below
:math:`10^{-12} \|x\|^2`, which is a multiple of the rounding error of (1), counts as 0.

Cost: :math:`m d` multiplications for (1) and about as many for an update; :math:`2 m^2 + 2 m d` numbers of memory.

References
----------
E. Liberty. Simple and deterministic matrix sketching. KDD 2013.
M. Ghashami, E. Liberty, J. Phillips, D. Woodruff. Frequent directions. SIAM Journal on Computing 45, 2016.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.packed_symmetric import Floats, Point, inner, pad, point, set_point, step_along, width, zeros
from banditlab.numerics.row_products import add_product, clear, orthonormalize, scale, times
from banditlab.numerics.simd import WIDTH, eight, how_many

EPSILON = 2.0**-52
NEGLIGIBLE = 1e-12
r"""Fraction of :math:`\|x\|^2` up to which a residual counts as rounding."""
LEAST = 1e-250
r"""A context with a smaller :math:`\|x\|^2` adds no direction, because squares of its parts underflow."""
BUFFERED_SHARE = 1e-6
r"""The least residual, as a fraction of :math:`\|x\|^2`, with which a context is buffered for the next shrink."""
DEPENDENT = 1e-6
"""The least fraction of a buffered context's residual that must be orthogonal to the other buffered contexts."""
MOST_DRIFT = 1e-10
"""The error of :math:`Q Q' = I` above which Q is orthonormalised again."""

ROWS, BUFFERED, FRESH, SHRINKS = range(4)
"""Entries of `Directions.counts`: r; the number of buffered contexts; 1 if `a` and REST are those of `x`; the number of
shrinks.
"""
REST, SQUARE, DRIFT, OUTSIDE, WHOLE = range(5)
r"""Entries of `Directions.numbers`: `rest` and :math:`\|x\|^2` of the current context; the drift of Q; sums of `rest`
and :math:`\|x\|^2` over all updates.
"""


class Scratch(NamedTuple):
    """Work arrays of a shrink, with N = 2 mp: T, C (N, N); v (N,); L, R, W, lost (mp, mp); U (mp, D)."""

    T: Floats
    C: Floats
    v: Floats
    L: Floats
    R: Floats
    W: Floats
    lost: Floats
    U: Floats


class Directions(NamedTuple):
    """The sketch, and the current context in it. mp is m rounded up to a multiple of eight; rows from r on are 0.

    Q (mp, D) and M (mp, mp) are the sketch. X (mp, D) and A (mp, mp) are the buffered contexts and their coordinates. x
    (D,), with zeros in front, a (mp,) and `point` are the current context. The constants that index `counts` (4,) and
    `numbers` (5,) describe their entries. `most` is m, and `outside` is :math:`d - m`, at least 1.
    """

    Q: Floats
    M: Floats
    X: Floats
    A: Floats
    x: Floats
    a: Floats
    point: Point
    counts: NDArray[np.int64]
    numbers: Floats
    most: int
    outside: int
    scratch: Scratch

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"counts": (0, np.array([self.most, self.most - 1, 1, COUNT[1]]))}


def directions(d: int, m: int) -> Directions:
    """Return an empty sketch with min(m, d) rows for contexts (d,)."""
    m = min(m, d)
    mp, D = width(m), width(d)
    N = 2 * mp
    square = {name: zeros(mp, mp) for name in ("L", "R", "W", "lost")}
    return Directions(
        Q=zeros(mp, D),
        M=zeros(mp, mp),
        X=zeros(mp, D),
        A=zeros(mp, mp),
        x=zeros(D),
        a=zeros(mp),
        point=point(mp),
        counts=np.zeros(4, np.int64),
        numbers=np.zeros(5),
        most=m,
        outside=max(d - m, 1),
        scratch=Scratch(T=zeros(N, N), C=zeros(N, N), v=zeros(N), U=zeros(mp, D), **square),
    )


@njit
def reset(sketch):
    """Make the sketch empty."""
    for A in (sketch.Q, sketch.M, sketch.X, sketch.A):
        clear(A)
    for i in range(sketch.counts.shape[0]):
        sketch.counts[i] = 0
    for i in range(sketch.numbers.shape[0]):
        sketch.numbers[i] = 0.0


# --------------------------------------------------------------------------------------------------- the current context


@njit
def project(sketch, x):
    """Make x (d,) the current context, if it is not already."""
    if sketch.counts[FRESH] == 1 and not differ(sketch.x, x):
        return
    pad(x, sketch.x)
    locate(sketch)


@inline
def differ(own, x):
    """Return whether x (d,) differs from the context in `own` (D,), which follows the zeros at its beginning."""
    own, x, D = borrow(own), borrow(x), own.shape[0]
    first = D - x.shape[0]
    for j in range(first, WIDTH):
        if own[j] != x[j - first]:
            return True
    j = WIDTH
    while j < D and how_many(eight(own, j) - eight(x, j - first), 0.0) == WIDTH:
        j += WIDTH
    return j < D


@njit
def locate(sketch):
    """Compute (1) for the current context."""
    times(sketch.Q, sketch.x, sketch.a)
    square = inner(sketch.x, sketch.x)
    sketch.numbers[SQUARE], sketch.numbers[REST] = square, rest_of(square, sketch.a)
    set_point(sketch.point, sketch.a)
    sketch.counts[FRESH] = 1


@inline
def rest_of(square, a):
    """Return the squared residual of (1), or 0 if it is a rounding error."""
    rest = square - inner(a, a)
    return rest if rest > NEGLIGIBLE * square and square > LEAST else 0.0


@njit
def widen(sketch):
    """Add the direction of the current context to Q if r < m and it has a residual; return whether a row was added."""
    r = sketch.counts[ROWS]
    if r >= sketch.most or sketch.numbers[REST] == 0.0:
        return False
    q = sketch.Q[r]
    for j in range(q.shape[0]):
        q[j] = sketch.x[j]
    # Gram-Schmidt, twice: the second pass removes the rounding of the first.
    for _ in range(2):
        for i in range(r):
            step_along(q, -inner(sketch.Q[i], q), sketch.Q[i])
    scale(q, 1.0 / math.sqrt(inner(q, q)))
    sketch.counts[ROWS] = r + 1
    locate(sketch)
    return True


@njit
def count_context(sketch):
    """Update with the current context; return whether m contexts are buffered, so `shrink` must be called next."""
    numbers, counts = sketch.numbers, sketch.counts
    numbers[OUTSIDE] += numbers[REST]
    numbers[WHOLE] += numbers[SQUARE]
    if not numbers[REST] > BUFFERED_SHARE * numbers[SQUARE]:
        for i in range(sketch.most):
            step_along(sketch.M[i], sketch.a[i], sketch.a)
        return False
    b = counts[BUFFERED]
    for j in range(sketch.x.shape[0]):
        sketch.X[b, j] = sketch.x[j]
    for i in range(sketch.a.shape[0]):
        sketch.A[b, i] = sketch.a[i]
    counts[BUFFERED] = b + 1
    return b + 1 == sketch.most


# --------------------------------------------------------------------------------------------------------------- a shrink


@njit(arrays="new")
def shrink(sketch):
    r"""Compute (2) and (3) for the m buffered contexts.

    R, W and :math:`\text{lost} = I - R R'` are written to `scratch`. M is updated; Q is not changed.
    """
    scratch = sketch.scratch
    mp, m = sketch.M.shape[0], sketch.most
    factor(sketch)
    fill(sketch)
    # Scale to trace 1, so squares do not overflow or underflow. Rows without a direction get -1 and are sorted last.
    T, trace = scratch.T, 0.0
    for i in range(T.shape[0]):
        trace += T[i, i]
    scale(T, 1.0 / trace)
    for i in range(mp + m):
        if (m <= i < mp) or (i >= mp and scratch.L[i - mp, i - mp] == 0.0):
            T[i, i] = -1.0
    w, V = np.linalg.eigh(T[: mp + m, : mp + m])
    choose(sketch, trace, w, V)
    solve(sketch)


@njit
def factor(sketch):
    """Write L of (2). If context j depends linearly on Q and earlier contexts, column j is 0 from the diagonal on."""
    L, X, A, m = sketch.scratch.L, sketch.X, sketch.A, sketch.most
    clear(L)
    for i in range(m):
        times(X[: i + 1], X[i], sketch.scratch.v)
        for j in range(i + 1):
            L[i, j] = sketch.scratch.v[j] - inner(A[i], A[j])
    for j in range(m):
        rest = L[j, j]
        for k in range(j):
            L[j, j] -= L[j, k] * L[j, k]
        if not L[j, j] > DEPENDENT * rest:
            for i in range(j, m):
                L[i, j] = 0.0
            continue
        sketch.numbers[DRIFT] = max(sketch.numbers[DRIFT], 0.0) + EPSILON * inner(X[j], X[j]) / L[j, j]
        L[j, j] = math.sqrt(L[j, j])
        for i in range(j + 1, m):
            for k in range(j):
                L[i, j] -= L[i, k] * L[j, k]
            L[i, j] /= L[j, j]


@njit
def fill(sketch):
    """Write T of (2): the Gram matrix of the rows :math:`(a_i, l_i)`, plus M."""
    T, C, L, A, m = sketch.scratch.T, sketch.scratch.C, sketch.scratch.L, sketch.A, sketch.most
    mp = A.shape[0]
    clear(T)
    clear(C)
    for i in range(mp):
        for j in range(mp):
            T[i, j] = sketch.M[i, j]
    for i in range(m):
        for j in range(mp):
            C[i, j] = A[i, j]
            C[i, mp + j] = L[i, j]
        for j in range(mp + m):
            step_along(T[j], C[i, j], C[i])


@njit
def choose(sketch, trace, w, V):
    """Write R and S of the m largest eigenvalues, S into the array W for `solve`; write M of (3).

    w contains the eigenvalues of T in ascending order, and the columns of V are its eigenvectors.
    """
    scratch, m = sketch.scratch, sketch.most
    mp, last = sketch.M.shape[0], w.shape[0] - 1
    clear(scratch.R)
    clear(scratch.W)
    clear(sketch.M)
    taken = max(w[last - m], 0.0)
    for i in range(m):
        top = last - i
        for j in range(mp):
            scratch.R[i, j] = V[j, top]
        for j in range(m):
            scratch.W[i, j] = V[mp + j, top]
        sketch.M[i, i] = trace * max(w[top] - taken, 0.0)


@njit
def solve(sketch):
    r"""Overwrite the array W, which contains S, with the W of (3), and write :math:`\text{lost} = I - R R'`."""
    scratch, m = sketch.scratch, sketch.most
    W, L, R = scratch.W, scratch.L, scratch.R
    for k in range(m - 1, -1, -1):
        for i in range(m):
            if L[k, k] == 0.0:
                W[i, k] = 0.0
                continue
            for j in range(k + 1, m):
                W[i, k] -= W[i, j] * L[j, k]
            W[i, k] /= L[k, k]
    clear(scratch.lost)
    for i in range(m):
        times(R, R[i], scratch.lost[i])
        for j in range(R.shape[0]):
            scratch.lost[i, j] = (1.0 if i == j else 0.0) - scratch.lost[i, j]


@njit
def replace_basis(sketch):
    """Replace Q by the new basis (3) and clear the buffer."""
    scratch, U, Q = sketch.scratch, sketch.scratch.U, sketch.Q
    clear(U)
    add_product(U, scratch.W, sketch.X)
    # R - W A in place of R
    scale(scratch.W, -1.0)
    add_product(scratch.R, scratch.W, sketch.A)
    add_product(U, scratch.R, Q)
    for i in range(Q.shape[0]):
        for j in range(Q.shape[1]):
            Q[i, j] = U[i, j]
    if sketch.numbers[DRIFT] > MOST_DRIFT:
        orthonormalize(Q, sketch.most)
        sketch.numbers[DRIFT] = 0.0
    sketch.counts[BUFFERED] = sketch.counts[FRESH] = 0
    sketch.counts[SHRINKS] += 1


def share_outside(sketch: Directions) -> float:
    r"""Return the fraction of the sum of :math:`\|x\|^2` over all updates that was outside the span of Q."""
    outside, whole = sketch.numbers[[OUTSIDE, WHOLE]].tolist()
    return outside / whole if whole > 0.0 else 0.0
