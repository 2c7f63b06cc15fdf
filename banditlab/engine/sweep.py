"""The sweep: what is missing is played in parallel, stored as it comes, and gathered at the end."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from banditlab.engine.comparing import stored_pairs
from banditlab.engine.estimating import seconds_beside_rounds, seconds_of_comparators, seconds_of_rounds
from banditlab.engine.executors.executor import Executor
from banditlab.engine.executors.local import Local
from banditlab.engine.plan import Plan, Run, make_plan
from banditlab.engine.progress import Kind, Progress
from banditlab.engine.spec import Spec
from banditlab.engine.spec_text import spec_to_toml
from banditlab.engine.tasks import FIXED_SECONDS, Tasks, asked, long_streams, pair_of, portion_seconds, seconds_of
from banditlab.engine.warming import (
    drawing_of,
    drawing_seconds,
    is_cold,
    kind_of_run,
    runs_by_kind,
    unknown_seconds,
    warmed_seconds,
)
from banditlab.engine.work import Outcome, Task, facts, store_failure
from banditlab.results.reading import finished_runs
from banditlab.results.schema import COMPARATOR
from banditlab.results.store import Store

Watcher = Callable[[Progress], None]
PATIENCE = 120.0
"""Seconds a cluster may do nothing before a sweep gives up."""


@dataclass
class Result:
    """What a sweep left: how many runs were there already, were played, and failed (with their records)."""

    folder: Path
    """The results folder."""
    plan: Plan
    """All runs, played or not."""
    present: int
    """Runs that were there already."""
    played: int
    """Runs that were played now."""
    redone: list[str]
    """Ids of runs that were played again because their files were damaged."""
    failures: list[dict[str, Any]]
    """The record of each run that failed."""
    seconds: float
    """From the call to its end."""
    kept: Path | None = None
    """Where the report went that the folder held of another spec, None where it held none."""
    notices: list[str] = field(default_factory=list)
    """A line for each damaged file that was found: where it is kept, and what becomes of its content."""


@dataclass(frozen=True)
class Estimate:
    """Measured seconds of one run of a (environment, player) pair, from a short play after compiling."""

    environment: str
    """As the table of results calls it."""
    label: str
    """The player's."""
    runs: int
    """How many of them are to be played."""
    seconds_per_run: float
    """On one core."""


class Sweep:
    """A sweep from Python: the same models as a spec file, the same runs, the same store.

    Parameters
    ----------
    spec
        A validated `Spec` (see `read_spec` and `make_spec`), or the keyword arguments of one.
    where
        What errors should name, for instance the spec file's path.
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
        """Do what is missing of the sweep in a results folder.

        Parameters
        ----------
        jobs
            Number of worker processes; 1 plays in this one.
        watch
            Called with the progress after every task.
        cluster
            Where to play instead: the address of a Dask scheduler (tcp://, tls://), a scheduler file, "local:N", or a
            `distributed.Client`. Workers need this package, and no disk in common. Takes the extra `cluster`.
        patience
            Seconds the cluster may do nothing before this gives up.
        shard
            (i, n): only the i-th of n parts, from 1 on, whole streams each; `merge` puts the parts' folders together.

        Raises
        ------
        UsageError
            The folder cannot be written or has another store format; an address or a part that cannot be.
        ClusterError
            The cluster cannot be reached, or nothing has moved for `patience` seconds. What is finished is stored.
        """
        begin = time.perf_counter()
        plan = self.plan if shard is None else self.plan.part(*shard)
        store = Store(folder)
        finished, redone = store.done()
        kept = store.write_plan(spec_to_toml(self.spec, facts()), plan.record())
        missing = [run for run in plan.runs if run.run_id not in finished]
        streams = self._streams_to_compare(plan, store, {run.run_id for run in missing})
        progress = Progress(len(missing), len(streams))
        tell = watch or (lambda _: None)
        tell(progress)
        if missing or streams:
            with _executor(cluster, jobs, store, patience) as executor:
                _Round(self, executor, store, progress, tell).play(missing, streams)
        progress.stage = "storing"
        tell(progress)
        store.compact()
        if missing:
            _record_lost(store, missing)
        failures = store.failures(dict.fromkeys([run.run_id for run in plan.runs] + list(plan.streams())))
        done_now = len(missing) - sum(f["player"] != COMPARATOR for f in failures)
        seconds = time.perf_counter() - begin
        present = len(plan.runs) - len(missing)
        return Result(Path(folder), plan, present, done_now, redone, failures, seconds, kept, store.notices)

    def estimate(self) -> list[Estimate]:
        """Return measured costs: each (environment, player) plays a while once its kernels are compiled.

        Where a run ends sooner than a tenth of a second, that is all of it; what it takes beside its rounds is measured, too.
        """
        costs = warm_up(self.plan.runs, None, lambda _: None, uncompiled=True)
        groups: dict[tuple[str, str], list[float]] = {}
        beside: dict[str, float] = {}
        for kind, runs in runs_by_kind(self.plan.runs).items():
            seconds, place = costs[kind], runs[0].environment_label
            if not runs[0].foreign:
                with suppress(Exception, SystemExit):  # what fails here fails in its run, where it is recorded
                    seconds = seconds_of_rounds(runs[0])
                    if place not in beside:
                        beside[place] = seconds_beside_rounds(runs, seconds)
            of_pair = groups.setdefault(pair_of(runs[0]), [])
            of_pair += [seconds + beside.get(place, FIXED_SECONDS)] * len(runs)
        return [Estimate(env, label, len(each), sum(each) / len(each)) for (env, label), each in groups.items()]

    def estimate_comparators(self) -> float:
        """Return about how many core-seconds the comparators of all streams take; NaN where they come with the runs."""
        streams: dict[str, list[Run]] = {}
        for run in self.plan.streams().values():
            streams.setdefault(run.environment_label, []).append(run)
        if any(run.adaptive for runs in streams.values() for run in runs) and self.balls:
            return math.nan
        some = [(runs[0], len(runs)) for runs in streams.values() if not runs[0].foreign]
        return sum(seconds_of_comparators(run, self.balls) * n for run, n in some)

    def _streams_to_compare(self, plan: Plan, store: Store, missing: set[str]) -> list[Run]:
        """Return one run of each stream that lacks comparators; a run of an adaptive environment brings its own along."""
        wanted = {(r, b) for r in self.spec.checkpoint_rounds() for b in self.balls}
        if not wanted:
            return []
        streams = plan.streams().values()
        settled = [run for run in streams if not (run.adaptive and run.run_id in missing)]
        return [run for run in settled if not wanted <= stored_pairs(store, run.stream_id)]


def _executor(cluster: Any, jobs: int, store: Store, patience: float) -> Executor:
    if cluster is None:
        return Local(max(1, jobs), store)
    from banditlab.engine.executors.cluster import Cluster

    return Cluster(cluster, store, patience)


FEW_SECONDS = 0.5
"""Seconds of play, streams drawn, that a worker has left when it gets more while kernels are compiled."""

SUCCESSOR_SECONDS = 30.0
"""Seconds for which a lost worker counts in the time left: until then its successor may be there."""


class _Round:
    """One call of a sweep: tasks are made as soon as what their runs cost is known, and handed to the executor.

    Players whose kernels are on disk are tried here, before anything is sent. The others are compiled by the workers, side by
    side, and some of what is compiled is played meanwhile, no more than keeps the workers busy: a stream is drawn once for the
    players that go through it in one task. A cluster's workers do that with all of them.
    """

    def __init__(self, sweep: Sweep, executor: Executor, store: Store, progress: Progress, tell: Watcher) -> None:
        self.executor, self.progress, self.tell = executor, progress, tell
        self.tasks = Tasks(str(store.folder), sweep.balls, sweep.spec.run_timeout, executor.jobs)
        self.costs: dict[str, float] = {}
        self.first: dict[str, Run] = {}  # of each kind of run that is missing
        self.waiting: dict[str, list[Run]] = {}  # runs whose kernels are being compiled, by kind
        self.held: list[Run] = []  # runs that can be played, and wait for other players of their streams
        self.handed: dict[str, float] = {}  # seconds of runs that are under way while others are compiled, by id
        self.together = False
        self.lately = deque[tuple[float, int]]()  # workers that were there, and when

    def play(self, missing: list[Run], streams: list[Run]) -> None:
        """Have everything played."""
        by_kind = runs_by_kind(missing)
        self.first = {kind: runs[0] for kind, runs in by_kind.items()}
        self.progress.kinds = {kind: Kind(0.0, len(runs)) for kind, runs in by_kind.items()}
        cold = self._cold()
        self.waiting = {kind: by_kind[kind] for kind in cold}
        ready = [run for kind, runs in by_kind.items() if kind not in cold for run in runs]
        # A stream too long to be kept is drawn once for many players: all of them are waited for.
        self.together = bool(cold) and bool(long_streams([run for run in missing if not run.foreign]))
        self.costs |= {} if self.executor.remote else warm_up(ready, self.progress, self.tell)
        if cold and not self.together:
            self.held, ready = ready, []
        tasks = self.tasks.warming(list(cold.values())) + self.tasks.made(ready, streams, self.costs)
        if not self.executor.remote:
            most = len(missing) + len(streams) if cold else len(tasks)
            self.executor.jobs = max(1, min(self.executor.jobs, most))
        self._estimate()
        self.progress.jobs = self.executor.jobs
        self._say_stage()
        for task in tasks:
            self.executor.submit(task)
        self._feed()
        for outcomes, of in self.executor.completed():
            self._take(outcomes, of)

    def _cold(self) -> dict[str, Run]:
        """Return a run of each kind that the workers compile, by kind."""
        kinds = {kind: run for kind, run in self.first.items() if not run.foreign}
        if self.executor.remote:
            return kinds
        if self.executor.jobs == 1:
            return {}
        return {kind: run for kind, run in kinds.items() if is_cold(run)}

    def _take(self, outcomes: list[Outcome], task: Task | None) -> None:
        progress = self.progress
        progress.cluster, progress.notices = self.executor.state(), self.executor.notices
        if task is not None and task.warming:
            self._warmed(outcomes, task)
        elif task is not None:
            if progress.playing_since is None and outcomes:
                progress.playing_since = time.perf_counter()
            _count(progress, task, outcomes)
            self._note(task, outcomes)
        self._feed()
        if progress.cluster is not None:
            progress.jobs = max(1, self._jobs_lately())
        self.tell(progress)

    def _jobs_lately(self) -> int:
        """Return the most workers that were there at once of late."""
        now, jobs = time.perf_counter(), self.executor.jobs
        while self.lately and self.lately[-1][1] <= jobs:
            self.lately.pop()
        self.lately.append((now, jobs))  # fewer and fewer, the first of them the most
        while self.lately[0][0] < now - SUCCESSOR_SECONDS:
            self.lately.popleft()
        return self.lately[0][1]

    def _warmed(self, outcomes: list[Outcome], task: Task) -> None:
        """Take down what runs of these kinds cost, and make tasks of them."""
        known = {task.id_of(run): run for run in task.runs}
        for outcome in outcomes:
            run = known[outcome.id]
            self.costs[kind_of_run(run)] = outcome.seconds or unknown_seconds(run)
            if outcome.drawing:  # 0 where it could not be told: what another player's process said stays
                self.costs[drawing_of(run)] = outcome.drawing
            self.held += self.waiting.pop(kind_of_run(run), [])
        self._estimate()
        self._say_stage()

    def _feed(self) -> None:
        """Hand over what is held: all of it once everything is compiled, before that what keeps the workers busy."""
        runs = self._some() if self.waiting else self.held
        if runs:
            chosen = {run.run_id for run in runs}
            self.held = [run for run in self.held if run.run_id not in chosen]
            for task in self.tasks.made(runs, [], self.costs):
                self.executor.submit(task)

    def _some(self) -> list[Run]:
        """Take the runs of some streams as handed out; none where the workers have enough, or streams are long."""
        worth = self.executor.jobs * FEW_SECONDS
        under_way = sum(self.handed.values())
        if self.together or under_way >= worth:
            return []
        # this machine plays foreign code after all others, so that it keeps nobody busy now
        last = set[str]() if self.executor.remote else {kind for kind, run in self.first.items() if run.foreign}
        streams: dict[str, list[Run]] = {}
        for run in self.held:
            if last and kind_of_run(run) in last:
                continue
            streams.setdefault(run.run_id if run.adaptive else run.stream_id, []).append(run)
        some = list[Run]()
        for runs in streams.values():
            if under_way >= 2.0 * worth:
                break
            some += runs
            seconds = portion_seconds(tuple(runs), self.costs)
            self.handed |= {run.run_id: seconds / len(runs) for run in runs}
            under_way += seconds
        return some

    def _note(self, task: Task, outcomes: list[Outcome]) -> None:
        """Take down which runs are no longer under way."""
        if not task.comparators:
            for outcome in outcomes:
                self.handed.pop(outcome.id, None)

    def _estimate(self) -> None:
        """Tell what a run of each kind is expected to take."""
        for kind, run in self.first.items():
            self.progress.kinds[kind].cost = seconds_of(run, self.costs)

    def _say_stage(self) -> None:
        labels = dict.fromkeys(runs[0].label for runs in self.waiting.values())
        self.progress.stage = f"compiling {', '.join(labels)}" if labels else "playing"
        if not labels:
            self.progress.settle()
            if self.progress.playing_since is None:
                self.progress.playing_since = time.perf_counter()
        self.tell(self.progress)


def _record_lost(store: Store, missing: list[Run]) -> None:
    """Record as failed what was played and is not in the folder: whoever took it away, nobody shall count it as done."""
    finished, failed = finished_runs(store.folder), store.failed()
    for run in missing:
        if run.run_id not in finished and run.run_id not in failed:
            store_failure(store, run, False, "it was played, but its rows are not in the folder", "")


def _count(progress: Progress, task: Task, outcomes: list[Outcome]) -> None:
    runs = {task.id_of(run): run for run in task.runs}
    for outcome in outcomes:
        progress.failed += bool(outcome.failure)
        if task.comparators:
            progress.streams_done += 1
            progress.stream_seconds += outcome.seconds
        else:
            progress.runs_done += 1
            kind = progress.kinds[kind_of_run(runs[outcome.id])]
            kind.done, kind.seconds = kind.done + 1, kind.seconds + outcome.seconds
            progress.rounds_done += outcome.rounds


def warm_up(
    runs: Iterable[Run], progress: Progress | None, tell: Watcher, *, uncompiled: bool = False
) -> dict[str, float]:
    """Have every kernel the runs need compiled or read here, and return the seconds a run of each kind takes, and its stream.

    Players without kernels are played only if asked for: there is nothing to compile. Labs' and plug-ins' code is not run
    here.
    """
    costs: dict[str, float] = {}
    variants = {kind: alike[0] for kind, alike in runs_by_kind(runs).items()}
    for i, (key, run) in enumerate(variants.items(), start=1):
        costs[key] = unknown_seconds(run)
        if run.foreign:  # it compiles where it is played
            costs[key] = asked("seconds", run, costs[key]) if uncompiled else costs[key]
            continue
        if progress is not None:  # before it, not after: a minute may pass
            progress.stage = f"compiling {run.label} ({i} of {len(variants)})"
            tell(progress)
        try:
            seconds = warmed_seconds(run, uncompiled=uncompiled)
            if seconds is None:  # it was not played
                continue
            costs[key] = seconds
            if drawing_of(run) not in costs:
                costs[drawing_of(run)] = drawing_seconds(run)
        except (Exception, SystemExit):  # what fails here fails in its run, where it is recorded with its traceback
            continue
    return costs
