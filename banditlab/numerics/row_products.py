"""Products of matrices stored by rows, :math:`W x` and :math:`Y + C W`, eight numbers at a time.

Rows are padded to a multiple of eight (see `packed_symmetric.zeros`), so loops need no remainder.
"""

from __future__ import annotations

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.row_tiles import eight_rows
from banditlab.numerics.simd import WIDTH, all_lanes, combined, eight, fma, put, total

FOUR = 4
"""The number of rows of W per pass over x, as many independent sums as hide the latency of additions."""


@njit
def times(W, x, z):
    """Write :math:`w_k'x` into :math:`z_k` for the rows of W (K, D), x (D,), z (K,) or longer."""
    W, x, z = borrow(W), borrow(x), borrow(z)
    K, D = W.shape
    for k in range(0, K - K % FOUR, FOUR):
        a = b = c = e = all_lanes(0.0)
        w = k * D
        for j in range(0, D, WIDTH):
            y = eight(x, j)
            a = fma(eight(W, w + j), y, a)
            b = fma(eight(W, w + D + j), y, b)
            c = fma(eight(W, w + 2 * D + j), y, c)
            e = fma(eight(W, w + 3 * D + j), y, e)
        z[k], z[k + 1], z[k + 2], z[k + 3] = total(a), total(b), total(c), total(e)
    for k in range(K - K % FOUR, K):
        a = all_lanes(0.0)
        for j in range(0, D, WIDTH):
            a = fma(eight(W, k * D + j), eight(x, j), a)
        z[k] = total(a)


@njit
def add_product(Y, C, W):
    """Add :math:`C W` to Y: Y (n, D), C (n, m), W (m, D), m and D multiples of eight."""
    Y, C, W = borrow(Y), borrow(C), borrow(W)
    n, D, m = Y.shape[0], Y.shape[1], W.shape[0]
    # Eight columns of eight rows of W stay in registers for all rows of Y.
    for j in range(0, D, WIDTH):
        for i in range(0, m, WIDTH):
            rows = eight_rows(W, i * D + j, D)
            for k in range(n):
                put(Y, k * D + j, eight(Y, k * D + j) + combined(rows, C, k * m + i, 1))


@njit
def clear(Y):
    """Write zeros into Y (n, D)."""
    Y = borrow(Y)
    for j in range(0, Y.size, WIDTH):
        put(Y, j, all_lanes(0.0))


@njit
def scale(y, factor):
    """Multiply y, (D,) or (n, D), by a number."""
    y = borrow(y)
    for j in range(0, y.size, WIDTH):
        put(y, j, eight(y, j) * factor)


@njit
def orthonormalize(Q, n):
    """Orthonormalise the first n rows of Q (m, D), which are nearly orthonormal, by Gram-Schmidt, row after row."""
    Q = borrow(Q)
    D = Q.shape[1]
    for i in range(n):
        for k in range(i):
            a = all_lanes(0.0)
            for j in range(0, D, WIDTH):
                a = fma(eight(Q, i * D + j), eight(Q, k * D + j), a)
            along = total(a)
            for j in range(0, D, WIDTH):
                put(Q, i * D + j, eight(Q, i * D + j) - eight(Q, k * D + j) * along)
        a = all_lanes(0.0)
        for j in range(0, D, WIDTH):
            a = fma(eight(Q, i * D + j), eight(Q, i * D + j), a)
        long = total(a) ** 0.5
        if long > 0.0:
            for j in range(0, D, WIDTH):
                put(Q, i * D + j, eight(Q, i * D + j) * (1.0 / long))
