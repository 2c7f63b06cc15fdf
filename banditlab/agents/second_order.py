"""The settings `second_order` and `sketch_size`: the form of the d x d matrices of agents with one matrix per class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.class_inverses import inverses
from banditlab.numerics.diagonal_inverses import diagonal_inverses
from banditlab.numerics.frequent_directions import SHRINKS, Directions, share_outside
from banditlab.numerics.own_sketch import own_sketch
from banditlab.problem import Problem
from banditlab.validation import at_least, one_of

SecondOrder = Literal["auto", "full", "diagonal", "sketch"]
LARGEST_WHOLE = 2**22
"""The largest :math:`K d^2` at which "auto" is "full". There, a round of `stackcb` takes 2 ms, and one of the other
agents 0.1 to 0.5 ms. Above it, at :math:`K = 10`, :math:`d = 1024`, a sketch is 6 to 35 times faster; in 2,000 rounds
it made at most 2 pp more mistakes (docs/results/benchmarks.md)."""
SKETCH_SIZE = 32
"""Default of `sketch_size`. Its cost per round, about :math:`2 m d + K m^2 / 2` multiplications, is then about that of
the scores, :math:`K d`, at :math:`K = 50`. At :math:`d = 1024`, :math:`2 m` rows take half a megabyte and fit the L2
cache of a core.
"""


class Form(NamedTuple):
    """The form of each matrix: "full", "diagonal" or "sketch", and the size of a sketch."""

    second_order: str = "full"
    sketch_size: int = SKETCH_SIZE

    def models(self, scales: NDArray[np.float64], n_features: int) -> Any:
        r"""Return models :math:`P_i = \text{scales}_i I` and :math:`h_i = 0` in this form."""
        if self.second_order == "diagonal":
            return diagonal_inverses(scales, n_features)
        if self.second_order == "sketch":
            return own_sketch(scales, n_features, self.sketch_size)
        return inverses(scales, n_features)


def form_of(second_order: str, sketch_size: int, problem: Problem) -> Form:
    """Return the form for two settings.

    Raises a UsageError if `second_order` is unknown, if `sketch_size` is invalid, or if it differs from its default and
    `second_order` is not "sketch".
    """
    one_of("second_order", second_order, get_args(SecondOrder))
    form = Form(resolved_order(second_order, problem), at_least("sketch_size", sketch_size, 1))
    if form.sketch_size != SKETCH_SIZE and second_order != "sketch":
        raise UsageError(f"sketch_size needs second_order = 'sketch', got second_order = {second_order!r}")
    return form


def resolved_order(second_order: Any, problem: Problem, beyond: str = "sketch") -> Any:
    """Replace "auto" by "full", or by `beyond` if :math:`K d^2` exceeds `LARGEST_WHOLE`; return other values unchanged."""
    if second_order != "auto":
        return second_order
    return beyond if problem.n_classes * problem.n_features**2 > LARGEST_WHOLE else "full"


def least_bytes(problem: Problem, settings: Mapping[str, Any], n_models: float) -> float:
    """Return a lower bound on the bytes of the models, without an error for invalid settings."""
    second_order, sketch_size = resolved_order(settings["second_order"], problem), settings["sketch_size"]
    d = problem.n_features
    if second_order == "diagonal":
        return 16.0 * n_models * d
    if second_order == "sketch":
        m = max(1.0, min(float(sketch_size), d)) if isinstance(sketch_size, int | float) else 1.0
        return n_models * (8.0 * d + 4.0 * m * m) + 24.0 * m * d
    return 4.0 * n_models * d * d


def sketch_diagnostics(sketch: Directions) -> dict[str, Any]:
    r"""Return the number of basis rotations and the share of :math:`\|x\|^2` outside the sketch over all updates."""
    return {"sketch_shrinks": int(sketch.counts[SHRINKS]), "sketch_outside": share_outside(sketch)}
