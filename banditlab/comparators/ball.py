"""The best logistic model in hindsight within a norm bound, with a certificate of how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditlab.comparators._ball_geometry import feasible
from banditlab.comparators._objective import Floats, Objective
from banditlab.comparators._parts import minimise_in_parts
from banditlab.errors import BanditlabError, UsageError
from banditlab.losses import LN2
from banditlab.validation import at_least, positive

TOLERANCE = 1e-6
MAX_ITERATIONS = 500
MARGIN = 0.9  # share of the tolerance to reach, so that the certificate recomputed from scratch is still within it


class ComparatorError(BanditlabError):
    """The comparator's duality gap did not reach the tolerance, or its stream is too long to store."""


@dataclass(frozen=True, eq=False)
class Comparator:
    r"""The best multiclass logistic model found in :math:`\{W : \|W_k\|_2 \le B\, \text{ for all } k\}`, for the rounds
    counted.

    The optimum's loss lies in [loss - gap, loss].

    Attributes
    ----------
    weights
        W (K, d), read-only; every row norm is at most `norm_bound` as computed.
    norm_bound
        B.
    loss
        Sum of the logistic losses at W, in nats.
    gap
        Duality gap :math:`\langle G, W \rangle + B \sum_k \|G_k\|_2` at W, in nats.
    mistakes
        Rounds whose label is not the argmax of :math:`W x`, ties to the lowest class.
    rounds
        T, the rounds counted.
    seconds
        Wall-clock time of the solve.
    iterations
        Rounds of the solver over all contexts: a Newton step each, most with a few gradient steps before it.
    """

    weights: Floats
    norm_bound: float
    loss: float
    gap: float
    mistakes: int
    rounds: int
    seconds: float
    iterations: int

    @property
    def loss_bits(self) -> float:
        r"""The loss in bits, :math:`\text{loss} / \ln 2`."""
        return self.loss / LN2

    @property
    def gap_bits(self) -> float:
        """The duality gap in bits."""
        return self.gap / LN2


def best_in_ball(
    U: Any,
    counts: Any,
    norm_bound: float,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Comparator:
    r"""Return the least :math:`\sum_i \sum_k c_{ik} (-\ln \mathrm{softmax}(W u_i)_k)`, in nats, over
    :math:`\{W : \|W_k\|_2 \le B\, \text{ for all } k\}`, and its W.

    The certificate is the Frank-Wolfe gap of the product of balls, :math:`\langle G, W \rangle + B \sum_k \|G_k\|_2`
    with G the gradient, recomputed from scratch at the W returned; by convexity it bounds
    :math:`\text{loss} - \text{optimum}` from above whatever the solver did.

    Cost: a round of the solver takes some ten to some hundred products :math:`(K \times m)(m \times d)`, memory
    :math:`O(m K)` beside U. With more than some hundred contexts for each of the :math:`K d` numbers most of the work
    is done on a part of them (see `_parts`): some ten products over all contexts in all.

    Parameters
    ----------
    U
        Contexts, shape (m, d); `collapse` makes them unique, which only saves time.
    counts
        Shape (m, K): how often each label came with each context.
    norm_bound
        The row bound B.
    start
        Weights (K, d) to start from, projected onto the ball; 0 if None.
    tolerance
        The gap asked for, as a multiple of :math:`\max(1, \text{loss in nats})`.
    max_iterations
        Rounds of the solver before it gives up.

    Raises
    ------
    ComparatorError
        The gap is still above the tolerance after `max_iterations` rounds; the message names what was reached.
    UsageError
        Arguments that do not fit together.
    """
    objective = Objective.of(U, counts)
    W = np.zeros(objective.shape) if start is None else np.asarray(start, dtype=np.float64)
    if W.shape != objective.shape or not np.isfinite(W).all():
        raise UsageError(f"start must be finite, of shape {objective.shape}, got shape {W.shape}")
    return solve(objective, norm_bound, W, tolerance, max_iterations)


def solve(objective: Objective, norm_bound: float, start: Floats, tolerance: float, max_iterations: int) -> Comparator:
    """`best_in_ball` for an objective that is already laid out."""
    B = positive("norm_bound", norm_bound)
    tolerance = positive("tolerance", tolerance)
    at_least("max_iterations", max_iterations, 1)
    began = time.perf_counter()
    W, loss, gap, iterations = minimise_in_parts(objective, feasible(start, B), B, MARGIN * tolerance, max_iterations)
    seconds = time.perf_counter() - began
    if not gap <= tolerance * max(1.0, loss):
        raise ComparatorError(
            f"the comparator at norm_bound = {B:g} reached a gap of {gap:.3g} nats at loss {loss:.6g} "
            f"after {iterations} iterations; asked was {tolerance * max(1.0, loss):.3g}: "
            f"raise max_iterations or the tolerance"
        )
    W.flags.writeable = False
    mistakes, rounds = objective.mistakes(W), round(float(objective.totals.sum()))
    return Comparator(W, B, loss, gap, mistakes, rounds, seconds, iterations)
