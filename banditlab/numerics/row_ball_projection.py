r"""The projection of Online Newton Step onto the product of K balls, one per row of W, in the norm of a matrix A.

.. math::

    \text{minimise } (W - V)'A (W - V) \text{ over } W \in \mathbb{R}^{K \times d} \text{ with } \|W_k\| \le B
    \text{ for every } k

The subproblem is solved with :math:`P = A^{-1}` (Kd, Kd), which is available. With multipliers :math:`\nu_k \ge 0`,
:math:`N = \mathrm{diag}(\nu) \otimes I_d` and :math:`r = \sqrt{\nu}`, the minimiser of the Lagrangian is

.. math::

    W(\nu) = (A + N)^{-1} A V = V - P r C^{-1} r V, \qquad C = I + r P r \tag{W}

:math:`\nu` maximises the concave dual :math:`D(\nu) = (1/2) \sum_k \nu_k (W_k'V_k - B^2)`. Its gradient is
:math:`(\|W_k\|^2 - B^2)/2` and its Hessian is :math:`-H`, :math:`H_{kj} = W_k'[(A + N)^{-1}]_{kj} W_j`. The secular
equations :math:`1/B - 1/\|W_k\| = 0` are nearly linear in :math:`\nu`, and Newton's method solves them in 4 to 7 steps.
A step is halved until D increases or the residual halves. If that fails or the progress is small, each row moves by a
separate step, along which D always increases. Rows strictly inside the ball have :math:`\nu_k = 0`, so a step costs a
Cholesky factor of order :math:`|F| d`, where F is the set of rows on the sphere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.symmetric import dot

TOLERANCE = 1e-12
r"""The residual at which Newton's method stops.

It is the largest excess :math:`\|W_k\|/B - 1`, or for rows inside the ball :math:`\min(1 - \|W_k\|/B, \nu_k p_k)`, with
:math:`p_k` the mean diagonal of P's block k. (:math:`\nu_k p_k` is the relative change of :math:`W_k` by a multiplier
that should be 0.)
"""
ROUNDING = 1e-8
"""Below this residual the value of D is too inexact, so a step must halve the residual, or it is the last."""
STALLED = 1e-6
"""A larger residual after the last step counts as a stall."""
STEPS = 200
FEW, MANY = np.int64(6), np.int64(40)
"""The largest number of halvings of a step, as int64, because numba would compile the kernels again for a plain int."""
PANEL = 64
"""The number of columns of a Cholesky factor that one matrix product updates."""

BOUND, NEWTON, STALLS = range(3)
"""Entries of `tally`: the numbers of projections that moved the point, of factorisations, and of solves that ended
above `STALLED`.
"""


class MetricBall(NamedTuple):
    r"""The projection's arrays: :math:`\nu` (K,) is the warm start, and `tally` (3,) contains the counts described at
    `BOUND`; all other arrays are work arrays.

    V (Kd,) is the point to project, and W (Kd,) is as in (W). The array C (Kd, Kd) is the Cholesky factor of the matrix
    C in (W), and `free` (K,) lists the rows in F. `norm`, `old`, `move`, `alone` and `pinned` have shape (K,), H and L
    (K, K), u (Kd,), Y (K, Kd). `scale` (K,) is the mean diagonal of P's blocks. `left` (Kd Kd,) and `product`
    (Kd PANEL,) are used in the factorisation, and are empty if it has one panel.
    """

    nu: NDArray[np.float64]
    tally: NDArray[np.int64]
    V: NDArray[np.float64]
    W: NDArray[np.float64]
    C: NDArray[np.float64]
    free: NDArray[np.int64]
    norm: NDArray[np.float64]
    old: NDArray[np.float64]
    move: NDArray[np.float64]
    alone: NDArray[np.float64]
    H: NDArray[np.float64]
    L: NDArray[np.float64]
    pinned: NDArray[np.int64]
    scale: NDArray[np.float64]
    u: NDArray[np.float64]
    Y: NDArray[np.float64]
    left: NDArray[np.float64]
    product: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"tally": COUNT, "free": (0, len(self.nu) - 1), "pinned": (0, 1)}

    @classmethod
    def empty(cls, K: int, d: int) -> MetricBall:
        n = K * d
        norm, old, move, alone = np.zeros((4, K))
        return cls(
            np.zeros(K),
            np.zeros(3, np.int64),
            V=np.zeros(n),
            W=np.zeros(n),
            C=np.zeros((n, n)),
            free=np.zeros(K, np.int64),
            norm=norm,
            old=old,
            move=move,
            alone=alone,
            H=np.zeros((K, K)),
            L=np.zeros((K, K)),
            pinned=np.zeros(K, np.int64),
            scale=np.zeros(K),
            u=np.zeros(n),
            Y=np.zeros((K, n)),
            left=np.zeros(n * n if n > PANEL else 0),
            product=np.zeros(n * PANEL if n > PANEL else 0),
        )


@njit
def cholesky(C, m):
    """Overwrite the lower triangle of C[:m, :m] with its Cholesky factor, whose diagonal entries are stored as reciprocals."""
    for i in range(m):
        for j in range(i):
            C[i, j] = (C[i, j] - dot(C[i, :j], C[j, :j])) * C[j, j]
        C[i, i] = 1.0 / math.sqrt(C[i, i] - dot(C[i, :i], C[i, :i]))


@njit(arrays="new")
def cholesky_by_panels(C, m, left, product):
    """Compute the result of `cholesky` by matrix products; `left` (m m,) and `product` (m PANEL,) are work arrays."""
    for first in range(0, m, PANEL):
        last = min(first + PANEL, m)
        rows, width = m - first, last - first
        if first > 0:
            done, G = left[: rows * first].reshape(rows, first), product[: rows * width].reshape(rows, width)
            for i in range(rows):
                overwrite(done[i], C[first + i, :first])
            np.dot(done, done[:width].T, G)
            for i in range(rows):
                for j in range(min(i + 1, width)):
                    C[first + i, first + j] -= G[i, j]
        for i in range(first, m):
            for j in range(first, min(i, last)):
                C[i, j] = (C[i, j] - dot(C[i, first:j], C[j, first:j])) * C[j, j]
            if i < last:
                C[i, i] = 1.0 / math.sqrt(C[i, i] - dot(C[i, first:i], C[i, first:i]))


@njit
def forward(C, m, v):
    """Overwrite v[:m] with :math:`L^{-1} v`, with L from `cholesky`."""
    for i in range(m):
        v[i] = (v[i] - dot(C[i, :i], v[:i])) * C[i, i]


@njit
def backward(C, m, v):
    """Overwrite v[:m] with :math:`(L')^{-1} v`, with L from `cholesky`."""
    for i in range(m - 1, -1, -1):
        v[i] *= C[i, i]
        for j in range(i):
            v[j] -= C[i, j] * v[i]


@njit
def active_rows(ball, B):
    """Write F, the rows with a multiplier or outside the ball, into `ball.free`; return its size and whether it changed."""
    count, changed = 0, False
    for k in range(ball.nu.shape[0]):
        if ball.nu[k] > 0.0 or ball.norm[k] > B:
            changed |= ball.free[count] != k
            ball.free[count] = k
            count += 1
    return count, changed


@njit(arrays="new")
def factor(ball, P, count, d):
    """Factor the part of :math:`C = I + r P r` whose rows and columns belong to F."""
    for a in range(count):
        ka = ball.free[a]
        ra = math.sqrt(ball.nu[ka])
        for b in range(a + 1):
            kb = ball.free[b]
            r = ra * math.sqrt(ball.nu[kb])
            for i in range(d):
                for j in range(d):
                    ball.C[a * d + i, b * d + j] = r * P[ka * d + i, kb * d + j]
        for i in range(d):
            ball.C[a * d + i, a * d + i] += 1.0
    cholesky_by_panels(ball.C, count * d, ball.left, ball.product)


@njit
def row_norms(ball, B, d):
    r"""Write :math:`\|W_k\|` into `ball.norm`; return (the residual, the dual value :math:`D(\nu)`)."""
    worst, dual = 0.0, 0.0
    for k in range(ball.nu.shape[0]):
        square, cross = 0.0, 0.0
        for j in range(k * d, (k + 1) * d):
            square += ball.W[j] * ball.W[j]
            cross += ball.W[j] * ball.V[j]
        ball.norm[k] = math.sqrt(square)
        off = ball.norm[k] / B - 1.0
        worst = max(worst, off if off > 0.0 else min(-off, ball.nu[k] * ball.scale[k]))
        dual += 0.5 * ball.nu[k] * (cross - B * B)
    return worst, dual


@njit(arrays="new")
def evaluate(ball, P, B, count, d):
    r"""Write :math:`W(\nu)` of (W), with :math:`\nu` zero outside F; return (the residual, the dual value).

    The factor of C on F is left in `ball.C`.
    """
    n = ball.V.shape[0]
    factor(ball, P, count, d)
    ball.tally[NEWTON] += 1
    u = ball.u
    for a in range(count):
        k = ball.free[a]
        for i in range(d):
            u[a * d + i] = math.sqrt(ball.nu[k]) * ball.V[k * d + i]
    forward(ball.C, count * d, u)
    backward(ball.C, count * d, u)
    overwrite(ball.W, ball.V)
    for a in range(count):
        k = ball.free[a]
        for i in range(d):
            f = math.sqrt(ball.nu[k]) * u[a * d + i]
            for j in range(n):
                ball.W[j] -= P[k * d + i, j] * f  # P is symmetric, so a row is also a column
    return row_norms(ball, B, d)


@njit
def curvature(ball, P, count, d):
    r"""Write H on F into `ball.H`: :math:`H_{kj} = W_k't_{kj} - (M^{-1} r t_k)'(M^{-1} r t_j)`.

    Here :math:`t_j = P (e_j \otimes W_j)`, :math:`t_{kj}` is its block k, and M is the Cholesky factor of C on F.
    """
    for b in range(count):
        kb = ball.free[b]
        for a in range(count):
            ka = ball.free[a]
            total = 0.0
            for i in range(d):
                row = dot(P[ka * d + i, kb * d : (kb + 1) * d], ball.W[kb * d : (kb + 1) * d])
                total += ball.W[ka * d + i] * row
                ball.Y[b, a * d + i] = math.sqrt(ball.nu[ka]) * row
            ball.H[a, b] = total
        forward(ball.C, count * d, ball.Y[b])
    for a in range(count):
        for b in range(a + 1):
            ball.H[a, b] -= dot(ball.Y[a, : count * d], ball.Y[b, : count * d])


@njit
def newton_direction(ball, P, B, count, d):
    """Write the secular Newton step on F into `ball.move`, and each row's separate step into `ball.alone`.

    If a multiplier would become negative, its row is pinned: the multiplier becomes 0, and the step of the other rows
    is computed again.
    """
    curvature(ball, P, count, d)
    for a in range(count):
        ball.pinned[a] = 0
        norm = ball.norm[ball.free[a]]
        ball.alone[a] = norm * norm * (norm / B - 1.0) / max(ball.H[a, a], 1e-300)
    again = True
    while again:
        again = False
        solve_unpinned(ball, B, count)
        for a in range(count):
            if ball.pinned[a] == 0 and ball.old[ball.free[a]] + ball.move[a] < 0.0:
                ball.pinned[a] = 1
                again = True


@njit
def solve_unpinned(ball, B, count):
    r"""Solve :math:`H\, \text{move} = \text{rhs}` for the rows that are not pinned, where
    :math:`\text{rhs}_k = \|W_k\|^2 (\|W_k\|/B - 1)`.

    A pinned row moves by :math:`-\nu_k`, so its multiplier becomes 0.
    """
    H, L, move = ball.H, ball.L, ball.move
    for a in range(count):
        norm = ball.norm[ball.free[a]]
        move[a] = norm * norm * (norm / B - 1.0)
        if ball.pinned[a] == 1:
            move[a] = -ball.old[ball.free[a]]
    for a in range(count):
        if ball.pinned[a] == 0:
            for b in range(count):
                if ball.pinned[b] == 1:
                    move[a] += H[max(a, b), min(a, b)] * ball.old[ball.free[b]]
    for a in range(count):
        for b in range(a):
            L[a, b] = H[a, b] if ball.pinned[a] + ball.pinned[b] == 0 else 0.0
        # rounding must not make a flat direction negative
        L[a, a] = 1.0 if ball.pinned[a] == 1 else max(H[a, a], 1e-300) * (1.0 + 1e-14)
    cholesky(L, count)
    forward(L, count, move)
    backward(L, count, move)


@njit
def rows_alone(ball, count):
    r"""Set `ball.move` to each row's separate step, along which D always increases.

    A :math:`\nu` that is far too large is reset to 0.
    """
    for a in range(count):
        k = ball.free[a]
        ball.move[a] = ball.alone[a]
        if ball.nu[k] * ball.scale[k] > 1e10 and ball.alone[a] < 0.0:
            ball.move[a] = -ball.nu[k]


@njit
def search(ball, P, B, count, d, worst, dual, halvings):
    r"""Move :math:`\nu` along `ball.move`, halving the step until D increases or the residual halves; return (ok,
    residual, D).
    """
    length, now, value = 1.0, worst, dual
    for _ in range(halvings):
        for a in range(count):
            k = ball.free[a]
            ball.nu[k] = max(0.0, ball.old[k] + length * ball.move[a])
        now, value = evaluate(ball, P, B, count, d)
        if now <= 0.5 * worst or (worst > ROUNDING and value > dual + 1e-13 * abs(dual)):
            return True, now, value
        length *= 0.5
    return False, now, value


@njit(arrays="new")
def project(ball, P, B):
    """Project `ball.V` (Kd,) onto the product of the rows' balls in the norm of :math:`P^{-1}`, and write it into
    `ball.W`.
    """
    K = ball.nu.shape[0]
    d = ball.V.shape[0] // K
    overwrite(ball.W, ball.V)
    row_norms(ball, B, d)
    if ball.norm.max() <= B:
        return
    ball.tally[BOUND] += 1
    for k in range(K):
        ball.scale[k] = 0.0
        for i in range(k * d, (k + 1) * d):
            ball.scale[k] += P[i, i] / d
    count, _ = active_rows(ball, B)
    worst, dual = evaluate(ball, P, B, count, d)
    slow = False
    for _ in range(STEPS):
        if worst <= TOLERANCE:
            break
        before = count
        count, changed = active_rows(ball, B)
        if changed or count != before:
            factor(ball, P, count, d)
        overwrite(ball.old, ball.nu)
        newton_direction(ball, P, B, count, d)
        ok, now, value = False, worst, dual
        if not slow:
            ok, now, value = search(ball, P, B, count, d, worst, dual, FEW)
        if not ok and worst > ROUNDING:
            overwrite(ball.nu, ball.old)
            evaluate(ball, P, B, count, d)
            rows_alone(ball, count)
            ok, now, value = search(ball, P, B, count, d, worst, dual, MANY)
        if not ok:  # no better point up to rounding
            overwrite(ball.nu, ball.old)
            evaluate(ball, P, B, count, d)
            break
        slow = not slow and now > 0.9 * worst
        worst, dual = now, value
    if worst > STALLED:
        ball.tally[STALLS] += 1
    for k in range(K):  # feasible after rounding
        if ball.norm[k] > B:
            for j in range(k * d, (k + 1) * d):
                ball.W[j] *= B / ball.norm[k]
