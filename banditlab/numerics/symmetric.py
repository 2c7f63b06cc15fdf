"""Symmetric matrices P (d, d) stored whole: :math:`P x`, :math:`P - s v v'`, and :math:`x'y`.

The inner loops add four rows at a time to a row of a work array, so they vectorise without fastmath.

For a context with zeros, a round lists the nonzero entries once: `n = support(x, index)`. The functions whose names end
in `_on` read only the listed entries, or use the dense form if the list is long. The choice depends only on n and d, so
all callers get results that are equal to the last bit for the same context.
"""

from __future__ import annotations

from banditlab.numerics.jit import borrow, inline, njit


@inline
def _add_four_rows(a, b, c, e, p0, p1, p2, p3, out):
    for j in range(out.shape[0]):
        out[j] += (a * p0[j] + b * p1[j]) + (c * p2[j] + e * p3[j])


@inline
def dot(x, y):
    """Return :math:`x'y` for x, y (d,), as four independent partial sums."""
    d = x.shape[0]
    whole = d // 4 * 4
    # Sums over j = 0, 1, 2, 3 modulo 4; the remaining one to three entries are added to the first sum.
    s0 = s1 = s2 = s3 = 0.0
    for j in range(0, whole, 4):
        s0 += x[j] * y[j]
        s1 += x[j + 1] * y[j + 1]
        s2 += x[j + 2] * y[j + 2]
        s3 += x[j + 3] * y[j + 3]
    for j in range(whole, d):
        s0 += x[j] * y[j]
    return (s0 + s1) + (s2 + s3)


@njit
def symmetric_matvec(P, x, out):
    """Write P x into out (d,) for a symmetric P (d, d) and x (d,), as a sum of rows of P."""
    P, x, out = borrow(P), borrow(x), borrow(out)
    d = x.shape[0]
    whole = d // 4 * 4
    for j in range(d):
        out[j] = 0.0
    # out = sum_i x_i P_i, four rows per pass
    for i in range(0, whole, 4):
        _add_four_rows(x[i], x[i + 1], x[i + 2], x[i + 3], P[i], P[i + 1], P[i + 2], P[i + 3], out)
    for i in range(whole, d):
        a, p = x[i], P[i]
        for j in range(d):
            out[j] += a * p[j]


# ---------------------------------------------------------------------------------------- contexts that are mostly zero


@njit
def support(x, index):
    r"""Write the indices j with :math:`x_j \ne 0` of x (d,), in increasing order, into `index` (d,) int64; return their
    number.
    """
    n = 0
    for j in range(x.shape[0]):
        index[n] = j  # overwritten by the next one if x_j is 0
        n += x[j] != 0.0  # NaN is not 0 and is included
    return n


@njit
def symmetric_matvec_on(P, x, index, n, out):
    """Write :math:`P x` into out (d,) for a symmetric P (d, d), where n is the result of `support(x, index)`."""
    P, x, index, out = borrow(P), borrow(x), borrow(index), borrow(out)
    if 4 * n > 3 * x.shape[0]:  # reading all rows in order is faster than reading most of them by index
        symmetric_matvec(P, x, out)
        return
    for j in range(out.shape[0]):
        out[j] = 0.0
    _add_rows(P, x, index, 0, n, 0, out)


@inline
def _add_rows(P, x, index, start, stop, first, out):
    """Add the sum over i in `index[start:stop]` of x[i] P[i, first:] to `out` (d - first,)."""
    # Four of the listed rows per pass, then the rest one by one.
    whole = start + (stop - start) // 4 * 4
    for s in range(start, whole, 4):
        i, j, k, l = index[s], index[s + 1], index[s + 2], index[s + 3]
        _add_four_rows(x[i], x[j], x[k], x[l], P[i, first:], P[j, first:], P[k, first:], P[l, first:], out)
    for s in range(whole, stop):
        a, p = x[index[s]], P[index[s], first:]
        for j in range(out.shape[0]):
            out[j] += a * p[j]


@njit
def rank_one_downdate(P, v, s):
    """Subtract :math:`s v v'` from P (d, d), for v (d,).

    :math:`(v_i v_j) s` has the same rounding on both sides of the diagonal, so P stays exactly symmetric.
    """
    P, v = borrow(P), borrow(v)
    d = v.shape[0]
    for i in range(d):
        a, p = v[i], P[i]
        for j in range(d):
            p[j] -= (a * v[j]) * s
