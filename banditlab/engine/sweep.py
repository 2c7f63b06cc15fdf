"""The sweep: execute the missing runs in parallel, store each when it finishes, and return the results of all runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditlab.distributions import refuse_without
from banditlab.engine.comparing import stored_pairs
from banditlab.engine.estimating import overhead_seconds, seconds_of_comparators, seconds_of_rounds
from banditlab.engine.executors.local import Local
from banditlab.engine.plan import Plan, Run, make_plan
from banditlab.engine.processes import ask
from banditlab.engine.progress import Progress
from banditlab.engine.schedule import FIXED_SECONDS, ROUND_SECONDS, Schedule
from banditlab.engine.spec import Spec
from banditlab.engine.spec_text import spec_to_toml
from banditlab.engine.work import Outcome, Task, facts, store_failure
from banditlab.results.reading import finished_runs
from banditlab.results.schema import COMPARATOR
from banditlab.results.store import Store

if TYPE_CHECKING:
    from banditlab.engine.executors.cluster import Cluster

Watcher = Callable[[Progress], None]
PATIENCE = 120.0
"""Seconds without progress on a cluster after which a sweep ends."""
IN_FLIGHT = 2
"""Tasks per process that are waiting or being executed."""


@dataclass
class Result:
    """The result of a sweep, with the numbers of runs and the records of failed ones."""

    folder: Path
    """The results folder."""
    plan: Plan
    """All runs of the sweep."""
    present: int
    """Number of runs that existed before."""
    played: int
    """Number of runs that this call executed."""
    redone: list[str]
    """Ids of runs that were executed again because their files were damaged."""
    failures: list[dict[str, Any]]
    """The record of each run that failed."""
    seconds: float
    """The duration of the call."""
    kept: Path | None = None
    """Where the report of another spec in the folder was moved; None if there was none."""
    notices: list[str] = field(default_factory=list)
    """A line for each damaged file, with its new location and the consequences for its content."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of one run of an (environment, player) pair, measured over a short run after compilation."""

    environment: str
    """The environment's label in the table of results."""
    label: str
    """The player's label."""
    runs: int
    """Number of runs of the pair."""
    seconds_per_run: float
    """On one core."""


class Sweep:
    """A sweep that is defined in Python; its runs are validated, executed and stored as those of a spec file.

    Parameters
    ----------
    spec
        A validated `Spec` (see `read_spec` and `make_spec`), or the keyword arguments of one.
    where
        Prefix of error messages, for instance the spec file's path.
    """

    def __init__(self, spec: Spec | None = None, *, where: str = "spec", **keys: Any) -> None:
        from banditlab.engine.spec import make_spec

        self.spec = spec if spec is not None else make_spec(keys, where)
        self.plan = make_plan(self.spec, where)
        self.balls = tuple(self.plan.balls())

    def run(
        self,
        folder: str | Path,
        *,
        jobs: int = 1,
        watch: Watcher | None = None,
        cluster: Any = None,
        patience: float = PATIENCE,
        shard: tuple[int, int] | None = None,
    ) -> Result:
        """Execute the missing runs of the sweep and store them in a results folder.

        Parameters
        ----------
        jobs
            Number of worker processes; with 1, this process executes the runs.
        watch
            Function that is called with the progress after every task.
        cluster
            The cluster to use: the address of a Dask scheduler (tcp://, tls://), a scheduler file, "local:N", or a
            `distributed.Client`. Workers need this package but no shared disk. Requires the extra `cluster`.
        patience
            Seconds without a response from the scheduler, or without a worker that runs tasks, after which the call
            ends.
        shard
            (i, n): divide the sweep into n parts and execute only part i, from 1 to n. Runs on the same stream are in
            the same part. `merge` combines the parts' folders.

        Raises
        ------
        UsageError
            The folder cannot be written or has another store format, or the address or the shard is invalid.
        ClusterError
            The cluster cannot be reached, the scheduler is lost, no worker runs tasks for `patience` seconds, or a
            worker's versions differ from those on this machine. Finished runs are stored.
        """
        begin = time.perf_counter()
        plan = self.plan if shard is None else self.plan.part(*shard)
        store = Store(folder)
        finished, redone = store.done()
        kept = store.write_plan(spec_to_toml(self.spec, facts()), plan.record())
        missing = [run for run in plan.runs if run.run_id not in finished]
        streams = self._streams_to_compare(plan, store, {run.run_id for run in missing})
        progress = Progress(len(missing), len(streams))
        notify = watch or (lambda _: None)
        notify(progress)
        if missing or streams:
            schedule = Schedule(str(store.folder), self.balls, self.spec.run_timeout, missing, streams)
            progress.kinds = schedule.kinds
            jobs = min(jobs, len(missing) + len(streams))
            with _executor(cluster, jobs, store, patience) as executor:
                _Round(schedule, executor, progress, notify).play()
        progress.stage = "storing"
        notify(progress)
        store.compact()
        if missing:
            _record_lost(store, missing)
        failures = store.failures(dict.fromkeys([run.run_id for run in plan.runs] + list(plan.streams())))
        done_now = len(missing) - sum(f["player"] != COMPARATOR for f in failures)
        seconds = time.perf_counter() - begin
        present = len(plan.runs) - len(missing)
        return Result(Path(folder), plan, present, done_now, redone, failures, seconds, kept, store.notices)

    def estimate(self) -> list[Estimate]:
        """Estimate the time of each (environment, player) pair from a short measurement after its kernels are compiled.

        A run shorter than about 0.15 s is executed completely. The overhead of a run is also measured.
        """
        pairs: dict[tuple[str, str], list[Run]] = {}
        for run in self.plan.runs:
            pairs.setdefault((run.environment_label, run.label), []).append(run)
        found, overhead = list[Estimate](), dict[str, float]()
        for (place, label), runs in pairs.items():
            seconds = ROUND_SECONDS * runs[0].rounds
            with suppress(Exception, SystemExit):  # its run will fail and is then recorded
                seconds = ask("seconds", runs[0]) if runs[0].foreign else seconds_of_rounds(runs[0])
                if not runs[0].foreign and place not in overhead:
                    overhead[place] = overhead_seconds(runs, seconds)
            found.append(Estimate(place, label, len(runs), seconds + overhead.get(place, FIXED_SECONDS)))
        return found

    def estimate_comparators(self) -> float:
        """Estimate the core-seconds of the comparators of all streams; NaN if an environment reacts to the actions."""
        streams: dict[str, list[Run]] = {}
        for run in self.plan.streams().values():
            streams.setdefault(run.environment_label, []).append(run)
        if any(run.adaptive for runs in streams.values() for run in runs) and self.balls:
            return math.nan
        some = [(runs[0], len(runs)) for runs in streams.values() if not runs[0].foreign]
        return sum(seconds_of_comparators(run, self.balls) * n for run, n in some)

    def _streams_to_compare(self, plan: Plan, store: Store, missing: set[str]) -> list[Run]:
        """Return one run of each stream whose comparators are missing.

        Missing runs of adaptive environments are left out, because they compute their own comparators.
        """
        if not self.balls:
            return []
        available = [run for run in plan.streams().values() if not (run.adaptive and run.run_id in missing)]
        wanted = {run.stream_id: {(r, b) for r in run.checkpoints for b in self.balls} for run in available}
        return [run for run in available if not wanted[run.stream_id] <= stored_pairs(store, run.stream_id)]


def _executor(cluster: Any, jobs: int, store: Store, patience: float) -> AbstractContextManager[Local | Cluster]:
    if cluster is None:
        return nullcontext(Local(max(1, jobs), store))
    refuse_without("--cluster", "distributed")
    from banditlab.engine.executors.cluster import on_cluster

    return on_cluster(cluster, store, patience)


class _Round:
    """One execution of the missing runs: it submits tasks while the executor has capacity and counts outcomes."""

    def __init__(self, schedule: Schedule, executor: Local | Cluster, progress: Progress, notify: Watcher) -> None:
        self.schedule, self.executor, self.progress, self.notify = schedule, executor, progress, notify
        self.submitted: dict[str, Task] = {}
        """The task of each run or stream that was submitted and has no outcome so far."""

    def play(self) -> None:
        """Run all tasks."""
        self._feed()
        for outcomes, task in self.executor.completed():
            if task is not None:
                self._count(task, outcomes)
            self._feed()

    def _feed(self) -> None:
        """Submit a few more tasks than there are processes, and report the progress."""
        executor, progress = self.executor, self.progress
        room = 1 + IN_FLIGHT * executor.jobs - len({id(task) for task in self.submitted.values()})
        while room > 0 and (task := self.schedule.next(executor.jobs)):
            self.submitted |= {task.id_of(run): task for run in task.runs}
            executor.submit(task)
            room -= 1
        progress.jobs = max(1, executor.jobs)
        progress.cluster, progress.notices = executor.state(), executor.notices
        progress.set_stage()
        self.notify(progress)

    def _count(self, task: Task, outcomes: list[Outcome]) -> None:
        progress = self.progress
        runs = {task.id_of(run): run for run in task.runs}
        for outcome in outcomes:
            del self.submitted[outcome.id]
            self.schedule.note(runs[outcome.id], task.comparators, outcome.seconds)
            progress.failed += bool(outcome.failure)
            if task.comparators:
                progress.streams_done += 1
            else:
                progress.runs_done += 1
                progress.rounds_done += outcome.rounds


def _record_lost(store: Store, missing: list[Run]) -> None:
    """Record executed runs that are not in the folder as failed, so they do not count as done."""
    finished, failed = finished_runs(store.folder), store.failed()
    for run in missing:
        if run.run_id not in finished and run.run_id not in failed:
            store_failure(store, run, False, "it was executed, but its rows are not in the folder", "")
