"""AIOLI oracles for long dense contexts: of each class's matrix a diagonal, or a block in a sketch that all classes share.

Kernels over the sketch read it from the agent's state, so that the two sets of a duel meet a context, and turn with the basis,
together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.inverse_gap.compact_models import CompactModels, learn, learn_all, margins, untaught
from banditlab.agents.inverse_gap.oracles import AIOLIOracle, Oracle, PerClassAIOLI, own_context
from banditlab.numerics.diagonal_inverses import diagonal_inverses
from banditlab.numerics.frequent_directions import Directions, directions, hold, renew, see, shrink
from banditlab.numerics.frequent_directions import widen as widen_basis
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.sketched_inverses import sketched_inverses, turn, widen


@inline(arrays="lent")
def seen(state, x):
    """Return the sketch of an agent's state with the context x (d,), the intercept behind it, at hand."""
    see(state.sketch, own_context(state, x))
    return borrow(state.sketch)


@njit(arrays="lent")
def seen_to_learn(state, x):
    """Return the same; the basis has got the context's own direction, where there was room for one."""
    sketch, winner = seen(state, x), state.winner[0]
    if widen_basis(sketch):
        if winner != 1:
            widen(state.oracle.inverses, sketch)
        if winner != 0:
            widen(state.rival.inverses, sketch)
    return sketch


@njit
def learnt(state):
    """Give the context at hand to the sketch; where the basis turns, the models that still play turn with it."""
    sketch, winner = state.sketch, state.winner[0]
    if hold(sketch):
        shrink(sketch)
        if winner != 1:
            turn(state.oracle.inverses, sketch)
        if winner != 0:
            turn(state.rival.inverses, sketch)
        renew(sketch)


class DiagonalAIOLI(PerClassAIOLI):
    """One AIOLI per class, of whose inverses the diagonals are kept."""

    margins_kernel = margins
    learn_kernel = learn
    challenger_kernel = learn_all

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> CompactModels:
        """Return K models."""
        inverses = diagonal_inverses(np.full(n_classes, 1.0 / settings["regularization"]), n_features)
        return untaught(inverses, settings["curvature"], settings["virtual_weight"], n_classes)


class SketchedAIOLI(PerClassAIOLI):
    """One AIOLI per class over a sketch of the contexts."""

    margins_kernel = margins
    learn_kernel = learn
    challenger_kernel = learn_all
    context_kernel = seen
    lesson_kernel = seen_to_learn
    close_kernel = learnt

    @staticmethod
    def shared(n_features: int, settings: dict[str, Any]) -> Directions:
        """Return the sketch."""
        return directions(n_features, settings["sketch_size"])

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> CompactModels:
        """Return K models."""
        scales = np.full(n_classes, 1.0 / settings["regularization"])
        inverses = sketched_inverses(scales, n_features, settings["sketch_size"])
        return untaught(inverses, settings["curvature"], settings["virtual_weight"], n_classes)


PER_CLASS: dict[str, type[Oracle]] = {"full": AIOLIOracle, "diagonal": DiagonalAIOLI, "sketch": SketchedAIOLI}
"""Oracles of "aioli" by second_order."""
