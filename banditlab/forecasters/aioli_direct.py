"""AIOLI by a corrected Algorithm 2: a Cholesky factor, and gradient descent in two dimensions (COLT 2020)."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from banditlab.bounds.aioli import aioli_inexact, aioli_steps, aioli_theorem_4
from banditlab.errors import HorizonRequiredError, IncompatibleError
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context
from banditlab.problem import Problem
from banditlab.validation import at_least, positive

DIGITS = 1e12
r""":math:`R^2/\lambda` above which the factor has too few digits for a certificate."""


class State(NamedTuple):
    r"""L (d, d), lower triangular, :math:`A = L L'`; b (d,); spent (1,), `certificate` minus :math:`\lambda B^2`."""

    L: NDArray[np.float64]
    b: NDArray[np.float64]
    spent: NDArray[np.float64]


class AIOLIDirect(Forecaster):
    r"""AIOLI by Algorithm 2: it stores L with :math:`A = L L'` and solves Lemma 2's problem by Lemma 3's gradient steps.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the forecast logits are :math:`(z, 0)`.

    Update rule: let :math:`V = L^{-1} (b, x)`, of shape (d, 2), and let :math:`(U, \Sigma)` be the eigenvectors and
    eigenvalues of :math:`V'V`, without eigenvalues that are 0 up to rounding. With :math:`u = \Sigma^{1/2} U'e_1` and
    :math:`v = \Sigma^{1/2} U'e_2`, the function (6) is
    :math:`|\omega|^2 - 2 u'\omega + \ln(1 + e^{-v'\omega}) + \ln(1 + e^{v'\omega})`. :math:`\omega` takes T gradient
    steps of size :math:`\lambda/(4 \lambda + R^2)` on (6), from 0. The margin is :math:`v'\omega`, because
    :math:`\theta = L^{-T} V U \Sigma^{-1/2} \omega`. Then A and b change as in (5), and L by a rank-one update of the
    Cholesky factor. Algorithm 2 prints :math:`L_0 = \lambda^{-1/2} I` instead of :math:`\lambda^{1/2} I`, :math:`L_t`
    instead of :math:`L_{t-1}`, and b without its 1/2 (docs/errata.md). These errors are corrected here.

    Guarantee: Theorem 4 for at least as many steps as `aioli_steps` returns (steps = "theory"), and a corrected Theorem
    7 (`aioli_inexact`) for fewer steps. The running certificate holds for any margin. It is :math:`\lambda B^2` (with
    the paper's B) plus the forecaster's total loss, minus the minimum over :math:`\theta` of
    :math:`\lambda \|\theta\|^2` plus the surrogate losses of all rounds.

    Cost: :math:`d^2` multiplications per forecast and :math:`4 d^2` per update, in Python. Memory: :math:`d^2` numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of a two-row W; B in the paper is :math:`2 B` here (attribute `margin_bound`).
    regularization
        :math:`\lambda` in the paper; "theory" is :math:`1 / \mathrm{margin\_bound}^2`.
    steps
        T, the number of gradient steps per round; "theory" is Theorem 4's number, which needs the horizon.

    Raises
    ------
    IncompatibleError
        More than two classes.
    HorizonRequiredError
        steps = "theory", and the horizon is unknown.
    UsageError
        A setting is outside its range.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020, Algorithm 2.
    """

    id = "aioli-direct"
    group = "theory"
    summary = "binary: AIOLI by Algorithm 2, a Cholesky factor and gradient steps in two dimensions; interpreted"
    reference = "Jézéquel, Gaillard and Rudi, COLT 2020, Algorithm 2, Lemmas 2 and 3 (corrected)"
    state_order = (0, 2)
    bound_unit = "nats"
    bound_adversary = "adaptive"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        regularization: float | Literal["theory"] = "theory",
        steps: int | Literal["theory"] = 100,
    ) -> None:
        super().__init__(problem, rng)
        if problem.n_classes != 2:
            raise IncompatibleError(f"aioli-direct is binary: it needs n_classes = 2, got {problem.n_classes}")
        self.norm_bound = positive("norm_bound", norm_bound)
        lam = 1.0 / self.margin_bound**2 if regularization == "theory" else positive("regularization", regularization)
        self.regularization = lam
        self.steps = self._resolved(steps)
        self.curvature = 0.5 / (1.0 + self.margin_bound * problem.radius)
        d = problem.n_features
        self.state = State(math.sqrt(lam) * np.eye(d), np.zeros(d), np.zeros(1))

    def _resolved(self, steps: int | str) -> int:
        if steps != "theory":
            return at_least("steps", steps, 0)
        n = self.problem.horizon
        if n is None:
            raise HorizonRequiredError(f"{self.id}: steps = 'theory' needs the horizon T; give a number instead")
        return int(aioli_steps(float(n), self.margin_bound, self.problem.radius, self.regularization))

    def get_state(self) -> dict[str, Any]:
        """Return the state."""
        return {"rng": self.rng, "state": self.state}

    @property
    def margin_bound(self) -> float:
        r"""The bound :math:`2 B` on :math:`\|\theta\| = \|W_0 - W_1\|`, which is B in the paper."""
        return 2.0 * self.norm_bound

    def _margin(self, x: Floats) -> tuple[float, float, float, Floats]:
        """Return the margin after T steps, :math:`m = x'A^{-1} b`, :math:`q = x'A^{-1} x`, and :math:`L^{-1} x`."""
        V = solve_triangular(self.state.L, np.stack([self.state.b, x], axis=1), lower=True)
        gram = V.T @ V
        sigma, U = np.linalg.eigh(gram)
        kept = sigma > 1e-14 * max(float(sigma[-1]), np.finfo(float).tiny)  # p_t, the rank
        half = np.sqrt(sigma[kept])
        u, v = half * U[0, kept], half * U[1, kept]
        lam, R = self.regularization, self.problem.radius
        omega, step = np.zeros(len(u)), lam / (4.0 * lam + R**2)
        for _ in range(self.steps):  # Lemma 3, on (6)
            omega = omega - step * (2.0 * omega - 2.0 * u + math.tanh(0.5 * float(v @ omega)) * v)
        return float(v @ omega), float(gram[0, 1]), float(gram[1, 1]), V[:, 1]

    def predict(self, context: Floats) -> Floats:
        """Return the logits (z, 0) for `context` (d,)."""
        return np.array([self._margin(as_context(context, self.problem))[0], 0.0])

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""
        x, y = as_context(context, self.problem), as_class("the label", label, 2)
        z, m, q, _ = self._margin(x)
        sign, c = 1.0 if y == 0 else -1.0, self.curvature
        right = 1.0 / (1.0 + math.exp(-abs(z)))
        wrong = math.exp(-abs(z)) * right
        kappa = c * right * wrong  # (eta/2) g g' = kappa x x', eta = 2 c e^(y z): (2), (9)
        gam = -sign * (wrong if sign * z > 0.0 else right)
        # the minimum over a of a^2/q + gam (t - z) + kappa (t - z)^2 with t = m + a is -T, for any z
        r, slope = z - m, gam - 2.0 * kappa * (z - m)
        self.state.spent[0] += gam * r - kappa * r * r + 0.25 * slope * slope * q / (1.0 + kappa * q)
        self.state.b[...] += (kappa * z - 0.5 * gam) * x  # (5)
        cholesky_update(self.state.L, math.sqrt(kappa) * x)

    def bound(self, rounds: float) -> float | None:
        """Return the regret bound of Theorem 4 after `rounds` rounds, in nats, or that of Theorem 7 for fewer steps."""
        d, B, R, lam = self.problem.n_features, self.margin_bound, self.problem.radius, self.regularization
        if self.steps >= aioli_steps(rounds, B, R, lam):
            return aioli_theorem_4(rounds, d, B, R, lam)
        # Lemma 3 and its proof: the error of theta after T steps from within R rounds / (2 lambda) of the minimiser
        left = R * rounds / lam * math.exp(-self.steps * lam / (4.0 * lam + R**2))
        return aioli_inexact(rounds, d, B, R, lam, left)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats, or NaN if rounding errors are not small."""
        if self.problem.radius**2 > DIGITS * self.regularization:
            return math.nan
        return self.regularization * self.margin_bound**2 + float(self.state.spent[0])


def cholesky_update(L: Floats, w: Floats) -> None:
    r"""Add :math:`w w'` to :math:`L L'` in place, for L (d, d) lower triangular and w (d,): Golub and Van Loan's update."""
    w = w.copy()
    for j in range(len(w)):
        a = L[j, j]
        r = math.hypot(a, w[j])
        cos, sin = r / a, w[j] / a
        L[j, j] = r
        L[j + 1 :, j] = (L[j + 1 :, j] + sin * w[j + 1 :]) / cos
        w[j + 1 :] = cos * w[j + 1 :] - sin * L[j + 1 :, j]
