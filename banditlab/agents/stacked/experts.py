r"""The experts of StackCB: AIOLI models and a ridge regression, each with a model per class (docs/theory/stackcb.md).

Two AIOLI experts read each linear view, and one reads each Fourier block. The models of N experts whose views have the
same size are the arrays of `class_inverses` or `diagonal_inverses` with a leading axis, P (N, M, S) and H (N, M, D).
Packed matrices are stored in float32, and all sums are computed in float64.

The ridge expert predicts the feedback bit by ridge regression on standardised columns without a constant: with a
constant it would mainly fit the frequency of right actions. Its margin is 0 at :math:`x = 0`. It requires
`second_order = "full"`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import update_terms
from banditlab.numerics.class_inverses import Inverses
from banditlab.numerics.contexts import by_type
from banditlab.numerics.diagonal_inverses import DiagonalInverses, reset
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.model_forms import read_one, update_one
from banditlab.numerics.packed_symmetric import diagonal, point, set_identity, single_zeros, size_of, width, zeros
from banditlab.numerics.row_products import clear
from banditlab.numerics.tanh_root import aioli_root

LINEAR = 4
"""Number of AIOLI experts on the linear views, two on each; it is also the index of the ridge expert."""
WEAKER = 100.0
r""":math:`\lambda` of the second expert on each linear view, in units of the first's."""
RIDGE = 1.0
r""":math:`\lambda` of the ridge expert."""
WEIGHT = 2.0
r"""w, the total weight of the two virtual labels: :math:`w \pi` for the positive and :math:`w (1 - \pi)` for the negative."""
CURVATURE = 0.25
"""c, the factor of the matrix that an outcome adds to A."""
SLOPE = 4.0
"""The slope of the logit at 1/2."""


def bank(start: NDArray[np.float64], m: int, whole: bool) -> Any:
    r"""Return new models for views with m numbers, with :math:`A^{-1} = \text{start}\, I`.

    start (N, M) has one number for each expert and class.
    """
    D = width(m)
    H, v = zeros(*start.shape, D), zeros(D)
    if whole:
        P: Any = single_zeros(*start.shape, size_of(D))
        P[:, :, diagonal(m)] = 0.5 * start[:, :, None]  # diagonals are stored halved
        return Inverses(P, H, point(m), v, None, None)
    P = zeros(*start.shape, D)
    P[:] = start[:, :, None]
    return DiagonalInverses(P, H, zeros(D), v)


@inline(arrays="views")
def _expert(bank, e):
    return Inverses(borrow(bank.P)[e], borrow(bank.H)[e], bank.point, bank.v, None, None)


@inline(arrays="views")
def _diagonal_expert(bank, e):
    return DiagonalInverses(borrow(bank.P)[e], borrow(bank.H)[e], bank.x, bank.v)


def _reset(models, scales, m):
    r"""Reset the models of one expert, whose views have m numbers, to :math:`A_k^{-1} = \text{scales}_k I`."""
    clear(models.H)
    for k in range(models.P.shape[0]):
        set_identity(models.P[k], scales[k], m)


def _reset_diagonals(models, scales, m):
    reset(models, scales)


expert = by_type("bank", {Inverses: _expert, DiagonalInverses: _diagonal_expert})
reset_expert = by_type("models", {Inverses: _reset, DiagonalInverses: _reset_diagonals})


@njit
def update_expert(models, view, k, y, z, fresh, shared_q, lifted):
    r"""Update class k of one expert with the outcome :math:`y = \pm 1` at its view.

    Return the margin at which the loss was expanded, and the expert's own :math:`q = x'P x`. The margin is z, unless
    `fresh` is set. Then it is computed anew, as AIOLI's root for :math:`m + \text{lifted}\, q`. The root uses
    `shared_q` as q, or the expert's own q if `shared_q` is negative.
    """
    m, q = read_one(models, view, k)
    q = max(0.0, q)
    if fresh:
        shared_q = q if shared_q < 0.0 else shared_q
        z = aioli_root(m + lifted * shared_q, shared_q, WEIGHT)
    step, weight, down = update_terms(CURVATURE, z, y, m, q)
    update_one(models, view, k, step, weight, down)
    return z, q


@inline
def ridge_margin(lifted_m, q, middle):
    r"""Return the ridge expert's margin for the prediction m, given lifted_m = :math:`m + w (\pi - 1/2) q`.

    `middle` is the mean of the targets of a right and a wrong action: 1/2, or 0 if one model serves two classes.
    """
    return SLOPE * (lifted_m - middle) / (1.0 + WEIGHT * q) if q > 0.0 else 0.0


@njit
def update_ridge(models, view, k, y, z, fresh, lifted, middle, penalty):
    r"""Update class k of the ridge expert with :math:`y = \pm 1`, and return its margin.

    The margin is z, or, if `fresh` is set, the `ridge_margin` computed anew before the update. The target of a hit is
    :math:`\text{middle} + 1/2`, that of a miss :math:`\text{middle} - 1/2 - \text{penalty}`.
    """
    m, q = read_one(models, view, k)
    if fresh:
        z = ridge_margin(m + lifted * q, q, middle)
    down = 1.0 / (1.0 + q)
    target = 0.5 * y + middle - (0.0 if y > 0.0 else penalty)
    update_one(models, view, k, (target - m) * down, 1.0, down)
    return z
