"""OBAMA with exact exponential weights on finitely many matrices: a random net, or the nodes of a grid."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from banditlab.agents.obama.tempered import answer, hit_weight
from banditlab.numerics.decoding import SAMPLE
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.log_mixture import mix_linear, reweigh

Floats = NDArray[np.float64]

REACH = 12.0
"""Half the width of a grid in standard deviations of the prior; the prior mass beyond it is 1e-32."""


class State(NamedTuple):
    r"""The members M (N, K, d) and their log weights w (N,).

    `gamma` is :math:`\mu` in the paper, and `eta` the learning rate. `hits` (2,) is described in `tempered`. `Z` (N, K)
    and `qbar` (K,) are work arrays. `decoding` is the index in `DECODINGS`.
    """

    M: Floats
    w: Floats
    gamma: float
    eta: float
    hits: NDArray[np.int64]
    Z: Floats
    qbar: Floats
    decoding: int

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"hits": COUNT}


@njit
def act_kernel(state, x, u, p, payload):
    qbar = state.qbar
    mix_linear(state.M, state.w, x, state.Z, qbar)  # ln sum_i e^{w_i} softmax(W_i x)
    for k in range(p.shape[0]):
        qbar[k] = math.exp(qbar[k])
    return answer(qbar, state.decoding, state.gamma, u, p)


@njit
def learn_kernel(state, x, action, p, payload, correct):
    if not correct:  # L_t = 0
        return
    # eta L_t = w loss: a tempered factor softmax(W x)_y^w of every member
    w = hit_weight(state.eta, state.hits, p[action])
    # w_i <- w_i + w ln softmax(W_i x)_y, normalised
    mix_linear(state.M, state.w, x, state.Z, state.qbar)
    for i in range(state.Z.shape[0]):
        state.Z[i, action] *= w
    reweigh(state.w, state.Z, action)


def initial_state(members: Floats, log_weights: Floats, gamma: float, eta: float, decoding: int = SAMPLE) -> State:
    """Return the state of members (N, K, d) with prior log weights (N,)."""
    N, K, _ = members.shape
    hits = np.zeros(2, np.int64)
    return State(members, log_weights, gamma, eta, hits, np.zeros((N, K)), np.zeros(K), decoding)


def net(n: int, n_classes: int, n_features: int, deviation: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    r"""Return n matrices (n, K, d) drawn from :math:`N(0, \text{deviation}^2 I)`, and equal log weights (n,)."""
    return deviation * rng.standard_normal((n, n_classes, n_features)), np.full(n, -math.log(n))


def grid(n: int, n_classes: int, n_features: int, deviation: float) -> tuple[Floats, Floats]:
    r"""Return at most n nodes (N, K, d) with log weights (N,): the trapezoidal rule for
    :math:`N(0, \text{deviation}^2 I)`.

    Only W minus its mean row matters. It is :math:`Q \theta`, where the rows of :math:`Q'` (K-1, K) are orthonormal and
    orthogonal to the vector of ones, so the coordinates :math:`\theta` (K-1, d) are :math:`N(0, \text{deviation}^2 I)`
    too. For a smooth density that decays to 0 at both ends, the error of the rule decreases faster than any power of
    the spacing, once the spacing is below the posterior's standard deviation.
    """
    size = (n_classes - 1) * n_features
    # Every combination of the nodes of the axes, and the prior's density there.
    axis = deviation * np.linspace(-REACH, REACH, per_axis(n, size))
    theta = np.stack(np.meshgrid(*[axis] * size, indexing="ij"), axis=-1).reshape(-1, n_classes - 1, n_features)
    w = -0.5 * (theta**2).sum(axis=(1, 2)) / deviation**2
    members = np.einsum("ck,ncj->nkj", helmert(n_classes), theta)
    return np.ascontiguousarray(members), w - math.log(np.exp(w).sum())


def per_axis(n: int, size: int) -> int:
    """Return the number of nodes along each of `size` axes of a grid with at most n nodes in total."""
    return int(n ** (1.0 / size) + 1e-9)


def effective_members(state: State) -> float:
    """Return the effective number of members, 1 over the sum of the squared weights."""
    return float(1.0 / np.exp(2.0 * state.w).sum())


def resolution(state: State, deviation: float) -> float:
    """Return the posterior's standard deviation divided by the grid's spacing, for the axis where this is least."""
    N, K, _ = state.M.shape
    theta = np.einsum("ck,nkj->ncj", helmert(K), state.M).reshape(N, -1)
    # The posterior's variance along each coordinate.
    weights = np.exp(state.w)
    variance = weights @ theta**2 - (weights @ theta) ** 2
    spacing = 2.0 * REACH * deviation / (round(N ** (1.0 / theta.shape[1])) - 1)
    return float(math.sqrt(max(0.0, variance.min())) / spacing)


def edge(state: State, deviation: float) -> float:
    """Return the posterior's weight on the grid's outermost nodes. If the grid is wide enough, this weight is as small
    as a rounding error.
    """
    N, K, _ = state.M.shape
    theta = np.einsum("ck,nkj->ncj", helmert(K), state.M).reshape(N, -1)
    outermost = np.abs(theta).max(axis=1) > (1.0 - 1e-9) * REACH * deviation
    return float(np.exp(state.w[outermost]).sum())
