"""The comparators of a sweep: one per stream, checkpoint and norm bound, computed once and stored with the runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators import Comparator, best_with_switches, comparators_along
from banditlab.engine.plan import Run
from banditlab.engine.runner import BLOCK, checked_blocks
from banditlab.numerics.sparse_rows import is_sparse
from banditlab.problem import Problem
from banditlab.results.schema import Rows
from banditlab.results.store import Store

Pair = tuple[int, float]
Floats = NDArray[np.float64]


def stored_pairs(store: Store, stream_id: str) -> set[Pair]:
    """Return the (round, norm bound) pairs in a stream's files; empty if a file is damaged."""
    return set(_stored(store, stream_id)[1])


def compare_stream(store: Store, run: Run, balls: Sequence[float]) -> None:
    """Compute and store the missing comparators of an oblivious stream at the run's checkpoints."""
    env = run.build_environment()
    env.reset(seed=run.environment_seed())
    problem = env.unwrapped.problem
    blocks = checked_blocks(env.unwrapped.blocks(run.rounds, BLOCK), problem, run.rounds)
    _compare(store, run, list(blocks) if "change" in run.environment else blocks, problem, balls)


def compare_run(
    store: Store, run: Run, problem: Problem, stream: tuple[Floats, NDArray[np.int64]], balls: Sequence[float]
) -> None:
    """Compute and store the comparators of one run of an adaptive environment from its stream (X, y)."""
    _compare(store, run, [stream], problem, balls)


def _compare(
    store: Store, run: Run, blocks: Iterable[tuple[Any, Any]], problem: Problem, balls: Sequence[float]
) -> None:
    rows, known = _stored(store, run.stream_id)
    d, K = problem.n_features, problem.n_classes
    try:
        for at, found in comparators_along(blocks, run.checkpoints, balls, d, K, known=dict(known)):
            known[at, found.norm_bound] = found.weights
            _append(rows, run, at, found)
            if "change" in run.environment:
                switching = _switching(run, list(blocks), K, found.norm_bound) if at == run.rounds else UNSWITCHED
                for name, value in switching.items():
                    rows.setdefault(name, []).append(value)
    finally:  # store the other solutions if one fails
        if rows:
            store.write_comparators(run.stream_id, rows, {weight_name(*pair): W for pair, W in known.items()})


UNSWITCHED = {"switches": None, "switching_loss_nats": None, "switching_gap": None}
"""The columns of `best_with_switches` at checkpoints before the last."""


def _switching(run: Run, blocks: list[tuple[Any, Any]], n_classes: int, ball: float) -> dict[str, Any]:
    """Return the columns of `best_with_switches`, with a switch allowed where a change of the labels begins or ends."""
    change = run.environment["change"]
    X = np.concatenate([X.made_dense() if is_sparse(X) else X for X, _ in blocks])
    y = np.concatenate([y for _, y in blocks])
    places = {at + after for at in change["at"] for after in (0, change["over"]) if at + after < run.rounds}
    found = best_with_switches(X, y, n_classes, ball, len(change["at"]), at=sorted(places))[-1]
    return dict(zip(UNSWITCHED, (found.switches, found.loss, found.gap), strict=True))


def weight_name(rounds: int, ball: float) -> str:
    """Return the name of W in a stream's npz file."""
    return f"W_{rounds}_{ball!r}"


def _stored(store: Store, stream_id: str) -> tuple[Rows, dict[Pair, Floats]]:
    """Return a stream's stored comparators: the columns of their table, and W for each (round, norm bound).

    Both are empty if they do not agree.
    """
    rows, weights = store.comparators(stream_id)
    pairs = list(zip(rows.get("round", []), rows.get("norm_bound", []), strict=True))
    if not all(weight_name(*pair) in weights for pair in pairs):  # two processes stored at the same time
        return {}, {}
    return rows, {pair: weights[weight_name(*pair)] for pair in pairs}


def _append(rows: Rows, run: Run, rounds: int, found: Comparator) -> None:
    row = {
        "stream_id": run.stream_id,
        "environment": run.environment_label,
        "repetition": run.repetition,
        "round": rounds,
        "norm_bound": found.norm_bound,
        "loss_nats": found.loss,
        "loss_bits": found.loss_bits,
        "gap": found.gap,
        "mistakes": found.mistakes,
        "seconds": found.seconds,
    }
    for name, value in row.items():
        rows.setdefault(name, []).append(value)
