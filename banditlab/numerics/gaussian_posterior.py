r"""A Gaussian :math:`N(M, C)` over :math:`K \times d` matrices, updated by implicit steps of the weighted logistic loss.

Step. Let :math:`J = I_K \otimes x'`, so :math:`J\, \mathrm{vec}(W) = W x`. The step for an example (x, y) of weight w
replaces M and C by

.. math::

    M_+ &= \arg\min_N\; (1/2)\, \mathrm{vec}(N - M)' C^{-1} \mathrm{vec}(N - M) + w\, \mathrm{loss}(N x, y)
    && \text{(proximal)} \\
    C_+^{-1} &= C^{-1} + w J' S J, \quad S = \mathrm{diag}(s) - s s',\; s = \mathrm{softmax}(M_+ x)
    && \text{(Laplace at the new mean)}

All quantities of a round are K-dimensional. With :math:`\Sigma = J C J'` and :math:`V = C J'` (Kd, K), the logits
:math:`z = M_+ x` are the root of

.. math::

    z = M x - w \Sigma (s(z) - e_y), \quad \text{and then} \quad M_+ = M - V w (s - e_y).

The covariance follows from :math:`S = G G'`, where G (K, K-1) has a closed form:

.. math::

    C_+ &= C - V Q V', && Q = w G (I + w G' \Sigma G)^{-1} G' \\
    &= C - Y Y', && Y = V F,\; F = \sqrt{w}\, G (L')^{-1},\; L L' = I + w G' \Sigma G,

with Y (Kd, K-1). Such an update is known as an extended Kalman filter (EKF).

Storage. :math:`S \mathbf{1} = 0`, so sums over classes never change: :math:`\sum_l C_{kl} = \sigma^2 I` and
:math:`\sum_k M_k = 0`. The last class is therefore not stored. For the other :math:`n = K - 1` classes, C is stored as
a base matrix minus :math:`Y Y'`, where Y has the columns of the last few steps. Only upper block rows of the base are
stored: row k has the blocks :math:`C_{kl}`, :math:`k \le l < n`, as one :math:`d \times (n-k) d` matrix. Several steps
are subtracted together as matrix products, whose speed is not limited by memory bandwidth. The results are those of the
dense form up to rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import row_times
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.softmax_root import RootScratch, root

Floats = NDArray[np.float64]

DELAYED = 4
"""The number of steps whose Y are stored separately before they are subtracted from the base."""
WAITING, UNSOLVED = range(2)
"""Entries of `Posterior.tally`: the number of pending columns in Y, and of implicit steps whose root was not found."""
ROOT_ERROR = 1e-10
"""The largest residual of the implicit step's equation, relative to its terms, with which it counts as solved."""


class LogitLaw(NamedTuple):
    r"""The distribution :math:`N(z_0, \Sigma)` of the logits :math:`W x` at the last context x (d,).

    Here :math:`n = K - 1`, and r is `DELAYED` times n. z0 (K,) is :math:`M x`; Sigma (K, K) is :math:`J C J'`; JY (n,
    r) is :math:`J Y`. Vt (K, nd) is :math:`J C`: `logit_law` writes the part from the base's upper blocks, and
    `cross_covariance` the rest. `fresh` (1,) is 1 if these arrays were computed for x and the current posterior.
    """

    x: Floats
    z0: Floats
    Sigma: Floats
    Vt: Floats
    JY: Floats
    fresh: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"fresh": (0, 1)}


class Scratch(NamedTuple):
    r"""Work arrays of one step, with :math:`n = K - 1`.

    z, g (K,), At (K, K), which is :math:`\Sigma` times the weight, and `root` are used to solve the equation of the
    implicit step. G, SG (K, n) and L (n, n) are used to update the covariance. Ft (n, K) and VF (n, nd) are :math:`F'`
    and :math:`(V F)'`. `wide` (n n d,) and `tall` (n d d,) store intermediate products.
    """

    z: Floats
    g: Floats
    At: Floats
    root: RootScratch
    G: Floats
    SG: Floats
    L: Floats
    Ft: Floats
    VF: Floats
    wide: Floats
    tall: Floats


class Posterior(NamedTuple):
    r"""The posterior :math:`N(M, C)` with :math:`n = K - 1` stored classes, the logits at the last context, and work arrays.

    M (K, d) is the mean, and `variance` is :math:`\sigma^2` of the prior. `rows` (n(n+1)/2 d d,) stores the base's
    upper block rows, one after the other. Y (nd, DELAYED n) stores the columns whose :math:`Y Y'` is not yet
    subtracted; unused columns are 0. The constants `WAITING` and `UNSOLVED` index `tally` (2,).
    """

    M: Floats
    variance: float
    rows: Floats
    Y: Floats
    tally: NDArray[np.int64]
    law: LogitLaw
    scratch: Scratch

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        # n columns are added at a time
        n = self.Y.shape[1] // DELAYED
        return {"tally": (np.zeros(2, np.int64), np.array([n * DELAYED, COUNT[1]]), np.array([n, 1]))}


def posterior_state(n_classes: int, n_features: int, deviation: float) -> Posterior:
    r"""Return the state of :math:`N(0, \text{deviation}^2 I)`."""
    K, d = n_classes, n_features
    n = K - 1
    rows = np.zeros((n * K // 2) * d * d)
    for k in range(n):
        block_row(rows, n, d, k)[:, :d] = deviation**2 * np.eye(d)
    law = LogitLaw(
        x=np.zeros(d),
        z0=np.zeros(K),
        Sigma=np.zeros((K, K)),
        Vt=np.zeros((K, n * d)),
        JY=np.zeros((n, DELAYED * n)),
        fresh=np.zeros(1, np.int64),
    )
    scratch = Scratch(
        z=np.zeros(K),
        g=np.zeros(K),
        At=np.zeros((K, K)),
        root=RootScratch.empty(K),
        G=np.zeros((K, n)),
        SG=np.zeros((K, n)),
        L=np.zeros((n, n)),
        Ft=np.zeros((n, K)),
        VF=np.zeros((n, n * d)),
        wide=np.zeros(n * n * d),
        tall=np.zeros(n * d * d),
    )
    return Posterior(
        M=np.zeros((K, d)),
        variance=float(deviation**2),
        rows=rows,
        Y=np.zeros((n * d, DELAYED * n)),
        tally=np.zeros(2, np.int64),
        law=law,
        scratch=scratch,
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
    prior = posterior.variance * np.eye(d)
    C[:n, :, n, :] = prior - C[:n, :, :n, :].sum(axis=2)
    C[n, :, :n, :] = C[:n, :, n, :].transpose(2, 0, 1)
    C[n, :, n, :] = prior - C[n, :, :n, :].sum(axis=1)
    return C.reshape(K * d, K * d)


@njit(arrays="views")
def block_row(rows, n, d, k):
    """Return block row k as a view (d, (n-k)d)."""
    start = d * d * (n * k - k * (k - 1) // 2)
    return borrow(rows)[start : start + d * d * (n - k)].reshape(d, (n - k) * d)


# -------------------------------------------------------------------------------------------------- logits of a context


@njit(arrays="new")
def logit_law(post, x):
    r"""Write :math:`z_0 = M x` and :math:`\Sigma = J C J'` for x (d,), the mean and covariance of the logits.

    The result is cached for the same x.
    """
    law = post.law
    own, Vt, JY = law.x, law.Vt, law.JY
    K, d = post.M.shape
    n = K - 1
    # An update uses the context of the last prediction, for which the result is cached.
    same = law.fresh[0] == 1
    for j in range(d):
        same = same and own[j] == x[j]
    if same:
        return
    for j in range(d):
        own[j] = x[j]
    np.dot(post.M, own, law.z0)
    # J C = J (base) - (J Y) Y'. Sigma requires only the base's block rows and J Y.
    waiting = post.tally[WAITING]
    for k in range(n):
        row_times(own, block_row(post.rows, n, d, k), Vt[k, k * d :])  # (C_lk x)', l >= k, of the base
        row_times(own, post.Y[k * d : (k + 1) * d, :waiting], JY[k, :waiting])
    logit_covariance(law, waiting, post.variance)
    law.fresh[0] = 1


@njit
def logit_covariance(law, waiting, variance):
    r"""Write :math:`\Sigma` (K, K) from the base's part of Vt and JY."""
    own, Vt, JY, Sigma = law.x, law.Vt, law.JY, law.Sigma
    n, d = JY.shape[0], own.shape[0]
    square = 0.0
    for j in range(d):
        square += own[j] * own[j]
    # The stored classes: Sigma_kl = x'(base)_kl x - (J Y)_k (J Y)_l'.
    for k in range(n):
        for l in range(k, n):
            form = 0.0
            for j in range(d):
                form += Vt[k, l * d + j] * own[j]
            for c in range(waiting):
                form -= JY[k, c] * JY[l, c]
            Sigma[k, l] = Sigma[l, k] = form
    # The last class: every row of Sigma sums to sigma^2 ||x||^2.
    rest = variance * square
    Sigma[n, n] = rest
    for k in range(n):
        Sigma[k, n] = rest
        for l in range(n):
            Sigma[k, n] -= Sigma[k, l]
        Sigma[n, k] = Sigma[k, n]
        Sigma[n, n] -= Sigma[k, n]


@njit(arrays="new")
def cross_covariance(post):
    """Complete Vt = :math:`J C` (K, nd), begun by `logit_law`: lower blocks, pending columns and the last class."""
    Vt, own, JY = post.law.Vt, post.law.x, post.law.JY
    K, d = post.M.shape
    n = K - 1
    # Blocks below the diagonal, from the transposed blocks above it.
    for k in range(n - 1):
        m = n - k
        out = post.scratch.wide[: d * m]
        np.dot(block_row(post.rows, n, d, k).reshape(d * m, d), own, out)  # [i m + l - k] = (C_kl x)_i
        for l in range(k + 1, n):
            for i in range(d):
                Vt[l, k * d + i] = out[i * m + l - k]
    # Subtract (J Y) Y', for the steps that are not yet in the base.
    wide = post.scratch.wide.reshape(n, n * d)
    if post.tally[WAITING] > 0:
        np.dot(JY, post.Y.T, wide)  # unused columns of Y are 0
        for k in range(n):
            for j in range(n * d):
                Vt[k, j] -= wide[k, j]
    # The last class: the rows of J C sum to sigma^2 x in every block.
    for l in range(n):
        for j in range(d):
            Vt[n, l * d + j] = post.variance * own[j]
    for k in range(n):
        for j in range(n * d):
            Vt[n, j] -= Vt[k, j]


# --------------------------------------------------------------------------------------------------- K-dimensional work


@njit
def implicit_logits(post, w, y):
    r"""Write the root z of :math:`z = z_0 - w \Sigma (s(z) - e_y)` into z, and :math:`\mathrm{softmax}(z)` into `root.s`."""
    law, scratch = post.law, post.scratch
    g, At, r = scratch.g, scratch.At, scratch.root.r
    K = g.shape[0]
    # In the form that `root` solves: z = g - At s(z) with g = z0 + w Sigma e_y, At = w Sigma.
    for k in range(K):
        g[k] = law.z0[k] + w * law.Sigma[k, y]
        for l in range(K):
            At[k, l] = w * law.Sigma[k, l]
    root(g, At, scratch.z, scratch.root)
    scale, worst = 1.0, 0.0
    for k in range(K):
        scale = max(scale, 1.0 + abs(g[k]))
        worst = max(worst, abs(r[k]))
    post.tally[UNSOLVED] += worst > ROOT_ERROR * scale


@njit
def multinomial_factor(s, G):
    r"""Write a lower trapezoidal G (K, K-1) with :math:`G G' = \mathrm{diag}(s) - s s'`.

    It uses only products and quotients, so there is no cancellation.
    """
    K = s.shape[0]
    tail = s[K - 1]
    for k in range(K - 2, -1, -1):
        whole = s[k] + tail  # s_k + ... + s_{K-1}
        for i in range(k):
            G[i, k] = 0.0
        # Column k contrasts class k with all later classes together.
        diagonal = math.sqrt(s[k] * (tail / whole)) if whole > 0.0 else 0.0
        G[k, k] = diagonal
        for i in range(k + 1, K):
            G[i, k] = -(s[i] / tail) * diagonal if tail > 0.0 else 0.0
        tail = whole


@njit
def core(post, w):
    r"""Write G for s, SG (:math:`\Sigma G`) and the Cholesky factor L of :math:`I + w G' \Sigma G`."""
    Sigma, G, L, SG = post.law.Sigma, post.scratch.G, post.scratch.L, post.scratch.SG
    K = Sigma.shape[0]
    multinomial_factor(post.scratch.root.s, G)
    # SG = Sigma G; G is 0 above its diagonal.
    for i in range(K):
        for c in range(K - 1):
            total = 0.0
            for k in range(c, K):
                total += Sigma[i, k] * G[k, c]
            SG[i, c] = total
    # L L' = I + w G' SG, row by row.
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
    """Do one implicit step with weight w in (0, 1] for label y at x (d,)."""
    logit_law(post, x)
    implicit_logits(post, w, y)
    core(post, w)
    cross_covariance(post)
    move_mean(post, y, w)
    wait(post, w)
    post.law.fresh[0] = 0
    if post.tally[WAITING] == post.Y.shape[1]:
        subtract_waiting(post)


@njit
def move_mean(post, y, w):
    r"""Set :math:`M \mathrel{-}= V w (s - e_y)`; set the last class's mean such that the sum over classes is zero."""
    M, Vt, s = post.M, post.law.Vt, post.scratch.root.s
    K, d = M.shape
    n = K - 1
    for k in range(K):
        g = w * (s[k] - (1.0 if k == y else 0.0))
        for l in range(n):
            for j in range(d):
                M[l, j] -= g * Vt[k, l * d + j]
    for j in range(d):
        M[n, j] = 0.0
    for l in range(n):
        for j in range(d):
            M[n, j] -= M[l, j]


@njit(arrays="new")
def wait(post, w):
    """Append the columns :math:`Y = V F` of the new covariance :math:`C - Y Y'` to the pending ones."""
    Ft, L, G, VF = post.scratch.Ft, post.scratch.L, post.scratch.G, post.scratch.VF
    K, d = post.M.shape
    n = K - 1
    # F' = sqrt(w) L^{-1} G', by forward substitution.
    root = math.sqrt(w)
    for k in range(K):
        for a in range(K - 1):
            total = root * G[k, a]
            for c in range(a):
                total -= L[a, c] * Ft[c, k]
            Ft[a, k] = total / L[a, a]
    np.dot(Ft, post.law.Vt, VF)
    waiting = post.tally[WAITING]
    for j in range(n * d):
        for a in range(n):
            post.Y[j, waiting + a] = VF[a, j]
    post.tally[WAITING] = waiting + n


@njit(arrays="new")
def subtract_waiting(post):
    """Subtract :math:`Y Y'` from the base, block row by block row, and empty Y."""
    Y, JY = post.Y, post.law.JY
    K, d = post.M.shape
    n = K - 1
    for k in range(n):
        m = d * (n - k)
        row, product = block_row(post.rows, n, d, k), post.scratch.tall[: d * m].reshape(d, m)
        np.dot(Y[k * d : (k + 1) * d], Y[k * d :].T, product)
        for i in range(d):
            for j in range(m):
                row[i, j] -= product[i, j]
    # Unused columns must be 0, because products include them.
    for i in range(n * d):
        for c in range(Y.shape[1]):
            Y[i, c] = 0.0
    for k in range(n):
        for c in range(Y.shape[1]):
            JY[k, c] = 0.0
    post.tally[WAITING] = 0
