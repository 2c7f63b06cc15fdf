"""Models in a row over a sketch of their own: the verbs of `class_inverses` for an agent with one set of models.

A round may read at any x; `recall` and `move` belong together, at one x, once a round. Where several models learn at one x,
`begin_context` comes first, then `sketched_inverses`' `recall` and `move` of each, and `close` at last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.frequent_directions import Directions, count_context, directions, replace_basis, see, shrink
from banditlab.numerics.frequent_directions import forget as forget_contexts
from banditlab.numerics.frequent_directions import widen as widen_basis
from banditlab.numerics.jit import njit
from banditlab.numerics.sketched_inverses import SketchedInverses, rotate, sketched_inverses, widen
from banditlab.numerics.sketched_inverses import forget as forget_lessons
from banditlab.numerics.sketched_inverses import move as move_one
from banditlab.numerics.sketched_inverses import read as read_all
from banditlab.numerics.sketched_inverses import recall as recall_one


class OwnSketch(NamedTuple):
    """A sketch and the models over it."""

    sketch: Directions
    inverses: SketchedInverses


def own_sketch(scales: NDArray[np.float64], d: int, m: int) -> OwnSketch:
    r"""Return models :math:`P_i = \text{scales}_i I` of size d, :math:`h_i = 0`, over an empty sketch of m rows."""
    return OwnSketch(directions(d, m), sketched_inverses(scales, d, m))


@njit
def read(inverses, x, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` of all models."""
    see(inverses.sketch, x)
    read_all(inverses.inverses, inverses.sketch, m, q)


@njit
def begin_context(inverses, x):
    """Take in the context x of lessons to come, whose direction the basis gets while there is room."""
    see(inverses.sketch, x)
    if widen_basis(inverses.sketch):
        widen(inverses.inverses, inverses.sketch)


@njit
def close(inverses):
    """Let the sketch learn the context of `begin_context`; where the basis turns the models turn with it."""
    sketch = inverses.sketch
    if count_context(sketch):
        shrink(sketch)
        rotate(inverses.inverses, sketch)
        replace_basis(sketch)


@njit
def forget(inverses, scales):
    r"""Bring sketch and models back to where they began, :math:`P_i = \text{scales}_i I`."""
    forget_contexts(inverses.sketch)
    forget_lessons(inverses.inverses, scales)


@njit
def recall(inverses, x, i):
    """Return :math:`m_i` and :math:`q_i`, ready for `move` at the same x, whose direction the basis gets while there is
    room.
    """
    begin_context(inverses, x)
    return recall_one(inverses.inverses, inverses.sketch, i)


@njit
def move(inverses, x, i, step, weight, down):
    r""":math:`h_i \mathrel{+}= \text{step}\, v`, :math:`v = P_i x`, and :math:`A_i \mathrel{+}= \text{weight}\, x x'`
    in the sketch's family; the sketch learns x.
    """
    move_one(inverses.inverses, inverses.sketch, i, step, weight, down)
    close(inverses)
