"""Comparators for prefixes of a stream, one for each checkpoint and norm bound.

Each solve starts from the optimum for the same norm bound at the last round on the scale 1, 2, 5, 10, 20, 50, ..., even
if that round is not a checkpoint. A result therefore does not depend on the other checkpoints and norm bounds that are
requested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from banditlab.comparators._ball_geometry import shrinkage
from banditlab.comparators._objective import Floats, Objective
from banditlab.comparators.ball import MAX_ITERATIONS, TOLERANCE, Comparator, solve
from banditlab.comparators.counts import StreamCounts
from banditlab.errors import UsageError
from banditlab.validation import positive

Pair = tuple[int, float]


def comparators_along(
    blocks: Iterable[tuple[Any, Any]],
    checkpoints: Sequence[int],
    norm_bounds: Sequence[float],
    n_features: int,
    n_classes: int,
    *,
    known: Mapping[Pair, Floats] | None = None,
    tolerance: float = TOLERANCE,
) -> Iterator[tuple[int, Comparator]]:
    """Yield (checkpoint, comparator of the first `checkpoint` rounds) for each checkpoint and each B, in increasing
    order.

    The stream is read once, up to the last checkpoint, and stored as unique contexts with counts.

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
    known
        Known weights (K, d) for this stream, by (round, B); they are not computed again and not yielded.
    tolerance
        As in `best_in_ball`.

    Raises
    ------
    UsageError
        A checkpoint is below 1 or beyond the end of the stream, or a norm bound is not above 0.
    ComparatorError
        A gap did not reach the tolerance, or the unique contexts take more than `counts.MOST_BYTES`.
    """
    rounds = sorted({int(c) for c in checkpoints})
    if rounds and rounds[0] < 1:
        raise UsageError(f"checkpoints must be at least 1, got {rounds[0]}")
    bounds = sorted({positive("norm_bounds", b) for b in norm_bounds})
    positive("tolerance", tolerance)
    return _along(blocks, rounds, bounds, StreamCounts(n_features, n_classes), known or {}, tolerance)


def scale_up_to(last: int) -> list[int]:
    """Return 1, 2, 5, 10, 20, 50, ... up to `last`, which need not be among them."""
    return [m * 10**e for e in range(len(str(last))) for m in (1, 2, 5) if m * 10**e <= last]


def _along(
    blocks: Iterable[tuple[Any, Any]],
    rounds: list[int],
    bounds: list[float],
    stream: StreamCounts,
    known: Mapping[Pair, Floats],
    tolerance: float,
) -> Iterator[tuple[int, Comparator]]:
    scale = scale_up_to(rounds[-1]) if rounds else []
    before: dict[float, Floats] = {}  # by B, the weights at the previous round on the scale
    needed = {(r, B) for r in rounds for B in bounds} - set(known)
    for at in _fill(stream, blocks, sorted({*rounds, *scale})):
        objective = None
        for B in bounds:
            weights = known.get((at, B))
            if weights is None and _wanted(at, B, needed, at in scale):
                objective = objective or Objective(*stream.collapsed())
                found = solve(objective, B, _start(objective, B, before.get(B)), tolerance, MAX_ITERATIONS)
                weights = found.weights
                if (at, B) in needed:
                    yield at, found
            if weights is not None and at in scale:
                before[B] = weights


def _wanted(at: int, B: float, needed: Collection[Pair], on_scale: bool) -> bool:
    """Return whether to solve: for the result, or because a later solve with this norm bound starts from it."""
    return (at, B) in needed or (on_scale and any(b == B and r > at for r, b in needed))


def _fill(stream: StreamCounts, blocks: Iterable[tuple[Any, Any]], rounds: list[int]) -> Iterator[int]:
    """Add blocks to the stream, split at the given rounds; yield each of these rounds once it is reached."""
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
        raise UsageError(f"checkpoints must be at most the stream's {stream.rounds} rounds, got {rounds[-1]}")


def _start(objective: Objective, B: float, before: Floats | None) -> Floats:
    """Return the start with the smallest loss: 0, the previous weights, or these scaled to the norm bound."""
    best, least = np.zeros(objective.shape), float(objective.totals.sum()) * np.log(objective.shape[0])
    if before is None:
        return best
    Z = objective.logits(before)
    longest = float(np.sqrt(np.einsum("kd,kd->k", before, before).max()))
    for stretch in {1.0, B / longest} if longest > 0.0 else ():
        scale = stretch * shrinkage(stretch * before, B)
        loss = objective.loss(Z * scale)
        if loss < least:
            best, least = before * scale, loss
    return best
