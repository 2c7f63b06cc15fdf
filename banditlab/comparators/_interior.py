r"""Minimise the logistic loss over the product of balls if `minimise` stalls, on small, ill-conditioned problems.

If features differ by orders of magnitude, the Newton step of `_newton` can be a hundred times the radius. After the
projection it is not a descent direction, and gradient steps are slow. A primal-dual interior-point method stays inside
the ball (Boyd and Vandenberghe 2004, Algorithm 11.2): with :math:`f_k = (\|W_k\|^2 - B^2) / 2` and multipliers
:math:`\nu_k > 0`, it applies Newton's method to

.. math::

    G_k + \nu_k W_k = 0, \quad -\nu_k f_k = \mu \qquad \text{(KKT)}

for :math:`\mu` a tenth of the mean of :math:`-\nu_k f_k`. At a solution the Frank-Wolfe gap is
:math:`\sum_k 2 \mu \|W_k\| / (B + \|W_k\|) \le K \mu`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from banditlab.comparators._ball_geometry import Point, point, row_dots
from banditlab.comparators._objective import Floats, Objective

MOST = 400
"""The largest number of entries of W for which the full Hessian is factored."""
INSIDE = 0.9
"""The largest row norm at the start, as a fraction of the radius."""
BOUNDARY = 0.99
"""The largest step, as a fraction of the step at which a multiplier or a constraint becomes 0."""
CENTRING = 0.1
LAG = 0.1
NEAR = 1e-3
r"""The smallest allowed :math:`-\nu_k f_k` after a step, as a fraction of their mean."""
ARMIJO = 0.01
SHORTEST = 1e-10


def hessian(objective: Objective, p: Point) -> Floats:
    """Return the loss's Hessian (Kd, Kd) at the point p."""
    U, S, n = objective.contexts, p.S, objective.totals
    K, d = p.W.shape
    H = np.empty((K, d, K, d))
    for k in range(K):
        for l in range(k + 1):
            weights = n * S[k] * ((1.0 if k == l else 0.0) - S[l])
            H[k, :, l] = (U.T * weights) @ U
            H[l, :, k] = H[k, :, l].T
    return H.reshape(K * d, K * d)


def direction(objective: Objective, p: Point, nu: Floats, B: float, mu: float) -> tuple[Floats, Floats]:
    r"""Return the Newton step of (KKT) in W (K, d) and :math:`\nu` (K,).

    The Hessian is scaled to a unit diagonal and factored.
    """
    K, d = p.W.shape
    inside = 0.5 * (B**2 - row_dots(p.W, p.W))  # -f
    H = hessian(objective, p)
    for k in range(K):
        block = slice(k * d, (k + 1) * d)
        H[block, block] += nu[k] * (np.eye(d) + np.outer(p.W[k], p.W[k]) / inside[k])
    scale = 1.0 / np.sqrt(np.diag(H))
    H *= scale[:, None] * scale
    g = (p.G + (mu / inside)[:, None] * p.W).ravel() * scale
    added = 0.0
    while True:
        try:
            D = -(scale * cho_solve(cho_factor(H + added * np.eye(K * d), lower=True), g)).reshape(K, d)
            return D, mu / inside - nu + nu / inside * row_dots(p.W, D)
        except LinAlgError:  # not positive definite because of rounding
            added = max(1e-15, 10.0 * added)


def longest(W: Floats, D: Floats, nu: Floats, move: Floats, B: float) -> float:
    """Return `BOUNDARY` times the step at which a row reaches norm B or a multiplier reaches 0, but at most 1."""
    a, b, c = row_dots(D, D), row_dots(W, D), B**2 - row_dots(W, W)
    reach = c / (b + np.sqrt(b * b + a * c) + 1e-300)  # the positive root of |W + t D| = B
    falling = move < 0.0
    fall = float((-nu[falling] / move[falling]).min(initial=np.inf))
    return min(1.0, BOUNDARY * min(float(reach.min()), fall))


def interior(objective: Objective, start: Floats, B: float, goal: float, max_iterations: int) -> tuple[Point, int]:
    """Take at most `max_iterations` Newton steps for (KKT) until the gap is at most `goal`; return the best point and
    the number of steps.
    """
    norms = np.sqrt(row_dots(start, start))
    W = start * np.minimum(1.0, INSIDE * B / np.maximum(norms, 1e-300))[:, None]
    p = best = point(objective, W, objective.logits(W), B)
    K = len(W)
    nu = np.full(K, max(p.gap, goal) / (K * B**2))
    for iteration in range(max_iterations):
        if best.gap <= goal:
            return best, iteration
        inside = 0.5 * (B**2 - row_dots(p.W, p.W))
        # not below the residual of the first equation, because multipliers that converge faster make the steps short
        lacking = B * float(np.linalg.norm(p.G + nu[:, None] * p.W))
        mu = max(CENTRING * float(nu @ inside), LAG * lacking, 0.1 * goal) / K
        D, move = direction(objective, p, nu, B, mu)
        p, nu, moved = _step(objective, p, nu, D, move, B, mu)
        best = p if p.gap < best.gap else best
        if not moved:
            break
    return best, iteration + 1


def _off(p: Point, nu: Floats, B: float, mu: float) -> float:
    r"""Return the norm of the residual of (KKT), whose first equation is in units of :math:`1/B`."""
    centring = 0.5 * nu * (B**2 - row_dots(p.W, p.W)) - mu
    return float(np.sqrt(B**2 * np.square(p.G + nu[:, None] * p.W).sum() + np.square(centring).sum()))


def _step(
    objective: Objective, p: Point, nu: Floats, D: Floats, move: Floats, B: float, mu: float
) -> tuple[Point, Floats, bool]:
    """Halve the step until the residual of (KKT) decreases enough. Return the new point and multipliers,
    and True; or the old ones and False if no step is small enough.

    The product of a constraint and its multiplier must not become much smaller than the mean of these products.
    """
    before, t = _off(p, nu, B, mu), longest(p.W, D, nu, move, B)
    while t > SHORTEST:
        W = p.W + t * D
        q, after = point(objective, W, objective.logits(W), B), nu + t * move
        each = after * (B**2 - row_dots(W, W))
        if _off(q, after, B, mu) <= (1.0 - ARMIJO * t) * before and each.min() >= NEAR * each.mean():
            return q, after, True
        t *= 0.5
    return p, nu, False
