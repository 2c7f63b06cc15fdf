"""Products of matrices stored by rows, :math:`W x` and :math:`Y + C W`, eight numbers at a time.

Rows have a multiple of eight entries (`packed_symmetric.width`). A context may be shorter; its missing entries count
as 0.
"""

from __future__ import annotations

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.row_tiles import eight_rows, no_rows
from banditlab.numerics.simd import WIDTH, all_lanes, combined, eight, first, fma, put, total, totals_as_total


@inline
def plus_products(a, b, y):
    """Return the rows :math:`a_r + b_r y`, rounded once, for eight rows."""
    low = (fma(b[0], y, a[0]), fma(b[1], y, a[1]), fma(b[2], y, a[2]), fma(b[3], y, a[3]))
    return (*low, fma(b[4], y, a[4]), fma(b[5], y, a[5]), fma(b[6], y, a[6]), fma(b[7], y, a[7]))


@njit
def times(W, x, z):
    """Write :math:`w_k'x` into :math:`z_k` for the rows of W (K, D), D a multiple of eight; x may be shorter than D, and
    z longer than K.
    """
    W, x, z = borrow(W), borrow(x), borrow(z)
    K, D, n = W.shape[0], W.shape[1], x.shape[0] % WIDTH
    end, blocks = x.shape[0] - n, K - K % WIDTH
    for k in range(0, blocks, WIDTH):  # eight rows per pass over x
        sums = no_rows()
        for j in range(0, end, WIDTH):
            sums = plus_products(sums, eight_rows(W, k * D + j, D), eight(x, j))
        if n > 0:
            sums = plus_products(sums, eight_rows(W, k * D + end, D), first(x, end, n))
        a, b, c, e, f, g, h, i = sums
        put(z, k, totals_as_total(a, b, c, e, f, g, h, i))
    for k in range(blocks, K, 2):  # then two, the last one twice if K is odd
        other = min(k + 1, K - 1)
        one, two = k * D, other * D
        a = b = all_lanes(0.0)
        for j in range(0, end, WIDTH):
            y = eight(x, j)
            a, b = fma(eight(W, one + j), y, a), fma(eight(W, two + j), y, b)
        if n > 0:
            y = first(x, end, n)
            a, b = fma(eight(W, one + end), y, a), fma(eight(W, two + end), y, b)
        z[k], z[other] = total(a), total(b)


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
