r"""The linear experts of StackCB: two AIOLI experts on each of two scalings of the context (views), and a ridge expert.

The matrices are whole or diagonal. Whole matrices are an `experts.Bank`, whose fifth expert is the ridge expert on the
centred view. Diagonals have no ridge expert. There the two experts of a view are one row of models: M models with
:math:`\lambda`, then M models with the larger one.

The ridge expert is, per class, a ridge regression of the bit on standardised columns without a constant. A round in
which the class was played adds :math:`x x'` to A and :math:`r x` to b; :math:`h = A^{-1} b` and :math:`A_0 = I`. Here
:math:`r = 1` for a hit and 0 for a miss (less in the first rounds: `cold_start`). Classes differ by the directions of
their hits. With a constant the regression would mainly fit the frequency of hits.

The margin of the ridge expert uses :math:`m = h'x`, :math:`q = x'A^{-1}x` and w virtual labels, which are positive with
probability :math:`\pi` as for the other experts: :math:`z = 4 ((m + w \pi q) / (1 + w q) - 1/2)`. The factor 4 is the
slope of the logit at 1/2. At :math:`x = 0`, z is 0. If one model serves two classes, r is 1/2 or -1/2 and
:math:`z = 4 m / (1 + w q)`, so exchanging the classes changes the sign.

The type of `linear` determines at compile time which form `read_linear`, `update_linear` and `reset_linear` run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import update_terms
from banditlab.agents.stacked.experts import CURVATURE, WEIGHT, Bank, bank, read_expert, reset_bank, update_expert
from banditlab.numerics.contexts import by_type
from banditlab.numerics.diagonal_inverses import DiagonalInverses, diagonal_inverses, read, read_one, reset, update_one
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.packed_symmetric import downdate, inner, pad, product, step_along
from banditlab.numerics.tanh_root import aioli_root

LINEAR = 4
"""AIOLI experts on the linear views: two on the standardised one, two on the one by range; and the ridge expert's number."""
VIEWS = 2
WEAKER = 100.0
r""":math:`\lambda` of the second expert on each view, in units of the first's."""

SLOPE = 4.0
RIDGE = 1.0


class Diagonals(NamedTuple):
    r"""The models in diagonal form: standardised and ranged have 2 M models each; start (2 M,) has their
    :math:`1/\lambda`.
    """

    standardised: DiagonalInverses
    ranged: DiagonalInverses
    start: NDArray[np.float64]


def linear_experts(regularization: float, n_models: int, m: int, whole: bool) -> Bank | Diagonals:
    r"""Return experts before any update, with views of m numbers and :math:`A_0 = \lambda I`; the first has the given
    value.
    """
    lambdas = regularization * np.array([1.0, WEAKER])
    if whole:
        return bank(np.append(np.tile(lambdas, VIEWS), RIDGE), n_models, m)
    start = np.repeat(1.0 / lambdas, n_models)
    return Diagonals(diagonal_inverses(start, m), diagonal_inverses(start, m), start)


def _read_whole(linear, views, size, m, q):
    """Write :math:`m_k = h_k'x` and :math:`q_k = x'P_k x` of the experts' models, expert by expert.

    x is the expert's view, with `size` numbers.
    """
    M = linear.P.shape[1]
    for e in range(linear.P.shape[0]):
        view, row = views[(e // 2) * size : (e // 2 + 1) * size], slice(e * M, (e + 1) * M)
        read_expert(linear, e, view, m[row], q[row], False, q[row])


def _read_diagonals(linear, views, size, m, q):
    n = linear.start.shape[0]
    read(linear.standardised, views[:size], m[:n], q[:n])
    read(linear.ranged, views[size : 2 * size], m[n : 2 * n], q[n : 2 * n])


def _update_whole(linear, views, size, k, y, z, fresh, lifted, middle, penalty):
    """Update model k of every expert with y = +-1.

    z (4 or 5,) has the margins, which are written if fresh. For penalty, see `update_ridge`.
    """
    for e in range(LINEAR):
        view = views[(e // 2) * size : (e // 2 + 1) * size]
        z[e], _ = update_expert(linear, e, view, k, y, z[e], fresh, -1.0, lifted)
    centred = views[VIEWS * size : (VIEWS + 1) * size]
    z[LINEAR] = update_ridge(linear, LINEAR, centred, k, y, z[LINEAR], fresh, lifted, middle, penalty)


def _update_diagonals(linear, views, size, k, y, z, fresh, lifted, middle, penalty):
    update_view(linear.standardised, views[:size], k, y, z[:2], fresh, lifted)
    update_view(linear.ranged, views[size : 2 * size], k, y, z[2:4], fresh, lifted)


@njit
def update_view(inverses, x, k, y, z, fresh, lifted):
    """Update model k of both experts whose input is x with the outcome y. z (2,) has the margins, written here if
    `fresh`.
    """
    apart = inverses.H.shape[0] // 2
    for i in range(2):
        m, q = read_one(inverses, x, k + i * apart)
        q = max(0.0, q)
        if fresh:
            z[i] = aioli_root(m + lifted * q, q, WEIGHT)
        step, weight, down = update_terms(CURVATURE, z[i], y, m, q)
        update_one(inverses, x, k + i * apart, step, weight, down)


@inline
def ridge_margin(lifted_m, q, middle):
    r"""Return z for lifted_m = :math:`m + w (\pi - 1/2) q`; middle is 1/2, or 0 if one model serves two classes."""
    return SLOPE * (lifted_m - middle) / (1.0 + WEIGHT * q) if q > 0.0 else 0.0


@njit
def update_ridge(bank, e, view, k, y, z, fresh, lifted, middle, penalty):
    """Update class k of expert e with the outcome y = +-1 at its view; return the margin that was used.

    The margin is z, or is computed from the current model if fresh. penalty is the distance by which the target of a
    miss is below 0, or below -1/2 if one model serves two classes.
    """
    own, v = bank.point.x, bank.v
    pad(view, own)
    product(bank.P[e, k], own, v)  # v = A^{-1} x
    m, q = inner(own, bank.H[e, k]), max(0.0, inner(own, v))  # m = h'x, q = x'A^{-1} x
    if fresh:
        z = ridge_margin(m + lifted * q, q, middle)
    down = 1.0 / (1.0 + q)
    # h += (r - m) v / (1 + q), r as in (1) of `cold_start`; A^{-1} -= v v' / (1 + q)
    step_along(bank.H[e, k], (0.5 * y + middle - (0.0 if y > 0.0 else penalty) - m) * down, v)
    downdate(bank.P[e, k], v, down)
    return z


def _reset_whole(linear):
    """Reset all models."""
    reset_bank(linear)


def _reset_diagonals(linear):
    reset(linear.standardised, linear.start)
    reset(linear.ranged, linear.start)


read_linear = by_type("linear", {Bank: _read_whole, Diagonals: _read_diagonals})
update_linear = by_type("linear", {Bank: _update_whole, Diagonals: _update_diagonals})
reset_linear = by_type("linear", {Bank: _reset_whole, Diagonals: _reset_diagonals})
