"""Small dense linear algebra in plain loops, with an order of summation that does not depend on the machine's BLAS."""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.packed_symmetric import step_along


@njit
def fill(A, factor, B):
    r"""Set :math:`A = \text{factor}\, B` for (n, d) arrays; factor 0 clears A. (Array expressions would take longer to
    compile.)
    """
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = factor * B[i, j] if factor != 0.0 else 0.0


@njit
def row_times(x, A, out):
    r"""Set :math:`\text{out} = x'A` for A (d, m), with four rows at a time."""
    d, m = A.shape
    for j in range(m):
        out[j] = 0.0
    # Four rows per pass, so `out` is read and written once for four rows.
    i = 0
    while i + 4 <= d:
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        for j in range(m):
            out[j] += (x0 * A[i, j] + x1 * A[i + 1, j]) + (x2 * A[i + 2, j] + x3 * A[i + 3, j])
        i += 4
    # The remaining one to three rows.
    while i < d:
        for j in range(m):
            out[j] += x[i] * A[i, j]
        i += 1


@njit
def invert(A):
    """Replace a positive definite A (D, D), D a multiple of eight, by its inverse (Gauss-Jordan without pivoting)."""
    A = borrow(A)
    D = A.shape[0]
    for p in range(D):
        # Divide row p by its pivot; column p of the identity replaces column p.
        pivot = 1.0 / A[p, p]
        A[p, p] = 1.0
        for j in range(D):
            A[p, j] *= pivot
        # Subtract multiples of row p from all other rows.
        for i in range(D):
            if i != p:
                f = A[i, p]
                A[i, p] = 0.0
                step_along(A[i], -f, A[p])
    # Make the result exactly symmetric.
    for i in range(D):
        for j in range(i):
            A[i, j] = A[j, i] = 0.5 * (A[i, j] + A[j, i])


@njit
def cholesky_psd(A, R):
    """Write a lower triangular R with :math:`R R' = A` (K, K); a column whose pivot is 0 up to rounding is zero."""
    K = A.shape[0]
    for k in range(K):
        # R_kk = sqrt(A_kk - sum_c R_kc^2)
        pivot = A[k, k]
        for c in range(k):
            pivot -= R[k, c] * R[k, c]
        R[k, k] = math.sqrt(pivot) if pivot > 1e-14 * A[k, k] else 0.0
        # R_ik = (A_ik - sum_c R_ic R_kc) / R_kk
        for i in range(k + 1, K):
            total = A[i, k]
            for c in range(k):
                total -= R[i, c] * R[k, c]
            R[i, k] = total / R[k, k] if R[k, k] > 0.0 else 0.0
            R[k, i] = 0.0


@inline
def overwrite(target, source):
    """Write source (n,) into target (n,).

    This replaces `target[:] = source`, for which numba also compiles the error message for unequal shapes. That takes
    three seconds in each process, for each kernel that contains such an assignment.
    """
    for i in range(target.shape[0]):
        target[i] = source[i]
