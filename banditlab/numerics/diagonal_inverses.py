"""Models in a row as `class_inverses` keeps them, P_i = A_i^{-1} and h_i, but of A_i the diagonal alone.

    q_i = sum_j P_ij x_j^2,        h_i += step v, v_j = P_ij x_j,        1 / P_ij <- 1 / P_ij + w x_j^2 for A_i += w x x'.

As in AdaGrad (Duchi, Hazan and Singer 2011). The other choice is the diagonal of the inverse (Crammer, Kulesza and Dredze,
Adaptive regularization of weight vectors, NIPS 2009, have both); on streams of low rank and noise it made more mistakes.

Cost: 2 M d multiplications a round, d divisions, 2 M d numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.packed_symmetric import Floats, inner, lay, step_along, width, zeros
from banditlab.numerics.row_products import clear, times
from banditlab.numerics.simd import WIDTH, all_lanes, eight, put


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


@njit
def forget(inverses, scales):
    """Bring all models back to P_i = scales_i I, h_i = 0."""
    clear(inverses.H)
    for i in range(inverses.P.shape[0]):
        for j in range(inverses.P.shape[1]):
            inverses.P[i, j] = scales[i]


@njit
def read(inverses, x, m, q):
    """Write m_i = h_i'x and q_i = x'P_i x of all models."""
    own, v = borrow(inverses.x), borrow(inverses.v)
    lay(x, own)
    times(inverses.H, own, m)
    for j in range(0, own.shape[0], WIDTH):
        put(v, j, eight(own, j) * eight(own, j))
    times(inverses.P, v, q)


@njit
def recall(inverses, x, i):
    """Return m_i and q_i, ready for `move` at the same x."""
    own, v, P = borrow(inverses.x), borrow(inverses.v), borrow(inverses.P[i])
    lay(x, own)
    for j in range(0, own.shape[0], WIDTH):
        put(v, j, eight(P, j) * eight(own, j))
    return inner(own, inverses.H[i]), inner(own, v)


@njit
def move(inverses, x, i, step, weight, down):
    """h_i += step v, v = P_i x, and the diagonal of A_i += weight x x', at the x of `recall`; down is not asked for."""
    own, v, P = borrow(inverses.x), borrow(inverses.v), borrow(inverses.P[i])
    step_along(inverses.H[i], step, v)
    one = all_lanes(1.0)
    for j in range(0, v.shape[0], WIDTH):
        put(P, j, eight(P, j) / (one + eight(v, j) * eight(own, j) * weight))  # v_j x_j = P_ij x_j^2
