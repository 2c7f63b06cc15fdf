r"""The quadratic programme of Newtron: K quadratics in d variables, with zero column sums and a Frobenius ball.

.. math::

    \text{minimise } \sum_k (1/2) W_k' C_k W_k + b_k' W_k \text{ over } W \in \mathbb{R}^{K \times d} \text{ with }
    \sum_k W_k = 0,\; \|W\|_F \le D

The programme is solved in every round to machine accuracy. With a multiplier :math:`\nu \ge 0` of the ball and
:math:`\mu` (d,) of the zero sum, the solution satisfies

.. math::

    (C_k + \nu I) W_k = \mu - b_k, \quad \sum_k W_k = 0, \quad \text{and } \|W\|_F = D \text{ or } \nu = 0. \tag{KKT}

Newton's method for (KKT) on :math:`1/\|W\|` costs a Cholesky factor of every :math:`C_k` per step, :math:`O(K d^3)`.
This module instead maintains :math:`N_k = (C_k + \nu_0 I)^{-1}` and :math:`M = (\sum_k N_k)^{-1}` by rank-one updates,
at a *reference* multiplier :math:`\nu_0`. Let G map r to the minimiser of
:math:`\sum_k (1/2) W_k'(C_k + \nu_0 I) W_k - r_k'W_k` over zero column sums. Applying G takes two passes over N, and

.. math::

    W(\nu) = (I + (\nu - \nu_0) G)^{-1} v, \qquad v = W(\nu_0) = -G b.

Krylov spaces of G do not change with :math:`\nu`. One Lanczos basis V of m steps, :math:`G V = V T + \text{remainder}`,
therefore gives :math:`W(\nu)` for every :math:`\nu`. The secular equation :math:`\|W(\nu)\| = D` is solved on the
:math:`m \times m` tridiagonal T, and the remainder bounds the error of W. Each Lanczos step multiplies the error by
about :math:`((\nu - \nu_0)/(4 (\nu_0 + 1/D)))^2`. When too many steps are needed, :math:`\nu_0` moves to :math:`\nu`
(:math:`O(K d^3)`, rarely).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import fill, invert
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.low_rank import (
    LARGE,
    LowRank,
    all_whole,
    any_downdate,
    any_product,
    low_rank,
    none_as_rows,
)
from banditlab.numerics.packed_symmetric import (
    identities,
    inner,
    pack,
    pad,
    product,
    size_of,
    step_along,
    unpack,
    width,
    zeros,
)

Floats = NDArray[np.float64]

STEPS = 24
"""The largest number of Lanczos steps before nu0 is moved."""
SOLUTION_ERROR = 1e-12
"""The largest allowed error estimate of W, relative to D."""
CHECK = 256
"""The number of rounds between two checks of the inverses with the :math:`C_k`."""
DRIFT = 1e-11
r"""If the error of W in such a check, relative to :math:`\min(D, \|W\|)`, is larger, the inverses are computed again."""
MOVES = 60
"""The largest number of moves of nu0 within one solve."""

ROUNDS, BINDING, APPLIED, REFACTORED, STALLED, EXCESS = range(6)
r"""Entries of `Programme.tally`, which are counts: solves; solves with :math:`\nu > 0`; applications of G; moves of
:math:`\nu_0`; solves that reached the largest number of moves; applications beyond two per round since the last move.
"""
REFERENCE, SOLUTION, WORST_DRIFT = range(3)
r"""Entries of `Programme.nu`: :math:`\nu_0` of the inverses; :math:`\nu` of the solution W; the largest drift so far."""


class Scratch(NamedTuple):
    r"""Work arrays of one solve; rows are padded as in `Programme`.

    V (STEPS + 1, K, d) is the Lanczos basis. `alpha` and `beta` (STEPS + 1,) are the diagonal and the off-diagonal of
    T. y (STEPS + 1,) is the solution in that basis. s (STEPS + 1,) is the derivative of y in the shift
    :math:`\nu - \nu_0`, and t (STEPS + 1,) holds the quotients of the tridiagonal solver. x, `mu` and g have shape
    (d,); `square` has shape (d, d).
    """

    V: Floats
    alpha: Floats
    beta: Floats
    y: Floats
    s: Floats
    t: Floats
    x: Floats
    mu: Floats
    g: Floats
    square: Floats


class Programme(NamedTuple):
    r"""The programme's data, its solution, its inverses, and work arrays.

    C (K, S), packed, and b (K, d) are the quadratics. W (K, d) is the solution. N (K, S) and M (S,), packed, and h (K,
    d) with :math:`h_k = N_k b_k` are computed at :math:`\nu_0`. Rows are padded with leading zeros to a multiple of
    eight. `radius` is D, or infinite without a ball. The constants that index `nu` (3,) and `tally` (6,) describe their
    entries. For large problems, `low_C`, `low_N` and `low_M` describe which matrices have the low-rank form.
    """

    C: Floats
    b: Floats
    W: Floats
    N: Floats
    M: Floats
    h: Floats
    radius: float
    nu: Floats
    tally: NDArray[np.int64]
    scratch: Scratch
    low_C: LowRank | None
    low_N: LowRank | None
    low_M: LowRank | None

    def limits(self) -> Limits:
        """Return the range of every integer; only `EXCESS` may be negative, because a solve that applies G only once
        subtracts 1 from it.
        """
        least = np.zeros(6, np.int64)
        least[EXCESS] = -COUNT[1]
        return {"tally": (least, COUNT[1])}


def programme_state(
    n_classes: int, n_features: int, ridge: float, radius: float, *, rows_first: bool = True
) -> Programme:
    r"""Return the state for :math:`C_k = \text{ridge}\, I`, :math:`b = 0` and the radius D (math.inf: no ball).

    Large problems begin in the low-rank form if `rows_first` is set.
    """
    K, d, wide = n_classes, n_features, width(n_features)
    scratch = Scratch(
        V=zeros(STEPS + 1, K, wide),
        alpha=np.zeros(STEPS + 1),
        beta=np.zeros(STEPS + 1),
        y=np.zeros(STEPS + 1),
        s=np.zeros(STEPS + 1),
        t=np.zeros(STEPS + 1),
        x=zeros(wide),
        mu=zeros(wide),
        g=zeros(wide),
        square=zeros(wide, wide),
    )
    S, scales = size_of(wide), {"C": np.full(K, ridge), "N": np.full(K, 1.0 / ridge), "M": np.array([ridge / K])}
    large = rows_first and 8 * K * S >= LARGE
    matrices = {name: zeros(len(p), S) if large else identities(p, d) for name, p in scales.items()}
    signs = {"C": 1.0, "N": -1.0, "M": 1.0}
    low = {f"low_{name}": low_rank(p, d, sign=signs[name]) if large else None for name, p in scales.items()}
    return Programme(
        C=matrices["C"],
        b=zeros(K, wide),
        W=zeros(K, wide),
        N=matrices["N"],
        M=matrices["M"][0],
        h=zeros(K, wide),
        radius=float(radius),
        nu=np.zeros(3),
        tally=np.zeros(6, np.int64),
        scratch=scratch,
        **low,
    )


# ------------------------------------------------------------------------------------- updates of the data and inverses


@njit
def add(qp, i, x, weight, step):
    r"""Add :math:`\text{weight}\, x x'` to :math:`C_i` and :math:`\text{step}\, x` to :math:`b_i`.

    :math:`N_i` and M are updated by the formula of Sherman and Morrison, at a cost of :math:`O(d^2)`.
    """
    N_i, own = qp.N[i], qp.scratch.x
    pad(x, own)
    any_product(N_i, qp.low_N, i, own, qp.scratch.mu)
    add_to_sum(qp, add_to_class(qp, i, weight))
    step_along(qp.b[i], step, own)
    any_product(N_i, qp.low_N, i, qp.b[i], qp.h[i])


@inline
def add_to_class(qp, i, weight):
    r"""Add :math:`\text{weight}\, x x'` to :math:`C_i` for the x in `scratch.x`, and update :math:`N_i`.

    The vector :math:`u = N_i x` is written to `scratch.mu`. Returns f; the new :math:`N_i` is :math:`N_i - f u u'`.
    """
    own, u = qp.scratch.x, qp.scratch.mu
    any_downdate(qp.C[i], qp.low_C, i, own, -weight)
    f = weight / (1.0 + weight * inner(u, own))
    any_downdate(qp.N[i], qp.low_N, i, u, f)
    return f


@inline
def add_to_sum(qp, f):
    """Update M for the new :math:`N_i - f u u'`, u in `scratch.mu`. Write the old M u to `scratch.g`; return u'M u."""
    M, u, Mu = qp.M, qp.scratch.mu, qp.scratch.g
    # M' = (sum N - f u u')^{-1}; f u'Mu <= w q/(1 + w q) < 1
    any_product(M, qp.low_M, 0, u, Mu)
    r = inner(u, Mu)
    any_downdate(M, qp.low_M, 0, Mu, -f / (1.0 - f * r))
    return r


@njit
def inverse(C, nu, A, N):
    r"""Write :math:`(C + \nu I)^{-1}` into N, both packed; A (D, D) is a work array. The padding stays zero."""
    D = A.shape[0]
    unpack(C, A)
    # Put 1 on the diagonal of the padding, so that the inverse exists; reset it to 0 at the end.
    first = 0
    while first < D and A[first, first] == 0.0:
        A[first, first] = 1.0
        first += 1
    for j in range(first, D):
        A[j, j] += nu
    invert(A)
    for j in range(first):
        A[j, j] = 0.0
    pack(A, N)


@njit
def refactor(qp, nu0):
    r"""Move the reference multiplier to :math:`\nu_0`, and compute N, M and h from the :math:`C_k`."""
    C, N, M, A = qp.C, qp.N, qp.M, qp.scratch.square
    all_whole(C, qp.low_C)
    none_as_rows(qp.low_N)
    none_as_rows(qp.low_M)
    qp.nu[REFERENCE] = nu0
    for s in range(M.shape[0]):
        M[s] = 0.0
    for k in range(C.shape[0]):
        inverse(C[k], nu0, A, N[k])
        product(N[k], qp.b[k], qp.h[k])
        for s in range(M.shape[0]):
            M[s] += N[k, s]
    inverse(M, 0.0, A, M)
    qp.tally[REFACTORED] += 1
    qp.tally[EXCESS] = 0


# ------------------------------------------------------------------------------------------------------- the operator G


@njit
def add_up(rows, total):
    """Write the sum of the rows (K, d) into total (d,)."""
    K, d = rows.shape
    for j in range(d):
        total[j] = 0.0
    for k in range(K):
        for j in range(d):
            total[j] += rows[k, j]


@njit
def couple(qp, out, sign):
    r"""Multiply :math:`\text{out}_k - N_k \mu` by `sign` (1 or -1), with :math:`\mu = M \sum_k \text{out}_k`; store it
    in `out`.

    After this step the columns sum to zero.
    """
    K, d = out.shape
    g, mu = qp.scratch.g, qp.scratch.mu
    # mu = M sum_k out_k
    add_up(out, g)
    any_product(qp.M, qp.low_M, 0, g, mu)
    # out_k - N_k mu, whose sum is sum_k out_k - M^{-1} mu = 0
    for k in range(K):
        any_product(qp.N[k], qp.low_N, k, mu, g)
        for j in range(d):
            out[k, j] = sign * (out[k, j] - g[j])


@njit
def apply(qp, r, out):
    r"""Set :math:`\text{out} = G r` by two passes over N; r and `out` have shape (K, d)."""
    for k in range(r.shape[0]):
        any_product(qp.N[k], qp.low_N, k, r[k], out[k])
    couple(qp, out, 1.0)
    qp.tally[APPLIED] += 1


@njit
def slack_solution(qp, out):
    r"""Write :math:`W(\nu_0) = -G b` into out (K, d), by one pass over N because :math:`h_k = N_k b_k` is stored."""
    fill(out, 1.0, qp.h)
    couple(qp, out, -1.0)


@njit
def reference_solution(qp):
    r"""Write :math:`W(\nu_0)` into `V[0]` and return its norm."""
    V = qp.scratch.V[0]
    slack_solution(qp, V)
    return math.sqrt(inner(V, V))


# -------------------------------------------------------------------------------------------- the ball, by Lanczos on G


@njit
def shifted_solve(qp, m, shift, r, out):
    r"""Set :math:`\text{out} = (I + \text{shift}\, T)^{-1} r` for the leading :math:`m \times m` block of T.

    The block is positive definite if :math:`\nu_0 + \text{shift} \ge 0`.
    """
    a, e, c = qp.scratch.alpha, qp.scratch.beta, qp.scratch.t
    # Thomas algorithm, without pivoting because the matrix is positive definite.
    pivot = 1.0 + shift * a[0]
    out[0] = r[0] / pivot
    for i in range(1, m):
        off = shift * e[i]
        c[i] = off / pivot
        pivot = 1.0 + shift * a[i] - off * c[i]
        out[i] = (r[i] - off * out[i - 1]) / pivot
    # Back substitution.
    for i in range(m - 2, -1, -1):
        out[i] -= c[i + 1] * out[i + 1]


@njit
def short_dot(y, s, m):
    """Return :math:`y's` over the first m entries."""
    total = 0.0
    for i in range(m):
        total += y[i] * s[i]
    return total


@njit
def secular(qp, m, norm, shift):
    r"""Return the shift, at least :math:`-\nu_0`, at which :math:`\|y\| = D` for
    :math:`y = \text{norm}\, (I + \text{shift}\, T)^{-1} e_1`.

    If :math:`\|y\| \le D` at :math:`-\nu_0`, return :math:`-\nu_0`. The function :math:`1/\|y\|` is concave and
    increasing in the shift, so Newton's method on :math:`1/\|y\| = 1/D` increases to the root from its left.
    """
    D, y, s, rhs = qp.radius, qp.scratch.y, qp.scratch.s, qp.scratch.s
    a, e = qp.scratch.alpha, qp.scratch.beta
    low = -qp.nu[REFERENCE]
    trial = low
    for step in range(100):
        # y = norm (I + trial T)^{-1} e_1, and its length
        for i in range(m):
            rhs[i] = norm if i == 0 else 0.0
        shifted_solve(qp, m, trial, rhs, y)
        size = math.sqrt(short_dot(y, y, m))
        if step == 0:
            if size <= D:
                return low  # the ball is slack
            trial = max(shift, low)
            continue
        if abs(size - D) <= 4e-16 * D:
            break
        # s = (I + trial T)^{-1} T y = -dy/dtrial
        for i in range(m):
            s[i] = a[i] * y[i]
            if i > 0:
                s[i] += e[i] * y[i - 1]
            if i + 1 < m:
                s[i] += e[i + 1] * y[i + 1]
        shifted_solve(qp, m, trial, s, s)
        # Newton on 1/||y||, whose derivative is y's/||y||^3
        move = (size / D - 1.0) * size * size / short_dot(y, s, m)
        if abs(move) <= 2e-16 * (qp.nu[REFERENCE] + trial) and step > 1:
            break
        trial = max(trial + move, low)
    for i in range(m):
        y[i] *= D / size  # feasible to rounding
    return trial


@njit
def lanczos(qp, norm):
    r"""Write the solution into W and its multiplier into `nu[SOLUTION]`; return False if `STEPS` steps were not enough.

    On entry `V[0]` is :math:`W(\nu_0)`, of norm `norm`. Rescaled to norm 1, it is the first vector of the basis.
    """
    V, a, e, y, nu, D = qp.scratch.V, qp.scratch.alpha, qp.scratch.beta, qp.scratch.y, qp.nu, qp.radius
    fill(V[0], 1.0 / norm, V[0])
    shift = nu[SOLUTION] - nu[REFERENCE]
    for m in range(1, STEPS + 1):
        # Column m of T: the part of G v_m along v_m, and the norm of its part orthogonal to all vectors.
        w = V[m]
        apply(qp, V[m - 1], w)
        a[m - 1] = inner(V[m - 1], w)
        for i in range(m - 1, -1, -1):  # orthogonalise against all earlier vectors, which are few, so T stays exact
            f = inner(V[i], w)
            step_along(w, -f, V[i])
        e[m] = math.sqrt(inner(w, w))
        # ||W|| = D within the basis so far
        shift = secular(qp, m, norm, shift)
        # (I + shift G) W = v + remainder of this size; its inverse is at most 1 + nu0 D for shift < 0, 1 otherwise
        amplify = 1.0 if shift >= 0.0 else (nu[REFERENCE] * D + 1.0) / ((nu[REFERENCE] + shift) * D + 1.0)
        if abs(shift) * e[m] * abs(y[m - 1]) * amplify <= SOLUTION_ERROR * D:
            # W = V y
            fill(qp.W, 0.0, qp.W)
            for i in range(m):
                step_along(qp.W, y[i], V[i])
            nu[SOLUTION] = nu[REFERENCE] + shift
            qp.tally[EXCESS] += m - 2
            return True
        fill(w, 1.0 / e[m], w)
    nu[SOLUTION] = nu[REFERENCE] + shift
    return False


@njit
def solve(qp):
    """Write the minimiser into W and its multiplier into `nu[SOLUTION]`."""
    W, nu, D, tally = qp.W, qp.nu, qp.radius, qp.tally
    tally[ROUNDS] += 1
    if tally[EXCESS] > qp.scratch.mu.shape[0]:  # moving nu0 costs about as much as d applications of G
        refactor(qp, nu[SOLUTION])
    # W(nu0) is the solution if the ball is inactive at nu0 = 0. Otherwise use Lanczos, with a nearer nu0 if needed.
    done = math.isinf(D) and nu[REFERENCE] == 0.0
    if done:  # no ball: the norm is not needed
        slack_solution(qp, W)
        nu[SOLUTION] = 0.0
    for _ in range(0 if done else MOVES):
        norm = reference_solution(qp)
        if norm == 0.0 or (norm <= D and nu[REFERENCE] == 0.0):
            fill(W, 1.0, qp.scratch.V[0])
            nu[SOLUTION] = 0.0
            done = True
        else:
            done = lanczos(qp, norm)
        if done:
            break
        refactor(qp, nu[SOLUTION])
    tally[STALLED] += not done
    tally[BINDING] += nu[SOLUTION] > 0.0
    centre(W, qp.scratch.g)
    if tally[ROUNDS] % CHECK == 0:
        check_drift(qp)


@njit
def centre(W, mean):
    """Subtract the mean row from W, so columns sum to zero up to rounding even if M has drifted."""
    K, d = W.shape
    for j in range(d):
        mean[j] = 0.0
    for k in range(K):
        for j in range(d):
            mean[j] += W[k, j] / K
    for k in range(K):
        for j in range(d):
            W[k, j] -= mean[j]


@njit
def check_drift(qp):
    """Measure the error of W by one step of iterative refinement on the :math:`C_k`; recompute the inverses if it is large."""
    W, nu, V = qp.W, qp.nu, qp.scratch.V
    K, d = W.shape
    # V[0] = -b_k - nu W_k - C_k W_k is the residual of (KKT), and G V[0] the step that would correct W.
    for k in range(K):
        any_product(qp.C[k], qp.low_C, k, W[k], V[0, k])
        for j in range(d):
            V[0, k, j] = -qp.b[k, j] - nu[SOLUTION] * W[k, j] - V[0, k, j]  # G maps mu to 0
    apply(qp, V[0], V[1])
    norm = math.sqrt(inner(W, W))
    scale = min(qp.radius, norm) if norm > 0.0 else qp.radius  # an inactive ball may be far larger than W
    drift = math.sqrt(inner(V[1], V[1]))
    if scale > 0.0:
        nu[WORST_DRIFT] = max(nu[WORST_DRIFT], drift / scale)
    if drift > DRIFT * scale:
        refactor(qp, nu[SOLUTION])
