"""The inverse of A = lambda I + c (H_1 + ... + H_t) as C C', for R^2 / lambda beyond what A^{-1} itself can hold.

`joint_inverse` keeps A^{-1}, whose entries are of the size of 1/lambda while what forecasts need of it, x'A^{-1}x where x
has been learnt, is of the size of 1: A^{-1} has lost all digits of that at R^2 / lambda = 1e16, and of a forecast, by
measurement, at 1e10. C has entries of the size of 1/sqrt(lambda), and the Gram matrix of

    u_k = C'(e_k (x) x),      At = (1/2) U U'  (K, K),

loses half as many digits. Three more places where a formula that is right loses them:

* What all classes have in common is R^2 / (2 lambda) in every entry of At and nothing in a forecast: U is centred over the
  classes, which leaves the zero-sum part of At.
* S = diag(s) - s s' = Y Y' has the null vector 1, so that I + c Y'U U'Y has an eigenvalue 1 beside those of 1/lambda: the
  columns of Y = diag(sqrt s) Q, Q (K, K - 1) orthonormal and orthogonal to sqrt s, leave it out.
* A vector b with b'1 = 0 is Y beta, beta = Q'(b / sqrt s), so that with W = sqrt(c) U'Y the solution of A_t v = b (x) x is
  C W (I + W'W)^{-1} beta / sqrt c: nothing is subtracted.

C changes as in the square-root filters of Potter and Andrews (AIAA Journal 6, 1968): with L L' = I + W'W,

    A_t^{-1} = C (I + W W')^{-1} C',     C_t = C (I - W L'^{-1} (I + L)^{-1} W').                            (C)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.joint_inverse import EPSILON, subtract
from banditlab.numerics.softmax import softmax_into

STEPS, HALVINGS = 200, 60
TINY = 1e-280
"""Below this a probability is taken as this where it is divided by."""
ROUNDINGS = 4.0
"""Times the rounding unit and C's condition: by how much one update is taken to change A^{-1}, relatively, in A's norm."""

INVERSE, CENTRE, WEIGHT = range(3)
"""Slots of `Root.drift`: bounds on the relative error of A^{-1} and the error of the minimiser, in A's norm; c sum |x|^2."""


class Root(NamedTuple):
    """C (K, d, Kd), block rows of C, and drift (3,) are what changes from round to round, the others are scratch.

    U (K, Kd), centred, and At (K, K) at the last context; W, Z (K, Kd), X, L, M (K, K) of an update; t (Kd,), P (d, K),
    D (d, Kd) products; s, q, a, r, beta, p, mean, step, trial (K,).
    """

    C: NDArray[np.float64]
    drift: NDArray[np.float64]
    U: NDArray[np.float64]
    At: NDArray[np.float64]
    W: NDArray[np.float64]
    Z: NDArray[np.float64]
    X: NDArray[np.float64]
    L: NDArray[np.float64]
    M: NDArray[np.float64]
    t: NDArray[np.float64]
    P: NDArray[np.float64]
    D: NDArray[np.float64]
    s: NDArray[np.float64]
    q: NDArray[np.float64]
    a: NDArray[np.float64]
    r: NDArray[np.float64]
    beta: NDArray[np.float64]
    p: NDArray[np.float64]
    mean: NDArray[np.float64]
    step: NDArray[np.float64]
    trial: NDArray[np.float64]

    @classmethod
    def initial(cls, K: int, d: int, regularization: float) -> Root:
        """Return C = I / sqrt(lambda)."""
        n = K * d
        C = np.eye(n).reshape(K, d, n) / math.sqrt(regularization)
        (U, W, Z), (At, X, L, M) = np.zeros((3, K, n)), np.zeros((4, K, K))
        return cls(
            C, np.zeros(3), U, At, W, Z, X, L, M, np.zeros(n), np.zeros((d, K)), np.zeros((d, n)), *np.zeros((9, K))
        )

    @staticmethod
    def size(K: int, d: int) -> int:
        """Return about how many bytes the arrays take."""
        return 8 * (K * d * K * d + K * d * d + 3 * K * K * d)

    def wider(self, d: int, regularization: float) -> Root:
        """Return the same with coordinates to d added, in which A = lambda I still."""
        K, old, n = self.C.shape
        wide = Root.initial(K, d, regularization)
        wide.C[...] = 0.0
        wide.C[:, :old, :n] = self.C
        for k in range(K):
            first = n + k * (d - old)
            wide.C[k, old:, first : first + d - old] = np.eye(d - old) / math.sqrt(regularization)
        wide.drift[:] = self.drift
        return wide

    def rotated(self, Q: NDArray[np.float64], regularization: float) -> Root:
        """Return C in the space that holds the first r coordinates as the rows of Q (r, d), orthonormal."""
        K, (r, d) = self.C.shape[0], Q.shape
        learnt = self.C[:, :r].reshape(K * r, -1)
        square = np.linalg.qr(learnt.T)[1].T.reshape(K, r, K * r)  # C C' stays, with K r columns
        rest = np.linalg.qr(Q.T, mode="complete")[0][:, r:] / math.sqrt(regularization)
        whole = Root.initial(K, d, regularization)
        whole.C[...] = 0.0
        for k in range(K):
            first = K * r + k * (d - r)
            whole.C[k, :, : K * r] = Q.T @ square[k]
            whole.C[k, :, first : first + d - r] = rest
        whole.drift[:] = self.drift
        return whole


@njit
def centre(v):
    """Take the mean off v (K,)."""
    mean = 0.0
    for k in range(v.shape[0]):
        mean += v[k]
    mean /= v.shape[0]
    for k in range(v.shape[0]):
        v[k] -= mean


@njit(arrays="made")
def form_root(root, h, x):
    """Write U and At, centred, and mean = -(1/2) h x, centred, at x (d,), for h (K, d) = A^{-1} G."""
    C, U, mean = root.C, root.U, root.mean
    K = U.shape[0]
    for k in range(K):
        np.dot(x, C[k], U[k])
        mean[k] = -0.5 * np.dot(h[k], x)
    centre(mean)
    for j in range(U.shape[1]):
        shared = 0.0
        for k in range(K):
            shared += U[k, j]
        shared /= K
        for k in range(K):
            U[k, j] -= shared
    np.dot(U, U.T, root.At)
    for k in range(K):
        for l in range(K):
            root.At[k, l] *= 0.5


@njit
def solve_lu(A, v):
    """Overwrite v (K,) with A^{-1} v by elimination with row exchanges; A (K, K) is overwritten."""
    K = v.shape[0]
    for j in range(K):
        best = j
        for i in range(j + 1, K):
            if abs(A[i, j]) > abs(A[best, j]):
                best = i
        if best != j:
            for k in range(j, K):
                A[j, k], A[best, k] = A[best, k], A[j, k]
            v[j], v[best] = v[best], v[j]
        for i in range(j + 1, K):
            f = A[i, j] / A[j, j]
            for k in range(j + 1, K):
                A[i, k] -= f * A[j, k]
            v[i] -= f * v[j]
    for j in range(K - 1, -1, -1):
        for k in range(j + 1, K):
            v[j] -= A[j, k] * v[k]
        v[j] /= A[j, j]


@njit
def equation(root, z, y):
    """Write s = softmax(z), a and r = z - mean + a, centred (all (K,)), and return max |r|, NaN where one is NaN.

    a = At (s - e_y): the implicit step towards class y. For y < 0, a = At s - (1/2) diag(At): the root of FOLKLORE.
    """
    At, s, a, r = root.At, root.s, root.a, root.r
    K = z.shape[0]
    softmax_into(z, s)
    others = 0.0  # s_y - 1 without its rounding
    for k in range(K):
        if k != y:
            others += s[k]
    for i in range(K):
        total = 0.0
        for j in range(K):
            total += At[i, j] * (-others if j == y else s[j])
        a[i] = total if y >= 0 else total - 0.5 * At[i, i]
    centre(a)
    worst = 0.0
    for i in range(K):
        r[i] = z[i] - root.mean[i] + a[i]
    centre(r)
    for i in range(K):
        if abs(r[i]) > worst or math.isnan(r[i]):
            worst = abs(r[i])
    return worst


@njit
def solve_equation(root, z, y):
    """Write the root of `equation` into z (K,), centred: Newton's method from `mean`, halving steps, as far as it falls.

    Returns the residual relative to 1 + the size of its terms.
    """
    s, step, trial, M = root.s, root.step, root.trial, root.M
    K = z.shape[0]
    for k in range(K):
        z[k] = root.mean[k] if y >= 0 else 0.0
    worst = equation(root, z, y)
    if not worst < math.inf:
        z[:] = math.nan
        return math.nan
    for _ in range(STEPS):
        if worst == 0.0:
            break
        for i in range(K):
            weighted = 0.0
            for j in range(K):
                weighted += root.At[i, j] * s[j]
            for j in range(K):
                M[i, j] = (root.At[i, j] - weighted) * s[j]  # At S
            M[i, i] += 1.0
            step[i] = -root.r[i]
        solve_lu(M, step)
        centre(step)
        length, now = 1.0, worst
        for _ in range(HALVINGS):
            for k in range(K):
                trial[k] = z[k] + length * step[k]
            now = equation(root, trial, y)
            if now < worst:
                break
            length *= 0.5
        if not now < worst:
            break
        overwrite(z, trial)
        worst = now
    centre(z)
    equation(root, z, y)
    return worst / (1.0 + noise(root, z, y))


@njit
def noise(root, z, y):
    """Return the size of the terms of `equation`."""
    K, largest = z.shape[0], 0.0
    for i in range(K):
        total = abs(z[i]) + abs(root.mean[i])
        for j in range(K):
            weight = abs(root.s[j] - 1.0) if j == y else root.s[j]
            total += abs(root.At[i, j]) * weight
        if y < 0:
            total += 0.5 * root.At[i, i]
        largest = max(largest, total)
    return largest


@njit(arrays="made")
def learn_root(root, h, c, lam, square, y, z, printed):
    """A += c H at the logits z (K,), s = softmax(z) in root.s, label y; move h = A^{-1} G (K, d) along.

    Whatever z is, the surrogate expanded there raises the least value of the surrogates' sum by loss(z) - T,

        T = g'r - c r'S r + (1/(4c)) beta'X (I + X)^{-1} beta,    g = s - e_y, r = z - mean, X = W'W.

    Returns (T, a bound on what rounding has changed in it). `square` is |x|^2; `printed` is 1 where G lacks the Hessian's
    term (FOLKLORE as printed), 2 where it has it at the mean (GAF as printed), else 0: r differs then in b = g - 2c S r.
    """
    U, W, X, L = root.U, root.W, root.X, root.L
    s, q, r, beta, p = root.s, root.q, root.r, root.beta, root.p
    K, d, m = root.C.shape[0], root.C.shape[1], root.C.shape[0] - 1
    gr, others, weighted = 0.0, 0.0, 0.0
    for k in range(K):
        r[k] = z[k] - root.mean[k]
        q[k] = math.sqrt(max(s[k], TINY))
        weighted += s[k] * r[k]
        others += 0.0 if k == y else s[k]
    rSr = 0.0
    for k in range(K):
        g = -others if k == y else s[k]
        gr += g * r[k]
        rSr += s[k] * (r[k] - weighted) ** 2
        beta[k] = g / q[k]
    if printed > 0.0:
        weighted = 0.0
        for k in range(K):
            r[k] = 0.0 if printed > 1.0 else r[k] - z[k]
            weighted += s[k] * r[k]
    for k in range(K):
        beta[k] -= 2.0 * c * q[k] * (r[k] - weighted)  # b = g - 2c S r
    complement(q, c, beta, root.M)
    np.dot(root.M[:m], U, W[:m])  # W' = sqrt(c) Y'U
    gram(W, m, X)
    factor(X, m, L)
    for i in range(m):
        p[i] = beta[i]
    triangular(L, m, p)  # p = (I + X)^{-1} beta
    half = step_along(root, m)
    shift = 1.0 / math.sqrt(c)
    for k in range(K):  # h += A_t^{-1} (b (x) x), A_t^{-1} (b (x) x) = C W p / sqrt c
        for j in range(d):
            h[k, j] += shift * np.dot(root.C[k, j], root.t)
    gain = half_squared(X, p, m) / (4.0 * c) + half * half / (4.0 * c)
    downdate(root, m)
    T = gr - c * rSr + gain
    return T, drifted(root, c, lam, square, half * shift) + 16.0 * EPSILON * K * (abs(gr) + c * rSr + gain)


@njit
def complement(q, c, beta, Yt):
    """Write sqrt(c) Y' into the first K - 1 rows of Yt (K, K), Y = diag(q) Q, and Q'beta into beta[:K - 1].

    Q are the columns but one of the reflection that takes q to a unit vector: I - h h' / (1 + q_j), h = q + e_j.
    """
    K = q.shape[0]
    j = 0
    for k in range(1, K):
        if q[k] > q[j]:
            j = k
    along = beta[j]
    for k in range(K):
        along += q[k] * beta[k]  # h'beta
    along /= 1.0 + q[j]
    scale, row = math.sqrt(c), 0
    for i in range(K):
        if i == j:
            continue
        share = q[i] / (1.0 + q[j])
        for k in range(K):
            entry = -(q[k] + (1.0 if k == j else 0.0)) * share
            Yt[row, k] = scale * q[k] * (entry + (1.0 if k == i else 0.0))
        beta[row] = beta[i] - along * q[i]
        row += 1


@njit
def gram(W, m, X):
    """Write the Gram matrix of the first m rows of W into X[:m, :m]."""
    for i in range(m):
        for j in range(i + 1):
            X[i, j] = X[j, i] = np.dot(W[i], W[j])


@njit
def factor(X, m, L):
    """Write the lower Cholesky factor of I + X[:m, :m] into L."""
    for i in range(m):
        for j in range(i + 1):
            entry = X[i, j] + (1.0 if i == j else 0.0)
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(entry) if i == j else entry / L[j, j]


@njit
def triangular(L, m, p):
    """Overwrite p[:m] with (L L')^{-1} p."""
    for i in range(m):
        for k in range(i):
            p[i] -= L[i, k] * p[k]
        p[i] /= L[i, i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            p[i] -= L[k, i] * p[k]
        p[i] /= L[i, i]


@njit
def step_along(root, m):
    """Write W p into root.t and return its length."""
    t, square = root.t, 0.0
    for j in range(t.shape[0]):
        total = 0.0
        for i in range(m):
            total += root.p[i] * root.W[i, j]
        t[j] = total
        square += total * total
    return math.sqrt(square)


@njit
def half_squared(X, p, m):
    """Return |X p|^2."""
    square = 0.0
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += X[i, j] * p[j]
        square += total * total
    return square


@njit(arrays="made")
def downdate(root, m):
    """C -= (C W) L'^{-1} (I + L)^{-1} W': (C)."""
    W, Z, L = root.W, root.Z, root.L
    for i in range(m):
        z = Z[i]
        overwrite(z, W[i])
        for k in range(i):
            for j in range(z.shape[0]):
                z[j] -= L[i, k] * Z[k, j]
        for j in range(z.shape[0]):
            z[j] /= 1.0 + L[i, i]
    for i in range(m - 1, -1, -1):
        z = Z[i]
        for k in range(i + 1, m):
            for j in range(z.shape[0]):
                z[j] -= L[k, i] * Z[k, j]
        for j in range(z.shape[0]):
            z[j] /= L[i, i]
    for k in range(root.C.shape[0]):  # the last rows of W and Z are 0
        np.dot(root.C[k], W.T, root.P)
        np.dot(root.P, Z, root.D)
        subtract(root.C[k], root.D)


@njit
def drifted(root, c, lam, square, length):
    """Bring `drift` up to date and return what the drift may change in T; length is |W p| / sqrt c.

    An update perturbs C by rounding relative to the largest entries of its rows, hence A^{-1} relatively in A's norm by
    that times C's condition, at most (1 + c sum |x|^2 / lambda)^{1/2}; later updates only shrink that. T changes by
    (1/2) kappa'dAt kappa - kappa'dmean, kappa'At kappa = length^2 / 2.
    """
    drift = root.drift
    drift[WEIGHT] += c * square
    fresh = ROUNDINGS * EPSILON * math.sqrt(1.0 + drift[WEIGHT] / lam)
    off = 0.25 * drift[INVERSE] * length * length + drift[CENTRE] * length
    drift[INVERSE] += fresh
    drift[CENTRE] += 0.5 * (fresh + drift[INVERSE]) * length
    return off + fresh * length
