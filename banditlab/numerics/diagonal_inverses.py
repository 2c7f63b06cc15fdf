r"""An array of models as in `class_inverses`, with only the diagonal of each matrix :math:`A_i`.

.. math::

    q_i = \sum_j P_{ij} x_j^2, \qquad h_i \mathrel{+}= \text{step}\, v,\; v_j = P_{ij} x_j, \qquad
    1/P_{ij} \leftarrow 1/P_{ij} + w x_j^2 \text{ for } A_i \mathrel{+}= w x x'.

AdaGrad (Duchi, Hazan and Singer 2011) has the same form. The alternative is the diagonal of the inverse; Crammer,
Kulesza and Dredze (Adaptive regularization of weight vectors, NIPS 2009) describe both. On streams of low rank with
noise, agents with the diagonal of the inverse made more mistakes.

Cost: :math:`2 M d` multiplications and d divisions per round; :math:`2 M d` numbers of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.packed_symmetric import Floats, inner, pad, step_along, width, zeros
from banditlab.numerics.row_products import clear, times
from banditlab.numerics.simd import WIDTH, all_lanes, eight, put


class DiagonalInverses(NamedTuple):
    """The models' arrays P and H (M, D), padded with leading zeros. Work arrays: x, v (D,)."""

    P: Floats
    H: Floats
    x: Floats
    v: Floats


def diagonal_inverses(scales: NDArray[np.float64], d: int) -> DiagonalInverses:
    r"""Return models of size d with :math:`P_i = \text{scales}_i I` and :math:`h_i = 0`."""
    M, D = len(scales), width(d)
    inverses = DiagonalInverses(zeros(M, D), zeros(M, D), zeros(D), zeros(D))
    inverses.P[:] = np.asarray(scales)[:, None]
    return inverses


@njit
def reset(inverses, scales):
    r"""Reset all models to :math:`P_i = \text{scales}_i I` and :math:`h_i = 0`."""
    clear(inverses.H)
    for i in range(inverses.P.shape[0]):
        for j in range(inverses.P.shape[1]):
            inverses.P[i, j] = scales[i]


@njit
def read(inverses, x, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` of all models."""
    own, v = borrow(inverses.x), borrow(inverses.v)
    pad(x, own)
    times(inverses.H, own, m)
    for j in range(0, own.shape[0], WIDTH):
        put(v, j, eight(own, j) * eight(own, j))
    times(inverses.P, v, q)


@njit
def read_one(inverses, x, i):
    """Return :math:`m_i` and :math:`q_i` at x, and prepare `update_one` at the same x."""
    own, v, P = borrow(inverses.x), borrow(inverses.v), borrow(inverses.P[i])
    pad(x, own)
    for j in range(0, own.shape[0], WIDTH):
        put(v, j, eight(P, j) * eight(own, j))
    return inner(own, inverses.H[i]), inner(own, v)


@njit
def update_one(inverses, x, i, step, weight, down):
    r"""Update :math:`h_i \mathrel{+}= \text{step}\, v` with :math:`v = P_i x`, and the diagonal of :math:`A_i`.

    The matrix changes by the diagonal of :math:`\text{weight}\, x x'` for the x of the last `read_one`. The argument
    `down` is not used.
    """
    own, v, P = borrow(inverses.x), borrow(inverses.v), borrow(inverses.P[i])
    step_along(inverses.H[i], step, v)
    one = all_lanes(1.0)
    for j in range(0, v.shape[0], WIDTH):
        put(P, j, eight(P, j) / (one + eight(v, j) * eight(own, j) * weight))  # v_j x_j = P_ij x_j^2
