"""Online gradient descent on the multiclass logistic loss (Zinkevich, ICML 2003)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.ogd import ogd as ogd_bound
from banditlab.numerics.jit import inline
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.running_norm import Norms, descend_in_balls
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import matrix, scores, squared_norm
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.validation import positive, resolve


class State(NamedTuple):
    r"""The state: V (K, d), padded, with :math:`W_k = \text{norms.scale}_k V_k`.

    t (1,) is the number of updates, `norm_bound` is B, `step` is :math:`\eta_1`, and `spent` (1,) is
    :math:`\sum_t \eta_t \|g_t\|^2`. s and r (K,) are work arrays.
    """

    V: NDArray[np.float64]
    norms: Norms
    t: NDArray[np.int64]
    norm_bound: float
    step: float
    spent: NDArray[np.float64]
    s: NDArray[np.float64]
    r: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"t": COUNT}


@inline
def predict_kernel(state, x, z):
    scores(state.V, x, state.s)
    for k in range(z.shape[0]):
        z[k] = state.norms.scale[k] * state.s[k]


@inline
def update_kernel(state, x, y, z):
    r, K = state.r, z.shape[0]
    predict_kernel(state, x, z)
    # r = softmax(z), unnormalised, in one pass
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
    descend_in_balls(state.V, x, r, state.norms, state.norm_bound, state.s)


class OGD(KernelForecaster):
    r"""Projected online gradient descent with steps proportional to :math:`1/\sqrt{t}`.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: :math:`W_{t+1} = \mathrm{Proj}(W_t - \eta_t g_t)`,
    :math:`g_t = (\mathrm{softmax}(W_t x_t) - e_y) x_t'`, :math:`\eta_t = \text{step} / \sqrt{t}`; the projection on
    :math:`\{W : \|W_k\| \le B\}` clips every row to norm B.

    Guarantee: let :math:`D = 2 \sqrt{K} B` be the ball's diameter and :math:`\|g_t\|_F \le G = \sqrt{2} R`. The regret
    is at most :math:`\sqrt{T} (D^2 / (2\,\text{step}) + \text{step}\, G^2)`, which is :math:`(3/2) G D \sqrt{T}` at
    :math:`\text{step} = D / G` ("theory"). The running certificate is the expression in the proof,
    :math:`D^2 / (2 \eta_T) + (1/2) \sum_t \eta_t \|g_t\|^2`.

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones. Memory:
    :math:`K d` numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of W.
    step
        The step at :math:`t = 1`, in units of W per unit of gradient; "theory" is :math:`D / G = \sqrt{2 K} B / R`.

    Raises
    ------
    UsageError
        `norm_bound` or `step` is not above 0.

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
    bound_adversary = "adaptive"
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
        count, spent, s, r = np.zeros(1, np.int64), np.zeros(1), np.zeros(K), np.zeros(K)
        self.state = State(matrix(K, d), Norms.of(K), count, self.norm_bound, self.step, spent, s, r)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d)."""
        return self.state.norms.scale[:, None] * self.state.V[:, : self.problem.n_features]

    def bound(self, rounds: float) -> float:
        """Return the regret bound after `rounds` rounds, in nats."""
        problem = self.problem
        return ogd_bound(rounds, problem.n_classes, self.norm_bound, problem.radius, self.step)

    def certificate(self) -> float:
        r"""Return :math:`D^2/(2 \eta_t) + (1/2) \sum_t \eta_t \|g_t\|^2`, a bound on the regret so far.

        The comparator has rows of norm at most B.
        """
        t = int(self.state.t[0])
        diameter = 2.0 * math.sqrt(self.problem.n_classes) * self.norm_bound
        return diameter**2 * math.sqrt(t) / (2.0 * self.step) + 0.5 * float(self.state.spent[0])
