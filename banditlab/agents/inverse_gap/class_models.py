r"""AIOLI models (Jezequel, Gaillard and Rudi 2020) per class: each predicts whether its class would be correct.

Model i is stored as :math:`P_i = A_i^{-1}` and :math:`h_i = A_i^{-1} b_i`. Its loss for the margin z and the outcome
:math:`y = \pm 1` is :math:`\ln(1 + e^{-y z})`. Each prediction adds two virtual labels of weight w, one of each sign,
at the context. :math:`P_i` and :math:`h_i` have one of the forms of `numerics.model_forms`. The argument x is the
context or, if the models share a sketch, the object that contains the sketch and the current context.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.argmax import runner_up
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.model_forms import read, read_one, update_one
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.tanh_root import aioli_root, aioli_roots


class Models(NamedTuple):
    """The models: `inverses` stores :math:`P_i` and :math:`h_i`; `c` (M,) stores curvatures; `w` (1,) is the virtual
    weight. `m`, `q` and `z` (Mp,) are work arrays.

    Mp is M rounded up to a multiple of eight; entries from M on stay 0.
    """

    inverses: Any
    c: NDArray[np.float64]
    w: NDArray[np.float64]
    m: NDArray[np.float64]
    q: NDArray[np.float64]
    z: NDArray[np.float64]


def new_models(inverses: Any, curvatures: NDArray[np.float64], virtual_weight: float) -> Models:
    """Return M models before any update, with new inverses."""
    M = len(curvatures)
    return Models(
        inverses=inverses,
        c=np.array(curvatures, dtype=np.float64),
        w=np.array([virtual_weight]),
        m=zeros(width(M)),
        q=zeros(width(M)),
        z=zeros(width(M)),
    )


LARGEST_VARIANCE = 1.0
"""The largest :math:`q = x'P x` at which the challenger counts a hit of another class as a miss of this class."""


@inline
def sigmoid(z):
    """Return :math:`1 / (1 + e^{-z})` with full relative precision for either sign of z."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@inline
def margins(models, x, z):
    r"""Write the margins that the models predict at x into :math:`z_0, \dots, z_{M-1}`.

    Model i predicts a positive outcome with probability :math:`\mathrm{sigmoid}(z_i)`.
    """
    read(models.inverses, x, models.m, models.q)  # m_i = x'h_i, q_i = x'P_i x
    aioli_roots(models.m, models.q, models.w[0], models.z)  # z = m - (w/2) q tanh(z/2)
    for i in range(models.c.shape[0]):
        z[i] = models.z[i]


@njit
def margin(models, x, i):
    """Return the margin that model i predicts at x, with :math:`m = x'h_i` and :math:`q = x'P_i x`."""
    m, q = read_one(models.inverses, x, i)
    return aioli_root(m, q, models.w[0]), m, q  # z = m - (w/2) q tanh(z/2)


@inline
def update_terms(c, z, y, m, q):
    r"""Return (step, weight, down) for the outcome :math:`y = \pm 1`, with the loss expanded at the margin z.

    The arguments are the model's curvature c, and :math:`m = x'h` and :math:`q = x'P x` at the context x. The update is
    :math:`A \mathrel{+}= \text{weight}\, x x'`, hence :math:`P \mathrel{-}= \text{weight}\, \text{down}\, v v'` with
    :math:`v = P x` and down = :math:`1 / (1 + \text{weight}\, q)`, and :math:`h \mathrel{+}= \text{step}\, v`.
    """
    curvature = c * sigmoid(z) * sigmoid(-z)  # eta g^2 / 2 = c s(z) s(-z) for both outcomes
    g = -y * sigmoid(-y * z)
    shift = curvature * z - 0.5 * g  # b += (eta g^2 z - g) x / 2
    down = 1.0 / (1.0 + curvature * q)
    step = (shift - curvature * m) * down  # (A + curvature x x')^{-1} (b + shift x) = h + step v
    return step, curvature, down


@inline
def update_model(models, x, i, z, y, m, q):
    """Update model i with the outcome y = +-1, expanded at the margin z; `read_one` at x returns m and q."""
    step, weight, down = update_terms(models.c[i], z, y, m, q)
    update_one(models.inverses, x, i, step, weight, down)


@inline
def learn(models, x, k, z, y):
    """Update model k with the outcome y = +-1 at the margin z."""
    m, q = read_one(models.inverses, x, k)
    update_model(models, x, k, z, y, m, q)


@njit
def learn_all(models, x, k, z, y):
    """Update model k with the outcome y at its margin z_k. If y = 1, also update the model j != k with the largest z_j,
    with the outcome -1, provided that q_j is at most `LARGEST_VARIANCE`.
    """
    learn(models, x, k, z[k], y)
    if y < 0.0:
        return
    j = runner_up(z, k, z.shape[0])
    m, q = read_one(models.inverses, x, j)
    if q <= LARGEST_VARIANCE:  # the class j != k with the largest z_j is updated with y = -1 if q_j <= 1
        update_model(models, x, j, z[j], -1.0, m, q)
