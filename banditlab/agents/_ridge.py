"""One ridge regression of the bit per class, kept as P_k = A_k^{-1} and w_k: `linucb`, `lints` and `confidit` share it.

A_k = regularization I + sum x x' over the rounds in which k was played, P_k by Sherman and Morrison's formula. An update
first projects w_k in the norm of A_k onto the slab {w : low <= w'x <= high}, which has a closed form:

    v = P x,  q = x'v,  m = w'x,  c = clip(m, low, high)
    projection   w' = w + ((c - m)/q) v
    regression   w <- (A + x x')^{-1} (A w' + target x) = w' + ((target - c)/(1 + q)) v

Without limits w = A^{-1} b with b = sum target x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._scores import padded, scores, zero_weights
from banditlab.forecasters._quadratic import quadratic_form_on, rank_one_downdate, support, symmetric_matvec_on
from banditlab.kernels import njit
from banditlab.problem import Problem

AUTO_REGULARIZATION = 0.1
"""regularization = "auto" in units of R^2."""


class State(NamedTuple):
    """What the three agents keep; one type, so that numba compiles the shared kernels once.

    P (K, d, d); H (d, Kp), the columns w_k; settings, the agent's own numbers; tally (2,): outcomes learnt, and the key
    of the agent's draws. Scratch, of the context at hand: z (Kp,) = w_k'x, q (K,) = x'P_k x; noise (K,); v, where (d,).
    """

    P: NDArray[np.float64]
    H: NDArray[np.float64]
    settings: NDArray[np.float64]
    tally: NDArray[np.int64]
    z: NDArray[np.float64]
    q: NDArray[np.float64]
    noise: NDArray[np.float64]
    v: NDArray[np.float64]
    where: NDArray[np.int64]


def ridge_state(problem: Problem, regularization: float, *settings: float, key: int = 0) -> State:
    """Return A_k = regularization I, w_k = 0 for every class."""
    K, d = problem.n_classes, problem.n_features
    return State(
        P=np.tile(np.eye(d) / regularization, (K, 1, 1)),
        H=zero_weights(d, K),
        settings=np.array(settings),
        tally=np.array([0, key]),
        z=np.zeros(padded(K)),
        q=np.zeros(K),
        noise=np.zeros(K),
        v=np.zeros(d),
        where=np.zeros(d, np.int64),
    )


@njit
def predict(state, x):  # type: ignore[no-untyped-def]
    """Write the means z_k = w_k'x and the variances q_k = x'P_k x."""
    scores(state.H, x, state.z)
    n = support(x, state.where)
    for k in range(state.q.shape[0]):
        state.q[k] = max(quadratic_form_on(state.P[k], x, state.where, n, state.v), 0.0)


@njit
def regress(state, k, x, target, low, high):  # type: ignore[no-untyped-def]
    """Update class k with the outcome `target` at x, w_k projected onto the slab [low, high] first."""
    P, H, v = state.P[k], state.H, state.v
    state.tally[0] += 1
    symmetric_matvec_on(P, x, state.where, support(x, state.where), v)
    q = m = 0.0
    for j in range(x.shape[0]):
        q += x[j] * v[j]
        m += x[j] * H[j, k]
    if q <= 0.0:  # x = 0 says nothing, and no w has w'x other than 0 there
        return
    c = min(max(m, low), high)
    down = 1.0 / (1.0 + q)
    move = (c - m) / q + (target - c) * down
    for j in range(x.shape[0]):
        H[j, k] += move * v[j]
    rank_one_downdate(P, v, down)


@njit
def highest(z, p, u):  # type: ignore[no-untyped-def]
    """Return the largest of z_0 ... z_{K-1}, one of equals by the uniform u; p (K,) is uniform over the equals."""
    K = p.shape[0]
    top, ties = z[0], 0
    for k in range(1, K):
        top = max(top, z[k])
    for k in range(K):
        ties += z[k] == top
    skip, action = min(int(u * ties), ties - 1), 0
    for k in range(K):
        p[k] = 0.0
        if z[k] == top:
            p[k] = 1.0 / ties
            if skip == 0:
                action = k
            skip -= 1
    return action
