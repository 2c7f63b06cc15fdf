"""The programme of `frobenius_programme` in O(d) numbers a class: the verbs of those that keep diagonals or share a sketch.

`scores`, `add` and `solve` choose their form by the type of `programme` when a kernel is compiled. `add` and `solve` belong
together, once a round each.
"""

from __future__ import annotations

from banditlab.numerics import diagonal_programme, sketched_programme
from banditlab.numerics.contexts import by_context
from banditlab.numerics.sketched_programme import SketchedProgramme

scores = by_context(diagonal_programme.scores, sketched_programme.scores, kind=SketchedProgramme, name="programme")
add = by_context(diagonal_programme.add, sketched_programme.add, kind=SketchedProgramme, name="programme")
solve = by_context(diagonal_programme.solve, sketched_programme.solve, kind=SketchedProgramme, name="programme")
