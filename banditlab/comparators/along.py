"""Comparators along a stream: every checkpoint's prefix, every norm bound, each solve started from its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from banditlab.comparators._ball import shrinkage
from banditlab.comparators._objective import Floats, Objective
from banditlab.comparators.ball import MAX_ITERATIONS, TOLERANCE, Comparator, solve
from banditlab.comparators.counts import StreamCounts
from banditlab.errors import UsageError
from banditlab.validation import positive


def comparators_along(
    blocks: Iterable[tuple[Any, Any]],
    checkpoints: Sequence[int],
    norm_bounds: Sequence[float],
    n_features: int,
    n_classes: int,
    tolerance: float = TOLERANCE,
) -> Iterator[tuple[int, Comparator]]:
    """Yield (checkpoint, comparator of the first `checkpoint` rounds) for each checkpoint and, within it, each B.

    Both go upwards. The stream is read once, as far as the last checkpoint, and kept as unique contexts with counts.

    Parameters
    ----------
    blocks
        Consecutive (X (n, d), y (n,)) that cover the stream, of any sizes.
    checkpoints
        Rounds, at least 1.
    norm_bounds
        The row bounds B.
    n_features, n_classes
        d and K.
    tolerance
        As in `best_in_ball`.

    Raises
    ------
    UsageError
        A checkpoint below 1 or beyond the end of the stream, a norm bound that is not above 0.
    ComparatorError
        A gap that did not come down to the tolerance.
    """
    rounds = sorted({int(c) for c in checkpoints})
    if rounds and rounds[0] < 1:
        raise UsageError(f"checkpoints must be at least 1, got {rounds[0]}")
    bounds = sorted({positive("norm_bounds", b) for b in norm_bounds})
    positive("tolerance", tolerance)
    return _along(blocks, rounds, bounds, StreamCounts(n_features, n_classes), tolerance)


def _along(
    blocks: Iterable[tuple[Any, Any]], rounds: list[int], bounds: list[float], stream: StreamCounts, tolerance: float
) -> Iterator[tuple[int, Comparator]]:
    before: dict[float, Floats] = {}  # by B, the weights of the checkpoint before
    for checkpoint in _fill(stream, blocks, rounds):
        objective = Objective(*stream.collapsed())
        smaller: list[Floats] = []
        for B in bounds:
            start = _best_start(objective, B, [*smaller, *([before[B]] if B in before else [])])
            comparator = solve(objective, B, start, tolerance, MAX_ITERATIONS)
            before[B] = comparator.weights
            smaller = [comparator.weights]
            yield checkpoint, comparator


def _fill(stream: StreamCounts, blocks: Iterable[tuple[Any, Any]], rounds: list[int]) -> Iterator[int]:
    """Add blocks to the stream, cut at the checkpoints; yield each checkpoint when exactly its rounds are counted."""
    ahead = list(reversed(rounds))
    for X, y in blocks if ahead else ():
        used = 0
        while ahead and used < len(y):
            take = min(len(y) - used, ahead[-1] - stream.rounds)
            stream.add(X[used : used + take], y[used : used + take])
            used += take
            if stream.rounds == ahead[-1]:
                yield ahead.pop()
        if not ahead:
            return
    if ahead:
        raise UsageError(
            f"checkpoints must lie within the stream, which ended after {stream.rounds} < {ahead[-1]} rounds"
        )


def _best_start(objective: Objective, B: float, candidates: list[Floats]) -> Floats:
    """Return the start of least loss among 0 and the candidates, each as it is and stretched to touch the bound."""
    best, least = np.zeros(objective.shape), float(objective.totals.sum()) * np.log(objective.shape[0])
    for W in candidates:
        Z = objective.logits(W)
        longest = float(np.sqrt(np.einsum("kd,kd->k", W, W).max()))
        for stretch in {1.0, B / longest} if longest > 0.0 else ():
            scale = stretch * shrinkage(stretch * W, B)
            loss = objective.loss(Z * scale)
            if loss < least:
                best, least = W * scale, loss
    return best
