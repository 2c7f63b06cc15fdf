"""Hindsight references for rounds with several right actions.

`right` (n, K) bool says which actions were right in n rounds. A mistake is a round with a wrong action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators.ball import TOLERANCE, best_in_ball
from banditlab.errors import UsageError
from banditlab.numerics.right_actions import are_right

Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]


def best_single_action(right: Any) -> int:
    """Return the mistakes of the action that was right most often."""
    right = _checked(right)
    return len(right) - int(right.sum(axis=0).max())


def best_action_per_value(right: Any, values: Any) -> int:
    """Return the number of mistakes of `best_actions`: the best action for each value of a column.

    `right` (n, K) bool says which actions were right in a round, and `values` (n,) is the column.
    """
    return _mistakes(right, best_actions(right, values))


def best_actions(right: Any, values: Any) -> NDArray[np.int64]:
    """Return, for each of n rounds, the action that was right most often in the rounds with the same value of a column;
    ties go to the lowest action.

    `right` (n, K) bool says which actions were right in a round; `values` (n,) is the column, where NaN counts as a
    value.

    Raises
    ------
    UsageError
        `right` is not of shape (n, K), or `values` is not of shape (n,).
    """
    right, values = _checked(right), np.asarray(values)
    if values.shape != (len(right),):
        raise UsageError(f"values must be of shape ({len(right)},), one for every round, got {values.shape}")
    found, places = np.unique(values, return_inverse=True)
    best = np.array([right[places == i].sum(axis=0).argmax() for i in range(len(found))])
    return np.asarray(best[places])


def none_right(right: Any) -> int:
    """Return the number of rounds without a right action: the smallest possible number of mistakes."""
    return int(np.count_nonzero(~_checked(right).any(axis=1)))


@dataclass(frozen=True, eq=False)
class OneAgainstRest:
    r"""For every action, the best logistic model of whether it is right, with :math:`\|w_k\|_2 \le B`.

    Attributes
    ----------
    weights
        The weights w (K, d).
    losses, gaps
        Loss and gap of each model (K,), in nats; the optimal loss lies in [loss - gap, loss].
    actions
        (n,), the action with the largest :math:`w_k'x` in each round; ties go to the lowest action.
    mistakes
        Number of rounds in which that action was wrong.
    """

    weights: Floats
    losses: Floats
    gaps: Floats
    actions: NDArray[np.int64]
    mistakes: int


def one_against_rest(X: Any, right: Any, norm_bound: float, *, tolerance: float = TOLERANCE) -> OneAgainstRest:
    r"""Return, for every action k, the model with the smallest loss :math:`\sum_t \ln(1 + e^{-s_{tk} w_k'x_t})` over
    :math:`\|w_k\|_2 \le B`.

    :math:`s_{tk}` is 1 if k was right in round t, and -1 if not.

    This is a softmax model of two classes with weights :math:`\pm w_k/2`, so `best_in_ball` with the norm bound
    :math:`B/2` computes and certifies it.

    Parameters
    ----------
    X
        Contexts, shape (n, d), dense.
    right
        Shape (n, K).
    norm_bound
        B.
    tolerance
        As in `best_in_ball`, for each model.

    Raises
    ------
    ComparatorError
        The gap of a model did not reach the tolerance.
    UsageError
        The shapes of the arguments do not match, or a value is invalid.
    """
    right, X = _checked(right), np.asarray(X, dtype=np.float64)
    found = [best_in_ball(X, np.column_stack([~bits, bits]), norm_bound / 2.0, tolerance=tolerance) for bits in right.T]
    weights = np.array([model.weights[1] - model.weights[0] for model in found])
    action = np.argmax(X @ weights.T, axis=1)
    return OneAgainstRest(
        weights,
        losses=np.array([model.loss for model in found]),
        gaps=np.array([model.gap for model in found]),
        actions=action,
        mistakes=_mistakes(right, action),
    )


def _mistakes(right: Any, action: NDArray[np.int64]) -> int:
    return int(np.count_nonzero(~are_right(np.asarray(right), action)))


def _checked(right: Any) -> Bits:
    bits = np.asarray(right)
    if bits.ndim != 2 or bits.dtype != np.bool_ or 0 in bits.shape:
        raise UsageError(f"right must be a bool array (n, K) with n and K above 0, got {bits.shape} {bits.dtype}")
    return bits
