"""Models in a row as `class_inverses` keeps them, P_i = A_i^{-1} and h_i, but of P_i the diagonal alone.

P_i - s v v', v = P_i x, is replaced by its diagonal: of a Gaussian of covariance P_i the product of its marginals.

    q_i = sum_j P_ij x_j^2,        h_i += step v,        P_ij <- P_ij - s v_j^2,        v_j = P_ij x_j,

which stays above 0 for s <= 1/q_i. The other choice is the diagonal of A_i, an entry's variance were all others known (Crammer,
Kulesza and Dredze, Adaptive regularization of weight vectors, NIPS 2009, have both); it trusts features that repeat each other.

Its verbs are plain functions, which `compact_inverses` compiles.

Cost: 2 M d multiplications a round, 2 M d numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow
from banditlab.numerics.packed_symmetric import Floats, inner, lay, step_along, width, zeros
from banditlab.numerics.row_products import times
from banditlab.numerics.simd import WIDTH, eight, put


class DiagonalInverses(NamedTuple):
    """P and H (M, D), rows with zeros in front of the contexts' features. Scratch: x, v (D,)."""

    P: Floats
    H: Floats
    x: Floats
    v: Floats


def diagonal_inverses(scales: NDArray[np.float64], d: int) -> DiagonalInverses:
    """Return models P_i = scales_i I of size d, h_i = 0."""
    M, D = len(scales), width(d)
    made = DiagonalInverses(zeros(M, D), zeros(M, D), zeros(D), zeros(D))
    made.P[:] = np.asarray(scales)[:, None]
    return made


def read(inverses, x, m, q):
    """Write m_i = h_i'x and q_i = x'P_i x of all models."""
    own, v = borrow(inverses.x), borrow(inverses.v)
    lay(x, own)
    times(inverses.H, own, m)
    for j in range(0, own.shape[0], WIDTH):
        put(v, j, eight(own, j) * eight(own, j))
    times(inverses.P, v, q)


def recall(inverses, x, i):
    """Return m_i and q_i, ready for `move` at the same x."""
    own, v, P = borrow(inverses.x), borrow(inverses.v), borrow(inverses.P[i])
    lay(x, own)
    for j in range(0, own.shape[0], WIDTH):
        put(v, j, eight(P, j) * eight(own, j))
    return inner(own, inverses.H[i]), inner(own, v)


def move(inverses, x, i, step, s):
    """h_i += step v and P_i -= s v v', s >= 0, v = P_i x at the x of `recall`, of the latter the diagonal."""
    v, P = borrow(inverses.v), borrow(inverses.P[i])
    step_along(inverses.H[i], step, v)
    for j in range(0, v.shape[0], WIDTH):
        put(P, j, eight(P, j) - eight(v, j) * eight(v, j) * s)
