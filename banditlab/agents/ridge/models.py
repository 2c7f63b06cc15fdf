"""The models of `ridge_agent` in three forms: whole matrices, diagonals, or blocks in a sketch.

`read`, `recall` and `move` choose by the type of `inverses` when a kernel is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.second_order import Form
from banditlab.numerics import class_inverses, diagonal_inverses, own_sketch
from banditlab.numerics.class_inverses import Inverses
from banditlab.numerics.contexts import by_context
from banditlab.numerics.own_sketch import OwnSketch


def models(scales: NDArray[np.float64], n_features: int, form: Form) -> Any:
    """Return models P_i = scales_i I, h_i = 0, of which `form` says what is kept."""
    if form.second_order == "diagonal":
        return diagonal_inverses.diagonal_inverses(scales, n_features)
    if form.second_order == "sketch":
        return own_sketch.own_sketch(scales, n_features, form.sketch_size)
    return class_inverses.inverses(scales, n_features)


def _read(inverses, x, m, q):
    """Write m_i = h_i'x and q_i = x'P_i x of all models."""
    class_inverses.read(inverses, x, m, q)


def _recall(inverses, x, i):
    """Return m_i and q_i, ready for `move` at the same x."""
    return class_inverses.recall(inverses, x, i)


def _move(inverses, x, i, step, weight, down):
    """h_i += step v, v = P_i x, and A_i += weight x x' at the x of `recall`; down is 1 / (1 + weight q_i)."""
    class_inverses.move(inverses, i, step, weight * down)


_compact_read = by_context(diagonal_inverses.read, own_sketch.read, kind=OwnSketch, name="inverses")
_compact_recall = by_context(diagonal_inverses.recall, own_sketch.recall, kind=OwnSketch, name="inverses")
_compact_move = by_context(diagonal_inverses.move, own_sketch.move, kind=OwnSketch, name="inverses")
read = by_context(_compact_read, _read, kind=Inverses, name="inverses", inlined=True)
recall = by_context(_compact_recall, _recall, kind=Inverses, name="inverses", inlined=True)
move = by_context(_compact_move, _move, kind=Inverses, name="inverses", inlined=True)
