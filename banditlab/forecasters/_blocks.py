"""The inverse of a Kd x Kd matrix A = lambda I + c (H_1 + ... + H_t), H_s = S_s (x) x_s x_s', kept as d x d blocks.

Learners on quadratic surrogates of the multiclass logistic loss share it. Block (l, k) of the symmetric A^{-1} is the
transpose of block (k, l), so the K (K + 1) / 2 blocks with k <= l are kept, row by row; the blocks off the diagonal are
not symmetric themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.forecasters._newton_root import core_factor
from banditlab.kernels import njit

BATCH = 128
"""Contexts whose quadratic forms are computed by one set of matrix products."""


class Blocks(NamedTuple):
    """M is what changes from round to round, the others are scratch.

    M (K(K+1)/2, d, d): the blocks. At (K, K) = (1/2) x' (A^{-1})_kl x and V (K, K, d), V[k, l] = (A^{-1})_kl x, at the
    last context. F (K, K, d), D (d, d): the change of A^{-1} as a sum of squares, one block of it. Xt, MXt (d BATCH,)
    and Ats (K(K+1)/2, BATCH): a batch's contexts as columns, a block times them, their At.
    """

    M: NDArray[np.float64]
    At: NDArray[np.float64]
    V: NDArray[np.float64]
    F: NDArray[np.float64]
    D: NDArray[np.float64]
    Xt: NDArray[np.float64]
    MXt: NDArray[np.float64]
    Ats: NDArray[np.float64]

    @classmethod
    def initial(cls, K: int, d: int, regularization: float) -> Blocks:
        """Return A^{-1} = I / lambda."""
        n = K * (K + 1) // 2
        M = np.zeros((n, d, d))
        M[[k * K - k * (k - 1) // 2 for k in range(K)]] = np.eye(d) / regularization
        return cls(
            M,
            At=np.zeros((K, K)),
            V=np.zeros((K, K, d)),
            F=np.zeros((K, K, d)),
            D=np.zeros((d, d)),
            Xt=np.zeros(d * BATCH),
            MXt=np.zeros(d * BATCH),
            Ats=np.zeros((n, BATCH)),
        )


@njit
def form(blocks, x):  # type: ignore[no-untyped-def]
    """Write At and the upper half of V at x (d,)."""
    M, At, V = blocks.M, blocks.At, blocks.V
    K = At.shape[0]
    p = 0
    for k in range(K):
        for l in range(k, K):
            v = V[k, l]
            np.dot(M[p], x, v)
            At[k, l] = At[l, k] = 0.5 * np.dot(x, v)
            p += 1


@njit
def form_many(blocks, X):  # type: ignore[no-untyped-def]
    """Write (1/2) x_t' M_p x_t into Ats[p, t] for every block p and context X (n, d), n <= BATCH."""
    M, Ats = blocks.M, blocks.Ats
    n, d = X.shape
    Xt, MXt = blocks.Xt[: d * n].reshape(d, n), blocks.MXt[: d * n].reshape(d, n)
    for t in range(n):
        for j in range(d):
            Xt[j, t] = X[t, j]
    for p in range(M.shape[0]):
        np.dot(M[p], Xt, MXt)
        sums = Ats[p]
        sums[:n] = 0.0
        for j in range(d):  # contexts innermost: their sums are independent and vectorise
            x, mx = Xt[j], MXt[j]
            for t in range(n):
                sums[t] += 0.5 * x[t] * mx[t]


@njit
def form_of(blocks, t):  # type: ignore[no-untyped-def]
    """Write At of context t of the batch that `form_many` was given."""
    At, Ats = blocks.At, blocks.Ats
    K = At.shape[0]
    p = 0
    for k in range(K):
        for l in range(k, K):
            At[k, l] = At[l, k] = Ats[p, t]
            p += 1


@njit
def complete(blocks, x):  # type: ignore[no-untyped-def]
    """Write the lower half of V at x (d,), the upper half and At being there."""
    M, V = blocks.M, blocks.V
    K = blocks.At.shape[0]
    p = 0
    for k in range(K):
        for l in range(k, K):
            if l > k:
                np.dot(x, M[p], V[l, k])
            p += 1


@njit
def add_hessian(blocks, c, root):  # type: ignore[no-untyped-def]
    """A += c H at the context and the root that At, V, root.s and root.a belong to; leaves root.L, the core's factor.

    A^{-1} -= V Qc V' (Woodbury), Qc = c S (I + 2c At S)^{-1}: a sum f_i f_i' over the rows f_i of
    F = sqrt(c) L^{-1} Y' V', L L' = I + 2c Y'At Y.
    """
    M, V, F, D = blocks.M, blocks.V, blocks.F, blocks.D
    K, d = blocks.At.shape[0], D.shape[0]
    core_factor(blocks.At, root.s, root.a, 2.0 * c, root.q, root.L)
    for k in range(K):
        solve_rows(root.s, root.q, root.L, math.sqrt(c), V[k], F[k])
    p = 0
    for k in range(K):
        for l in range(k, K):
            np.dot(F[k].T, F[l], D)
            block = M[p]
            for i in range(d):
                for j in range(d):
                    block[i, j] -= D[i, j]
            p += 1


@njit
def solve_rows(s, q, L, scale, V_k, F_k):  # type: ignore[no-untyped-def]
    """Write scale L^{-1} Y' V_k into F_k, both (K, d): the column solves of `half_solve`, all d of them at once."""
    K, d = V_k.shape
    mean = F_k[K - 1]
    mean[:] = 0.0
    for i in range(K):
        for j in range(d):
            mean[j] += s[i] * V_k[i, j]
    for i in range(K):
        f, weight = F_k[i], scale * q[i]
        for j in range(d):  # the last row is where the mean stands
            f[j] = weight * (V_k[i, j] - mean[j])
    for i in range(K):
        for k in range(i):
            for j in range(d):
                F_k[i, j] -= L[i, k] * F_k[k, j]
        for j in range(d):
            F_k[i, j] *= L[i, i]
