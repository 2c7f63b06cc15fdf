"""A log of decisions with a target policy's probabilities, and the faults it may have."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditlab.errors import UsageError

Floats = NDArray[np.float64]
TOLERANCE = 1e-6
"""The tolerance for the sum of a row of probabilities."""
LEAST = 1e-100
"""The least propensity of a logged action, so squares of weights do not overflow."""


class Log(NamedTuple):
    """n logged decisions over K actions, with the target policy's probabilities in the same rounds.

    Parameters
    ----------
    actions
        The logged actions (n,), integers from 0 to K - 1.
    rewards
        The logged reward bits (n,), 0 or 1.
    propensities
        The probabilities with which the logger chose the logged actions (n,), in (0, 1], or its probabilities of all
        actions (n, K). The probabilities of all actions show which actions were possible, and make the interval
        narrower if there are predictions.
    target
        The target policy's probabilities (n, K). They are 1/K for uniform choice, and 1 in one column for a single
        action.
    predictions
        A reward model's probabilities of reward 1 for every action (n, K), or None: see `predicted_rewards`. The
        prediction for a round must come from earlier rounds only.
    """

    actions: ArrayLike
    rewards: ArrayLike
    propensities: ArrayLike
    target: ArrayLike
    predictions: ArrayLike | None = None


class Rows(NamedTuple):
    """A checked log as arrays; `chosen` (n,) is the propensity of the logged action, `propensities` is (n, K) or None."""

    actions: NDArray[np.intp]
    rewards: Floats
    chosen: Floats
    target: Floats
    propensities: Floats | None
    predictions: Floats | None


def read(log: Log) -> tuple[Rows | None, Counter[str]]:
    """Return a log's arrays (None if it has faults) and its faults, each with the number of rows that have it."""
    found: Counter[str] = Counter()
    a, r, p, target = (numbers(name, value, found) for name, value in zip(log._fields, log[:4], strict=False))
    q = None if log.predictions is None else numbers("predictions", log.predictions, found)
    n, K = a.size, target.shape[-1] if target.ndim == 2 else 0
    check_shape("actions", a, found, (n,))
    check_shape("rewards", r, found, (n,))
    check_shape("propensities", p, found, (n,), (n, K))
    check_shape("target", target, found, (n, K))
    known = (a == np.floor(a)) & (a >= 0) & (a < K)
    found[f"actions that are not integers from 0 to {K - 1}"] = count(~known)
    found["rewards that are not 0 or 1"] = count((r != 0.0) & (r != 1.0))
    found["rows of target that are not probabilities with sum 1"] = _no_distributions(target)
    if q is not None:
        check_shape("predictions", q, found, (n, K))
        found["predictions outside [0, 1]"] = count(~((q >= 0.0) & (q <= 1.0)))
    chosen = p
    if whole := p.ndim == 2:
        found["rows of propensities that are not probabilities with sum 1"] = _no_distributions(p)
        own = np.where(known, a, 0).astype(np.intp)
        chosen = np.where(known, p[np.arange(n), own], 1.0) if p.shape == (n, K) and K else np.zeros(0)
    found[f"propensities of logged actions outside [{LEAST:g}, 1]"] = count(~((chosen >= LEAST) & (chosen <= 1.0)))
    found = +found  # those that occur
    return None if found else Rows(a.astype(np.intp), r, chosen, target, p if whole else None, q), found


def refuse(found: Counter[str]) -> None:
    """Raise a UsageError that names all faults, if there are any."""
    if +found:
        raise UsageError("the log has faults: " + "; ".join(f"{n:,} x {what}" for what, n in (+found).items()))


def numbers(name: str, value: Any, found: Counter[str]) -> Floats:
    """Return an array of numbers. If that fails, return an empty array and count the fault in `found`."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found[f"{name} that are not arrays of numbers"] += 1
        return np.zeros(0)


def check_shape(name: str, x: Floats, found: Counter[str], *allowed: tuple[int, ...]) -> None:
    """Add a fault if x has none of the shapes."""
    if x.shape not in allowed:
        found[f"{name} of shape {x.shape} where {' or '.join(map(str, allowed))} is needed"] += 1


def count(mask: NDArray[np.bool_]) -> int:
    """Return the number of true entries of a mask."""
    return int(np.count_nonzero(mask))


def _no_distributions(p: Floats) -> int:
    """Return how many rows of p (n, K) are not distributions."""
    if p.ndim != 2:
        return 0
    entries = (p >= 0.0) & (p <= 1.0)
    sums = np.where(entries, p, np.inf).sum(axis=1)
    return count(~(np.abs(sums - 1.0) <= TOLERANCE))
