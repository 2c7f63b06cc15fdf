"""The best logistic model in hindsight within a Frobenius ball (Jézéquel et al., NeurIPS 2021, Section 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditlab.comparators._objective import Floats, Objective
from banditlab.comparators.ball import TOLERANCE, ComparatorError
from banditlab.validation import positive

MOST = 200
"""The largest number of multipliers tried."""
NEWTON, CONJUGATE = 50, 200
"""The largest number of Newton steps per multiplier, and of Hessian products per step."""


@dataclass(frozen=True, eq=False)
class FrobeniusComparator:
    r"""The best multiclass logistic model in :math:`\{W : \|W\|_F \le D\}` for a number of rounds.

    `weights` (K, d) is read-only, with a computed norm of at most `frobenius_bound`. `loss` is in nats. `gap` is
    :math:`\langle G, W \rangle + D \|G\|_F`, a bound on the loss minus the optimal loss. `rounds` is the sum of the
    counts.
    """

    weights: Floats
    frobenius_bound: float
    loss: float
    gap: float
    rounds: float


def project_frobenius(W: Floats, bound: float) -> Floats:
    """Return W, rescaled if necessary to a computed Frobenius norm of at most `bound`."""
    norm = float(np.linalg.norm(W))
    projected: Floats = W if norm <= bound else W * (bound / norm)
    while np.linalg.norm(projected) > bound:
        projected = projected * (1.0 - 2.0**-52)
    return projected


def best_in_frobenius_ball(
    U: Any, counts: Any, frobenius_bound: float, *, tolerance: float = TOLERANCE
) -> FrobeniusComparator:
    r"""Return the model with the smallest :math:`\sum_i \sum_k c_{ik} (-\ln \mathrm{softmax}(W u_i)_k)` over
    :math:`\{W : \|W\|_F \le D\}`.

    With L this sum, the model minimises :math:`L(W) + (\mu/2) \|W\|_F^2` for the :math:`\mu \ge 0` at which the
    minimiser's norm is D (or for :math:`\mu = 0`, if that minimiser lies in the ball). For a given :math:`\mu`, the
    minimiser is computed by Newton's method with conjugate gradients. The next :math:`\mu` is :math:`\mu \|W\| / D`, or
    the middle of the known bracket. The certificate is the Frank-Wolfe gap, computed again at the returned W. `counts`
    may be soft labels.

    Parameters
    ----------
    U
        Contexts, shape (m, d).
    counts
        Shape (m, K): the count, or weight, of each label at each context.
    frobenius_bound
        D.
    tolerance
        The required gap, as a multiple of :math:`\max(1, \text{loss in nats})`.

    Raises
    ------
    ComparatorError
        The gap did not reach the tolerance.
    UsageError
        The shapes of the arguments do not match, or a value is invalid.
    """
    D, tolerance = positive("frobenius_bound", frobenius_bound), positive("tolerance", tolerance)
    objective = Objective.of(U, counts)
    W = np.zeros(objective.shape)
    high = float(np.linalg.norm(objective.evaluate(W)[1])) / D  # ||W(mu)|| <= ||G(0)|| / mu
    low, mu, best = 0.0, high, (math.inf, W, math.inf)
    for _ in range(MOST):
        W = _ridge(objective, W, mu) if mu > 0.0 else W
        norm = float(np.linalg.norm(W))
        inside = project_frobenius(W, D)
        loss, G = objective.evaluate(inside)
        gap = max(float(np.vdot(G, inside)) + D * float(np.linalg.norm(G)), 0.0)
        best = min(best, (gap, inside, loss), key=lambda found: found[0])
        if gap <= 0.9 * tolerance * max(1.0, loss):
            inside = inside.copy()
            inside.flags.writeable = False
            return FrobeniusComparator(inside, D, loss, gap, float(objective.totals.sum()))
        low, high = (mu, high) if norm > D else (low, mu)
        mu = _next(mu, norm, D, low, high)
    raise ComparatorError(
        f"the comparator at frobenius_bound = {D:g} reached a gap of {best[0]:.3g} nats at loss {best[2]:.6g}; the "
        f"tolerance is {tolerance * max(1.0, best[2]):.3g}: raise the tolerance"
    )


def _next(mu: float, norm: float, D: float, low: float, high: float) -> float:
    r"""Return the next multiplier, or the middle of the bracket.

    The step :math:`\mu \|W\| / D` is exact if the norm is proportional to :math:`1/\mu`.
    """
    guess = mu * norm / D
    if low < guess < high and abs(math.log(norm / D)) < 1.0:
        return guess
    return math.sqrt(low * high) if low > 0.0 else 0.1 * high


def _ridge(objective: Objective, W: Floats, mu: float) -> Floats:
    r"""Return the minimiser of :math:`L(W) + (\mu/2) \|W\|_F^2`, by Newton's method with step halving from W."""
    for _ in range(NEWTON):
        loss, S = objective.forecast(objective.logits(W))
        G = objective.gradient(S) + mu * W
        size = float(np.linalg.norm(G))
        if size <= 1e-12 * (1.0 + mu * float(np.linalg.norm(W))):
            break
        step = _solved(objective, S, mu, G, 0.01 * size * min(1.0, size))
        value, along = loss + 0.5 * mu * float(np.vdot(W, W)), float(np.vdot(G, step))
        t = 1.0
        while t > 1e-10:
            trial = W - t * step
            after = objective.loss(objective.logits(trial)) + 0.5 * mu * float(np.vdot(trial, trial))
            if after <= value - 1e-4 * t * along:
                break
            t *= 0.5
        else:
            break
        W = trial
    return W


def _solved(objective: Objective, S: Floats, mu: float, G: Floats, tolerance: float) -> Floats:
    r"""Return an approximation of :math:`(H + \mu I)^{-1} G` by conjugate gradients."""
    X, R = np.zeros_like(G), G.copy()
    P, square = R.copy(), float(np.vdot(R, R))
    for _ in range(CONJUGATE):
        if math.sqrt(square) <= max(tolerance, 1e-14 * float(np.linalg.norm(G))):
            break
        HP = objective.hessian_action(S, P) + mu * P
        a = square / float(np.vdot(P, HP))
        X, R = X + a * P, R - a * HP
        before, square = square, float(np.vdot(R, R))
        P = R + (square / before) * P
    return X
