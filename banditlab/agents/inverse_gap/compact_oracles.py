"""AIOLI oracles for long dense contexts: a diagonal per class, or a block per class in a shared sketch.

The two competing sets of models share one sketch, which kernels read from the agent's state. Both sets therefore use
the same projection of the context, and are rotated together when the basis changes.
"""

from __future__ import annotations

from typing import Any

from banditlab.agents.inverse_gap.class_models import Models
from banditlab.agents.inverse_gap.oracles import (
    AIOLIOracle,
    Oracle,
    PerClassAIOLI,
    new_models_in,
    own_context,
    scales_of,
)
from banditlab.numerics.diagonal_inverses import diagonal_inverses
from banditlab.numerics.frequent_directions import Directions, count_context, directions, project, replace_basis, shrink
from banditlab.numerics.frequent_directions import widen as widen_basis
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.sketched_inverses import rotate, sketched_inverses, widen


@inline(arrays="views")
def sketched_context(state, x):
    """Make x (d,), followed by the intercept, the current context of the agent's sketch, and return the sketch."""
    project(state.sketch, own_context(state, x))
    return borrow(state.sketch)


@njit(arrays="views")
def widened_context(state, x):
    """Like `sketched_context`, but also add the context's direction to the basis if the basis has fewer than m rows."""
    sketch, winner = sketched_context(state, x), state.winner[0]
    if widen_basis(sketch):
        if winner != 1:
            widen(state.oracle.inverses, sketch)
        if winner != 0:
            widen(state.rival.inverses, sketch)
    return sketch


@njit
def update_sketch(state):
    """Update the sketch with the current context. If the basis rotates, rotate both sets of models, or only the better
    set once it has been selected.
    """
    sketch, winner = state.sketch, state.winner[0]
    if count_context(sketch):
        shrink(sketch)
        if winner != 1:
            rotate(state.oracle.inverses, sketch)
        if winner != 0:
            rotate(state.rival.inverses, sketch)
        replace_basis(sketch)


class DiagonalAIOLI(PerClassAIOLI):
    """An AIOLI model per class, with diagonal inverses."""

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> Models:
        """Return K models."""
        return new_models_in(diagonal_inverses(scales_of(n_classes, settings), n_features), n_classes, settings)


class SketchedAIOLI(PerClassAIOLI):
    """An AIOLI model per class, over a sketch of the contexts."""

    context_kernel = sketched_context
    begin_kernel = widened_context
    close_kernel = update_sketch

    @staticmethod
    def shared(n_features: int, settings: dict[str, Any]) -> Directions:
        """Return an empty sketch, which both sets of models share."""
        return directions(n_features, settings["sketch_size"])

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> Models:
        """Return K models."""
        inverses = sketched_inverses(scales_of(n_classes, settings), n_features, settings["sketch_size"])
        return new_models_in(inverses, n_classes, settings)


PER_CLASS: dict[str, type[Oracle]] = {"full": AIOLIOracle, "diagonal": DiagonalAIOLI, "sketch": SketchedAIOLI}
"""The class of the oracle "aioli" for each `second_order`."""
