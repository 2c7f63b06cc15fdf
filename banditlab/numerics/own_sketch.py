"""The functions of `class_inverses` for an agent with a single set of models, which has its own sketch.

`read` may be called at any x. `read_one` and `update_one` must be called as a pair, at the same x, once per round. To
update several models at one x, call `begin_context` first, then `read_one` and `update_one` of `sketched_inverses` for
each model, then `close`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.frequent_directions import Directions, count_context, directions, project, replace_basis, shrink
from banditlab.numerics.frequent_directions import reset as reset_sketch
from banditlab.numerics.frequent_directions import widen as widen_basis
from banditlab.numerics.jit import njit
from banditlab.numerics.sketched_inverses import SketchedInverses, rotate, sketched_inverses, widen
from banditlab.numerics.sketched_inverses import read as read_all
from banditlab.numerics.sketched_inverses import read_one as read_in_sketch
from banditlab.numerics.sketched_inverses import reset as reset_models
from banditlab.numerics.sketched_inverses import update_one as update_in_sketch


class OwnSketch(NamedTuple):
    """A sketch and the models over it."""

    sketch: Directions
    inverses: SketchedInverses


def own_sketch(scales: NDArray[np.float64], d: int, m: int) -> OwnSketch:
    r"""Return models of size d with :math:`P_i = \text{scales}_i I` and :math:`h_i = 0`, over an empty sketch of m rows."""
    return OwnSketch(directions(d, m), sketched_inverses(scales, d, m))


@njit
def read(inverses, x, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` of all models."""
    project(inverses.sketch, x)
    read_all(inverses.inverses, inverses.sketch, m, q)


@njit
def begin_context(inverses, x):
    """Make x the current context of the next updates; if the basis has fewer than m rows, add the direction of x."""
    project(inverses.sketch, x)
    if widen_basis(inverses.sketch):
        widen(inverses.inverses, inverses.sketch)


@njit
def close(inverses):
    """Update the sketch with the context of `begin_context`; if the basis rotates, rotate the models."""
    sketch = inverses.sketch
    if count_context(sketch):
        shrink(sketch)
        rotate(inverses.inverses, sketch)
        replace_basis(sketch)


@njit
def reset(inverses, scales):
    r"""Reset the sketch, and the models to :math:`P_i = \text{scales}_i I`."""
    reset_sketch(inverses.sketch)
    reset_models(inverses.inverses, scales)


@njit
def read_one(inverses, x, i):
    """Return :math:`m_i` and :math:`q_i` at x, and prepare `update_one` at the same x.

    While the basis has fewer than m rows, the direction of x is added to it.
    """
    begin_context(inverses, x)
    return read_in_sketch(inverses.inverses, inverses.sketch, i)


@njit
def update_one(inverses, x, i, step, weight, down):
    r"""Update :math:`h_i \mathrel{+}= \text{step}\, v` with :math:`v = P_i x`, and :math:`A_i` by
    :math:`\text{weight}\, x x'`, and update the sketch with x.

    The updated matrix is approximated by one that the sketch can represent.
    """
    update_in_sketch(inverses.inverses, inverses.sketch, i, step, weight, down)
    close(inverses)
