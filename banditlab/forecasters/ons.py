"""Online Newton Step (Hazan, Agarwal and Kale, Machine Learning 2007) on the multiclass logistic loss."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.ons import exp_concavity
from banditlab.bounds.ons import ons as ons_bound
from banditlab.forecasters.primal_dual import BEYOND, certified
from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import EPSILON, ERROR_FACTOR
from banditlab.numerics.row_ball_projection import BOUND, NEWTON, STALLS, TOLERANCE, MetricBall, project
from banditlab.numerics.softmax import softmax_into
from banditlab.numerics.symmetric import dot, rank_one_downdate, symmetric_matvec
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.validation import one_of, positive, resolve

DOUBT, METRIC, LONGEST = range(3)


class State(NamedTuple):
    r"""The state: W (K, d); :math:`P = A^{-1}` (Kd, Kd); `spent` (1,), :math:`\sum_t g_t'A_t^{-1} g_t`; `ball`, the
    projection's state.

    `doubt` (3,) has three entries. `DOUBT` is a bound on the certificate's error. `METRIC` is
    :math:`\epsilon + \sum_t \|g_t\|^2`, an upper bound on A's eigenvalues. `LONGEST` is the largest :math:`\|x\|^2` of
    an update. `constants` (3,) has B, the step, and 1 if iterates are projected, otherwise 0. g, v (Kd,) and s (K,) are
    work arrays.
    """

    W: NDArray[np.float64]
    P: NDArray[np.float64]
    spent: NDArray[np.float64]
    doubt: NDArray[np.float64]
    ball: MetricBall
    constants: NDArray[np.float64]
    g: NDArray[np.float64]
    v: NDArray[np.float64]
    s: NDArray[np.float64]


@njit
def predict_kernel(state, x, z):
    for k in range(z.shape[0]):
        z[k] = dot(state.W[k], x)


@njit
def note_doubt(state, x, shrink):
    r"""Add a bound on the error of the certificate due to a round's rounding and its projection's tolerance.

    g sums to 0 over the classes, and so does :math:`v = A^{-1} g` up to rounding. The error of v is estimated as
    `ERROR_FACTOR` times the norm of this sum. An error e of W changes the proof's :math:`(\beta/2) \|W - W^*\|_A^2` by
    :math:`\beta \|e\|_A \|W - W^*\|_A`. Here :math:`\|\cdot\|_A^2` is at most `doubt[METRIC]` times
    :math:`\|\cdot\|^2`, and :math:`\|W - W^*\|` is at most :math:`2 \sqrt{K} B`.
    """
    g, v, doubt = state.g, state.v, state.doubt
    B, step, _ = state.constants
    K, d = state.W.shape
    left, square = 0.0, 0.0
    for j in range(d):
        total = 0.0
        for k in range(K):
            total += v[k * d + j]
        left += total * total
    for i in range(K * d):
        square += g[i] * g[i]
    off = ERROR_FACTOR * shrink * (math.sqrt(left) + EPSILON * math.sqrt(dot(v, v)))
    doubt[METRIC] += square
    across = 2.0 * math.sqrt(K) * B * doubt[METRIC]
    doubt[DOUBT] += across * (off + TOLERANCE * math.sqrt(K) * B / step) + 0.5 * step * math.sqrt(square) * off
    doubt[LONGEST] = max(doubt[LONGEST], dot(x, x))


@njit(arrays="new")
def update_kernel(state, x, y, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    W, P, g, v, s = state.W, state.P, state.g, state.v, state.s
    B, step, projected = state.constants
    K, d = W.shape
    predict_kernel(state, x, z)
    softmax_into(z, s)
    s[y] -= 1.0
    for k in range(K):  # g = (s - e_y) (x) x
        for j in range(d):
            g[k * d + j] = s[k] * x[j]
    symmetric_matvec(P, g, v)
    q = dot(g, v)
    shrink = 1.0 / (1.0 + q)
    rank_one_downdate(P, v, shrink)  # A_t = A_{t-1} + g g', hence A_t^{-1} g = v / (1 + q)
    state.spent[0] += q * shrink
    note_doubt(state, x, shrink)
    for k in range(K):
        for j in range(d):
            W[k, j] -= step * shrink * v[k * d + j]
    if projected > 0.0:
        overwrite(state.ball.V, W.reshape(K * d))
        project(state.ball, P, B)
        overwrite(W.reshape(K * d), state.ball.W)


class ONS(KernelForecaster):
    r"""Online Newton Step: gradient steps in the metric of the summed outer products of the gradients.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: :math:`A_0 = \epsilon I`, :math:`A_t = A_{t-1} + g_t g_t'`,
    :math:`W_{t+1} = \mathrm{Proj}(W_t - (1/\beta) A_t^{-1} g_t)`, with
    :math:`g_t = \mathrm{vec}((\mathrm{softmax}(W_t x_t) - e_y) x_t')` and Proj the projection on
    :math:`\{W : \|W_k\| \le B\}` in the norm of :math:`A_t`. :math:`A_t^{-1}` changes by rank one (Sherman and
    Morrison). The projection's K Lagrange multipliers are computed to a tolerance of 1e-12.

    Guarantee (Theorem 2 of the paper with the constants of its proof): the loss is :math:`\alpha`-exp-concave on the
    ball if and only if :math:`\alpha \le e^{-2 B R}/(K - 1)`. With :math:`\beta \le \alpha/2` the regret over
    :math:`\{W : \|W_k\| \le B\}` is at most

    .. math::

        (\beta \epsilon/2) K B^2 + ((K-1) d/(2 \beta)) \ln(1 + 2 R^2 T/((K-1) d \epsilon)).

    The running certificate is :math:`(\beta \epsilon/2) K B^2 + (1/(2 \beta)) \sum_t g_t'A_t^{-1} g_t`. The factor
    :math:`1/\beta` grows like :math:`e^{2 B R}`, and the bound is vacuous for :math:`B R` above about 3. The paper's
    minimum with :math:`1/(4 G D)` is not needed, because :math:`|\langle g_t, W_t - W \rangle| \le 4 B R` and
    :math:`\alpha < 1/(4 B R)` always. For :math:`\beta > \alpha/2`, or without projection, there is no bound and no
    certificate.

    Cost: :math:`O(K^2 d^2)` per round. A round with active norm constraints also costs 4 to 7 Newton steps of
    :math:`O((|F| d)^3)`, where F is the set of rows of norm B. Memory: :math:`3 K^2 d^2` numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of W.
    step
        :math:`1/\beta` in the paper, the factor of :math:`A_t^{-1} g_t`. "theory" is
        :math:`2/\alpha = 2 (K - 1) e^{2 B R}`, with :math:`2 B R` at most 340 (above that there is no bound). In
        practice the best values in a grid are 0.3 to 100, with regularization 0.01 to 10.
    regularization
        :math:`\epsilon` in the paper, :math:`A_0 = \epsilon I`; "theory" is :math:`(\text{step} / D)^2`, with
        :math:`D = 2 \sqrt{K} B` the ball's diameter.
    projection
        "ball", or "none" for the variant without projection, in which `norm_bound` is used only for "theory" values
        of `step` and `regularization`.

    Raises
    ------
    UsageError
        A setting is outside its range.

    References
    ----------
    E. Hazan, A. Agarwal, S. Kale. Logarithmic regret algorithms for online convex optimization. Machine Learning 2007.
    """

    id = "ons"
    group = "theory"
    summary = "Online Newton Step: logarithmic regret, with a factor $e^{2 B R}$"
    reference = "Hazan, Agarwal and Kale, Machine Learning 2007, Figure 2"
    state_order = (2, 2)
    bound_unit = "nats"
    bound_adversary = "adaptive"
    predict_kernel = predict_kernel
    update_kernel = update_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        step: float | Literal["theory"] = "theory",
        regularization: float | Literal["theory"] = "theory",
        projection: Literal["ball", "none"] = "ball",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.norm_bound = B = positive("norm_bound", norm_bound)
        self.step = resolve("step", step, {"theory": self._theory_step()})
        theory = (self.step / (2.0 * math.sqrt(K) * B)) ** 2
        self.regularization = resolve("regularization", regularization, {"theory": theory})
        self.projection = one_of("projection", projection, ("ball", "none"))
        n, projected = K * d, self.projection == "ball"
        self.state = State(
            W=np.zeros((K, d)),
            P=np.eye(n) / self.regularization,
            spent=np.zeros(1),
            doubt=np.array([0.0, self.regularization, 0.0]),
            ball=MetricBall.empty(K, d) if projected else MetricBall.empty(1, 1),
            constants=np.array([B, self.step, float(projected)]),
            g=np.zeros(n),
            v=np.zeros(n),
            s=np.zeros(K),
        )

    def _theory_step(self) -> float:
        K, B, R = self.problem.n_classes, self.norm_bound, self.problem.radius
        return 2.0 * (K - 1) * math.exp(min(2.0 * B * R, 340.0))

    @property
    def projections(self) -> dict[str, int]:
        """Three counts: projected updates, factorisations in them, and solves that ended with a residual above 1e-9."""
        tally = self.state.ball.tally
        return {"bound": int(tally[BOUND]), "factorisations": int(tally[NEWTON]), "stalled": int(tally[STALLS])}

    def bound(self, rounds: float) -> float | None:
        """Return the regret bound after `rounds` rounds, in nats, or None if the theorem does not cover the settings."""
        if not self._proved():
            return None
        K, d, R = self.problem.n_classes, self.problem.n_features, self.problem.radius
        return ons_bound(rounds, d, K, self.norm_bound, R, self.regularization, self.step)

    def certificate(self) -> float:
        r"""Return :math:`K B^2 \epsilon/(2 s) + (s/2) \sum_t g_t'A_t^{-1} g_t`, with s the step.

        It bounds the regret so far against rows of norm at most B. It is NaN if the theorem does not cover the
        settings, a context was longer than R, a projection did not converge, or rounding errors may be large.
        """
        doubt, longest = self.state.doubt, (BEYOND * self.problem.radius) ** 2
        if not self._proved() or self.projections["stalled"] or not doubt[LONGEST] <= longest:
            return math.nan
        K, B = self.problem.n_classes, self.norm_bound
        price = K * B**2 * self.regularization / (2.0 * self.step)
        return certified(price + 0.5 * self.step * float(self.state.spent[0]), float(doubt[DOUBT]))

    def _proved(self) -> bool:
        alpha = exp_concavity(self.problem.n_classes, self.norm_bound, self.problem.radius)
        return self.projection == "ball" and self.step * alpha >= 2.0 * (1.0 - 1e-12)
