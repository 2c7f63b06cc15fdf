"""Online gradient descent on the multiclass logistic loss (Zinkevich, ICML 2003)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.ogd import ogd as ogd_bound
from banditlab.numerics.contexts import by_context
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.linear_scores import matrix, per_class, scores
from banditlab.numerics.running_norm import (
    LEAST_SCALE,
    SCALE,
    SQUARE,
    descend_measured,
    measured,
    note,
    running_norm,
    squared_norm,
    squares,
)
from banditlab.numerics.simd_math import exponentials
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.validation import positive, resolve


class State(NamedTuple):
    """V, the transpose of W (see `banditlab.numerics.linear_scores`), but for the scales: W_k = norms[k, SCALE] V_k.

    norms (:, 5): the running norm of every V_k. t (1,): rounds learnt. norm_bound: B. step: eta_1.
    spent (1,) = sum eta_t ||g_t||^2. s, r are scratch, r zero beyond K.
    """

    V: NDArray[np.float64]
    norms: NDArray[np.float64]
    t: NDArray[np.int64]
    norm_bound: float
    step: float
    spent: NDArray[np.float64]
    s: NDArray[np.float64]
    r: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"t": COUNT}


@inline
def predict_kernel(state, x, z):
    scores(state.V, x, state.s)
    for k in range(z.shape[0]):
        z[k] = state.norms[k, SCALE] * state.s[k]


@inline
def update_kernel(state, x, y, z):
    r, K = state.r, z.shape[0]
    predict_kernel(state, x, z)
    # r = softmax(z), unnormalised, in one sweep
    top = z[0]
    for k in range(1, K):
        top = max(top, z[k])
    share = 1.0 / exponentials(z, 1.0, top, K, r)
    state.t[0] += 1
    eta = state.step / math.sqrt(state.t[0])
    # r = eta (s - e_y): the gradient is g = (s - e_y) x'
    square_r = 0.0
    for k in range(K):
        r[k] = r[k] * share - (1.0 if k == y else 0.0)
        square_r += r[k] * r[k]
        r[k] *= eta
    state.spent[0] += eta * square_r * squared_norm(x)
    descend_in_rows(state.V, x, r, state.norm_bound, state.norms, state.s)


def _descend_in_rows(V, x, r, B, norms, s):
    """Take r x' off W and clip every row to norm B; r, s of `per_class` are scratch, r with zeros from K on."""
    # W_k - r_k x = scale_k (V_k - (r_k/scale_k) x)
    for k in range(r.shape[0]):
        r[k] /= norms[k, SCALE]
    descend_measured(V, x, r, s)  # s_k = ||V_k||^2
    for k in range(r.shape[0]):
        measured(norms[k], s[k])
    clip(V, B, norms, s)


def _sparse_descend_in_rows(V, x, r, B, norms, s):
    # As above; s_k gathers what ||V_k||^2 gains: new^2 - old^2 = (new - old) (new + old).
    for k in range(r.shape[0]):
        r[k] /= norms[k, SCALE]
        s[k] = 0.0
    for i in range(x.indices.shape[0]):
        j, xj = x.indices[i], x.values[i]
        for k in range(r.shape[0]):
            old = V[j, k]
            V[j, k] = old - r[k] * xj
            s[k] += (V[j, k] - old) * (V[j, k] + old)
    # One row that must be measured has all of them measured.
    anew = False
    for k in range(r.shape[0]):
        anew |= note(norms[k], s[k], V.shape[0])
    if anew:
        fold(V, norms, s)
    clip(V, B, norms, s)


descend_in_rows = by_context(_descend_in_rows, _sparse_descend_in_rows)


@inline
def clip(V, B, norms, s):
    """Rescale every row of W that is longer than B, by its scale."""
    least = 1.0
    for k in range(s.shape[0]):
        square = norms[k, SCALE] * norms[k, SCALE] * norms[k, SQUARE]
        if square > B * B:
            norms[k, SCALE] *= B / math.sqrt(square)
            least = min(least, norms[k, SCALE])
    if least < LEAST_SCALE:
        fold(V, norms, s)


@njit
def fold(V, norms, s):
    """Multiply the scales into V and measure the norms of its rows V_k; s is scratch."""
    for j in range(V.shape[0]):
        for k in range(s.shape[0]):
            V[j, k] *= norms[k, SCALE]
    squares(V, s)
    for k in range(s.shape[0]):
        norms[k, SCALE] = 1.0
        measured(norms[k], s[k])


class OGD(KernelForecaster):
    """Projected online gradient descent with steps falling like 1 / sqrt(t).

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: W_{t+1} = Proj(W_t - eta_t g_t), g_t = (softmax(W_t x_t) - e_y) x_t', eta_t = step / sqrt(t); the
    projection on {W : ||W_k|| <= B} clips every row to norm B.

    Guarantee: with D = 2 sqrt(K) B the ball's diameter and ||g_t||_F <= G = sqrt(2) R, regret at most
    sqrt(T) (D^2 / (2 step) + step G^2), which is (3/2) G D sqrt(T) at step = D / G ("theory"). The running certificate
    is the sum behind it, D^2 / (2 eta_T) + (1/2) sum_t eta_t ||g_t||^2.

    Cost: O(K nnz(x)) a round where contexts come sparse, O(K d) where they come dense; K d numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of W.
    step
        The step at t = 1, in units of W per unit of gradient; "theory" is D / G = sqrt(2 K) B / R.

    Raises
    ------
    UsageError
        norm_bound or step not above 0.

    References
    ----------
    M. Zinkevich. Online convex programming and generalized infinitesimal gradient ascent. ICML 2003.
    E. Hazan. Introduction to Online Convex Optimization, Theorem 3.1.
    """

    id = "ogd"
    group = "theory"
    summary = "projected online gradient descent"
    reference = "Zinkevich, ICML 2003"
    bound_unit = "nats"
    predict_kernel = predict_kernel
    update_kernel = update_kernel
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        step: float | Literal["theory"] = "theory",
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = positive("norm_bound", norm_bound)
        self.step = resolve("step", step, {"theory": math.sqrt(2.0 * K) * self.norm_bound / R})
        s, r = per_class(d, K), per_class(d, K)
        norms, count, spent = np.tile(running_norm(), (len(s), 1)), np.zeros(1, np.int64), np.zeros(1)
        self.state = State(matrix(d, K), norms, count, self.norm_bound, self.step, spent, s, r)

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d)."""
        K, d = self.problem.n_classes, self.problem.n_features
        return self.state.norms[:K, SCALE, None] * self.state.V[:d, :K].T

    def bound(self, rounds: float) -> float:
        """Return the regret's bound after `rounds` rounds, in nats."""
        problem = self.problem
        return ogd_bound(rounds, problem.n_classes, self.norm_bound, problem.radius, self.step)

    def certificate(self) -> float:
        """Return D^2 / (2 eta_t) + (1/2) sum eta_t ||g_t||^2, a bound on the regret so far over the row ball."""
        t = int(self.state.t[0])
        diameter = 2.0 * math.sqrt(self.problem.n_classes) * self.norm_bound
        return diameter**2 * math.sqrt(t) / (2.0 * self.step) + 0.5 * float(self.state.spent[0])
