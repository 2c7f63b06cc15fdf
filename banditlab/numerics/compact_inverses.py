"""Models in a row that take O(d) numbers each: the verbs of `class_inverses` for those that keep a diagonal or share a sketch.

`read`, `recall` and `move` choose their form by the type of `inverses` when a kernel is compiled. Their x is the context (d,)
where diagonals are kept, and the sketch, which holds the context at hand, where that is shared.
"""

from __future__ import annotations

from banditlab.numerics import diagonal_inverses, sketched_inverses
from banditlab.numerics.contexts import by_context
from banditlab.numerics.sketched_inverses import SketchedInverses

read = by_context(diagonal_inverses.read, sketched_inverses.read, kind=SketchedInverses, name="inverses")
recall = by_context(diagonal_inverses.recall, sketched_inverses.recall, kind=SketchedInverses, name="inverses")
move = by_context(diagonal_inverses.move, sketched_inverses.move, kind=SketchedInverses, name="inverses")
