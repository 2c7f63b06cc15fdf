"""Estimate a sweep's time from short measurements of each kind of run, and of one stream's comparators.

Times are core-seconds of this process with one thread, as in workers, so the load of other programs does not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace

from threadpoolctl import threadpool_limits

from banditlab.engine.plan import Run
from banditlab.engine.runner import play
from banditlab.engine.work import Task, execute
from banditlab.results.store import Store

FEW_ROUNDS = 64
LONG_ENOUGH = 0.15
"""Measured seconds after which a run's time is extrapolated linearly."""
MOST_TOGETHER = 8
"""The largest number of repetitions that are run to measure a run's overhead."""
FIRST_CHECKPOINT = 500
"""Comparators are computed up to the first checkpoint at or after this round, and further if computing takes little time."""


def seconds_of_rounds(run: Run) -> float:
    """Estimate the seconds of a run's rounds, without compilation, from 64 or more of them."""
    env = run.build_environment()
    play(env, run.build_player(env), seed=run.environment_seed(), rounds=min(run.rounds, 2), feedback=run.feedback)
    rounds = min(run.rounds, FEW_ROUNDS)
    while True:
        player = run.build_player(env)
        with threadpool_limits(limits=1):
            begin = time.process_time()
            play(env, player, seed=run.environment_seed(), rounds=rounds, feedback=run.feedback)
            seconds = time.process_time() - begin
        if seconds >= LONG_ENOUGH or rounds == run.rounds:
            return seconds / rounds * run.rounds
        rounds = min(run.rounds, 2 * rounds)


def overhead_seconds(runs: Sequence[Run], seconds: float) -> float:
    """Return the seconds that a run takes apart from its rounds (to build objects, draw row orders and store rows).

    `runs` are repetitions, and the rounds of each take `seconds`.
    """
    few = tuple(runs[: max(1, min(MOST_TOGETHER, int(4 * LONG_ENOUGH / max(seconds, 1e-9))))])
    with tempfile.TemporaryDirectory() as folder:
        execute(Task(folder, (), few[:1]))  # for the work that a process does only once
        begin = time.process_time()
        execute(Task(folder, (), few))
        return max(0.0, (time.process_time() - begin) / len(few) - seconds)


def seconds_of_comparators(run: Run, balls: Sequence[float]) -> float:
    """Estimate the seconds of the comparators of a run's stream, one for each checkpoint and norm bound.

    The comparators are computed up to one checkpoint (see `FIRST_CHECKPOINT`). The time of later checkpoints, and of
    reading the rows, is extrapolated in proportion to the rounds.
    """
    if not balls:
        return 0.0
    upto = next((at for at in run.checkpoints if at >= FIRST_CHECKPOINT), run.checkpoints[-1])
    while True:
        part = replace(run, rounds=upto, checkpoints=tuple(at for at in run.checkpoints if at <= upto))
        with tempfile.TemporaryDirectory() as folder:
            begin, began = time.process_time(), time.perf_counter()
            execute(Task(folder, (), (part,), tuple(balls), comparators=True))
            seconds, slowed = time.process_time() - begin, time.perf_counter() - began
            rows, _ = Store(folder).comparators(part.stream_id)
        later = [at for at in run.checkpoints if at > upto]
        if not rows or not later:  # a failure is recorded in the sweep
            return seconds
        if seconds < 2 * LONG_ENOUGH:
            upto = next((at for at in later if at >= 2 * upto), later[-1])
            continue
        solves = [(at, s * seconds / slowed) for at, s in zip(rows["round"], rows["seconds"], strict=True)]
        solved, last = sum(s for _, s in solves), sum(s for at, s in solves if at == upto)
        return solved + sum(last * at / upto for at in later) + max(0.0, seconds - solved) * run.rounds / upto
