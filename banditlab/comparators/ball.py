"""The best logistic model in hindsight within a norm bound, with a certificate of its optimality."""

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
MARGIN = (
    0.9  # fraction of the tolerance at which the solver stops, so the recomputed certificate is within the tolerance
)


class ComparatorError(BanditlabError):
    """The duality gap did not reach the tolerance, or the stream is too long to store."""


@dataclass(frozen=True, eq=False)
class Comparator:
    r"""The best multiclass logistic model in :math:`\{W : \|W_k\|_2 \le B\, \text{ for all } k\}` for a number of
    rounds.

    The optimal loss lies in [loss - gap, loss].

    Attributes
    ----------
    weights
        W (K, d), read-only; every computed row norm is at most `norm_bound`.
    norm_bound
        B.
    loss
        Sum of the logistic losses at W, in nats.
    gap
        Duality gap :math:`\langle G, W \rangle + B \sum_k \|G_k\|_2` at W, in nats.
    mistakes
        Number of rounds whose label is not the argmax of :math:`W x`; ties go to the lowest class.
    rounds
        T, the number of rounds.
    seconds
        Wall-clock time of the solve.
    iterations
        Number of the solver's iterations over all contexts. One is a Newton step, usually after a few gradient steps.
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
    r"""Return the model with the smallest loss over :math:`\{W : \|W_k\|_2 \le B\, \text{ for all } k\}`.

    The loss is :math:`\sum_i \sum_k c_{ik} (-\ln \mathrm{softmax}(W u_i)_k)`, in nats. The certificate is the
    Frank-Wolfe gap of the product of balls, :math:`\langle G, W \rangle + B \sum_k \|G_k\|_2` with the gradient G,
    computed from scratch at the returned W. By convexity it bounds :math:`\text{loss} - \text{optimum}` from above for
    any W.

    Cost: an iteration of the solver takes ten to a few hundred products :math:`(K \times m)(m \times d)`. Memory:
    :math:`O(m K)` beside U. With more than a few hundred contexts per entry of W, most of the work uses a subset of
    them (see `_parts`), and about ten products use all contexts.

    Parameters
    ----------
    U
        Contexts, shape (m, d). They need not be unique; `collapse` makes them so, which saves time.
    counts
        Shape (m, K): the count of each label at each context.
    norm_bound
        The row bound B.
    start
        Weights (K, d) to start from, projected onto the ball; 0 if None.
    tolerance
        The required gap, as a multiple of :math:`\max(1, \text{loss in nats})`.
    max_iterations
        Largest number of the solver's iterations.

    Raises
    ------
    ComparatorError
        The gap is above the tolerance after `max_iterations` iterations; the message gives the gap.
    UsageError
        The shapes of the arguments do not match, or a value is invalid.
    """
    objective = Objective.of(U, counts)
    W = np.zeros(objective.shape) if start is None else np.asarray(start, dtype=np.float64)
    if W.shape != objective.shape:
        raise UsageError(f"start must have shape {objective.shape}, got {W.shape}")
    if not np.isfinite(W).all():
        raise UsageError("start must be finite, got NaN or infinite entries")
    return solve(objective, norm_bound, W, tolerance, max_iterations)


def solve(objective: Objective, norm_bound: float, start: Floats, tolerance: float, max_iterations: int) -> Comparator:
    """Return the result of `best_in_ball` for an existing objective."""
    B = positive("norm_bound", norm_bound)
    tolerance = positive("tolerance", tolerance)
    at_least("max_iterations", max_iterations, 1)
    began = time.perf_counter()
    W, loss, gap, iterations = minimise_in_parts(objective, feasible(start, B), B, MARGIN * tolerance, max_iterations)
    seconds = time.perf_counter() - began
    if not gap <= tolerance * max(1.0, loss):
        raise ComparatorError(
            f"the comparator at norm_bound = {B:g} reached a gap of {gap:.3g} nats at loss {loss:.6g} "
            f"after {iterations} iterations; the tolerance is {tolerance * max(1.0, loss):.3g}: "
            f"raise max_iterations or the tolerance"
        )
    W.flags.writeable = False
    mistakes, rounds = objective.mistakes(W), round(float(objective.totals.sum()))
    return Comparator(W, B, loss, gap, mistakes, rounds, seconds, iterations)
