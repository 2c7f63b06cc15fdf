r"""The inverse of a :math:`K d \times K d` matrix A, stored as :math:`d \times d` blocks.

Learners on quadratic surrogates of the multiclass logistic loss share the matrix
:math:`A = \lambda I + c (H_1 + \dots + H_t)` with :math:`H_s = S_s \otimes x_s x_s'`,
where :math:`S_s = \mathrm{diag}(p) - p p'` for the softmax p of update s. Block (l, k) of the symmetric
:math:`A^{-1}` is the transpose of block (k, l). The :math:`K (K + 1) / 2` blocks with :math:`k \le l` are stored, row
by row. The blocks off the diagonal are not symmetric themselves.

A Woodbury step subtracts a sum of outer products :math:`f f'` from :math:`A^{-1}`. Its rows f are stored beside the
blocks, :math:`A^{-1} = M - F'F`, until their arrays are full. They are then subtracted in one set of matrix products.
This needs as much arithmetic as subtracting each row immediately, but memory bandwidth does not limit its speed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.softmax_root import core_factor

BATCH = 128
"""The number of contexts whose quadratic forms are computed by one set of matrix products."""
UPDATES = 8
"""The largest number of pending updates, for all of which :math:`A^{-1}` is then read and written once."""
EPSILON = 2.0**-52
ERROR_FACTOR = 4.0
"""Estimated error of an entry, as a multiple of the error measured in a direction with known exact value."""


class Blocks(NamedTuple):
    """The inverse: M, F and rows are the state; the other arrays are work arrays.

    * M (K(K+1)/2, d, d): the blocks.
    * F (K, capacity K, d): the rows[0] pending rows f; `F[k, i]` is block k of :math:`f_i`. At most `capacity` updates
      are pending.
    * At (K, K): :math:`(1/2) x' (A^{-1})_{kl} x` at the last context x.
    * V (K, K, d): `V[k, l]` is :math:`(A^{-1})_{kl} x`.
    * Fx (capacity K, K): `Fx[i, k]` is `F[k, i]` times x. FxFx (K, K): the transpose of `Fx` times `Fx`.
    * seen (d,): the context of At, of the upper half of V and of Fx, if at[0] is 1.
    * f (capacity K,): one column of Fx. C (K, d): one row of blocks of :math:`F'` times `Fx`. D (d, d): one block of
      :math:`F'F`.
    * T (K, K): an update's rows f as combinations of the rows of V.
    * For a batch, Xt: the contexts as columns. MXt (d BATCH,): a block times Xt. FX (K, K BATCH): one update's rows
      times Xt. Ats (K(K+1)/2, BATCH): the contexts' At.
    """

    M: NDArray[np.float64]
    F: NDArray[np.float64]
    rows: NDArray[np.int64]
    At: NDArray[np.float64]
    V: NDArray[np.float64]
    Fx: NDArray[np.float64]
    FxFx: NDArray[np.float64]
    seen: NDArray[np.float64]
    at: NDArray[np.int64]
    f: NDArray[np.float64]
    C: NDArray[np.float64]
    D: NDArray[np.float64]
    T: NDArray[np.float64]
    Xt: NDArray[np.float64]
    MXt: NDArray[np.float64]
    FX: NDArray[np.float64]
    Ats: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        # an update adds K rows, and the one that fills the arrays clears them; a stack has one more axis
        K, capacity = self.F.shape[-3:-1]
        return {"rows": (0, capacity - K, K), "at": (0, 1)}

    @classmethod
    def initial(cls, K: int, d: int, regularization: float) -> Blocks:
        r"""Return :math:`A^{-1} = I/\lambda`."""
        n = K * (K + 1) // 2
        capacity = K * max(1, min(UPDATES, d // 8))  # in a prediction a pending row costs K d, and a block d^2
        M = np.zeros((n, d, d))
        for k in range(K):
            np.fill_diagonal(M[k * K - k * (k - 1) // 2], 1.0 / regularization)
        return cls(
            M,
            F=np.zeros((K, capacity, d)),
            rows=np.zeros(1, np.int64),
            At=np.zeros((K, K)),
            V=np.zeros((K, K, d)),
            Fx=np.zeros((capacity, K)),
            FxFx=np.zeros((K, K)),
            seen=np.zeros(d),
            at=np.zeros(1, np.int64),
            f=np.zeros(capacity),
            C=np.zeros((K, d)),
            D=np.zeros((d, d)),
            T=np.zeros((K, K)),
            Xt=np.zeros(d * BATCH),
            MXt=np.zeros(d * BATCH),
            FX=np.zeros((K, K * BATCH)),
            Ats=np.zeros((n, BATCH)),
        )

    @staticmethod
    def size(K: int, d: int) -> int:
        """Estimate the bytes of the arrays: the blocks of :math:`A^{-1}` and the pending updates."""
        return 8 * (K * (K + 1) // 2 * d * d + K * K * d * (1 + min(UPDATES, d // 8)) + d * d)

    def wider(self, d: int, regularization: float) -> Blocks:
        r"""Return the inverse extended to d coordinates, without pending rows; :math:`A = \lambda I` in the new coordinates."""
        flush(self)
        K, _, n = self.F.shape
        wide = Blocks.initial(K, d, regularization)
        wide.M[:, :n, :n] = self.M
        return wide

    def rotated(self, Q: NDArray[np.float64], regularization: float) -> Blocks:
        """Return :math:`A^{-1}` in the space whose first r coordinates are along the orthonormal rows of Q (r, d)."""
        flush(self)
        K, (r, d) = self.F.shape[0], Q.shape
        whole = Blocks.initial(K, d, regularization)
        for block, M, k, l in zip(whole.M, self.M, *np.triu_indices(K), strict=True):
            block += Q.T @ ((M[:r, :r] - (k == l) / regularization * np.eye(r)) @ Q)
        return whole


def dense(blocks: Blocks) -> NDArray[np.float64]:
    """Return :math:`A^{-1}` (Kd, Kd)."""
    K, _, d = blocks.F.shape
    full = np.empty((K, d, K, d))
    for block, k, l in zip(blocks.M, *np.triu_indices(K), strict=True):
        full[k, :, l], full[l, :, k] = block, block.T
    F = np.concatenate(list(blocks.F[:, : blocks.rows[0]]), axis=1)
    inverse: NDArray[np.float64] = full.reshape(K * d, K * d) - F.T @ F
    return inverse


@njit(arrays="new")
def form(blocks, x):
    r"""Write :math:`\tilde{A}_{kl} = (1/2) x' (A^{-1})_{kl} x` into At for x (d,), and the products of x with the
    blocks of M into V[k, l], k <= l.
    """
    M, At, V = blocks.M, blocks.At, blocks.V
    K = At.shape[0]
    p = 0
    for k in range(K):
        for l in range(k, K):
            v = V[k, l]
            np.dot(M[p], x, v)
            At[k, l] = At[l, k] = 0.5 * np.dot(x, v)
            p += 1
    form_pending(blocks, x)
    overwrite(blocks.seen, x)
    blocks.at[0] = 1


@njit(arrays="new")
def form_pending(blocks, x):
    """Write Fx at x (d,), and At -= (1/2) Fx'Fx."""
    F, Fx, At, FxFx, rows = blocks.F, blocks.Fx, blocks.At, blocks.FxFx, blocks.rows[0]
    K = At.shape[0]
    if rows == 0:
        return
    f = blocks.f[:rows]
    for k in range(K):
        np.dot(F[k, :rows], x, f)
        for i in range(rows):
            Fx[i, k] = f[i]
    np.dot(Fx[:rows].T, Fx[:rows], FxFx)
    for k in range(K):
        for l in range(k, K):
            At[k, l] -= 0.5 * FxFx[k, l]
            At[l, k] = At[k, l]


@njit(arrays="new")
def form_and_complete(blocks, x):
    """Write At and all of V at x (d,); reuse the results of `form` for the same x."""
    M, At, V, seen = blocks.M, blocks.At, blocks.V, blocks.seen
    K = At.shape[0]
    known = blocks.at[0] == 1
    for j in range(x.shape[0]):
        known &= x[j] == seen[j]
    p = 0
    for k in range(K):
        for l in range(k, K):
            v = V[k, l]
            if not known:
                np.dot(M[p], x, v)
                At[k, l] = At[l, k] = 0.5 * np.dot(x, v)
            if l > k:  # while the block is in the L1 cache
                np.dot(x, M[p], V[l, k])
            p += 1
    if not known:
        form_pending(blocks, x)
    blocks.at[0] = 0  # V is about to change
    rows = blocks.rows[0]
    if rows > 0:
        for k in range(K):
            np.dot(blocks.Fx[:rows].T, blocks.F[k, :rows], blocks.C)
            subtract(V[k], blocks.C)


@njit
def subtract(A, D):
    """Subtract the matrix D from the matrix A."""
    for i in range(A.shape[0]):
        a, b = A[i], D[i]
        for j in range(A.shape[1]):
            a[j] -= b[j]


@njit(arrays="new")
def form_many(blocks, X):
    """Write :math:`(1/2) x_t' (A^{-1})_p x_t` into `Ats[p, t]` for every block p and context X (n, d), n at most `BATCH`."""
    M, Ats = blocks.M, blocks.Ats
    n, d = X.shape
    Xt, MXt = blocks.Xt[: d * n].reshape(d, n), blocks.MXt[: d * n].reshape(d, n)
    for t in range(n):
        for j in range(d):
            Xt[j, t] = X[t, j]
    for p in range(M.shape[0]):
        np.dot(M[p], Xt, MXt)
        Ats[p, :n] = 0.0
        add_products(Xt, MXt, 0.5, Ats[p, :n])
    K = blocks.At.shape[0]
    for first in range(0, blocks.rows[0], K):
        for k in range(K):
            np.dot(blocks.F[k, first : first + K], Xt, blocks.FX[k, : K * n].reshape(K, n))
        p = 0
        for k in range(K):
            for l in range(k, K):
                one, other = blocks.FX[k, : K * n].reshape(K, n), blocks.FX[l, : K * n].reshape(K, n)
                add_products(one, other, -0.5, Ats[p, :n])
                p += 1


@njit
def add_products(A, B, factor, sums):
    r"""Add :math:`\text{factor} \sum_i A_{it} B_{it}` to `sums[t]`.

    The innermost loop is over contexts, whose sums are independent, so it vectorises.
    """
    for i in range(A.shape[0]):
        a, b = A[i], B[i]
        for t in range(sums.shape[0]):
            sums[t] += factor * a[t] * b[t]


@njit
def form_of(blocks, t):
    """Write At of context t of the last batch of `form_many`."""
    At, Ats = blocks.At, blocks.Ats
    K = At.shape[0]
    p = 0
    for k in range(K):
        for l in range(k, K):
            At[k, l] = At[l, k] = Ats[p, t]
            p += 1
    blocks.at[0] = 0


@njit(arrays="new")
def add_hessian(blocks, c, root):
    r"""Add c H to A, for the context of At and V and the softmax in `root`; write the factor L into `root.L`.

    The Woodbury formula is :math:`A^{-1} \leftarrow A^{-1} - V Q_c V'` with :math:`Q_c = c\, S (I + 2c\, \tilde{A} S)^{-1}`.
    The subtracted matrix is the sum of the outer products :math:`f' f` of the K rows f of :math:`\sqrt{c}\, L^{-1} Y' V'`, with
    :math:`L L' = I + 2c\, Y'\tilde{A} Y`.
    """
    V, F, rows, T = blocks.V, blocks.F, blocks.rows, blocks.T
    K = blocks.At.shape[0]
    core_factor(blocks.At, root.s, root.a, 2.0 * c, root.q, root.L)
    half_root(root.s, root.q, root.L, math.sqrt(c), T)
    for k in range(K):
        np.dot(T, V[k], F[k, rows[0] : rows[0] + K])
    rows[0] += K
    if rows[0] == F.shape[1]:
        flush(blocks)


@njit
def rounding_doubt(At, x, lam, centre, u, residual, terms):
    r"""Return a bound on the rounding error of a round's term T of a certificate (see `soft_labels.surrogate_term`).

    Let :math:`h = A^{-1} G` be the state of the forecaster; the logits :math:`\text{mean}_k = -h_k'x/2` minimise the
    sum of the earlier surrogates. In the direction common to all classes A is :math:`\lambda I`, so
    :math:`\tilde{A} \mathbf{1} = (\|x\|^2 / (2 \lambda)) \mathbf{1}`. The deviation from this identity measures the
    rounding error of :math:`A^{-1}` at x. The true error is assumed to be at most `ERROR_FACTOR` times as large. Errors
    :math:`\delta \tilde{A}` and :math:`\delta\, \text{mean}` change T by
    :math:`u'r - (1/2) u'(\delta \tilde{A}) u - u'(\delta\, \text{mean})`. Here u (K,) contains the coefficients of the
    change of h in the round, and r (K,) is the residual of the equation that the round solves.

    Parameters
    ----------
    centre
        :math:`|\sum_k \text{mean}_k|`, which is 0 up to rounding.
    residual
        :math:`\max_k |r_k|`.
    terms
        The sum of the absolute values of the terms of T.
    """
    K = u.shape[0]
    known = 0.5 * np.dot(x, x) / lam
    off, largest, one = 0.0, 0.0, 0.0
    for k in range(K):
        total = 0.0
        for l in range(K):
            total += At[k, l]
        off += abs(total - known)
        largest += abs(At[k, k])
        one += abs(u[k])
    off = ERROR_FACTOR * off + EPSILON * largest
    return one * (residual + ERROR_FACTOR * centre + EPSILON * largest) + 0.5 * one * one * off + 8.0 * EPSILON * terms


@njit(arrays="new")
def flush(blocks):
    r"""Set :math:`M \mathrel{-}= F'F`; no rows are pending afterwards."""
    M, F, rows = blocks.M, blocks.F, blocks.rows
    K = F.shape[0]
    p = 0
    for k in range(K):
        for l in range(k, K):
            np.dot(F[k, : rows[0]].T, F[l, : rows[0]], blocks.D)
            subtract(M[p], blocks.D)
            p += 1
    rows[0] = 0


@njit
def half_root(s, q, L, scale, T):
    r"""Write :math:`\text{scale}\, L^{-1} Y'` into T (K, K): all column solves of `half_solve` at once."""
    K = T.shape[0]
    for i in range(K):
        weight = scale * q[i]
        for j in range(K):
            T[i, j] = -weight * s[j]
        T[i, i] += weight  # Y' = diag(q) - q s'
        for k in range(i):
            for j in range(K):
                T[i, j] -= L[i, k] * T[k, j]
        for j in range(K):
            T[i, j] *= L[i, i]
