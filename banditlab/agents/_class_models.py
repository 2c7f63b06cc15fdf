"""AIOLI models (Jezequel, Gaillard and Rudi 2020) in a row: each answers "would this class be correct?".

Model i is held as P_i = A_i^{-1} and h_i = A_i^{-1} b_i. Its loss of the margin z at the outcome y = +-1 is
ln(1 + e^{-y z}); w is the weight of the two virtual labels, one of each sign, at the context to predict.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._scores import padded, scores, zero_weights
from banditlab.forecasters._quadratic import (
    aioli_root,
    quadratic_form_on,
    rank_one_downdate,
    support,
    symmetric_matvec_on,
)
from banditlab.kernels import inline, njit


class Models(NamedTuple):
    """P (M, d, d); H (d, Mp), the columns h_i; c (M,), curvatures; w (1,). Scratch: m (Mp,), v (d,), places (d,)."""

    P: NDArray[np.float64]
    H: NDArray[np.float64]
    c: NDArray[np.float64]
    w: NDArray[np.float64]
    m: NDArray[np.float64]
    v: NDArray[np.float64]
    places: NDArray[np.int64]


def untaught(
    n_features: int, regularizations: NDArray[np.float64], curvatures: NDArray[np.float64], virtual_weight: float
) -> Models:
    """Return M models with A_0 = lambda_i I, i = 1 ... M."""
    M, d = len(regularizations), n_features
    return Models(
        P=np.eye(d)[None] / regularizations[:, None, None],
        H=zero_weights(d, M),
        c=np.array(curvatures, dtype=np.float64),
        w=np.array([virtual_weight]),
        m=np.zeros(padded(M)),
        v=np.zeros(d),
        places=np.zeros(d, np.int64),
    )


@inline
def sigmoid(z):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + e^{-z}) with full relative precision for either sign of z."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit
def margins(models, x, z):  # type: ignore[no-untyped-def]
    """Write into z_0 ... z_{M-1} the margins the models predict at x; the answer is yes with sigmoid(z_i)."""
    n = support(x, models.places)
    scores(models.H, x, models.m)  # m_i = x'h_i
    for i in range(models.c.shape[0]):
        q = quadratic_form_on(models.P[i], x, models.places, n, models.v)
        z[i] = aioli_root(models.m[i], q, models.w[0])


@njit
def margin(models, x, i):  # type: ignore[no-untyped-def]
    """Return the margin model i predicts at x, leaving P_i x in v, (q, m) beside it."""
    P, H, v = models.P[i], models.H, models.v
    symmetric_matvec_on(P, x, models.places, support(x, models.places), v)
    q = m = 0.0
    for j in range(x.shape[0]):
        q += x[j] * v[j]
        m += x[j] * H[j, i]
    return aioli_root(m, q, models.w[0]), q, m


@njit
def teach(models, x, i, z, y, q, m):  # type: ignore[no-untyped-def]
    """Teach model i the outcome y = +-1 at x, expanded at the margin z; `margin` has left v, q and m."""
    P, H, v = models.P[i], models.H, models.v
    curvature = models.c[i] * sigmoid(z) * sigmoid(-z)  # eta g^2 / 2 = c s(z) s(-z) for both outcomes
    g = -y * sigmoid(-y * z)
    shift = curvature * z - 0.5 * g  # b += (eta g^2 z - g) x / 2
    down = 1.0 / (1.0 + curvature * q)
    move = (shift - curvature * m) * down  # (A + curvature x x')^{-1} (b + shift x) = h + move v
    for j in range(x.shape[0]):
        H[j, i] += move * v[j]
    rank_one_downdate(P, v, curvature * down)
