"""Tasks: a sweep's missing runs and comparators, packed so that each task takes about two seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from banditlab.engine.plan import Run
from banditlab.engine.processes import LostError, ask
from banditlab.engine.warming import drawing_of, kind_of_run, unknown_seconds
from banditlab.engine.work import COMPILE_SECONDS, Task, is_long
from banditlab.errors import UsageError
from banditlab.registry import registry

TASK_SECONDS = 2.0  # about how long one task should take: long beside the 6 ms it costs to send, short beside a sweep
MANY = (
    200  # processes from which on tasks get longer in proportion: a cluster's driver and scheduler spend 10 ms on each
)
TOGETHER_SECONDS, TOGETHER = 40.0, 12  # the same, and the most runs, where the runs of a long stream go side by side
FOREIGN_SECONDS = 3600.0  # `run_timeout` of runs in which a lab's or a plug-in's code takes part
FIXED_SECONDS = 1e-3  # what a run takes beside its rounds
COMPARATOR_SECONDS = 1.0  # a guess at a stream's comparators, for the time left
TASKS_A_WORKER = 16  # streams of short runs are put together into tasks as long as there are still so many


class Tasks:
    """Makes the tasks of a sweep.

    Parameters
    ----------
    folder
        The results folder, as workers on this machine find it.
    balls
        Norm bounds of the comparators.
    limit
        Seconds a run may take, None for the default: none, or `FOREIGN_SECONDS` where a lab's or plug-in's code takes part.
    jobs
        Processes they are for.
    """

    def __init__(self, folder: str, balls: tuple[float, ...], limit: float | None, jobs: int) -> None:
        self.folder, self.balls, self.limit, self.jobs = folder, balls, limit, jobs
        self.seconds = TASK_SECONDS * max(1.0, jobs / MANY)

    def made(self, missing: list[Run], streams: list[Run], costs: dict[str, float]) -> list[Task]:
        """Return tasks of about TASK_SECONDS, the costliest first so that the last ones are short.

        A stream's runs are in one task, perhaps with those of others, or in several of that stream alone. Runs of a
        stream too long to be kept go side by side, in tasks of up to TOGETHER_SECONDS.

        Parameters
        ----------
        missing
            The runs to be played.
        streams
            A run of each stream whose comparators are to be computed.
        costs
            Seconds that a run of a kind takes, by `warming.kind_of_run`, and that its stream takes to be drawn, once for
            all of its runs that are in one task, by `warming.drawing_of`.
        """
        tasks: list[Task] = []
        foreign = foreign_pairs(missing + streams)
        for apart in (False, True):
            own = replace(self._blank(), labs=tuple(registry().labs()) if apart else (), foreign=apart)
            if apart and self.limit is None:
                own = replace(own, limit=FOREIGN_SECONDS)
            some, of = ([run for run in runs if foreign[pair_of(run)] is apart] for runs in (missing, streams))
            tasks += _tasks_of(own, some, of, costs, TASKS_A_WORKER * self.jobs, self.seconds)
        return sorted(tasks, key=lambda task: -cost_of(task, costs))

    def warming(self, kinds: list[Run]) -> list[Task]:
        """Return a task for each player that compiles its kernels, for all environments one after the other.

        `run_timeout` is none of the compiler's.
        """
        players: dict[str, list[Run]] = {}
        for run in kinds:
            players.setdefault(run.label, []).append(run)
        own = replace(self._blank(), limit=max(self.limit, COMPILE_SECONDS) if self.limit else 0.0, warming=True)
        return [replace(own, runs=tuple(runs)) for runs in players.values()]

    def _blank(self) -> Task:
        return Task(self.folder, (), (), self.balls, limit=self.limit or 0.0)


def _tasks_of(
    own: Task, missing: list[Run], streams: list[Run], costs: dict[str, float], many: int, seconds: float
) -> list[Task]:
    """Return the tasks of runs that are alike in what `own` says."""
    share = max(1, len(streams) // many)
    few = [tuple(streams[start : start + share]) for start in range(0, len(streams), share)]
    tasks = [replace(own, runs=runs, comparators=True) for runs in few]
    long = long_streams(missing)
    ordered = sorted(missing, key=lambda run: (_place(run), -seconds_of(run, costs)))
    portions: list[tuple[Run, ...]] = []
    for stream, runs in groupby(ordered, key=_place):
        if stream in long:
            tasks += [
                replace(own, runs=part, together=True) for part in _portions(runs, costs, TOGETHER_SECONDS, TOGETHER)
            ]
        else:
            portions += _portions(runs, costs, seconds, len(ordered))
    enough = min(seconds, sum(portion_seconds(portion, costs) for portion in portions) / many)
    return tasks + [replace(own, runs=runs) for runs in _packed(portions, costs, enough)]


def pair_of(run: Run) -> tuple[str, str]:
    return run.environment_label, run.label


def foreign_pairs(runs: list[Run]) -> dict[tuple[str, str], bool]:
    """Return, for every pair of an environment and a player, whether a lab's or a plug-in's code takes part."""
    found: dict[tuple[str, str], bool] = {}
    for run in runs:
        if pair_of(run) not in found:
            found[pair_of(run)] = run.foreign
    return found


def _place(run: Run) -> str:
    return "" if run.adaptive else run.stream_id


def _portions(runs: Iterable[Run], costs: dict[str, float], seconds: float, most: int) -> Iterator[tuple[Run, ...]]:
    """Cut runs into portions of at least so many seconds, or so many runs, the last one shorter."""
    batch: list[Run] = []
    cost = 0.0
    for run in runs:
        batch.append(run)
        cost += seconds_of(run, costs)
        if cost >= seconds or len(batch) == most:
            yield tuple(batch)
            batch, cost = [], 0.0
    if batch:
        yield tuple(batch)


def portion_seconds(runs: tuple[Run, ...], costs: dict[str, float]) -> float:
    """Return about how long the runs of one stream take, the drawing of it included."""
    return costs.get(drawing_of(runs[0]), 0.0) + sum(seconds_of(run, costs) for run in runs)


def _packed(portions: Iterable[tuple[Run, ...]], costs: dict[str, float], seconds: float) -> Iterator[tuple[Run, ...]]:
    """Put portions that follow one another together as long as they take at most so many seconds."""
    batch: list[Run] = []
    cost = 0.0
    for portion in portions:
        own = portion_seconds(portion, costs)
        if batch and cost + own > seconds:
            yield tuple(batch)
            batch, cost = [], 0.0
        batch += portion
        cost += own
    if batch:
        yield tuple(batch)


def long_streams(runs: Iterable[Run]) -> set[str]:
    """Return the ids of the streams that are too long to be kept in memory."""
    found: dict[tuple[str, int], bool] = {}
    long = set()
    for run in runs:
        key = (run.environment_label, run.rounds)
        if key not in found:
            found[key] = asked("is_long", run, False) if run.foreign else is_long(run)
        if found[key]:
            long.add(run.stream_id)
    return long


def cost_of(task: Task, costs: dict[str, float]) -> float:
    return sum(COMPARATOR_SECONDS if task.comparators else seconds_of(run, costs) for run in task.runs)


def seconds_of(run: Run, costs: dict[str, float]) -> float:
    """Return about how long a run takes, in seconds, once its stream is drawn."""
    return FIXED_SECONDS + costs.get(kind_of_run(run), unknown_seconds(run))


def asked(question: str, run: Run, default: Any) -> Any:
    """Return what a worker answers of a run with foreign code; where it cannot, the run will fail and be recorded."""
    try:
        return ask(question, run)
    except (LostError, UsageError):
        return default
