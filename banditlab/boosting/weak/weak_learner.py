"""The base class of weak learners: predict a class for a context under costs, and update with a weighted label.

A booster passes to each of its N weak learners the row-normalised costs D (K, K), where D[r, l] is the cost of
predicting l if the label is r. Afterwards it passes the label with a weight. A learner may ignore costs or weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.jit import njit
from banditlab.players.player import Player
from banditlab.problem import Problem

Floats = NDArray[np.float64]


class WeakLearner(Player, ABC):
    """Base class of learners that need only be better than random.

    Constructors have the signature `(problem, rng, *, settings)`, as for every player. A learner draws only from its
    own generator `rng`.
    """

    kind: ClassVar[str] = "weak_learners"
    feedback = "label"
    needs_label: ClassVar[bool] = False
    """Whether the booster passes the label to `peek` before the learner predicts (for simulated learners)."""
    rng: np.random.Generator

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        if rng is None:
            raise UsageError(f"{type(self).__name__} breaks ties at random: rng must be a numpy Generator, got None")
        super().__init__(problem, rng)

    def view(self, context: Floats) -> Any:
        """Return the form of a context (d,) that these learners read; a booster computes it once per round for all of
        them.

        `predict` and `update` take either the context or its view.
        """
        return context

    def peek(self, label: int) -> None:
        """Observe the label of the next context; only learners with `needs_label` receive it."""
        raise UsageError(f"{self.id} does not observe the label before it predicts")

    @abstractmethod
    def predict(self, context: Any, costs: Floats | None = None) -> int:
        """Return a class for a context (or its view); `costs` (K, K) is an array that the booster overwrites later."""

    @abstractmethod
    def update(self, context: Any, label: int, weight: float) -> None:
        """Update with the class `label` of a context (or its view), with `weight` 0 or above."""


class ProbableLearner(WeakLearner):
    """A weak learner that estimates the probability of each class, and predicts the class with the least expected cost.

    Without costs it predicts the most probable class. Ties are broken at random. For this purpose each prediction draws
    one uniform number in [0, 1), even without a tie.

    A booster may instead obtain the estimates of all its learners and make their predictions in one kernel, with the
    same draws. If a learner overrides `predict`, that method is called.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self._q, self._gain = np.zeros((2, problem.n_classes))

    @abstractmethod
    def estimate(self, context: Any, q: Floats) -> None:
        """Write the estimated probabilities of the classes, up to a common factor, into q (K,)."""

    def predict(self, context: Any, costs: Floats | None = None) -> int:
        r"""Return :math:`\arg\min_l \sum_r q_r D_{rl}`."""
        self.estimate(context, self._q)
        u = self.rng.random()
        if costs is None:
            return int(most_probable(self._q, u))
        return int(least_costly(self._q, costs, self._gain, u))


@njit
def tied(values, best, count, u):
    """Return the index of one of the `count` entries of values (n,) that equal `best`, drawn with the uniform u."""
    place = min(int(u * count), count - 1)
    for l in range(values.shape[0]):
        if values[l] == best:
            if place == 0:
                return l
            place -= 1
    return 0  # with NaN among the values, none equals the best


@njit
def most_probable(q, u):
    """Return the index of the largest entry of q (K,); ties are broken by the uniform u."""
    best, count, first = -np.inf, 0, 0
    for l in range(q.shape[0]):
        if q[l] > best:
            best, count, first = q[l], 1, l
        elif q[l] == best:
            count += 1
    return first if count == 1 else tied(q, best, count, u)


@njit
def least_costly(q, costs, gain, u):
    r"""Return :math:`\arg\min_l \sum_r q_r\, \text{costs}_{rl}`; ties are broken by the uniform u.

    gain (K,) is a work array.
    """
    K = q.shape[0]
    gain[:] = 0.0
    for r in range(K):
        for l in range(K):
            gain[l] -= q[r] * costs[r, l]
    return most_probable(gain, u)
