"""GAF for a given loss (Jézéquel, Gaillard and Rudi, NeurIPS 2021, Sections 3 and 4.1)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.gaf import gaf_huber, vovk_azoury_warmuth
from banditlab.errors import UsageError
from banditlab.players.inputs import as_context, as_rows
from banditlab.problem import Problem
from banditlab.regression.losses import Huber, Loss, Squared
from banditlab.validation import at_least, one_of, positive, resolve

Floats = NDArray[np.float64]
BEYOND = 1.0 + 1e-9
"""Tolerance: targets up to this factor times Y are accepted."""


class GaussianRegression:
    r"""Mix all linear functions, weighted by a Gaussian density that quadratic surrogates of the past losses define.

    Problem: online prediction of numbers on an adversarial stream. In each round, the learner observes
    :math:`x_t \in \mathbb{R}^d` with :math:`\|x_t\| \le R`, predicts a number, and then observes
    :math:`y_t \in [-Y, Y]`. The aim is a small regret against :math:`\theta'x` with :math:`\|\theta\| \le B`.

    Update rule: let A and b define :math:`\tilde{L}(\theta) = \theta'A \theta + b'\theta`, :math:`m = -(1/2) x'A^{-1}b`
    and :math:`q = x'A^{-1}x`. If :math:`\theta` has the density proportional to :math:`\exp(-\alpha \tilde{L})`, the
    margin :math:`\theta'x` is :math:`N(m, q/(2 \alpha))`, from which the loss determines the prediction (4). Then
    :math:`\theta_{t+1}` follows from (2); its margin z minimises :math:`(z - m)^2/q + \mathrm{loss}(z, y)`. The update
    at z is (3), with :math:`\alpha` and :math:`\beta` the constants of the loss (`banditlab.regression.losses`):
    :math:`A \mathrel{+}= (\beta/2)\, \mathrm{loss}''\, x x'` and
    :math:`b \mathrel{+}= (\mathrm{loss}' - \beta\, \mathrm{loss}''\, z) x`. For the squared loss the prediction is
    :math:`m/(1 + q)`, that of Vovk, Azoury and Warmuth: :math:`\theta'x` with :math:`\theta` the minimiser of the past
    losses plus :math:`\lambda \|\theta\|^2 + (\theta'x)^2`. (The paper prints :math:`\theta'x_t` for its square, and
    :math:`\lambda \|\theta\|^2` twice: docs/errata.md.)

    Guarantee: the regret is at most the certificate :math:`\lambda B^2 + \sum_t [\mathrm{loss}(\text{prediction}_t) -
    \mathrm{loss}(z_t) - (z_t - m_t)^2/q_t]`, whatever the predictions are. Bounds known in advance are
    `vovk_azoury_warmuth` for the squared loss and `gaf_huber` for Huber's loss.

    Cost: :math:`2 d^2` multiplications per round. Memory: :math:`d^2` numbers.

    Parameters
    ----------
    n_features, radius
        d and R.
    loss
        "squared" or "huber".
    norm_bound
        B, the largest norm of a comparator.
    target_bound
        Y, the bound on the absolute value of the targets.
    regularization
        :math:`\lambda` in the paper; "theory" is :math:`\max(4, d)/(4 d B^2)` (Section 4.1).
    threshold
        Threshold of the Huber loss, at least :math:`\max(2 Y, B R + Y)`, which is the default.

    Raises
    ------
    UsageError
        A setting, a context or a target is outside its range.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression.
    NeurIPS 2021.
    V. Vovk. Competitive on-line statistics. International Statistical Review 69, 2001.
    K. Azoury, M. Warmuth. Relative loss bounds for on-line density estimation. Machine Learning 43, 2001.
    """

    def __init__(
        self,
        n_features: int,
        radius: float = 1.0,
        *,
        loss: Literal["squared", "huber"] = "squared",
        norm_bound: float = 1.0,
        target_bound: float = 1.0,
        regularization: float | Literal["theory"] = "theory",
        threshold: float | None = None,
    ) -> None:
        d = at_least("n_features", n_features, 1)
        self.problem = Problem(d, 2, radius)  # checks contexts like a classifier
        self.norm_bound = B = positive("norm_bound", norm_bound)
        Y = positive("target_bound", target_bound)
        self.target_bound = Y
        self.regularization = lam = resolve("regularization", regularization, {"theory": max(4, d) / (4.0 * d * B**2)})
        one_of("loss", loss, ("squared", "huber"))
        least = max(2.0 * Y, B * radius + Y)
        self.loss: Loss = Squared(Y) if loss == "squared" else Huber(Y, least if threshold is None else threshold)
        if loss == "squared" and threshold is not None:
            raise UsageError(f"threshold applies to loss = 'huber' only, got {threshold!r} with 'squared'")
        self.loss.check(B, radius)
        self.P: Floats = np.eye(d) / lam  # A^{-1}
        self.b: Floats = np.zeros(d)
        self.spent = 0.0
        self.rounds = 0

    def _margin(self, x: Floats) -> tuple[float, float, Floats]:
        """Return m, q and :math:`A^{-1}x`."""
        v = self.P @ x
        return -0.5 * float(self.b @ v), max(float(x @ v), 0.0), v

    def predict(self, context: Floats) -> float:
        """Return the prediction at `context` (d,)."""
        m, q, _ = self._margin(as_context(context, self.problem))
        return self.loss.substitute(m, 0.5 * q / self.loss.mixability)

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the predictions (n,) at `contexts` (n, d) without changing the state."""
        X = as_rows(contexts, self.problem)
        V = X @ self.P
        m, q = -0.5 * (V @ self.b), np.maximum((V * X).sum(axis=1), 0.0)
        a = self.loss.mixability
        return np.array([self.loss.substitute(float(i), 0.5 * float(j) / a) for i, j in zip(m, q, strict=True)])

    def update(self, context: Floats, target: float) -> None:
        """Update with the target y in [-Y, Y] of `context` (d,)."""
        x, y = as_context(context, self.problem), float(target)
        if not abs(y) <= self.target_bound * BEYOND:
            raise UsageError(f"the target must lie in [-{self.target_bound:g}, {self.target_bound:g}], got {y:g}")
        m, q, v = self._margin(x)
        loss = self.loss
        predicted = loss.substitute(m, 0.5 * q / loss.mixability)
        z = loss.implicit(m, q, y) if q > 0.0 else m
        grown = loss.value(z, y) + ((z - m) ** 2 / q if q > 0.0 else 0.0)
        self.spent += loss.value(predicted, y) - grown
        kappa = 0.5 * loss.beta * loss.curvature(z, y)
        self.b = self.b + (loss.slope(z, y) - 2.0 * kappa * z) * x
        self.P = self.P - (kappa / (1.0 + kappa * q)) * np.outer(v, v)
        self.rounds += 1

    def bound(self, rounds: float) -> float:
        """Return the theorem's bound on the regret after `rounds` rounds, in units of the loss."""
        d, R = self.problem.n_features, self.problem.radius
        theorem = vovk_azoury_warmuth if self.loss.name == "squared" else gaf_huber
        return theorem(rounds, d, self.norm_bound, R, self.target_bound, self.regularization)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in units of the loss, or NaN if rounding errors may be
        large.
        """
        if self.problem.radius**2 > 1e10 * self.regularization:
            return math.nan
        return self.regularization * self.norm_bound**2 + self.spent
