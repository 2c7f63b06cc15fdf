"""What a sweep costs beside its rounds: many short runs, planned, played, stored and compacted.

Half of the settings are banditron's, half gaptron's, each over 50 exploration rates; the rest of the runs are repetitions, so
100 runs share a stream. `CPU ms/run` is the processor time of all processes from the plan to the compacted table over the
number of runs (starting workers included); `s` the wall time of the same; with comparators, two balls at the ten
checkpoints of every stream are in both. Kernels are compiled before. `again` is the same command on the finished folder.

The last lines play longer runs, in one process and in two. Their ratio is told twice: of the whole sweeps, and of the
rounds a wall second between the first task that came back and the last, when the workers have started.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from banditlab.engine import Sweep, processes

SETTINGS = 100
GAMMAS = [round(0.005 * (i + 1), 3) for i in range(SETTINGS // 2)]


class Cost(NamedTuple):
    """Runs, the processor and wall seconds they took, rounds/s while playing, wall seconds of finding them all done."""

    runs: int
    cpu: float
    wall: float
    rate: float
    again: float


def main(*, runs: int = 10_000, rounds: int = 1_000, longer: int = 20_000, jobs: int = 2) -> None:
    """Print the table."""
    few = max(1, runs // SETTINGS // 10)
    swept("banditlab/Logistic-v0", 1, 100, [1.0], 1)  # compiles
    print(
        f"| environment | comparators | rounds | processes | runs | CPU ms/run | s | rounds/s | again, s |\n{'|---' * 9}|"
    )
    for environment, repetitions, balls, workers in (
        ("banditlab/Logistic-v0", few, [], 1),
        ("banditlab/Logistic-v0", few, [1.0, 10.0], 1),
        ("banditlab/Digits-v0", few, [1.0, 10.0], 1),
        ("banditlab/Logistic-v0", max(1, runs // SETTINGS), [], jobs),
        ("banditlab/Logistic-v0", max(1, runs // SETTINGS), [1.0, 10.0], jobs),
    ):
        _print(environment, balls, rounds, workers, swept(environment, repetitions, rounds, balls, workers))
    one, many = (swept("banditlab/Logistic-v0", 5 * few, longer, [], workers) for workers in (1, jobs))
    for workers, cost in ((1, one), (jobs, many)):
        _print("banditlab/Logistic-v0", [], longer, workers, cost)
    ratios = f"{one.wall / many.wall:.2f} times the rounds of one; while playing {many.rate / one.rate:.2f} times"
    print(f"\n{jobs} processes: {ratios} ({one.rate:,.0f} and {many.rate:,.0f} rounds/s)")


def swept(environment: str, repetitions: int, rounds: int, balls: list[float], jobs: int) -> Cost:
    """Plan and run one sweep in an empty folder, and once more in the full one."""
    keys: dict[str, Any] = {
        "rounds": rounds,
        "repetitions": repetitions,
        "norm_bounds": balls,
        "environment": [{"id": environment}],
        "agent": [
            {"id": "banditron", "grid": {"gamma": GAMMAS}},
            {"id": "gaptron", "step": "adaptive", "grid": {"gamma": GAMMAS}},
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = _cpu(), time.perf_counter()
        seen: list[tuple[float, int]] = []
        result = Sweep(**keys).run(
            Path(folder), jobs=jobs, watch=lambda progress: seen.append((time.perf_counter(), progress.rounds_done))
        )
        if jobs > 1:
            _end_workers()
        cpu, wall = _cpu() - cpu, time.perf_counter() - wall
        assert not result.failures, result.failures[0]["error"]
        begin = time.perf_counter()
        assert Sweep(**keys).run(Path(folder)).played == 0
        again = time.perf_counter() - begin
    back = [(at, done) for at, done in seen if done]
    last = next(at for at, done in back if done == back[-1][1])
    rate = (back[-1][1] - back[0][1]) / max(last - back[0][0], 1e-9)
    return Cost(result.played, cpu, wall, rate, again)


def _cpu() -> float:
    """Return the processor seconds of this process and of those it started that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _end_workers() -> None:
    """End the workers, which wait for the next sweep: their time counts when they have ended."""
    while processes._idle:
        processes._idle.pop().executor.shutdown(wait=True)


def _print(environment: str, balls: list[float], rounds: int, workers: int, cost: Cost) -> None:
    wanted = ", ".join(f"B = {ball:g}" for ball in balls) or "none"
    each = f"{1e3 * cost.cpu / cost.runs:.2f} | {cost.wall:.1f} | {cost.rate:,.0f} | {cost.again:.1f}"
    print(f"| {environment} | {wanted} | {rounds:,} | {workers} | {cost.runs:,} | {each} |", flush=True)


if __name__ == "__main__":
    main()
