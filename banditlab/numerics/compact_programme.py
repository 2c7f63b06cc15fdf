"""The programme of `frobenius_programme` in O(d) numbers a class: the verbs of those that keep diagonals or share a sketch.

`scores`, `add` and `solve` choose their form by the type of `programme` when a kernel is compiled. `add` and `solve` belong
together, once a round each.
"""

from __future__ import annotations

from banditlab.numerics.contexts import by_context
from banditlab.numerics.diagonal_programme import diagonal_add, diagonal_scores, diagonal_solve
from banditlab.numerics.sketched_programme import SketchedProgramme, sketched_add, sketched_scores, sketched_solve

scores = by_context(diagonal_scores, sketched_scores, kind=SketchedProgramme, name="programme")
add = by_context(diagonal_add, sketched_add, kind=SketchedProgramme, name="programme")
solve = by_context(diagonal_solve, sketched_solve, kind=SketchedProgramme, name="programme")
