"""Online gradient descent on the multiclass logistic loss (Zinkevich, ICML 2003)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.ogd import ogd as ogd_bound
from banditlab.forecasters._base import KernelForecaster
from banditlab.forecasters._quadratic import softmax_into
from banditlab.forecasters._settings import resolve
from banditlab.kernels import njit
from banditlab.problem import Problem
from banditlab.validation import positive


class State(NamedTuple):
    """W (K, d); s (K,) scratch; t (1,) rounds learnt; constants (2,) = B, step; spent (1,) = sum eta_t ||g_t||^2."""

    W: NDArray[np.float64]
    s: NDArray[np.float64]
    t: NDArray[np.int64]
    constants: NDArray[np.float64]
    spent: NDArray[np.float64]


@njit
def predict_kernel(state, x, z):  # type: ignore[no-untyped-def]
    np.dot(state.W, x, z)


@njit
def update_kernel(state, x, y, z):  # type: ignore[no-untyped-def]
    W, s = state.W, state.s
    B, step = state.constants
    K, d = W.shape
    np.dot(W, x, z)
    softmax_into(z, s)
    s[y] -= 1.0  # g = (s - e_y) x'
    state.t[0] += 1
    eta = step / math.sqrt(state.t[0])
    square_x = np.dot(x, x)
    square_s = 0.0
    for k in range(K):
        square_s += s[k] * s[k]
        move = eta * s[k]
        norm = 0.0
        for j in range(d):
            W[k, j] -= move * x[j]
            norm += W[k, j] * W[k, j]
        if norm > B * B:
            shrink = B / math.sqrt(norm)
            for j in range(d):
                W[k, j] *= shrink
    state.spent[0] += eta * square_s * square_x


class OGD(KernelForecaster):
    """Projected online gradient descent with steps falling like 1 / sqrt(t).

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: W_{t+1} = Proj(W_t - eta_t g_t), g_t = (softmax(W_t x_t) - e_y) x_t', eta_t = step / sqrt(t); the
    projection on {W : ||W_k|| <= B} clips every row to norm B.

    Guarantee: with D = 2 sqrt(K) B the ball's diameter and ||g_t||_F <= G = sqrt(2) R, regret at most
    sqrt(T) (D^2 / (2 step) + step G^2), which is (3/2) G D sqrt(T) at step = D / G ("theory"). The running certificate
    is the sum behind it, D^2 / (2 eta_T) + (1/2) sum_t eta_t ||g_t||^2.

    Cost: O(K d) a round, K d numbers.

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
        constants = np.array([self.norm_bound, self.step])
        self.state = State(np.zeros((K, d)), np.zeros(K), np.zeros(1, np.int64), constants, np.zeros(1))

    def bound(self, rounds: float) -> float:
        """Return the regret's bound after `rounds` rounds, in nats."""
        problem = self.problem
        return ogd_bound(rounds, problem.n_classes, self.norm_bound, problem.radius, self.step)

    def certificate(self) -> float:
        """Return D^2 / (2 eta_t) + (1/2) sum eta_t ||g_t||^2, a bound on the regret so far over the row ball."""
        t = int(self.state.t[0])
        diameter = 2.0 * math.sqrt(self.problem.n_classes) * self.norm_bound
        return diameter**2 * math.sqrt(t) / (2.0 * self.step) + 0.5 * float(self.state.spent[0])
