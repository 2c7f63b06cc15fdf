"""One logistic model per class and inverse-gap weighting: what `fastcb` and `squarecb` share.

Class k's model answers "would k be correct?" and is an AIOLI (Jezequel, Gaillard and Rudi 2020) of its own, held as
P_k = A_k^{-1} and h_k = A_k^{-1} b_k. Only the class that was played learns, from hits and from misses alike.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._base import KernelAgent
from banditlab.agents._scores import padded, scores, zero_weights
from banditlab.bounds._curvature import tight_curvature
from banditlab.forecasters._quadratic import aioli_root, quadratic_form, rank_one_downdate, symmetric_matvec
from banditlab.forecasters._settings import resolve
from banditlab.kernels import inline, njit
from banditlab.problem import Problem
from banditlab.validation import nonnegative, positive

AUTO_MARGIN = 1.0
"""norm_bound = "auto" in units of 1/R."""
AUTO_REGULARIZATION = 0.003
"""regularization = "auto" in units of R^2, so that contexts in other units give the same play."""


class State(NamedTuple):
    """P (K, d, d) and H (d, Kp), the columns h_k; rounds (1,) learnt; settings (3,): c, K sharpness, growth.

    Scratch: z (Kp,), v (d,).
    """

    P: NDArray[np.float64]
    H: NDArray[np.float64]
    rounds: NDArray[np.int64]
    settings: NDArray[np.float64]
    z: NDArray[np.float64]
    v: NDArray[np.float64]


@inline
def sigmoid(z):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + e^{-z}) with full relative precision for either sign of z."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit
def predict(state, x, z):  # type: ignore[no-untyped-def]
    """Write into z_0 ... z_{K-1} the margins the K models predict at x; P(k is correct) = sigmoid(z_k)."""
    K = state.P.shape[0]
    scores(state.H, x, state.z)  # m_k = x' A_k^{-1} b_k
    for k in range(K):
        q = quadratic_form(state.P[k], x, state.v)
        z[k] = aioli_root(state.z[k], q, 1.0)


@njit
def learn_kernel(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    """Update the played class's model with the outcome, expanded at the margin z it was played at."""
    P, H, v = state.P[action], state.H, state.v
    z, y = payload[action], 1.0 if correct else -1.0
    symmetric_matvec(P, x, v)
    q = m = 0.0
    for j in range(x.shape[0]):
        q += x[j] * v[j]
        m += x[j] * H[j, action]
    curvature = state.settings[0] * sigmoid(z) * sigmoid(-z)  # eta g^2 / 2 = c s(z) s(-z) for both outcomes
    g = -y * sigmoid(-y * z)
    shift = curvature * z - 0.5 * g  # b += (eta g^2 z - g) x / 2
    down = 1.0 / (1.0 + curvature * q)
    move = (shift - curvature * m) * down  # (A + curvature x x')^{-1} (b + shift x) = h + move v
    for j in range(x.shape[0]):
        H[j, action] += move * v[j]
    rank_one_downdate(P, v, curvature * down)
    state.rounds[0] += 1


@inline
def sharpness(state):  # type: ignore[no-untyped-def]
    """Return g_t = scale * t^growth, t - 1 the number of outcomes learnt so far."""
    return state.settings[1] * (state.rounds[0] + 1.0) ** state.settings[2]


class InverseGapAgent(KernelAgent):
    """Base of the two: settings, state, and `learn_kernel`; a subclass names its act_kernel and its defaults."""

    explores = False
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float | Literal["auto"],
        regularization: float | Literal["auto"],
        curvature: float | Literal["simple", "tight"],
        sharpness: float,
        growth: float,
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = resolve("norm_bound", norm_bound, {"auto": AUTO_MARGIN / R})
        self.regularization = resolve("regularization", regularization, {"auto": AUTO_REGULARIZATION * R**2})
        margin = self.norm_bound * R
        words = {"simple": 0.5 / (1.0 + margin), "tight": tight_curvature(margin)}
        self.curvature = resolve("curvature", curvature, words)
        self.sharpness = positive("sharpness", sharpness)
        self.growth = nonnegative("growth", growth)
        self.payload_size = K
        self.state = State(
            P=np.tile(np.eye(d) / self.regularization, (K, 1, 1)),
            H=zero_weights(d, K),
            rounds=np.zeros(1, np.int64),
            settings=np.array([self.curvature, self.sharpness * K, self.growth]),
            z=np.zeros(padded(K)),
            v=np.zeros(d),
        )
