"""An array of models :math:`P_i = A_i^{-1}` and :math:`h_i` in any form: whole matrices, diagonals or sketches.

When a kernel is compiled, the type of `inverses` determines the form of `read`, `read_one`, `update_one` and `reset`.
Their argument x is the context (d,). For `SketchedInverses`, which share a sketch, x is the sketch with its current
context.
"""

from __future__ import annotations

from banditlab.numerics import class_inverses, diagonal_inverses, own_sketch, sketched_inverses
from banditlab.numerics.class_inverses import Inverses
from banditlab.numerics.contexts import by_type
from banditlab.numerics.diagonal_inverses import DiagonalInverses
from banditlab.numerics.jit import inline
from banditlab.numerics.own_sketch import OwnSketch
from banditlab.numerics.sketched_inverses import SketchedInverses


@inline
def _update_whole(inverses, x, i, step, weight, down):
    r"""Update :math:`h_i \mathrel{+}= \text{step}\, v` with :math:`v = P_i x`, and add :math:`\text{weight}\, x x'` to
    :math:`A_i`.

    x is the context of the last `read_one`, and `down` is :math:`1 / (1 + \text{weight}\, q_i)`.
    """
    class_inverses.update_one(inverses, i, step, weight * down)


read = by_type(
    "inverses",
    {
        Inverses: class_inverses.read,
        DiagonalInverses: diagonal_inverses.read,
        SketchedInverses: sketched_inverses.read,
        OwnSketch: own_sketch.read,
    },
)
read_one = by_type(
    "inverses",
    {
        Inverses: class_inverses.read_one,
        DiagonalInverses: diagonal_inverses.read_one,
        SketchedInverses: sketched_inverses.read_one,
        OwnSketch: own_sketch.read_one,
    },
)
update_one = by_type(
    "inverses",
    {
        Inverses: _update_whole,
        DiagonalInverses: diagonal_inverses.update_one,
        SketchedInverses: sketched_inverses.update_one,
        OwnSketch: own_sketch.update_one,
    },
)
reset = by_type("inverses", {DiagonalInverses: diagonal_inverses.reset, OwnSketch: own_sketch.reset})
