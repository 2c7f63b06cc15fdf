"""One online logistic regression over the margins of N experts, shared by all classes: online Newton for the log loss.

zeta_k = theta'f_k with f_k = (z_1k, ..., z_Nk, 1); theta starts at the mean of the experts, its covariance at `PRIOR` I.
After class a was played, y = 1 if it was right and p = sigmoid(zeta_a): v = S f_a, c = p (1 - p),
theta += v (y - p) / (1 + c f_a'v), S -= c v v' / (1 + c f_a'v).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.numerics.jit import njit

PRIOR = 3.0
"""Variance of every weight before anything is learnt."""


class Stack(NamedTuple):
    """theta (N + 1,), the bias last; S (N + 1, N + 1); prior (1,). Scratch: v (N + 1,)."""

    theta: NDArray[np.float64]
    S: NDArray[np.float64]
    prior: NDArray[np.float64]
    v: NDArray[np.float64]


def stack(n_experts: int, prior: float) -> Stack:
    """Return the mean of the experts; at prior = 0 it stays so."""
    n = n_experts + 1
    made = Stack(np.zeros(n), np.zeros((n, n)), np.array([prior]), np.zeros(n))
    reset(made)
    return made


@njit
def reset(stack):
    """Go back to the mean of the experts."""
    n = stack.theta.shape[0]
    for i in range(n):
        stack.theta[i] = 1.0 / (n - 1) if i < n - 1 else 0.0
        for j in range(n):
            stack.S[i, j] = stack.prior[0] if i == j else 0.0


@njit
def learn_stack(stack, z, y):
    """Learn the outcome y (1 right, 0 not) of a class whose experts had the margins z (N,); return p."""
    theta, S, v = stack.theta, stack.S, stack.v
    N = theta.shape[0] - 1
    zeta = theta[N]
    for i in range(N):
        zeta += theta[i] * z[i]
    p = sigmoid(zeta)
    c, q = p * (1.0 - p), 0.0
    for i in range(N + 1):
        v[i] = S[i, N]
        for j in range(N):
            v[i] += S[i, j] * z[j]
        q += v[i] * (z[i] if i < N else 1.0)
    down = 1.0 / (1.0 + c * q)
    for i in range(N + 1):
        theta[i] += v[i] * (y - p) * down
        for j in range(N + 1):
            S[i, j] -= c * down * v[i] * v[j]
    return p
