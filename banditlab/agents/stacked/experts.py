"""AIOLI models of N experts that are updated together, one model per expert and class; all inputs have the same length.

Expert e has the models of `class_models`: :math:`P_{ek} = A_{ek}^{-1}` and :math:`h_{ek} = P_{ek} b_{ek}`. An expert
obtains :math:`q_k = x'P_{ek} x` in one of two ways: from its own matrices, or from another expert whose input is of the
same kind (`shared_q`). Matrices are stored in float32, and all sums are computed in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import Limits, constant
from banditlab.numerics.packed_symmetric import (
    Floats,
    Point,
    diagonal,
    downdate,
    forms,
    inner,
    pad,
    point,
    product,
    rows_times,
    set_point,
    single_zeros,
    size_of,
    step_along,
    width,
    zeros,
)
from banditlab.numerics.tanh_root import aioli_root

WEIGHT = 2.0
r"""w, the weight of the two virtual labels: yes with :math:`w \pi`, no with :math:`w (1 - \pi)`."""
CURVATURE = 0.25
"""c, how much an outcome adds to A."""


class Bank(NamedTuple):
    r"""The models: P (N, K, S), packed, in float32; H (N, K, D), the rows h, padded; start (N,), half of
    :math:`1/\lambda`.

    places (m,) has the positions of the diagonal in a packed matrix. Work arrays: `point`; v (D,), which is P x.
    """

    P: NDArray[np.float32]
    H: Floats
    start: Floats
    places: NDArray[np.int64]
    point: Point
    v: Floats

    def limits(self) -> Limits:
        """Return the range of every integer; the size determines the places."""
        return {"places": constant(self.places)}


def bank(regularizations: NDArray[np.float64], n_classes: int, m: int) -> Bank:
    r"""Return experts before any update, with views of m numbers and :math:`A_0 = \lambda_e I` for each class."""
    N = len(regularizations)
    made = Bank(
        P=single_zeros(N, n_classes, size_of(width(m))),
        H=zeros(N, n_classes, width(m)),
        start=0.5 / np.asarray(regularizations, dtype=np.float64),
        places=diagonal(m),
        point=point(m),
        v=zeros(width(m)),
    )
    made.P[:, :, made.places] = made.start[:, None, None]
    return made


@njit
def reset_bank(bank):
    """Reset all models to :math:`A_0`."""
    N, K, S = bank.P.shape
    for e in range(N):
        for k in range(K):
            for s in range(S):
                bank.P[e, k, s] = 0.0
            for i in range(bank.places.shape[0]):
                bank.P[e, k, bank.places[i]] = bank.start[e]
            for j in range(bank.H.shape[2]):
                bank.H[e, k, j] = 0.0


@inline
def read_expert(bank, e, view, m, q, share, shared_q):
    """Write :math:`m_k = h_k'x` of expert e at its view x into m (K,), and :math:`q_k` into q (K,).

    :math:`q_k` is :math:`x'P_k x`, or `shared_q` (K,) if `share`.
    """
    if share:
        pad(view, bank.point.x)
        for k in range(q.shape[0]):
            q[k] = shared_q[k]
    else:
        set_point(bank.point, view)
        forms(bank.P[e], bank.point, q)
    rows_times(bank.H[e], bank.point.x, m)


@njit
def update_expert(bank, e, view, k, y, z, fresh, shared_q, lifted):
    r"""Update class k of expert e with the outcome :math:`y = \pm 1` at its view; return its margin and its own q.

    The margin is z, or, if fresh, the root at :math:`m + \text{lifted}\, q`. The root uses `shared_q`, or the expert's
    own q if `shared_q` is negative.
    """
    own, v = bank.point.x, bank.v
    pad(view, own)
    product(bank.P[e, k], own, v)
    m, q = inner(own, bank.H[e, k]), max(0.0, inner(own, v))
    if fresh:
        shared_q = q if shared_q < 0.0 else shared_q
        z = aioli_root(m + lifted * shared_q, shared_q, WEIGHT)
    # As `class_models.update_model`: b += (c s(z) s(-z) z - g/2) x, A += c s(z) s(-z) x x'
    curvature = CURVATURE * sigmoid(z) * sigmoid(-z)
    g = -y * sigmoid(-y * z)
    down = 1.0 / (1.0 + curvature * q)
    step_along(bank.H[e, k], (curvature * z - 0.5 * g - curvature * m) * down, v)
    downdate(bank.P[e, k], v, curvature * down)
    return z, q
