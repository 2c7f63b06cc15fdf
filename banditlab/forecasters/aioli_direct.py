"""AIOLI as Algorithm 2 has it, corrected: a Cholesky factor, and gradient descent in two dimensions (COLT 2020)."""

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
    """L (d, d) lower triangular, :math:`A = L L'`; b (d,); spent (1,) is the certificate's sum."""

    L: NDArray[np.float64]
    b: NDArray[np.float64]
    spent: NDArray[np.float64]


class AIOLIDirect(Forecaster):
    r"""AIOLI by Algorithm 2: L with :math:`A = L L'`, Lemma 2's problem in two dimensions, Lemma 3's gradient steps.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the logits answered are :math:`(z, 0)`.

    Update rule: :math:`V = L^{-1} (b, x)`, shape (d, 2); :math:`(U, \Sigma)` the eigenvalues and -vectors of :math:`V'V`,
    those above rounding; :math:`u = \Sigma^{1/2} U'e_1`, :math:`v = \Sigma^{1/2} U'e_2`; :math:`\omega` goes T steps
    of :math:`\lambda/(4 \lambda + R^2)` down (6),
    :math:`|\omega|^2 - 2 u'\omega + \ln(1 + e^{-v'\omega}) + \ln(1 + e^{v'\omega})`, from 0; the margin is
    :math:`v'\omega`, since :math:`\theta = L^{-T} V U \Sigma^{-1/2} \omega`. Then A and b change as in (5), L by a
    rank-one update of the Cholesky factor. Algorithm 2 prints :math:`L_0 = \lambda^{-1/2} I` for
    :math:`\lambda^{1/2} I`, :math:`L_t` for :math:`L_{t-1}`, and b without its 1/2 (docs/errata.md): corrected here.

    Guarantee: Theorem 4, at the number of steps that `aioli_steps` gives (steps = "theory"); Theorem 7 as corrected
    (`aioli_inexact`) at another one. The running certificate holds whatever the margin was: :math:`\lambda B^2` plus,
    a round, the loss less what the least value of the surrogates' sum grows by.

    Cost: :math:`d^2` multiplications a forecast, :math:`4 d^2` an update, :math:`d^2` numbers; interpreted.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of a two-row W; the paper's own B is the attribute `margin_bound`, :math:`2 B`.
    regularization
        :math:`\lambda` in the paper; "theory" is :math:`1 / \mathrm{margin\_bound}^2`.
    steps
        T, the gradient steps of a round; "theory" is Theorem 4's, which needs the horizon.

    Raises
    ------
    IncompatibleError
        More than two classes.
    HorizonRequiredError
        steps = "theory" without a horizon.
    UsageError
        A setting out of its range.

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
            raise HorizonRequiredError(f"{self.id}: steps = 'theory' needs the horizon T: give a number")
        return int(aioli_steps(float(n), self.margin_bound, self.problem.radius, self.regularization))

    def get_state(self) -> dict[str, Any]:
        """Return the state."""
        return {"rng": self.rng, "state": self.state}

    @property
    def margin_bound(self) -> float:
        r"""The bound :math:`2 B` on :math:`\|\theta\| = \|W_0 - W_1\|`: B in the paper."""
        return 2.0 * self.norm_bound

    def _margin(self, x: Floats) -> tuple[float, float, float, Floats]:
        """Return the margin that T steps lead to, :math:`m = x'A^{-1} b`, :math:`q = x'A^{-1} x`, and :math:`L^{-1} x`."""
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
        # the surrogate gam (t - z) + kappa (t - z)^2, t = m + a: its least with a^2/q is -T, whatever z was
        r, slope = z - m, gam - 2.0 * kappa * (z - m)
        self.state.spent[0] += gam * r - kappa * r * r + 0.25 * slope * slope * q / (1.0 + kappa * q)
        self.state.b[...] += (kappa * z - 0.5 * gam) * x  # (5)
        cholesky_update(self.state.L, math.sqrt(kappa) * x)

    def bound(self, rounds: float) -> float | None:
        """Return Theorem 4's regret after `rounds` rounds, in nats, or Theorem 7's at fewer steps."""
        d, B, R, lam = self.problem.n_features, self.margin_bound, self.problem.radius, self.regularization
        if self.steps >= aioli_steps(rounds, B, R, lam):
            return aioli_theorem_4(rounds, d, B, R, lam)
        # Lemma 3 and its proof: what T steps leave of theta, which begins within R rounds / (2 lambda) of the minimiser
        left = R * rounds / lam * math.exp(-self.steps * lam / (4.0 * lam + R**2))
        return aioli_inexact(rounds, d, B, R, lam, left)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats; NaN where rounding is not small."""
        if self.problem.radius**2 > DIGITS * self.regularization:
            return math.nan
        return self.regularization * self.margin_bound**2 + float(self.state.spent[0])


def cholesky_update(L: Floats, w: Floats) -> None:
    r""":math:`L L' \mathrel{+}= w w'`, L (d, d) lower triangular and w (d,): Golub and Van Loan's rank-one update, in place."""
    w = w.copy()
    for j in range(len(w)):
        a = L[j, j]
        r = math.hypot(a, w[j])
        cos, sin = r / a, w[j] / a
        L[j, j] = r
        L[j + 1 :, j] = (L[j + 1 :, j] + sin * w[j + 1 :]) / cos
        w[j + 1 :] = cos * w[j + 1 :] - sin * L[j + 1 :, j]
