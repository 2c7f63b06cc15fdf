"""AIOLI (Jézéquel, Gaillard and Rudi, COLT 2020)."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.aioli import aioli
from banditlab.bounds.curvature import tight_curvature
from banditlab.errors import IncompatibleError
from banditlab.forecasters.soft_labels import as_distribution, vertex
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.symmetric import dot, rank_one_downdate, support, symmetric_matvec_on
from banditlab.numerics.tanh_root import aioli_root
from banditlab.players.forecaster import KernelForecaster, Kernels
from banditlab.players.inputs import as_context
from banditlab.problem import Problem
from banditlab.validation import nonnegative, positive, resolve

ROOT_FROM = 1e7
r""":math:`R^2/\lambda` above which C with :math:`A^{-1} = C C'` is stored instead of :math:`A^{-1}`, because margins
computed from :math:`A^{-1}` have errors above 1e-10 there.
"""
ROOT_TO = 1e14
r""":math:`R^2/\lambda` above which rounding errors are too large for a certificate even with C."""


class State(NamedTuple):
    """:math:`P = A^{-1}` (d, d), or C with :math:`A^{-1} = C C'`; :math:`h = A^{-1} b` (d,); curvature and `virtual_weight`.

    `curvature` is c and `virtual_weight` is w. `spent` (1,) is the sum in the certificate. Work arrays (d,) are
    :math:`u = C'x`, :math:`v = A^{-1} x` and `nonzero`, the positions of the context's nonzero entries.
    """

    P: NDArray[np.float64]
    h: NDArray[np.float64]
    curvature: float
    virtual_weight: float
    spent: NDArray[np.float64]
    u: NDArray[np.float64]
    v: NDArray[np.float64]
    nonzero: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"nonzero": (0, self.v.shape[-1] - 1)}

    @classmethod
    def initial(
        cls, d: int, regularization: float, curvature: float, virtual_weight: float, rooted: bool = False
    ) -> State:
        r"""Return the state with :math:`A = \lambda I` and :math:`b = 0`."""
        P = np.eye(d) / (math.sqrt(regularization) if rooted else regularization)
        h, spent, (u, v) = np.zeros(d), np.zeros(1), np.zeros((2, d))
        return cls(P, h, curvature, virtual_weight, spent, u, v, np.zeros(d, np.int64))


@njit
def predict_kernel(state, x, z):
    symmetric_matvec_on(state.P, x, state.nonzero, support(x, state.nonzero), state.v)  # v = A^{-1} x
    z[0] = aioli_root(dot(x, state.h), dot(x, state.v), state.virtual_weight)  # z = m - (w/2) q tanh(z/2)
    z[1] = 0.0


@inline
def surrogate(t, y, c):
    r"""Return :math:`(\kappa, \gamma, \beta)` of a round with forecast margin t.

    They determine :math:`A \mathrel{+}= \kappa x x'`, :math:`g = \gamma x` and :math:`b \mathrel{+}= \beta x`.
    """
    sign = 1.0 if y == 0 else -1.0
    right = 1.0 / (1.0 + math.exp(-abs(t)))  # sigmoid(|t|)
    wrong = math.exp(-abs(t)) * right
    kappa = c * right * wrong  # (eta_t / 2) g g' = kappa x x' with eta_t = 2 c e^(y t): (2), (9)
    gam = -sign * (wrong if sign * t > 0.0 else right)  # g = gam x
    return kappa, gam, kappa * t - 0.5 * gam  # (5): b_t = b_{t-1} + beta x


@njit
def learn(state, m, q, t, y):
    r"""Update all but :math:`A^{-1}` with the label y; return :math:`\kappa` and :math:`1/(1 + \kappa q)`.

    The arguments are :math:`m = x'A^{-1} b`, :math:`q = x'A^{-1} x` and the forecast margin t; `state.v` is
    :math:`A^{-1} x`.
    """
    v, h = state.v, state.h
    c, w = state.curvature, state.virtual_weight
    kappa, gam, beta = surrogate(t, y, c)
    shrink = 1.0 / (1.0 + kappa * q)
    # The certificate's term, with q_t = q / (1 + kappa q).
    virtual = w * math.tanh(0.5 * t)
    state.spent[0] += 0.25 * q * ((virtual - gam) ** 2 * shrink - virtual**2)
    # (5): A += kappa x x', b += beta x, so A^{-1} b and A^{-1} follow by Sherman and Morrison.
    for j in range(h.shape[0]):
        h[j] += (beta - kappa * m) * shrink * v[j]
    return kappa, shrink


@njit
def update_kernel(state, x, y, z):
    predict_kernel(state, x, z)  # leaves v = A^{-1} x
    kappa, shrink = learn(state, dot(x, state.h), dot(x, state.v), z[0], y)
    rank_one_downdate(state.P, state.v, kappa * shrink)  # A^{-1} -= kappa v v' / (1 + kappa q)


# ------------------------------------------------------------------------------------------------------- with C, A^{-1} = C C'


@njit
def predict_by_root(state, x, z):
    C, u = state.P, state.u
    u[:] = 0.0
    for j in range(x.shape[0]):  # u = C'x
        if x[j] != 0.0:
            for l in range(x.shape[0]):
                u[l] += C[j, l] * x[j]
    z[0] = aioli_root(dot(x, state.h), dot(u, u), state.virtual_weight)
    z[1] = 0.0


@njit(arrays="new")
def update_by_root(state, x, y, z):
    C, u, v = state.P, state.u, state.v
    predict_by_root(state, x, z)
    for j in range(v.shape[0]):
        v[j] = dot(C[j], u)  # v = C u = A^{-1} x
    q = dot(u, u)
    kappa, _ = learn(state, dot(x, state.h), q, z[0], y)
    # C -= a v u' with (I - a u u')^2 = I - kappa u u' / (1 + kappa q): Potter's square root, computed without a
    # subtraction in a.
    root = math.sqrt(1.0 + kappa * q)
    a = kappa / (root * (1.0 + root))
    for j in range(v.shape[0]):
        for l in range(v.shape[0]):
            C[j, l] -= a * v[j] * u[l]


ROOT_KERNELS = Kernels(predict_by_root, update_by_root, None, "AIOLI, by a root")


class AIOLI(KernelForecaster):
    r"""Follow the regularised leader on quadratic surrogates and on one virtual label of each sign at the next context.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the forecast logits are :math:`(z, 0)`.

    Update rule: :math:`\theta_t` minimises (3), the sum of :math:`\lambda \|\theta\|^2`, the surrogates (2) of the past
    losses with curvature :math:`\eta_s = 2 c e^{y_s z_s}`, and
    :math:`w [\mathrm{loss}(\theta'x_t, +1) + \mathrm{loss}(\theta'x_t, -1)]`. The margin :math:`z = x_t' \theta_t` is
    the root of :math:`z = m - (w/2) q \tanh(z/2)` with :math:`m = x'A^{-1} b` and :math:`q = x'A^{-1} x`, found by
    Newton's method. Then (5): :math:`A \mathrel{+}= (\eta/2) g g'`, :math:`b \mathrel{+}= (1/2)(\eta g'\theta - 1) g`.
    (The paper's Algorithms 1 and 2 lack the factor 1/2 of b, and Algorithm 2 starts from the inverse of :math:`A_0`.
    Equations (3) and (5) are right and are used here.)

    Guarantee (Theorem 1, :math:`w = 1`): the regret is at most
    :math:`\lambda B_{\theta}^2 + (d/(2c)) \ln(1 + n c R^2 / (4 d \lambda))` against every :math:`\theta` with
    :math:`\|\theta\| \le B_{\theta}`, for every c up to "tight" (see `curvature`). The paper's c satisfies
    :math:`1/(2c) = 1 + B_{\theta} R` ("simple"). The running certificate is

    .. math::

        \lambda B_{\theta}^2 + (1/4) \sum_t [(w \tanh(z/2) - \gamma)^2 q_t - w^2 \tanh(z/2)^2 q],

    with :math:`g_t = \gamma x_t` and :math:`q_t = q / (1 + (\eta/2) \gamma^2 q)`. It is the exact expression in the
    proof, before further bounds, and is valid for any w.

    Rounding: up to :math:`R^2 / \lambda = 10^{7}`, :math:`A^{-1}` itself is stored. Beyond it C with
    :math:`A^{-1} = C C'` is stored (Potter's update), which loses half as many digits. Up to
    :math:`R^2 / \lambda = 10^{12}`, margins have an error of about 1e-9 (docs/results/conformance.md).

    Cost: :math:`2 d^2` multiplications per round, half of them for the forecast, which skips zero entries of the
    context. Memory: :math:`d^2` numbers. With C, cost and memory are 1.5 times as large.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of a two-row W. In the paper, B denotes the bound on :math:`\theta = W_0 - W_1`,
        which is :math:`2 B` here (attribute `margin_bound`).
    regularization
        :math:`\lambda` in the paper; "theory" is :math:`1 / \mathrm{margin\_bound}^2`.
    virtual_weight
        w, the weight of the two virtual labels. It is 1 in the paper, and the bound holds only for 1.
    curvature
        c in :math:`\eta_t = 2 c e^{y z}`: "simple" is :math:`1/(2 (1 + B_{\theta} R))`, the paper's; "tight" is
        :math:`1/(1 + \cosh b)` with :math:`b + \sinh b = B_{\theta} R`, which is larger; or a number. Above "tight"
        there is no bound and no certificate.

    Raises
    ------
    IncompatibleError
        More than two classes.
    UsageError
        A setting is outside its range.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    """

    id = "aioli"
    group = "theory"
    summary = "binary: quadratic surrogates and two virtual labels, logarithmic regret without $e^B$"
    reference = "Jézéquel, Gaillard and Rudi, COLT 2020, Equation (3)"
    state_order = (0, 2)
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
        regularization: float | Literal["theory"] = "theory",
        virtual_weight: float = 1.0,
        curvature: float | Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        if problem.n_classes != 2:
            raise IncompatibleError(f"AIOLI is binary: it needs n_classes = 2, got {problem.n_classes}; use FOLKLORE")
        d = problem.n_features
        self.norm_bound = positive("norm_bound", norm_bound)
        margin = self.margin_bound * problem.radius
        words = {"simple": 0.5 / (1.0 + margin), "tight": tight_curvature(margin)}
        self.regularization = resolve("regularization", regularization, {"theory": 1.0 / self.margin_bound**2})
        self.virtual_weight = nonnegative("virtual_weight", virtual_weight)
        self.curvature = resolve("curvature", curvature, words)
        self.state = State.initial(d, self.regularization, self.curvature, self.virtual_weight, self.rooted)

    @property
    def rooted(self) -> bool:
        """Whether C with :math:`A^{-1} = C C'` is stored instead of :math:`A^{-1}`."""
        return self.problem.radius**2 > ROOT_FROM * self.regularization

    @property
    def kernels(self) -> Kernels:
        """The kernels for the stored form of :math:`A^{-1}`."""
        return ROOT_KERNELS if self.rooted else super().kernels

    @property
    def margin_bound(self) -> float:
        r"""The bound :math:`2 B` on :math:`\|\theta\| = \|W_0 - W_1\|`, which is B in the paper."""
        return 2.0 * self.norm_bound

    def update_soft(self, context: Any, label: Any) -> None:
        """Update with the distribution `label` (2,) at `context` (d,).

        The curvature of a surrogate does not depend on the label, and its gradient is linear in the label, so the
        certificate holds. A one-hot label gives the same state, to the last bit, as `update`.
        """
        y, state = as_distribution(label, 2), self.state
        hard, spent = int(np.argmax(y)), float(state.spent[0])
        x, z = as_context(context, self.problem), np.empty(2)
        self.kernels.update(state, x, hard, z)
        if vertex(y) is not None:
            return
        q, t, c, w = float(x @ state.v), float(z[0]), state.curvature, state.virtual_weight
        right = 1.0 / (1.0 + math.exp(-abs(t)))
        p = right if t > 0.0 else math.exp(-abs(t)) * right  # the probability of class 0
        kappa = c * right * math.exp(-abs(t)) * right
        shrink = 1.0 / (1.0 + kappa * q)
        gam, observed, virtual = p - y[0], p - (1.0 if hard == 0 else 0.0), w * math.tanh(0.5 * t)
        state.h[...] += 0.5 * (observed - gam) * shrink * state.v
        state.spent[0] = spent + 0.25 * q * ((virtual - gam) ** 2 * shrink - virtual**2)

    def bound(self, rounds: float) -> float | None:
        """Return the regret bound of Theorem 1 after `rounds` rounds, in nats, or None if it does not cover these settings."""
        if not self._proved() or self.virtual_weight != 1.0:
            return None
        d, R = self.problem.n_features, self.problem.radius
        return aioli(rounds, d, self.margin_bound, R, self.regularization, self.curvature)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats.

        It is NaN if the curvature is above "tight", or if the regularization is so small that rounding errors matter.
        """
        if not self._proved() or self.problem.radius**2 > ROOT_TO * self.regularization:
            return math.nan
        return self.regularization * self.margin_bound**2 + float(self.state.spent[0])

    def _proved(self) -> bool:
        return self.curvature <= tight_curvature(self.margin_bound * self.problem.radius) * (1.0 + 1e-12)
