"""The comparators of a sweep: per stream, checkpoint and norm bound, computed once and kept beside the runs.

Each solve starts from the same ball's optimum at an earlier checkpoint of the 1-2-5 scale and from nothing else, so a number
never depends on which other norm bounds or rounds were asked for, nor on when.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from banditlab.comparators import Comparator, StreamCounts, best_in_ball
from banditlab.engine.plan import Run
from banditlab.engine.play import BLOCK, checked_blocks, cut_at
from banditlab.engine.store import Rows, Store

Pair = tuple[int, float]


def stored_pairs(store: Store, stream_id: str) -> set[Pair]:
    """Return the (round, norm bound) pairs a stream's file holds; a file cut in half holds none and is removed."""
    rows, file = store.comparator_files(stream_id)
    try:
        table = pq.read_table(rows, columns=["round", "norm_bound"])
    except FileNotFoundError:
        return set()
    except (pa.ArrowInvalid, OSError):
        rows.unlink(missing_ok=True)
        file.unlink(missing_ok=True)
        return set()
    return (
        set(zip(table["round"].to_pylist(), table["norm_bound"].to_pylist(), strict=True)) if file.exists() else set()
    )


def compare_stream(store: Store, run: Run, balls: Sequence[float]) -> None:
    """Compute and store what is missing of an oblivious stream's comparators at the run's checkpoints."""
    env = run.build_environment()
    env.reset(seed=run.environment_seed())
    problem = env.unwrapped.problem
    blocks = checked_blocks(env.unwrapped.blocks(run.rounds, BLOCK), problem.n_features, problem.n_classes, run.rounds)
    _compare(store, run, blocks, problem, balls)


def compare_run(store: Store, run: Run, X: Any, y: Any, balls: Sequence[float]) -> None:
    """Compute and store the comparators of one run of an adaptive environment, from the stream it met."""
    problem = run.build_environment().unwrapped.problem
    _compare(store, run, [(X, y)], problem, balls)


def _compare(store: Store, run: Run, blocks: Iterable[tuple[Any, Any]], problem: Any, balls: Sequence[float]) -> None:
    rows, weights = _stored(store, run.stream_id)
    known = set(zip(rows["round"], rows["norm_bound"], strict=True)) if rows else set()
    counts = StreamCounts(problem.n_features, problem.n_classes)
    start: dict[float, NDArray[np.float64]] = {}
    done = 0
    for X, y, is_checkpoint in cut_at(blocks, list(run.checkpoints)):
        counts.add(X, y)
        done += len(y)
        if not is_checkpoint:
            continue
        for ball in balls:
            key = weight_name(done, ball)
            if (done, ball) not in known:
                found = best_in_ball(*counts.collapsed(), ball, start=start.get(ball))
                weights[key] = found.weights
                _append(rows, run, done, found)
            if is_on_scale(done):
                start[ball] = weights[key]
    store.write_comparators(run.stream_id, rows, weights)


def weight_name(rounds: int, ball: float) -> str:
    """Return the name of W in a stream's npz file."""
    return f"W_{rounds}_{ball!r}"


def is_on_scale(rounds: int) -> bool:
    """Return whether a round is 1, 2 or 5 times a power of ten."""
    return str(rounds).rstrip("0") in ("1", "2", "5")


def _stored(store: Store, stream_id: str) -> tuple[Rows, dict[str, NDArray[np.float64]]]:
    if not stored_pairs(store, stream_id):
        return {}, {}
    rows, file = store.comparator_files(stream_id)
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
        return pq.read_table(rows).to_pydict(), {name: arrays[name] for name in arrays.files}


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
