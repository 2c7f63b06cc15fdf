"""Models in a row, :math:`P_i = A_i^{-1}` and :math:`h_i`, in any form: whole matrices, diagonals, or blocks in a
sketch, shared or their own.

`read`, `recall`, `move` and `forget` choose their form by the type of `inverses` when a kernel is compiled. Their x is the
context (d,), but for `SketchedInverses`, whose sketch is shared: there it is the sketch, which holds the context at hand.
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
def _move_whole(inverses, x, i, step, weight, down):
    r""":math:`h_i \mathrel{+}= \text{step}\, v`, :math:`v = P_i x`, and :math:`A_i \mathrel{+}= \text{weight}\, x x'`
    at the x of `recall`; down is :math:`1 / (1 + \text{weight}\, q_i)`.
    """
    class_inverses.move(inverses, i, step, weight * down)


read = by_type(
    "inverses",
    {
        Inverses: class_inverses.read,
        DiagonalInverses: diagonal_inverses.read,
        SketchedInverses: sketched_inverses.read,
        OwnSketch: own_sketch.read,
    },
)
recall = by_type(
    "inverses",
    {
        Inverses: class_inverses.recall,
        DiagonalInverses: diagonal_inverses.recall,
        SketchedInverses: sketched_inverses.recall,
        OwnSketch: own_sketch.recall,
    },
)
move = by_type(
    "inverses",
    {
        Inverses: _move_whole,
        DiagonalInverses: diagonal_inverses.move,
        SketchedInverses: sketched_inverses.move,
        OwnSketch: own_sketch.move,
    },
)
forget = by_type("inverses", {DiagonalInverses: diagonal_inverses.forget, OwnSketch: own_sketch.forget})
