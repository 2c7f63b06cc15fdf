"""A Gaussian N(M, C) over K x d matrices, updated by implicit steps of the weighted logistic loss (an EKF).

Subproblem. With J = I_K (x) x' (so J vec(W) = W x), the step for weight w and label y is

    M' = argmin over M' of  (1/2) vec(M' - M)' C^{-1} vec(M' - M) + w loss(M'x, y)           (proximal)
    C'^{-1} = C^{-1} + w J' S J,     S = diag(s) - s s', s = softmax(M'x)                    (Laplace at the new mean)

Everything a round needs is K-dimensional: Sigma = J C J', V = C J' (Kd x K);

    z = M'x is the root of  z = M x - w Sigma (s(z) - e_y);    M' = M - V w (s - e_y)
    C' = C - V Q V',   Q = w G (I + w G' Sigma G)^{-1} G',  S = G G' with G (K, K-1) in closed form
       = C - Y Y',     Y = V F (Kd, K-1),  F = sqrt(w) G L^{-T},  L L' = I + w G' Sigma G

Storage: S 1 = 0, so sums over classes never change: sum_l C_kl = sigma^2 I and sum_k M_k = 0, and the last class need
not be stored. Of the other n = K - 1, C is kept as its upper block rows (row k: blocks C_kl, k <= l < n, as one
d x (n-k)d matrix) minus Y Y' of the last few steps, which are subtracted together as matrix products, at the speed of
those instead of the memory's. The numbers are those of the dense form but for rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import row_times
from banditlab.numerics.jit import njit
from banditlab.numerics.softmax_root import RootScratch, root

Floats = NDArray[np.float64]

DELAYED = 4
"""Steps whose Y wait beside the base before they are subtracted."""
FRESH, WAITING, UNSOLVED = range(3)
"""Slots of `Posterior.tally`: whether Vt and Sigma are those of `x`; columns waiting in Y; roots that failed."""


class Posterior(NamedTuple):
    """N(M, C) and scratch; n = K - 1 stored classes, r = DELAYED n.

    M (K, d); variance (1,), sigma^2; rows (n(n+1)/2 d d,) the base's upper block rows, one after the other; Y (nd, r)
    waiting, unused columns 0; x (d,) the context that Vt (K, nd) = J C, Sigma (K, K), JY (n, r) and z0 (K,) belong to;
    z, g (K,), At (K, K), root: the root's problem; G, SG (K, n); L (n, n); Ft (n, K); VF (n, nd); wide (n n d,),
    tall (n d d,); tally (3,).
    """

    M: Floats
    variance: Floats
    rows: Floats
    Y: Floats
    x: Floats
    Vt: Floats
    Sigma: Floats
    JY: Floats
    z0: Floats
    z: Floats
    g: Floats
    At: Floats
    root: RootScratch
    G: Floats
    L: Floats
    SG: Floats
    Ft: Floats
    VF: Floats
    wide: Floats
    tall: Floats
    tally: NDArray[np.int64]


def posterior_state(n_classes: int, n_features: int, deviation: float) -> Posterior:
    """Return N(0, deviation^2 I)."""
    K, d = n_classes, n_features
    n = K - 1
    rows = np.zeros((n * K // 2) * d * d)
    for k in range(n):
        block_row(rows, n, d, k)[:, :d] = deviation**2 * np.eye(d)
    return Posterior(
        M=np.zeros((K, d)),
        variance=np.array([deviation**2]),
        rows=rows,
        Y=np.zeros((n * d, DELAYED * n)),
        x=np.zeros(d),
        Vt=np.zeros((K, n * d)),
        Sigma=np.zeros((K, K)),
        JY=np.zeros((n, DELAYED * n)),
        z0=np.zeros(K),
        z=np.zeros(K),
        g=np.zeros(K),
        At=np.zeros((K, K)),
        root=RootScratch.empty(K),
        G=np.zeros((K, n)),
        L=np.zeros((n, n)),
        SG=np.zeros((K, n)),
        Ft=np.zeros((n, K)),
        VF=np.zeros((n, n * d)),
        wide=np.zeros(n * n * d),
        tall=np.zeros(n * d * d),
        tally=np.zeros(3, np.int64),
    )


def covariance(posterior: Posterior) -> Floats:
    """Return C (Kd, Kd), dense."""
    K, d = posterior.M.shape
    n = K - 1
    C = np.zeros((K, d, K, d))
    for k in range(n):
        blocks = block_row(posterior.rows, n, d, k).reshape(d, n - k, d)
        C[k, :, k:n, :] = blocks
        C[k:n, :, k, :] = blocks.transpose(1, 2, 0)
    C[:n, :, :n, :] -= (posterior.Y @ posterior.Y.T).reshape(n, d, n, d)
    prior = posterior.variance[0] * np.eye(d)
    C[:n, :, n, :] = prior - C[:n, :, :n, :].sum(axis=2)
    C[n, :, :n, :] = C[:n, :, n, :].transpose(2, 0, 1)
    C[n, :, n, :] = prior - C[n, :, :n, :].sum(axis=1)
    return C.reshape(K * d, K * d)


@njit
def block_row(rows, n, d, k):
    """Return block row k as a view (d, (n-k)d)."""
    start = d * d * (n * k - k * (k - 1) // 2)
    return rows[start : start + d * d * (n - k)].reshape(d, (n - k) * d)


# -------------------------------------------------------------------------------------------------- logits of a context


@njit
def logit_law(post, x):
    """Write z0 = M x and Sigma = J C J' for x (d,), the law N(z0, Sigma) of the logits; remembered for the same x."""
    own, Vt, JY = post.x, post.Vt, post.JY
    K, d = post.M.shape
    n = K - 1
    same = post.tally[FRESH] == 1
    for j in range(d):
        same = same and own[j] == x[j]
    if same:
        return
    for j in range(d):
        own[j] = x[j]
    np.dot(post.M, own, post.z0)
    waiting = post.tally[WAITING]
    for k in range(n):
        row_times(own, block_row(post.rows, n, d, k), Vt[k, k * d :])  # (C_lk x)', l >= k, of the base
        row_times(own, post.Y[k * d : (k + 1) * d, :waiting], JY[k, :waiting])
    logit_covariance(post, waiting)
    post.tally[FRESH] = 1


@njit
def logit_covariance(post, waiting):
    """Write Sigma (K, K) from the base's part of Vt and JY."""
    own, Vt, JY, Sigma = post.x, post.Vt, post.JY, post.Sigma
    n, d = JY.shape[0], own.shape[0]
    square = 0.0
    for j in range(d):
        square += own[j] * own[j]
    for k in range(n):
        for l in range(k, n):
            form = 0.0
            for j in range(d):
                form += Vt[k, l * d + j] * own[j]
            for c in range(waiting):
                form -= JY[k, c] * JY[l, c]
            Sigma[k, l] = Sigma[l, k] = form
    rest = post.variance[0] * square  # every row of Sigma sums to sigma^2 ||x||^2
    Sigma[n, n] = rest
    for k in range(n):
        Sigma[k, n] = rest
        for l in range(n):
            Sigma[k, n] -= Sigma[k, l]
        Sigma[n, k] = Sigma[k, n]
        Sigma[n, n] -= Sigma[k, n]


@njit
def cross_covariance(post):
    """Complete Vt = J C (K, nd) for the context of `logit_law`: lower blocks, waiting columns, the last class."""
    Vt, own = post.Vt, post.x
    K, d = post.M.shape
    n = K - 1
    for k in range(n - 1):
        m = n - k
        out = post.wide[: d * m]
        np.dot(block_row(post.rows, n, d, k).reshape(d * m, d), own, out)  # [i m + l - k] = (C_kl x)_i
        for l in range(k + 1, n):
            for i in range(d):
                Vt[l, k * d + i] = out[i * m + l - k]
    wide = post.wide.reshape(n, n * d)
    if post.tally[WAITING] > 0:
        np.dot(post.JY, post.Y.T, wide)  # unused columns of Y are 0
        for k in range(n):
            for j in range(n * d):
                Vt[k, j] -= wide[k, j]
    for l in range(n):  # the rows of J C sum to sigma^2 x in every block
        for j in range(d):
            Vt[n, l * d + j] = post.variance[0] * own[j]
    for k in range(n):
        for j in range(n * d):
            Vt[n, j] -= Vt[k, j]


# --------------------------------------------------------------------------------------------------- K-dimensional work


@njit
def implicit_logits(post, w, y):
    """Write z, the root of z = z0 - w Sigma (s(z) - e_y), and root.s = softmax(z)."""
    g, At, r = post.g, post.At, post.root.r
    K = g.shape[0]
    for k in range(K):
        g[k] = post.z0[k] + w * post.Sigma[k, y]
        for l in range(K):
            At[k, l] = w * post.Sigma[k, l]
    root(g, At, post.z, post.root)
    scale, worst = 1.0, 0.0
    for k in range(K):
        scale = max(scale, 1.0 + abs(g[k]))
        worst = max(worst, abs(r[k]))
    post.tally[UNSOLVED] += worst > 1e-10 * scale


@njit
def multinomial_factor(s, G):
    """Write G (K, K-1), lower trapezoidal, with G G' = diag(s) - s s': products and quotients only, no cancellation."""
    K = s.shape[0]
    tail = s[K - 1]
    for k in range(K - 2, -1, -1):
        whole = s[k] + tail  # s_k + ... + s_{K-1}
        for i in range(k):
            G[i, k] = 0.0
        diagonal = math.sqrt(s[k] * (tail / whole)) if whole > 0.0 else 0.0
        G[k, k] = diagonal
        for i in range(k + 1, K):
            G[i, k] = -(s[i] / tail) * diagonal if tail > 0.0 else 0.0
        tail = whole


@njit
def core(post, w):
    """Write G for s, SG = Sigma G, and the Cholesky factor L of I + w G' Sigma G."""
    G, L, SG, Sigma = post.G, post.L, post.SG, post.Sigma
    K = Sigma.shape[0]
    multinomial_factor(post.root.s, G)
    for i in range(K):
        for c in range(K - 1):
            total = 0.0
            for k in range(c, K):
                total += Sigma[i, k] * G[k, c]
            SG[i, c] = total
    for a in range(K - 1):
        for b in range(a + 1):
            total = 1.0 if a == b else 0.0
            for k in range(a, K):
                total += w * G[k, a] * SG[k, b]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            L[a, b] = math.sqrt(total) if a == b else total / L[b, b]


# ------------------------------------------------------------------------------------------------------------- the step


@njit
def learn_label(post, x, y, w):
    """One implicit step with weight w in (0, 1] on label y at x (d,)."""
    M, Vt, Ft, L, G, VF = post.M, post.Vt, post.Ft, post.L, post.G, post.VF
    K, d = M.shape
    logit_law(post, x)
    implicit_logits(post, w, y)
    core(post, w)
    cross_covariance(post)
    n = K - 1
    for k in range(K):
        g = w * (post.root.s[k] - (1.0 if k == y else 0.0))
        for l in range(n):
            for j in range(d):
                M[l, j] -= g * Vt[k, l * d + j]
    for j in range(d):
        M[n, j] = 0.0
    for l in range(n):
        for j in range(d):
            M[n, j] -= M[l, j]
    root = math.sqrt(w)
    for k in range(K):  # F' = sqrt(w) L^{-1} G'
        for a in range(K - 1):
            total = root * G[k, a]
            for c in range(a):
                total -= L[a, c] * Ft[c, k]
            Ft[a, k] = total / L[a, a]
    np.dot(Ft, Vt, VF)
    waiting = post.tally[WAITING]
    for j in range(n * d):
        for a in range(n):
            post.Y[j, waiting + a] = VF[a, j]
    post.tally[WAITING] = waiting + n
    post.tally[FRESH] = 0
    if post.tally[WAITING] == post.Y.shape[1]:
        subtract_waiting(post)


@njit
def subtract_waiting(post):
    """Subtract Y Y' from the base, block row by block row, and empty Y."""
    Y = post.Y
    K, d = post.M.shape
    n = K - 1
    for k in range(n):
        m = d * (n - k)
        row, product = block_row(post.rows, n, d, k), post.tall[: d * m].reshape(d, m)
        np.dot(Y[k * d : (k + 1) * d], Y[k * d :].T, product)
        for i in range(d):
            for j in range(m):
                row[i, j] -= product[i, j]
    for i in range(n * d):
        for c in range(Y.shape[1]):
            Y[i, c] = 0.0
    for k in range(n):
        for c in range(Y.shape[1]):
            post.JY[k, c] = 0.0
    post.tally[WAITING] = 0
