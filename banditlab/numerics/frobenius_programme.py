"""The quadratic programme behind Newtron: K coupled d x d quadratics, zero column sums, a Frobenius ball.

    minimise  sum_k (1/2) W_k' C_k W_k + b_k' W_k     over W (K, d) with  sum_k W_k = 0,  ||W||_F <= D

Subproblem solved here, every round, to machine accuracy. With a multiplier nu >= 0 of the ball and mu (d,) of the sum,

    (C_k + nu I) W_k = mu - b_k,    sum_k W_k = 0,    and  ||W||_F = D  or  nu = 0.                      (KKT)

Solving (KKT) by Newton on 1/||W|| costs a Cholesky factor of every C_k per step, O(K d^3). Instead the inverses
N_k = (C_k + nu0 I)^{-1} and M = (sum_k N_k)^{-1} are kept at a *reference* multiplier nu0 by rank-one updates. The map
G: r -> argmin sum_k (1/2) W_k'(C_k + nu0 I) W_k - r_k'W_k over zero column sums is then two passes over N, and

    W(nu) = (I + (nu - nu0) G)^{-1} v,     v = W(nu0) = -G b.

Krylov spaces of G do not change with nu: a Lanczos basis V of m steps, G V = V T + remainder, gives *every* W(nu) at
once, so the secular equation ||W(nu)|| = D is solved on the m x m tridiagonal T, and the remainder bounds the error of
W. The error falls by about ((nu - nu0)/(nu0 + 1/D)/4)^2 a step; when steps become many, nu0 moves to nu (O(K d^3),
rarely).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import fill, invert
from banditlab.numerics.jit import njit
from banditlab.numerics.packed_symmetric import (
    downdate,
    identities,
    inner,
    lay,
    pack,
    product,
    step_along,
    unpack,
    width,
    zeros,
)

Floats = NDArray[np.float64]

STEPS = 24
"""Most Lanczos steps before nu0 is moved."""
TOLERANCE = 1e-12
"""Largest estimated error of W, relative to D."""
CHECK = 256
"""Rounds between two checks of the kept inverses against the C_k themselves."""
DRIFT = 1e-11
"""Largest error of W, relative to min(D, ||W||), such a check may find before the inverses are computed anew."""

ROUNDS, BINDING, APPLIED, REFACTORED, STALLED, EXCESS = range(6)
"""Slots of `Ball.tally`: solves; those with nu > 0; applications of G; moves of nu0; solves that ran out of moves; the
applications beyond two a round since nu0 last moved."""


class Ball(NamedTuple):
    """The programme's data, its kept inverses and scratch.

    C, N (K, S) and M (S,), packed; b, h (K, d) with h_k = N_k b_k; W (K, d) the solution, all three with zeros in front up
    to a multiple of eight; nu (3,) = (nu0, nu, largest drift seen); D (1,), infinite without a ball; tally (6,). Scratch:
    V (STEPS + 1, K, d), x, mu, g (d,) and square (d, d), so padded too; alpha, beta, y, s, t (STEPS + 1,).
    """

    C: Floats
    N: Floats
    M: Floats
    b: Floats
    h: Floats
    W: Floats
    nu: Floats
    D: Floats
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
    tally: NDArray[np.int64]


def ball_state(n_classes: int, n_features: int, ridge: float, radius: float) -> Ball:
    """Return the state for C_k = ridge I, b = 0 and D = radius (math.inf: no ball)."""
    K, d, wide = n_classes, n_features, width(n_features)
    return Ball(
        C=identities(np.full(K, ridge), d),
        N=identities(np.full(K, 1.0 / ridge), d),
        M=identities(np.array([ridge / K]), d)[0],
        b=zeros(K, wide),
        h=zeros(K, wide),
        W=zeros(K, wide),
        nu=np.zeros(3),
        D=np.array([radius]),
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
        tally=np.zeros(6, np.int64),
    )


# ----------------------------------------------------------------------------------------------- data in, inverses kept


@njit
def add(ball, i, x, weight, step):
    """C_i += weight x x', b_i += step x; N_i and M follow by Sherman and Morrison, O(d^2)."""
    N_i, M, own, u, Mu = ball.N[i], ball.M, ball.x, ball.mu, ball.g
    lay(x, own)
    downdate(ball.C[i], own, -weight)
    product(N_i, own, u)
    f = weight / (1.0 + weight * inner(u, own))  # N_i' = N_i - f u u'
    downdate(N_i, u, f)
    product(M, u, Mu)
    downdate(M, Mu, -f / (1.0 - f * inner(u, Mu)))  # (sum N - f u u')^{-1}; f u'Mu <= w q/(1 + w q) < 1
    step_along(ball.b[i], step, own)
    product(N_i, ball.b[i], ball.h[i])


@njit
def inverse(C, nu, A, N):
    """Write (C + nu I)^{-1} into N, both packed; A (D, D) is scratch. The zeros in front of C stay zeros."""
    D = A.shape[0]
    unpack(C, A)
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
def refactor(ball, nu0):
    """Move the reference multiplier to nu0 and compute N_k = (C_k + nu0 I)^{-1}, M and h from the C_k."""
    C, N, M, A = ball.C, ball.N, ball.M, ball.square
    ball.nu[0] = nu0
    for s in range(M.shape[0]):
        M[s] = 0.0
    for k in range(C.shape[0]):
        inverse(C[k], nu0, A, N[k])
        product(N[k], ball.b[k], ball.h[k])
        for s in range(M.shape[0]):
            M[s] += N[k, s]
    inverse(M, 0.0, A, M)
    ball.tally[REFACTORED] += 1
    ball.tally[EXCESS] = 0


# ------------------------------------------------------------------------------------------------------- the operator G


@njit
def couple(ball, out, sign):
    """out_k = sign (out_k - N_k mu) with mu = M sum_k out_k: the step that makes the columns sum to zero."""
    K, d = out.shape
    g, mu = ball.g, ball.mu
    for j in range(d):
        g[j] = 0.0
    for k in range(K):
        for j in range(d):
            g[j] += out[k, j]
    product(ball.M, g, mu)
    for k in range(K):
        product(ball.N[k], mu, g)
        for j in range(d):
            out[k, j] = sign * (out[k, j] - g[j])


@njit
def apply(ball, r, out):
    """out = G r, two passes over N; r and out (K, d)."""
    for k in range(r.shape[0]):
        product(ball.N[k], r[k], out[k])
    couple(ball, out, 1.0)
    ball.tally[APPLIED] += 1


@njit
def reference_solution(ball):
    """V[0] = W(nu0) = -G b, one pass over N because h_k = N_k b_k is kept; returns its norm."""
    V = ball.V[0]
    fill(V, 1.0, ball.h)
    couple(ball, V, -1.0)
    return math.sqrt(inner(V, V))


# -------------------------------------------------------------------------------------------- the ball, by Lanczos on G


@njit
def shifted_solve(ball, m, shift, r, out):
    """out = (I + shift T)^{-1} r for the leading m x m block of T, positive definite for nu0 + shift >= 0."""
    a, e, c = ball.alpha, ball.beta, ball.t
    pivot = 1.0 + shift * a[0]
    out[0] = r[0] / pivot
    for i in range(1, m):
        off = shift * e[i]
        c[i] = off / pivot
        pivot = 1.0 + shift * a[i] - off * c[i]
        out[i] = (r[i] - off * out[i - 1]) / pivot
    for i in range(m - 2, -1, -1):
        out[i] -= c[i + 1] * out[i + 1]


@njit
def short_dot(y, s, m):
    """Return y's over the first m entries."""
    total = 0.0
    for i in range(m):
        total += y[i] * s[i]
    return total


@njit
def secular(ball, m, norm, shift):
    """Return the shift >= -nu0 at which ||y|| = D, y = norm (I + shift T)^{-1} e_1, or -nu0 if ||y|| <= D there.

    1/||y|| is concave and increasing in the shift, so Newton on 1/||y|| = 1/D climbs to the root from its left.
    """
    D, y, s, rhs = ball.D[0], ball.y, ball.s, ball.s
    a, e = ball.alpha, ball.beta
    low = -ball.nu[0]
    trial = low
    for step in range(100):
        for i in range(m):
            rhs[i] = norm if i == 0 else 0.0
        shifted_solve(ball, m, trial, rhs, y)
        size = math.sqrt(short_dot(y, y, m))
        if step == 0:
            if size <= D:
                return low  # the ball is slack
            trial = max(shift, low)
            continue
        if abs(size - D) <= 4e-16 * D:
            break
        for i in range(m):  # s = (I + shift T)^{-1} T y = -dy/dshift
            s[i] = a[i] * y[i]
            if i > 0:
                s[i] += e[i] * y[i - 1]
            if i + 1 < m:
                s[i] += e[i + 1] * y[i + 1]
        shifted_solve(ball, m, trial, s, s)
        move = (size / D - 1.0) * size * size / short_dot(y, s, m)
        if abs(move) <= 2e-16 * (ball.nu[0] + trial) and step > 1:
            break
        trial = max(trial + move, low)
    for i in range(m):
        y[i] *= D / size  # feasible to rounding
    return trial


@njit
def lanczos(ball, norm):
    """Write the solution into W and nu from V[0] = W(nu0) of this norm; False if STEPS were not enough."""
    V, a, e, y, nu, D = ball.V, ball.alpha, ball.beta, ball.y, ball.nu, ball.D[0]
    fill(V[0], 1.0 / norm, V[0])
    shift = nu[1] - nu[0]
    for m in range(1, STEPS + 1):
        w = V[m]
        apply(ball, V[m - 1], w)
        a[m - 1] = inner(V[m - 1], w)
        for i in range(m - 1, -1, -1):  # against all earlier vectors: a handful, and T stays exact
            f = inner(V[i], w)
            step_along(w, -f, V[i])
        e[m] = math.sqrt(inner(w, w))
        shift = secular(ball, m, norm, shift)
        # (I + shift G) W = v + remainder of this size; its inverse is at most 1 + nu0 D for shift < 0, 1 otherwise
        amplify = 1.0 if shift >= 0.0 else (nu[0] * D + 1.0) / ((nu[0] + shift) * D + 1.0)
        if abs(shift) * e[m] * abs(y[m - 1]) * amplify <= TOLERANCE * D:
            fill(ball.W, 0.0, ball.W)
            for i in range(m):
                step_along(ball.W, y[i], V[i])
            nu[1] = nu[0] + shift
            ball.tally[EXCESS] += m - 2
            return True
        fill(w, 1.0 / e[m], w)
    nu[1] = nu[0] + shift
    return False


@njit
def solve(ball):
    """Write the minimiser into W and its multiplier into nu[1]."""
    W, nu, D, tally = ball.W, ball.nu, ball.D[0], ball.tally
    tally[ROUNDS] += 1
    if tally[EXCESS] > ball.mu.shape[0]:  # a move of nu0 costs about as much as d applications of G
        refactor(ball, nu[1])
    done = False
    for _ in range(60):
        norm = reference_solution(ball)
        if norm == 0.0 or (norm <= D and nu[0] == 0.0):
            fill(W, 1.0, ball.V[0])
            nu[1] = 0.0
            done = True
        else:
            done = lanczos(ball, norm)
        if done:
            break
        refactor(ball, nu[1])
    tally[STALLED] += not done
    tally[BINDING] += nu[1] > 0.0
    centre(W, ball.g)
    if tally[ROUNDS] % CHECK == 0:
        check_drift(ball)


@njit
def centre(W, mean):
    """Subtract the mean row: the columns sum to zero to rounding, whatever M has drifted."""
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
def check_drift(ball):
    """Measure the error of W by a step of iterative refinement on the C_k; renew the inverses if it is large."""
    W, nu, V = ball.W, ball.nu, ball.V
    K, d = W.shape
    for k in range(K):
        product(ball.C[k], W[k], V[0, k])
        for j in range(d):
            V[0, k, j] = -ball.b[k, j] - nu[1] * W[k, j] - V[0, k, j]  # mu drops out under G
    apply(ball, V[0], V[1])
    norm = math.sqrt(inner(W, W))
    scale = min(ball.D[0], norm) if norm > 0.0 else ball.D[0]  # a slack ball may be far larger than W
    drift = math.sqrt(inner(V[1], V[1]))
    if scale > 0.0:
        nu[2] = max(nu[2], drift / scale)
    if drift > DRIFT * scale:
        refactor(ball, nu[1])
