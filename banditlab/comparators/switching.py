"""The best sequence of logistic models with at most S switches, which may occur at given rounds only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators.ball import TOLERANCE, best_in_ball
from banditlab.comparators.counts import collapse
from banditlab.errors import UsageError
from banditlab.validation import at_least


@dataclass(frozen=True)
class SwitchingComparator:
    """The smallest loss with at most a given number of switches.

    Attributes
    ----------
    switches
        The largest allowed number of switches.
    loss
        Loss of the models over all rounds, in nats.
    gap
        Upper bound on the loss minus the smallest loss of all sequences that switch at allowed rounds only, in nats.
    at
        Numbers of rounds after which the sequence switches, in increasing order.
    """

    switches: int
    loss: float
    gap: float
    at: tuple[int, ...]


def best_with_switches(
    X: Any, y: Any, n_classes: int, norm_bound: float, switches: int, *, at: Any, tolerance: float = TOLERANCE
) -> list[SwitchingComparator]:
    """Return the best sequences of models in the ball with at most 0, 1, ..., S switches, by dynamic programming.

    No theorem in the package bounds the regret against such a sequence.

    Parameters
    ----------
    X
        Contexts, shape (n, d).
    y
        Labels, shape (n,).
    n_classes
        K.
    norm_bound
        The row bound B of every model.
    switches
        S, the largest number of switches.
    at
        Numbers of rounds after which a switch is allowed: different integers from 1 to n - 1. With m of them, (m + 1)(m
        + 2)/2 models are fitted.
    tolerance
        As in `best_in_ball`, for each model.

    Raises
    ------
    UsageError
        The shapes of the arguments do not match, or a value is invalid.
    ComparatorError
        A model's gap did not reach the tolerance.
    """
    X, y, S = np.asarray(X), np.asarray(y), at_least("switches", switches, 0)
    collapse(X, y, n_classes)  # checks the whole stream
    allowed = [at_least("at", after, 1) for after in at]
    cuts = sorted({0, len(X), *allowed})
    if cuts[-1] > len(X) or len(cuts) != len(allowed) + 2:
        raise UsageError(f"at must be different integers from 1 to {len(X) - 1}, got {allowed!r}")
    m = len(cuts) - 1
    loss, gap = np.full((m + 1, m + 1), np.inf), np.zeros((m + 1, m + 1))
    for i in range(m):
        for j in range(i + 1, m + 1):
            part = slice(cuts[i], cuts[j])
            found = best_in_ball(*collapse(X[part], y[part], n_classes), norm_bound, tolerance=tolerance)
            loss[i, j], gap[i, j] = found.loss, found.gap
    return [_traced(loss, gap, cuts, s) for s in range(S + 1)]


def _traced(loss: NDArray[Any], gap: NDArray[Any], cuts: list[int], switches: int) -> SwitchingComparator:
    """Return the best sequence of at most `switches + 1` segments, by least[j] = min_i least[i] + loss[i, j]."""
    m = len(cuts) - 1
    least, before = [np.where(np.arange(m + 1) == 0, 0.0, np.inf)], []
    for _ in range(switches + 1):
        through = least[-1][:, None] + np.where(np.eye(m + 1, dtype=bool), 0.0, loss)  # i = j: one segment fewer
        before.append(through.argmin(axis=0))
        least.append(through.min(axis=0))
    j, places = m, []
    for step in reversed(before):
        if step[j] != j:
            places.append((int(step[j]), j))
            j = int(step[j])
    worst = float(gap[np.isfinite(loss)].max()) * len(places)
    return SwitchingComparator(switches, float(least[-1][m]), worst, tuple(cuts[i] for i, _ in reversed(places) if i))
