"""Minimise the logistic loss over the product of balls, by projected gradient steps and Newton steps on the active
face.

A round consists of a few spectral projected gradient steps (Birgin, Martinez and Raydan 2000) and one Newton step on
the face, computed by conjugate gradients. If the Newton step was shortened, the next round has twice as many gradient
steps (at most 64), otherwise half as many (at least 1). Far from the optimum, where the loss is close to linear,
gradient steps descend at lower cost.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from banditlab.comparators._ball_geometry import Face, Point, face_at, point, row_dots, shrinkage
from banditlab.comparators._objective import Floats, Objective

ARMIJO = 1e-4
ROUNDING = 1e-13  # relative rounding error of a loss; smaller increases do not count
MEMORY = 10  # number of previous losses with which a spectral step is compared
MAX_CG = 400
MIN_CG = 20
MAX_WAIT = 64
MAX_JOINS = 5
SHORTENINGS = 4  # largest number of times that a Newton step is divided by 4


def conjugate_gradients(
    objective: Objective, p: Point, face: Face, D: Floats, stop: float, limit: int
) -> tuple[Floats, bool]:
    r"""Move D along the face's tangent space until :math:`(H + \mathrm{diag}(\mu)) D = -G` holds up to a residual
    `stop`.

    The diagonal is the preconditioner. Returns D and whether the residual was reached within `limit` products.
    """
    mu = face.mu[:, None]
    diagonal = objective.hessian_diagonal(p.S) + mu
    inverse = 1.0 / (diagonal + 1e-12 * diagonal.max() + 1e-300)
    r = -face.tangent(p.G + objective.hessian_action(p.S, D) + mu * D if D.any() else p.G)
    z = face.tangent(inverse * r)
    q, rz = z, float(np.vdot(r, z))
    for _ in range(limit):
        if float(np.linalg.norm(r)) <= stop:
            return D, True
        Hq = face.tangent(objective.hessian_action(p.S, q) + mu * q)
        curvature = float(np.vdot(q, Hq))
        if curvature <= 1e-14 * float(np.vdot(q, diagonal * q)):  # no curvature along q
            return D, False
        a = rz / curvature
        D = D + a * q
        r -= a * Hq
        z = face.tangent(inverse * r)
        rz, old = float(np.vdot(r, z)), rz
        q = z + (rz / old) * q
    return D, False


def newton_direction(objective: Objective, p: Point, B: float, goal: float, limit: int) -> Floats:
    r"""Solve :math:`(H + \mathrm{diag}(\mu)) D = -G` on the face of W.

    Free rows that would leave the ball join the face at the point where they leave it. :math:`\mu` represents the
    curvature of the spheres, so a step along D and a projection are a Newton step of the Lagrangian.

    Parameters
    ----------
    goal
        The required gap; a solution with residuals below :math:`\text{goal}/B` is accurate enough.
    limit
        Largest number of Hessian products of a solve.
    """
    face = face_at(p, B)
    accuracy = min(0.1, np.sqrt(p.gap / (p.loss + 1.0)))
    stop = max(0.3 * goal / (B * np.sqrt(p.W.shape[0])), accuracy * float(np.linalg.norm(face.tangent(p.G))))
    D = np.zeros_like(p.W)
    for _ in range(MAX_JOINS):
        D, solved = conjugate_gradients(objective, p, face, D, stop, limit)
        larger = face.joined(p, D, B) if solved else None
        if larger is None:
            break
        face, D = larger
    return D


def newton_step(objective: Objective, p: Point, D: Floats, B: float) -> tuple[Point, bool]:
    r"""Return the first :math:`P_B(W + t D)`, :math:`t = 1, 1/4, \dots`, that satisfies Armijo's rule, or W if none
    does.

    Also return whether :math:`t = 1`.
    """
    ZD, t = objective.logits(D), 1.0
    for _ in range(SHORTENINGS):
        W = p.W + t * D
        scale = shrinkage(W, B)
        W *= scale
        loss = objective.loss((p.Z + t * ZD) * scale)
        if loss <= p.loss + ARMIJO * float(np.vdot(p.G, W - p.W)) + ROUNDING * p.loss:
            return point(
                objective, W, objective.logits(W), B
            ), t == 1.0  # recomputed, so rounding errors do not accumulate
        t *= 0.25
    return p, False


def spectral_step(objective: Objective, p: Point, B: float, step: float, ceiling: float) -> tuple[Point, float]:
    r"""Move towards :math:`P_B(W - \text{step}\, G)` by a step after which the loss is sufficiently far below
    `ceiling`.

    Returns the point and the next step length.
    """
    W = p.W - step * p.G
    scale = shrinkage(W, B)
    D = W * scale - p.W
    ZD = (p.Z - step * objective.logits(p.G)) * scale - p.Z
    slope, t = float(np.vdot(p.G, D)), 1.0
    loss = objective.loss(p.Z + ZD)
    while loss > ceiling + ARMIJO * t * slope + ROUNDING * ceiling and t > 1e-12:
        bend = loss - p.loss - slope * t  # the minimum of the parabola through the loss, its slope and the trial
        t *= min(0.5, max(0.1, -0.5 * slope * t / bend)) if bend > 0.0 else 0.5
        loss = objective.loss(p.Z + t * ZD)
    q = point(objective, p.W + t * D, p.Z + t * ZD, B)
    ss, sy = t * float(np.vdot(D, D)), float(np.vdot(D, q.G - p.G))
    return q, ss / sy if sy > 1e-12 * ss else 10.0 * step  # the Barzilai-Borwein step <s, s>/<s, y>


def minimise(objective: Objective, W: Floats, B: float, tolerance: float, max_iterations: int) -> tuple[Point, int]:
    r"""Descend from the feasible W until :math:`\text{gap} \le \text{tolerance} \max(1, \text{loss})`.

    It takes at most `max_iterations` rounds and returns their number.
    """
    p = point(objective, W, objective.logits(W), B)
    squares = row_dots(objective.contexts, objective.contexts)
    step = 1.0 / max(float(objective.totals @ squares), 1e-300)  # below 1 / (Lipschitz constant of the gradient)
    recent, wait = deque([p.loss], maxlen=MEMORY), 1
    for iteration in range(max_iterations):
        for _ in range(wait):
            if p.within(tolerance):
                return p, iteration
            p, step = spectral_step(objective, p, B, step, max(recent))
            recent.append(p.loss)
        if p.within(tolerance):
            return p, iteration + 1
        goal = tolerance * max(1.0, p.loss)
        D = newton_direction(objective, p, B, goal, max(MAX_CG // wait, MIN_CG))
        p, full = newton_step(objective, p, D, B)
        recent.append(p.loss)
        wait = max(wait // 2, 1) if full else min(2 * wait, MAX_WAIT)
    return p, max_iterations
