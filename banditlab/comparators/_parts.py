"""Minimise over many contexts: solve for a subset first, then take Newton steps on all contexts with the Hessian of the
subset.

A part consists of every 8th context, or every 64th, and so on, with counts scaled up to the total of all contexts. Its
optimum differs from that of all contexts by sampling error. A Newton step with its Hessian instead of the full one
(Roosta-Khorasani and Mahoney 2019) multiplies the distance to the optimum by about sqrt(p/m), for p parameters and m
contexts in the part. A few passes over all contexts therefore suffice. Each pass computes the loss, gradient and
certificate over all contexts, so parts affect the speed but not the accuracy. If the steps become slow, `minimise`
continues with the full Hessian.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditlab.comparators._ball_geometry import Point, face_at, feasible, frank_wolfe_gap, point
from banditlab.comparators._interior import MOST, interior
from banditlab.comparators._newton import MAX_CG, minimise, newton_direction
from banditlab.comparators._objective import Floats, Objective

STEP = 8  # a part has every 8th context of the next larger part
ENOUGH = 16  # the smallest part has at least this number of contexts per entry of W
CHANCE = 0.1  # tolerance of a part, as a fraction of K d / m, the order of its sampling error
FAST = 0.25  # a step is slow if it leaves more than this fraction of the gap
MAX_STEPS = 20
PATIENT = 100  # with at least this many rounds allowed, the optimum is required


Pair = tuple[Floats, Floats]
"""A step in W and the change of the gradient along it."""


class Found(NamedTuple):
    """A feasible W (K, d), its loss and gap computed from scratch, and the number of iterations over all contexts."""

    W: Floats
    loss: float
    gap: float
    rounds: int


def minimise_in_parts(objective: Objective, W: Floats, B: float, tolerance: float, max_iterations: int) -> Found:
    r"""Descend from the feasible W until :math:`\text{gap} \le \text{tolerance} \max(1, \text{loss})`.

    There are at most `max_iterations` iterations on all contexts. If the initial W is 0, the parts are first solved one
    after another, from the smallest to the largest, each from the optimum of the previous one. Any other initial W is
    assumed to be near the optimum, so a part only supplies the Hessian. If the result has a larger loss than the
    initial W, the solver continues on all contexts from the initial W.
    """
    begin = feasible(W, B)
    parts = [objective]
    while len(parts[-1].contexts) // STEP >= ENOUGH * W.size and (fewer := parts[-1].part(STEP)).totals.any():
        parts.append(fewer)
    *larger, model = parts
    if not larger:
        return _whole(objective, W, B, tolerance, max_iterations, 0)
    if not W.any():
        W = minimise(model, W, B, _by_chance(model, tolerance), max_iterations)[0].W
        for part in reversed(larger[1:]):
            W = newton_by_part(part, model, W, B, _by_chance(part, tolerance))[0].W
    p, steps = newton_by_part(objective, model, feasible(W, B), B, tolerance)
    if p.within(tolerance):
        return Found(p.W, p.loss, p.gap, steps)
    misled = not p.loss < objective.evaluate(begin)[0]
    return _whole(objective, begin if misled else p.W, B, tolerance, max_iterations, steps)


def newton_by_part(objective: Objective, model: Objective, W: Floats, B: float, tolerance: float) -> tuple[Point, int]:
    """Take Newton steps for `objective` with the Hessian of its part `model` until the gap is small or decreases
    slowly; return the point and the number of steps.
    """
    p = _seen(objective, model, W, B)
    pairs: list[Pair] = []
    for step in range(MAX_STEPS):
        if p.within(tolerance):
            return p, step
        if face_at(p, B).held.any():
            pairs.clear()  # they belong to directions outside the face
        D = _direction(model, p, B, tolerance * max(1.0, p.loss), pairs)
        q = _seen(objective, model, feasible(p.W + D, B), B)
        pairs.append((q.W - p.W, q.G - p.G))
        slow = q.gap > FAST * p.gap
        if q.gap < p.gap:
            p = q
        if slow:
            return p, step + 1
    return p, MAX_STEPS


def _direction(model: Objective, p: Point, B: float, goal: float, pairs: list[Pair]) -> Floats:
    """Return the Newton direction with the part's Hessian, corrected by the steps so far on all contexts.

    This is the two-loop recursion of L-BFGS (Nocedal 1980) with the part's Hessian as :math:`H_0`.
    """
    q, shares = p.G, []
    for s, y in reversed(pairs):
        shares.append(float(np.vdot(s, q) / np.vdot(s, y)))
        q = q - shares[-1] * y
    D = newton_direction(model, p._replace(G=q), B, goal, MAX_CG)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        D = D - (share + float(np.vdot(y, D) / np.vdot(s, y))) * s
    return D


def _seen(objective: Objective, model: Objective, W: Floats, B: float) -> Point:
    """Return W with its loss, gradient and gap over all contexts, and its logits and softmax over those of `model`."""
    loss, G = objective.evaluate(W)
    Z = model.logits(W)
    return Point(W, Z, model.forecast(Z)[1], loss, G, frank_wolfe_gap(W, G, B))


def _by_chance(part: Objective, tolerance: float) -> float:
    return max(tolerance, CHANCE * part.counts.shape[0] * part.contexts.shape[1] / len(part.contexts))


def _whole(objective: Objective, W: Floats, B: float, tolerance: float, max_iterations: int, steps: int) -> Found:
    p, rounds = minimise(objective, W, B, tolerance, max_iterations)
    if not p.within(tolerance) and W.size <= MOST and max_iterations >= PATIENT:
        p, more = interior(objective, p.W, B, tolerance * max(1.0, p.loss), max_iterations)
        rounds += more
    W = feasible(p.W, B)
    final = point(objective, W, objective.logits(W), B)
    return Found(W, final.loss, final.gap, steps + rounds)
