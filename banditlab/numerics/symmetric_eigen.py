"""All eigenvalues and eigenvectors of a small symmetric matrix, inside kernels: nothing is allocated, no library is called.

Problem: A = sum_i w_i z_i z_i' for A (n, n) symmetric, n up to a few hundred. Householder's reflections make A tridiagonal,
implicit QL steps with Wilkinson's shift make it diagonal (EISPACK's tred2 and tql2; Golub and Van Loan, Matrix computations,
8.3). Vectors are kept as rows, so that a reflection and a rotation go through memory in order, eight numbers at a time. The
sums have one order on every machine, which a LAPACK does not promise.

Accuracy: w_i to some units of rounding of the largest |w|, vectors orthonormal to as much.

Cost: about n^3 multiplications for the reduction, half of them with the vectors, and 3 n^3 for the rotations.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.simd import WIDTH, all_lanes, eight, fma, put, total

EPSILON = 2.0**-52
FLOOR = 2.0**-60
"""An entry beside the diagonal below this share of the largest is 0: far below the rounding of A itself."""
MOST_STEPS = 60
"""QL steps for one eigenvalue; two or three are usual. After so many (A is no number) what there is stays."""


@inline
def _dot(A, i, v, n):
    """Return the sum of A[i + j] v_j over j < n, a multiple of eight."""
    a = all_lanes(0.0)
    for j in range(0, n, WIDTH):
        a = fma(eight(A, i + j), eight(v, j), a)
    return total(a)


@inline
def _add(A, i, by, v, n):
    """Add by v_j to A[i + j], j < n."""
    for j in range(0, n, WIDTH):
        put(A, i + j, eight(A, i + j) + eight(v, j) * by)


@njit
def eigen(A, Z, w, e, v, p, n):
    """Write the eigenvalues of A into w_0 ... w_{n-1}, in no order, and their vectors into the first n rows of Z.

    A, Z (N, N), w, e, v, p (N,), N a multiple of eight; what of A lies beyond its first n rows and columns is 0. A, e, v and p
    end as anything.
    """
    A, Z, w, e, v, p = borrow(A), borrow(Z), borrow(w), borrow(e), borrow(v), borrow(p)
    reduce_to_tridiagonal(A, w, e, v, p, n)
    collect_reflections(A, Z, v, p, n)
    rotate_to_diagonal(Z, w, e, n)


@njit
def reduce_to_tridiagonal(A, w, e, v, p, n):
    """A <- H A H for one reflection H = I - v v' after the other; diagonal into w, the entries beside it into e.

    Row k of A keeps v of the k-th reflection, |v|^2 = 2; zeros where none is needed.
    """
    N = A.shape[0]
    for k in range(n):
        w[k] = A[k, k]
        e[k] = A[k, k + 1] if k + 1 < n else 0.0
        # x, the row right of the diagonal: alpha, and behind it what is to vanish
        for j in range(N):
            v[j] = A[k, j] if j > k + 1 else 0.0
        alpha, square = e[k], _dot(v, 0, v, N)
        right = square + alpha * alpha
        if k + 2 >= n or not square > FLOOR * FLOOR * right:
            for j in range(N):
                A[k, j] = 0.0
            continue
        # v = x - e_k along the first axis
        long = math.sqrt(right)
        e[k] = -math.copysign(long, alpha)
        v[k + 1] = alpha - e[k]
        # |v|^2 = 2 (right + |alpha| long); scaled so that H = I - v v'
        by = 1.0 / math.sqrt(right + abs(alpha) * long)
        for j in range(0, N, WIDTH):
            put(v, j, eight(v, j) * by)
        # H A H = A - v u' - u v',  p = A v,  u = p - (v'p / 2) v
        for i in range(N):
            p[i] = _dot(A, i * N, v, N) if k < i < n else 0.0
        _add(p, 0, -0.5 * _dot(p, 0, v, N), v, N)
        for i in range(k + 1, n):
            _add(A, i * N, -v[i], p, N)
            _add(A, i * N, -p[i], v, N)
        for j in range(N):
            A[k, j] = v[j]


@njit
def collect_reflections(A, Z, v, p, n):
    """Z = H_{n-3} ... H_0, whose rows are those that the rotations go on with: A = Z'T Z."""
    N = A.shape[0]
    for i in range(N):
        for j in range(N):
            Z[i, j] = 1.0 if i == j else 0.0
    # From the last reflection on: rows and columns up to k are still those of the identity.
    for k in range(n - 3, -1, -1):
        for j in range(N):
            v[j] = A[k, j]
        for i in range(k + 1, n):
            _add(Z, i * N, -_dot(Z, i * N, v, N), v, N)


@njit
def rotate_to_diagonal(Z, w, e, n):
    """Make T, diagonal w and e beside it, diagonal by QL steps, and turn the rows of Z along."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(w[i]), abs(e[i]))
    for l in range(n):
        for _ in range(MOST_STEPS):
            # the block that begins at l ends at m, where T falls apart
            m = l
            while m < n - 1 and not abs(e[m]) <= EPSILON * (abs(w[m]) + abs(w[m + 1])) + FLOOR * largest:
                m += 1
            if m == l:
                break
            ql_step(Z, w, e, l, m)


@njit
def ql_step(Z, w, e, l, m):
    """One implicit QL step on the block l ... m of T."""
    N = Z.shape[1]
    # Wilkinson's shift
    g = (w[l + 1] - w[l]) / (2.0 * e[l])
    g = w[m] - w[l] + e[l] / (g + math.copysign(math.sqrt(g * g + 1.0), g))
    s, c, shift = 1.0, 1.0, 0.0
    for i in range(m - 1, l - 1, -1):
        f, b = s * e[i], c * e[i]
        r = math.sqrt(f * f + g * g)
        e[i + 1] = r
        if r == 0.0:  # T falls apart here
            w[i + 1] -= shift
            e[m] = 0.0
            return
        s, c = f / r, g / r
        g = w[i + 1] - shift
        r = (w[i] - g) * s + 2.0 * c * b
        shift = s * r
        w[i + 1] = g + shift
        g = c * r - b
        rotate(Z, i * N, N, c, s)
    w[l] -= shift
    e[l] = g
    e[m] = 0.0


@njit
def rotate(Z, i, N, c, s):
    """Turn the row that begins at i and the next one: (z_i, z_{i+1}) <- (c z_i - s z_{i+1}, s z_i + c z_{i+1})."""
    Z = borrow(Z)
    for j in range(i, i + N, WIDTH):
        y, z = eight(Z, j), eight(Z, j + N)
        put(Z, j, y * c - z * s)
        put(Z, j + N, y * s + z * c)
