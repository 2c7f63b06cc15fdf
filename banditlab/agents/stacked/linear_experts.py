r"""The linear experts of StackCB, two AIOLI ones on each of two views: whole matrices, diagonals, or blocks in a
sketch.

Whole matrices are an `experts.Bank`, whose fifth expert, if it has one, is the ridge expert on the centred view. In the
other forms a view's two experts are one row of models, `Compact`: M with :math:`\lambda`, then M with the larger one.
Over a sketch they share that of their view, so that a round takes its coordinates once.

`read_linear`, `update_linear` and `reset_linear` choose by the type of `linear` when a kernel is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import update_terms
from banditlab.agents.second_order import Form
from banditlab.agents.stacked.experts import Bank, bank, read_expert, reset_bank, update_expert
from banditlab.agents.stacked.ridge_expert import update_ridge
from banditlab.numerics.contexts import by_type
from banditlab.numerics.diagonal_inverses import DiagonalInverses
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.model_forms import read as read_view
from banditlab.numerics.model_forms import read_one, update_one
from banditlab.numerics.model_forms import reset as reset_view
from banditlab.numerics.own_sketch import OwnSketch, begin_context, close
from banditlab.numerics.tanh_root import aioli_root

LINEAR = 4
"""AIOLI experts on the linear views: two on the standardised one, two on the one by range; and the ridge expert's number."""
VIEWS = 2
SPARING, MOST_SPARING = 250, 8
"""After 2 SPARING updates a sketch uses every second context, after 3 every third ..., at last every MOST_SPARINGth."""


class Compact(NamedTuple):
    r"""standardised, ranged: 2 M models over that view, diagonals or an `OwnSketch`; start (2 M,), :math:`1/\lambda` of
    each.

    lessons (1,): how many rounds were learnt.
    """

    standardised: Any
    ranged: Any
    start: NDArray[np.float64]
    lessons: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"lessons": (0, COUNT[1])}


def linear_experts(
    regularizations: NDArray[np.float64], n_models: int, m: int, form: Form, ridge: float = 0.0
) -> Bank | Compact:
    r"""Return experts before any update, on views of m numbers, :math:`A_0 = \lambda I`.

    regularizations (2,): :math:`\lambda` of each view's two experts.

    ridge: that of the ridge expert; 0: there is none.
    """
    if form.second_order == "full":
        lambdas = np.tile(regularizations, VIEWS)
        if ridge > 0.0:
            lambdas = np.append(lambdas, ridge)
        return bank(lambdas, n_models, m)
    start = np.repeat(1.0 / regularizations, n_models)
    standardised, ranged = (form.models(start, m) for _ in range(VIEWS))
    return Compact(standardised, ranged, start, np.zeros(1, np.int64))


# ------------------------------------------------------------------------------------------------------ one view's models


@njit
def update_view_models(inverses, x, k, y, z, fresh, settings, lifted):
    """Update model k of both experts of a view with the outcome y; z (2,) are the margins, or are written (fresh).

    x is the view with diagonals, and the shared sketch that contains it otherwise.
    """
    apart = inverses.H.shape[0] // 2
    for i in range(2):
        m, q = read_one(inverses, x, k + i * apart)
        q = max(0.0, q)
        if fresh:
            z[i] = aioli_root(m + lifted * q, q, settings[0])
        step, weight, down = update_terms(settings[1], z[i], y, m, q)
        update_one(inverses, x, k + i * apart, step, weight, down)


@inline
def is_in_sketch(updates):
    """Return whether the sketches use the context after this many updates: all at first, then fewer."""
    return updates % max(1, min(MOST_SPARING, updates // SPARING)) == 0


def _update_diagonals(models, view, k, y, z, fresh, settings, lifted, sketched):
    """Update both experts of a view; sketched: whether a sketch uses the context."""
    update_view_models(models, view, k, y, z, fresh, settings, lifted)


def _update_sketched(models, view, k, y, z, fresh, settings, lifted, sketched):
    begin_context(models, view)
    update_view_models(models.inverses, models.sketch, k, y, z, fresh, settings, lifted)
    if sketched:
        close(models)


update_view = by_type("models", {DiagonalInverses: _update_diagonals, OwnSketch: _update_sketched})


# ----------------------------------------------------------------------------------------------------- the four experts


def _read_whole(linear, views, size, m, q):
    """Write :math:`m_k = h_k'x` and :math:`q_k = x'P_k x` of the experts' models, one expert's after the other's, x
    `size` numbers of views.
    """
    M = linear.P.shape[1]
    for e in range(linear.P.shape[0]):
        view, row = views[(e // 2) * size : (e // 2 + 1) * size], slice(e * M, (e + 1) * M)
        read_expert(linear, e, view, m[row], q[row], False, q[row])


def _read_compact(linear, views, size, m, q):
    n = linear.start.shape[0]
    read_view(linear.standardised, views[:size], m[:n], q[:n])
    read_view(linear.ranged, views[size : 2 * size], m[n : 2 * n], q[n : 2 * n])


def _update_whole(linear, views, size, k, y, z, fresh, settings, lifted, middle, penalty):
    """Update model k of every expert with y = +-1; z (4 or 5,): the margins, written if fresh; penalty: see `update_ridge`."""
    for e in range(LINEAR):
        view = views[(e // 2) * size : (e // 2 + 1) * size]
        z[e], _ = update_expert(linear, e, view, k, y, z[e], fresh, -1.0, settings, lifted)
    if linear.P.shape[0] > LINEAR:
        centred = views[VIEWS * size : (VIEWS + 1) * size]
        z[LINEAR] = update_ridge(linear, LINEAR, centred, k, y, z[LINEAR], fresh, settings[0], lifted, middle, penalty)


def _update_compact(linear, views, size, k, y, z, fresh, settings, lifted, middle, penalty):
    sketched = is_in_sketch(linear.lessons[0])
    linear.lessons[0] += 1
    update_view(linear.standardised, views[:size], k, y, z[:2], fresh, settings, lifted, sketched)
    update_view(linear.ranged, views[size : 2 * size], k, y, z[2:4], fresh, settings, lifted, sketched)


def _reset_whole(linear):
    """Reset all models."""
    reset_bank(linear)


def _reset_compact(linear):
    reset_view(linear.standardised, linear.start)
    reset_view(linear.ranged, linear.start)
    linear.lessons[0] = 0


def _count_whole(linear):
    """Return the number of experts."""
    return linear.P.shape[0]


def _count_compact(linear):
    return LINEAR


read_linear = by_type("linear", {Bank: _read_whole, Compact: _read_compact})
update_linear = by_type("linear", {Bank: _update_whole, Compact: _update_compact})
reset_linear = by_type("linear", {Bank: _reset_whole, Compact: _reset_compact})
count_linear = by_type("linear", {Bank: _count_whole, Compact: _count_compact}, inlined=True)
