"""AIOLI (Jézéquel, Gaillard and Rudi, COLT 2020)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.aioli import aioli
from banditlab.bounds.curvature import tight_curvature
from banditlab.errors import IncompatibleError
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.symmetric import dot, rank_one_downdate, support, symmetric_matvec_on
from banditlab.numerics.tanh_root import aioli_root
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.validation import nonnegative, positive, resolve


class State(NamedTuple):
    """P = A^{-1} (d, d), h = A^{-1} b (d,); curvature is c, virtual_weight w; spent (1,) the certificate's sum.

    v (d,) and nonzero (d,), the context's non-zero positions, are scratch.
    """

    P: NDArray[np.float64]
    h: NDArray[np.float64]
    curvature: float
    virtual_weight: float
    spent: NDArray[np.float64]
    v: NDArray[np.float64]
    nonzero: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"nonzero": (0, self.v.shape[-1] - 1)}

    @classmethod
    def initial(cls, d: int, regularization: float, curvature: float, virtual_weight: float) -> State:
        """Return A = lambda I, b = 0."""
        P, h, spent = np.eye(d) / regularization, np.zeros(d), np.zeros(1)
        return cls(P, h, curvature, virtual_weight, spent, v=np.zeros(d), nonzero=np.zeros(d, np.int64))


@njit
def predict_kernel(state, x, z):
    symmetric_matvec_on(state.P, x, state.nonzero, support(x, state.nonzero), state.v)  # v = A^{-1} x
    z[0] = aioli_root(dot(x, state.h), dot(x, state.v), state.virtual_weight)  # z = m - (w/2) q tanh(z/2)
    z[1] = 0.0


@inline
def surrogate(t, y, c):
    """Return (kappa, gam, beta) of a round predicted with margin t: A += kappa x x', g = gam x, b += beta x."""
    sign = 1.0 if y == 0 else -1.0
    right = 1.0 / (1.0 + math.exp(-abs(t)))  # sigmoid(|t|)
    wrong = math.exp(-abs(t)) * right
    kappa = c * right * wrong  # (eta_t / 2) g g' = kappa x x' with eta_t = 2 c e^(y t): (2), (9)
    gam = -sign * (wrong if sign * t > 0.0 else right)  # g = gam x
    return kappa, gam, kappa * t - 0.5 * gam  # (5): b_t = b_{t-1} + beta x


@njit
def update_kernel(state, x, y, z):
    # m = x'A^{-1} b, q = x'A^{-1} x, and the margin t that was forecast.
    v, h = state.v, state.h
    c, w = state.curvature, state.virtual_weight
    predict_kernel(state, x, z)  # leaves v = A^{-1} x
    m, q, t = dot(x, h), dot(x, v), z[0]
    kappa, gam, beta = surrogate(t, y, c)
    shrink = 1.0 / (1.0 + kappa * q)
    # The certificate's term, with q_t = q / (1 + kappa q).
    virtual = w * math.tanh(0.5 * t)
    state.spent[0] += 0.25 * q * ((virtual - gam) ** 2 * shrink - virtual**2)
    # (5): A += kappa x x', b += beta x, so A^{-1} b and A^{-1} follow by Sherman and Morrison.
    for j in range(h.shape[0]):
        h[j] += (beta - kappa * m) * shrink * v[j]
    rank_one_downdate(state.P, v, kappa * shrink)  # A^{-1} -= kappa v v' / (1 + kappa q)


class AIOLI(KernelForecaster):
    """Follow the regularised leader on quadratic surrogates, plus one virtual label of each sign at the next context.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the logits answered are (z, 0).

    Update rule: theta_t minimises (3), the sum of lambda ||theta||^2, the surrogates (2) of the past losses with
    curvature eta_s = 2 c e^(y_s z_s), and w [loss(theta'x_t, +1) + loss(theta'x_t, -1)]; z = x_t' theta_t is the root
    of z = m - (w/2) q tanh(z/2), m = x'A^{-1} b, q = x'A^{-1} x, found by Newton's method. Then (5):
    A += (eta/2) g g', b += (1/2)(eta g'theta - 1) g. (The paper's Algorithms 1 and 2 lack this 1/2 and Algorithm 2
    starts from the inverse of A_0; (3) and (5) are right, and are what is minimised here.)

    Guarantee (Theorem 1, w = 1): regret at most lambda B_theta^2 + (d/(2c)) ln(1 + n c R^2 / (4 d lambda)) against
    every theta with ||theta|| <= B_theta, for every admissible c; the paper's is 1/(2c) = 1 + B_theta R ("simple"). The
    running certificate is lambda B_theta^2 + (1/4) sum_t [(w tanh(z/2) - gam)^2 q_t - w^2 tanh(z/2)^2 q_{t-1}], with
    g_t = gam x_t and q_t = q / (1 + (eta/2) gam^2 q): the proof before anything is bounded, valid for any w.

    Cost: 2 d^2 multiplications a round, the forecast's half only for what is not 0 in the context; d^2 numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of a two-row W. The paper's own B bounds theta = W_0 - W_1, hence is 2 B; it is the
        attribute `margin_bound`.
    regularization
        lambda in the paper; "theory" is 1 / margin_bound^2.
    virtual_weight
        w, the weight of the two virtual labels; 1 in the paper, and the bound holds for 1 only.
    curvature
        c in eta_t = 2 c e^(y z): "simple" is 1/(2 (1 + B_theta R)), the paper's; "tight" is 1/(1 + cosh b) with
        b + sinh b = B_theta R, the best closed form; or a number. Above "tight" nothing is proved: no bound, no
        certificate.

    Raises
    ------
    IncompatibleError
        More than two classes.
    UsageError
        A setting out of its range.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    """

    id = "aioli"
    group = "theory"
    summary = "binary: quadratic surrogates and two virtual labels, logarithmic regret without e^B"
    reference = "Jézéquel, Gaillard and Rudi, COLT 2020, Equation (3)"
    state_order = (0, 2)
    bound_unit = "nats"
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
        self.state = State.initial(d, self.regularization, self.curvature, self.virtual_weight)

    @property
    def margin_bound(self) -> float:
        """The bound 2 B on ||theta|| = ||W_0 - W_1||: B in the paper."""
        return 2.0 * self.norm_bound

    def bound(self, rounds: float) -> float | None:
        """Return Theorem 1's regret after `rounds` rounds, in nats; None where curvature or weight are not covered."""
        if not self._proved() or self.virtual_weight != 1.0:
            return None
        d, R = self.problem.n_features, self.problem.radius
        return aioli(rounds, d, self.margin_bound, R, self.regularization, self.curvature)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats; NaN for a curvature that is not admissible."""
        if not self._proved():
            return math.nan
        return self.regularization * self.margin_bound**2 + float(self.state.spent[0])

    def _proved(self) -> bool:
        return self.curvature <= tight_curvature(self.margin_bound * self.problem.radius) * (1.0 + 1e-12)
