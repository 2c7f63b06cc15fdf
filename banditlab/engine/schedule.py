"""The order of a sweep's tasks: missing runs and comparators, in tasks of about two seconds.

The first run of each kind is a separate task, which measures the time of that kind and lets workers compile different
players in parallel. Tasks become shorter towards the end, so workers finish at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from banditlab.engine.plan import Run
from banditlab.engine.work import Task
from banditlab.registry import registry
from banditlab.results.schema import COMPARATOR

TASK_SECONDS = 2.0  # target for one task: long compared with the 6 ms for sending it, short compared with a sweep
LEAST_SECONDS = 0.05  # the least target, at the end of a sweep
SHARES = 4  # tasks per process into which the remaining work is divided
MANY = 200  # with more processes tasks are longer in proportion, because a scheduler spends 10 ms on each
FOREIGN_SECONDS = 3600.0  # `run_timeout` of runs with code of a lab or a plug-in
ROUND_SECONDS = 1e-4  # prior estimate of a round
COMPARATOR_SECONDS = 1.0  # prior estimate of a stream's comparators
FIXED_SECONDS = 1e-3  # a run's overhead


@dataclass
class Kind:
    """A group of tasks that take about the same time: runs of one player, or comparators, on one environment."""

    label: str
    """The player's label; "" for comparators."""
    guess: float
    """Prior estimate of the time of one run, in seconds."""
    runs: int = 0
    done: int = 0
    seconds: float = 0.0
    """Core-seconds of the finished runs."""

    @property
    def mean(self) -> float:
        """Core-seconds of one run: the mean of the finished runs, or the prior estimate if there are none."""
        return FIXED_SECONDS + self.seconds / self.done if self.done else self.guess


def kind_of(run: Run, comparators: bool = False) -> str:
    """Return the key of a run's kind."""
    return f"{run.environment_label}|{COMPARATOR if comparators else run.label}"


class Schedule:
    """The tasks of a sweep, in order.

    Parameters
    ----------
    folder
        The path of the results folder for workers on this machine.
    balls
        Norm bounds of the comparators.
    limit
        Longest time of a run in seconds; None: no limit, but `FOREIGN_SECONDS` for runs with code of a lab or a
        plug-in.
    missing
        The missing runs.
    streams
        A run of each stream whose comparators are missing.
    """

    def __init__(
        self, folder: str, balls: tuple[float, ...], limit: float | None, missing: list[Run], streams: list[Run]
    ) -> None:
        self.kinds: dict[str, Kind] = {}
        self._queues: dict[tuple[bool, bool], _Queue] = {}
        """Queues by (foreign code, comparators); runs of foreign code come last and use separate processes."""
        foreign = foreign_kinds(missing + streams)
        own, own_limit = registry().labs(), limit or 0.0
        for apart in (False, True):
            task = Task(folder, tuple(own) if apart else (), (), balls, foreign=apart, limit=own_limit)
            if apart and limit is None:
                task = replace(task, limit=FOREIGN_SECONDS)
            for comparators, runs in ((True, streams), (False, missing)):
                queue = _Queue(replace(task, comparators=comparators), self.kinds)
                queue.put(run for run in runs if foreign[kind_of(run)] is apart)
                self._queues[apart, comparators] = queue

    def next(self, jobs: int) -> Task | None:
        """Return the next task of a sweep that uses `jobs` processes, or None if none is left."""
        for apart in (False, True):
            queues = [self._queues[apart, comparators] for comparators in (False, True)]
            seconds = self._task_seconds(queues, jobs)
            if limit := queues[0].task.limit:  # it applies to a whole task
                seconds = min(seconds, limit / 2)
            for queue in queues:
                if runs := queue.first_of_a_kind():
                    return queue.taken(runs)
            for queue in reversed(queues):  # comparators take long and form few tasks
                if runs := queue.portion(seconds):
                    return queue.taken(runs)
            for queue in queues:
                if runs := queue.any():
                    return queue.taken(runs)
        return None

    def _task_seconds(self, queues: list[_Queue], jobs: int) -> float:
        left = sum(queue.seconds_left() for queue in queues)
        return min(max(LEAST_SECONDS, left / (SHARES * jobs)), TASK_SECONDS * max(1.0, jobs / MANY))

    def note(self, run: Run, comparators: bool, seconds: float) -> None:
        """Record the seconds of a run, or of its stream's comparators."""
        kind = self.kinds[kind_of(run, comparators)]
        kind.done, kind.seconds = kind.done + 1, kind.seconds + seconds


class _Queue:
    """Waiting runs of one sort: all or none of them run code of a lab or a plug-in, and either the runs themselves or
    their comparators are missing.
    """

    def __init__(self, task: Task, kinds: dict[str, Kind]) -> None:
        self.task, self.kinds = task, kinds
        self.by_kind: dict[str, dict[str, Run]] = {}
        self.by_stream: dict[str, dict[str, Run]] = {}
        self.begun: set[str] = set()

    def put(self, runs: Iterable[Run]) -> None:
        """Add runs."""
        for run in runs:
            kind, stream = self._places(run)
            self.by_kind.setdefault(kind, {})[run.run_id] = run
            self.by_stream.setdefault(stream, {})[run.run_id] = run
            if kind not in self.kinds:
                guess = COMPARATOR_SECONDS if self.task.comparators else ROUND_SECONDS * run.rounds
                self.kinds[kind] = Kind("" if self.task.comparators else run.label, guess)
            self.kinds[kind].runs += 1

    def _places(self, run: Run) -> tuple[str, str]:
        return kind_of(run, self.task.comparators), "" if run.adaptive else run.stream_id

    def taken(self, runs: list[Run]) -> Task:
        """Remove runs from the queue and return them as a task."""
        for run in runs:
            kind, stream = self._places(run)
            self.begun.add(kind)
            for groups, key in ((self.by_kind, kind), (self.by_stream, stream)):
                del groups[key][run.run_id]
                if not groups[key]:
                    del groups[key]
        return replace(self.task, runs=tuple(runs))

    def seconds_left(self) -> float:
        """Return the estimated core-seconds of all waiting runs."""
        return sum(len(runs) * self.kinds[kind].mean for kind, runs in self.by_kind.items())

    def first_of_a_kind(self) -> list[Run]:
        """Return a list with one run of the first kind that has no started run, or an empty list."""
        return next(([next(iter(runs.values()))] for kind, runs in self.by_kind.items() if kind not in self.begun), [])

    def portion(self, seconds: float) -> list[Run]:
        """Return runs of about `seconds` in total, with runs of one stream together.

        A run that takes longer is returned alone. Only runs of kinds with a measured time are returned.
        """
        longest = max(self.by_kind, key=self._known, default="")
        if longest and self._known(longest) >= seconds:
            return [next(iter(self.by_kind[longest].values()))]
        batch, total = list[Run](), 0.0
        for run in self._in_order():
            cost = self._known(self._places(run)[0])
            if batch and total + cost > seconds:
                break
            if cost:
                batch.append(run)
                total += cost
        return batch

    def _known(self, kind: str) -> float:
        return self.kinds[kind].mean if self.kinds[kind].done else 0.0

    def _in_order(self) -> Iterator[Run]:
        return (run for runs in self.by_stream.values() for run in runs.values())

    def any(self) -> list[Run]:
        """Return one run of any kind, or an empty list."""
        return next(([run] for run in self._in_order()), [])


def foreign_kinds(runs: list[Run]) -> dict[str, bool]:
    """Return, for every kind of run, whether it runs code of a lab or a plug-in."""
    found: dict[str, bool] = {}
    for run in runs:
        if kind_of(run) not in found:
            found[kind_of(run)] = run.foreign
    return found
