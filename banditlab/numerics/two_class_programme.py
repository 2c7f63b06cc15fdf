"""The programme of `frobenius_programme` for two classes without a ball: W_1 = -W_0, so that one matrix stands for three.

Problem. Over W_1 = -W_0 the two quadratics are one,

    minimise  (1/2) w'A w + b'w,    A = C_0 + C_1,    b = b_0 - b_1,    w = W_0,                                         (1)

and a lesson of either class, (weight/2) (x'W_i)^2 + step x'W_i with sign = 1 for class 0, -1 for class 1, is a round of
recursive least squares: A <- A + weight x x', b <- b + sign step x, and with P = A^{-1} and q = x'P x of before

    w <- w - (sign step + weight x'w)/(1 + weight q) P x,                                                               (2)
    P <- P - weight/(1 + weight q) (P x)(P x)'.                                                                         (3)

So it is one model of `class_inverses`, h = w, for large problems: P begins as rows, and a block reads it once in a stretch of
contexts. A is kept beside it. Every `CHECK` rounds, or after the stretch under way then, a step of iterative refinement on A
mends w and says how far it was off; where that is much, P and w are computed anew.

Cost: a stretch of n contexts, of which r are learnt, takes n d^2 + 3 r d^2 operations, as matrix products; rounds one by one
take a product and two rank-one updates each. d^2 numbers in P and A.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics import class_inverses
from banditlab.numerics.class_inverses import LONG_STRETCH, SHORT_STRETCH, Inverses
from banditlab.numerics.frobenius_programme import (
    CHECK,
    DRIFT,
    inverse,
)
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.lookahead import AT, HALF, LENGTH, ON, ahead, column, next_stretch, recall_ahead
from banditlab.numerics.low_rank import (
    LARGE,
    LowRank,
    add_outer,
    all_whole,
    any_downdate,
    any_product,
    is_whole,
    low_rank,
    none_as_rows,
)
from banditlab.numerics.packed_symmetric import Floats, inner, lay, point, size_of, step_along, width, zeros
from banditlab.numerics.row_products import clear, scale
from banditlab.numerics.row_tiles import GROUP

SOLVES, RENEWED, CHECKED = range(3)
"""Slots of `TwoClasses.tally`: lessons; how often P was computed anew; the lessons of which the last check knew."""


class TwoClasses(NamedTuple):
    """Two classes as one: `model`, P (1, S) and H (1, D) = w; A (1, S), packed or rows, and b (D,), its quadratic.

    tally (3,): see its slots. drift (1,): the largest drift seen. Scratch: weights (m,), of the lessons of a stretch;
    residual, step (D,).
    """

    model: Inverses
    A: Floats
    low_A: LowRank
    b: Floats
    tally: NDArray[np.int64]
    drift: Floats
    weights: Floats
    residual: Floats
    step: Floats

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"tally": COUNT}


def is_large(n_features: int) -> bool:
    """Return whether two classes are kept as one: where their matrices leave a core's own cache."""
    return 16 * size_of(width(n_features)) >= LARGE


def two_classes(n_features: int, ridge: float) -> TwoClasses:
    """Return the state for C_k = ridge I and b = 0."""
    d, D, m = n_features, width(n_features), LONG_STRETCH if n_features >= 512 else SHORT_STRETCH
    scales = np.array([0.5 / ridge])
    S = size_of(D)
    return TwoClasses(
        model=Inverses(zeros(1, S), zeros(1, D), point(d), zeros(D), ahead(1, d, m), low_rank(scales, d, m)),
        A=zeros(1, S),
        low_A=low_rank(1.0 / scales, d, sign=1.0),
        b=zeros(D),
        tally=np.zeros(3, np.int64),
        drift=np.zeros(1),
        weights=np.zeros(m),
        residual=zeros(D),
        step=zeros(D),
    )


def weights(one: TwoClasses, n_features: int) -> Floats:
    """Return W (2, d)."""
    w = one.model.H[0, -n_features:]
    return np.stack((w, -w))


def told(one: TwoClasses) -> dict[str, Any]:
    """Return what a whole programme says of itself."""
    solves, renewed = int(one.tally[SOLVES]), int(one.tally[RENEWED])
    found = {"solves": solves, "binding": 0, "applications": 0, "refactorisations": renewed, "stalled": 0}
    return found | {"drift": float(one.drift[0])}


# ---------------------------------------------------------------------------------------------------------- round by round


@inline
def scores(one, x, z):
    """Write x'W_k into z (2,)."""
    looked, m, _ = recall_ahead(one.model.ahead, 0)
    if not looked:
        lay(x, one.model.point.x)
        m = inner(one.model.H[0], one.model.point.x)
    z[0], z[1] = m, -m


@njit
def learn(one, i, x, weight, step):
    """Add (weight/2) (x'W_i)^2 + step x'W_i; w is the minimiser then, in a stretch as far as its contexts see."""
    model, own, force = one.model, one.model.point.x, step if i == 0 else -step
    m, q = class_inverses.recall(model, x, 0)
    share = 1.0 / (1.0 + weight * q)
    class_inverses.move(model, 0, -(force + weight * m) * share, weight * share)  # (2), (3)
    lay(x, own)
    step_along(one.b, force, own)
    one.tally[SOLVES] += 1
    if model.ahead.place[ON] == 1:
        one.weights[model.ahead.rounds[0, 0] - 1] = weight  # A waits
    else:
        any_downdate(one.A[0], one.low_A, 0, own, -weight)
        if is_due(one):
            check(one)


# ------------------------------------------------------------------------------------------------------ stretch by stretch


@njit
def look(one, X, t):
    """Context t of a block X (n, d) comes next; t = n: none, and all is up to date."""
    model = one.model
    place, H, none = model.ahead.place, model.H, one.b[:0]
    if place[ON] == 1 and (t == X.shape[0] or place[AT] + 1 == place[LENGTH]):
        follow(one)
        if is_due(one):
            next_stretch(model.P, model.low, H, model.ahead, X[:0], none)
            check(one)
    class_inverses.look(model, X, t, none)


@njit
def follow(one):
    """A += sum of weight x x' over the lessons of the stretch that ends."""
    A, low, ahead = one.A[0], one.low_A, one.model.ahead
    X, V, r = ahead.X[ahead.place[HALF]], ahead.V, ahead.rounds[0, 0]
    for a in range(r):
        column(X, ahead.rounds[0, 1 + a], V[a])
        scale(V[a], math.sqrt(one.weights[a]))
    if is_whole(low, 0):
        up = -(-r // GROUP) * GROUP
        clear(V[r:up])
        add_outer(A, V[:up])
    else:
        for a in range(r):
            any_downdate(A, low, 0, V[a], -1.0)


# ---------------------------------------------------------------------------------------------------- against what rounds


@inline
def is_due(one):
    """Return whether w is to be checked."""
    return one.tally[SOLVES] >= one.tally[CHECKED] + CHECK


@njit
def check(one):
    """Mend w by a step of iterative refinement on A, measure it, and compute P and w anew where it was large."""
    model, w, residual, step = one.model, one.model.H[0], one.residual, one.step
    one.tally[CHECKED] = one.tally[SOLVES]
    # The residual of (1), -b - A w, and the step P residual
    any_product(one.A[0], one.low_A, 0, w, residual)
    for j in range(w.shape[0]):
        residual[j] = -one.b[j] - residual[j]
    any_product(model.P[0], model.low, 0, residual, step)
    drift, norm = math.sqrt(inner(step, step)), math.sqrt(inner(w, w))
    step_along(w, 1.0, step)
    if norm > 0.0:
        one.drift[0] = max(one.drift[0], drift / norm)
    if drift > DRIFT * norm:
        renew(one)


@njit(arrays="made")
def renew(one):
    """Compute P = A^{-1} and w = -P b from A and b."""
    model, D = one.model, one.b.shape[0]
    all_whole(one.A, one.low_A)
    none_as_rows(model.low)
    # Once in a very long while: room for it is made here.
    inverse(one.A[0], 0.0, np.zeros((D, D)), model.P[0])
    any_product(model.P[0], model.low, 0, one.b, model.H[0])
    scale(model.H[0], -1.0)
    one.tally[RENEWED] += 1
