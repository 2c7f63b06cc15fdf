"""The sweep: what is missing is played in parallel, stored as it comes, and gathered at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from banditlab.engine import crew, pool
from banditlab.engine.comparing import stored_pairs
from banditlab.engine.estimating import seconds_beside_rounds, seconds_of_comparators, seconds_of_rounds
from banditlab.engine.plan import Plan, Run, make_plan
from banditlab.engine.processes import LostError, ask
from banditlab.engine.runner import play
from banditlab.engine.spec import Spec
from banditlab.engine.spec_text import spec_to_toml
from banditlab.engine.work import Outcome, Task, execute, facts, is_long, store_failure
from banditlab.errors import UsageError
from banditlab.registry import registry
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store

TASK_SECONDS = 2.0  # about how long one task should take: long beside the 6 ms it costs to send, short beside a sweep
TOGETHER_SECONDS, TOGETHER = 40.0, 12  # the same, and the most runs, where the runs of a long stream go side by side
FOREIGN_SECONDS = 3600.0  # `run_timeout` of runs in which a lab's or a plug-in's code takes part
WARM_ROUNDS = 64
UNKNOWN_SECONDS_A_ROUND = 1e-4
FIXED_SECONDS = 1e-3  # what a run takes beside its rounds
COMPARATOR_SECONDS = 1.0  # a guess at a stream's comparators, for the time left
TASKS_A_WORKER = 16  # streams of short runs are put together into tasks as long as there are still so many

Watcher = Callable[["Progress"], None]


@dataclass
class Progress:
    """Where a sweep stands; handed to the watcher before every player that is compiled and after every task."""

    runs: int
    streams: int
    """Streams whose comparators are to be computed."""
    runs_done: int = 0
    streams_done: int = 0
    rounds_done: int = 0
    failed: int = 0
    stage: str = "compiling or loading kernels"
    jobs: int = 1
    run_cost: float = 0.0
    """Estimated core-seconds of all runs, and of those that are done."""
    run_cost_done: float = 0.0
    run_seconds: float = 0.0
    """Core-seconds that the runs and the comparators that are done took."""
    stream_seconds: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    playing_since: float | None = None
    """When the first task began; None while kernels are compiled."""

    @property
    def rounds_per_second(self) -> float:
        """Rounds a second since the first task began."""
        return 0.0 if self.playing_since is None else self.rounds_done / (time.perf_counter() - self.playing_since)

    @property
    def seconds(self) -> float:
        """Seconds since the sweep began."""
        return time.perf_counter() - self.began

    @property
    def seconds_ahead(self) -> float | None:
        """Estimated seconds to go, runs and comparators each by what those that are done took.

        None as long as next to nothing is done, and so throughout compiling, which no run's time says anything about.
        """
        if self.playing_since is None:
            return None
        run = self.run_seconds / self.run_cost_done if self.run_cost_done else 1.0
        stream = self.stream_seconds / self.streams_done if self.streams_done else COMPARATOR_SECONDS
        ahead = run * (self.run_cost - self.run_cost_done) + stream * (self.streams - self.streams_done)
        return None if self.run_seconds + self.stream_seconds < 0.05 * ahead else ahead / self.jobs


@dataclass
class Result:
    """What a sweep left: how many runs were there already, were played, and failed (with their records)."""

    folder: Path
    plan: Plan
    present: int
    played: int
    redone: list[str]
    failures: list[dict[str, Any]]
    seconds: float
    kept: Path | None = None
    """Where the report went that the folder held of another spec, None where it held none."""
    notices: list[str] = field(default_factory=list)
    """A line for each damaged file that was found: where it is kept, and what became of its content."""


@dataclass(frozen=True)
class Estimate:
    """Measured seconds of one run of a (environment, player) pair, from a short play after compiling."""

    environment: str
    label: str
    runs: int
    seconds_per_run: float


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

    def run(self, folder: str | Path, *, jobs: int = 1, watch: Watcher | None = None) -> Result:
        """Do what is missing of the sweep in a results folder.

        Parameters
        ----------
        jobs
            Number of worker processes; 1 plays in this one.
        watch
            Called with the progress after every task.

        Raises
        ------
        UsageError
            The folder cannot be written or has another store format.
        """
        begin = time.perf_counter()
        store = Store(folder)
        kept = store.write_plan(spec_to_toml(self.spec, facts()), self.plan.record())
        finished, redone = store.done()
        missing = [run for run in self.plan.runs if run.run_id not in finished]
        streams = self._streams_to_compare(store, {run.run_id for run in missing})
        progress = Progress(len(missing), len(streams))
        tell = watch or (lambda _: None)
        tell(progress)
        costs = warm_up(missing, progress, tell)
        tasks = self._tasks(str(store.folder), missing, streams, costs, jobs)
        progress.run_cost = sum(_seconds(run, costs) for run in missing)
        progress.jobs = max(1, min(jobs, len(tasks)))
        progress.stage, progress.playing_since = "playing", time.perf_counter()
        tell(progress)
        for outcomes, task in _work(tasks, max(1, min(jobs, len(tasks))), store):
            _count(progress, task, outcomes, costs)
            tell(progress)
        progress.stage = "storing"
        tell(progress)
        store.compact()
        if missing:
            _record_lost(store, missing)
        failures = store.failures(dict.fromkeys([run.run_id for run in self.plan.runs] + list(self.plan.streams())))
        done_now = len(missing) - sum(f["player"] != "comparator" for f in failures)
        seconds = time.perf_counter() - begin
        present = len(self.plan.runs) - len(missing)
        return Result(Path(folder), self.plan, present, done_now, redone, failures, seconds, kept, store.notices)

    def estimate(self) -> list[Estimate]:
        """Return measured costs: each (environment, player) plays a while once its kernels are compiled.

        Where a run ends sooner than a tenth of a second, that is all of it; what it takes beside its rounds is measured, too.
        """
        costs = warm_up(self.plan.runs, None, lambda _: None, uncompiled=True)
        groups: dict[tuple[str, str], list[float]] = {}
        beside: dict[str, float] = {}
        for variant, runs in _variants(self.plan.runs).items():
            seconds, place = costs[variant], runs[0].environment_label
            if not runs[0].foreign:
                with suppress(Exception, SystemExit):  # what fails here fails in its run, where it is recorded
                    seconds = seconds_of_rounds(runs[0])
                    if place not in beside:
                        beside[place] = seconds_beside_rounds(runs, seconds)
            of_pair = groups.setdefault(_pair(runs[0]), [])
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

    def _streams_to_compare(self, store: Store, missing: set[str]) -> list[Run]:
        """Return one run of each stream that lacks comparators; a run of an adaptive environment brings its own along."""
        wanted = {(r, b) for r in self.spec.checkpoint_rounds() for b in self.balls}
        if not wanted:
            return []
        streams = self.plan.streams().values()
        settled = [run for run in streams if not (run.adaptive and run.run_id in missing)]
        return [run for run in settled if not wanted <= stored_pairs(store, run.stream_id)]

    def _tasks(
        self, folder: str, missing: list[Run], streams: list[Run], costs: dict[str, float], jobs: int
    ) -> list[Task]:
        """Return tasks of about TASK_SECONDS, the costliest first so that the last ones are short.

        A stream's runs are in one task, perhaps with those of others, or in several of that stream alone. Runs of a
        stream too long to be kept go side by side, in tasks of up to TOGETHER_SECONDS.
        """
        tasks: list[Task] = []
        foreign = _foreign(missing + streams)
        limit = self.spec.run_timeout
        for apart in (False, True):
            labs = tuple(registry().labs()) if apart else ()  # the package's own runs need no lab
            own = Task(folder, labs, (), self.balls, foreign=apart, limit=limit or 0.0)
            if apart and limit is None:
                own = replace(own, limit=FOREIGN_SECONDS)
            some, of = ([run for run in runs if foreign[_pair(run)] is apart] for runs in (missing, streams))
            tasks += _tasks_of(own, some, of, costs, TASKS_A_WORKER * jobs)
        return sorted(tasks, key=lambda task: -_cost(task, costs))


def _tasks_of(own: Task, missing: list[Run], streams: list[Run], costs: dict[str, float], many: int) -> list[Task]:
    """Return the tasks of runs that are alike in what `own` says."""
    share = max(1, len(streams) // many)
    few = [tuple(streams[start : start + share]) for start in range(0, len(streams), share)]
    tasks = [replace(own, runs=runs, comparators=True) for runs in few]
    long = _long_streams(missing)
    ordered = sorted(missing, key=lambda run: (_place(run), -_seconds(run, costs)))
    portions: list[tuple[Run, ...]] = []
    for stream, runs in groupby(ordered, key=_place):
        if stream in long:
            tasks += [
                replace(own, runs=part, together=True) for part in _portions(runs, costs, TOGETHER_SECONDS, TOGETHER)
            ]
        else:
            portions += _portions(runs, costs, TASK_SECONDS, len(ordered))
    enough = min(TASK_SECONDS, sum(_seconds(run, costs) for run in missing) / many)
    return tasks + [replace(own, runs=runs) for runs in _packed(portions, costs, enough)]


def _variants(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs by variant: repetitions of one player on one environment."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(_variant(run), []).append(run)
    return found


def _pair(run: Run) -> tuple[str, str]:
    return run.environment_label, run.label


def _foreign(runs: list[Run]) -> dict[tuple[str, str], bool]:
    """Return, for every pair of an environment and a player, whether a lab's or a plug-in's code takes part."""
    found: dict[tuple[str, str], bool] = {}
    for run in runs:
        if _pair(run) not in found:
            found[_pair(run)] = run.foreign
    return found


def _place(run: Run) -> str:
    return "" if run.adaptive else run.stream_id


def _portions(runs: Iterable[Run], costs: dict[str, float], seconds: float, most: int) -> Iterator[tuple[Run, ...]]:
    """Cut runs into portions of at least so many seconds, or so many runs, the last one shorter."""
    batch: list[Run] = []
    cost = 0.0
    for run in runs:
        batch.append(run)
        cost += _seconds(run, costs)
        if cost >= seconds or len(batch) == most:
            yield tuple(batch)
            batch, cost = [], 0.0
    if batch:
        yield tuple(batch)


def _packed(portions: Iterable[tuple[Run, ...]], costs: dict[str, float], seconds: float) -> Iterator[tuple[Run, ...]]:
    """Put portions that follow one another together as long as they take at most so many seconds."""
    batch: list[Run] = []
    cost = 0.0
    for portion in portions:
        own = sum(_seconds(run, costs) for run in portion)
        if batch and cost + own > seconds:
            yield tuple(batch)
            batch, cost = [], 0.0
        batch += portion
        cost += own
    if batch:
        yield tuple(batch)


def _long_streams(runs: Iterable[Run]) -> set[str]:
    """Return the ids of the streams that are too long to be kept in memory."""
    found: dict[tuple[str, int], bool] = {}
    long = set()
    for run in runs:
        key = (run.environment_label, run.rounds)
        if key not in found:
            found[key] = _asked("is_long", run, False) if run.foreign else is_long(run)
        if found[key]:
            long.add(run.stream_id)
    return long


def _cost(task: Task, costs: dict[str, float]) -> float:
    return sum(COMPARATOR_SECONDS if task.comparators else _seconds(run, costs) for run in task.runs)


def _record_lost(store: Store, missing: list[Run]) -> None:
    """Record as failed what was played and is not in the folder: whoever took it away, nobody shall count it as done."""
    finished, failed = finished_runs(store.folder), store.failed()
    for run in missing:
        if run.run_id not in finished and run.run_id not in failed:
            store_failure(store, run, False, "it was played, but its rows are not in the folder", "")


def _count(progress: Progress, task: Task, outcomes: list[Outcome], costs: dict[str, float]) -> None:
    runs = {task.id_of(run): run for run in task.runs}
    for outcome in outcomes:
        progress.run_cost_done += 0.0 if task.comparators else _seconds(runs[outcome.id], costs)
        progress.failed += bool(outcome.failure)
        if task.comparators:
            progress.streams_done += 1
            progress.stream_seconds += outcome.seconds
        else:
            progress.runs_done += 1
            progress.run_seconds += outcome.seconds
            progress.rounds_done += outcome.rounds


# ------------------------------------------------------------------------------------------------------------ warming, costs


def _variant(run: Run) -> str:
    return f"{run.environment_label}|{run.label}|{run.rounds}"


def _seconds(run: Run, costs: dict[str, float]) -> float:
    return FIXED_SECONDS + costs.get(_variant(run), UNKNOWN_SECONDS_A_ROUND * run.rounds)


def warm_up(
    runs: Iterable[Run], progress: Progress | None, tell: Watcher, *, uncompiled: bool = False
) -> dict[str, float]:
    """Compile every kernel the runs need, here, before workers start, and return the seconds a run of each variant takes.

    Workers that compiled the same kernel at once would all wait for it. Players without kernels are played only if asked
    for: there is nothing to compile. Labs' and plug-ins' code is not run here.
    """
    costs: dict[str, float] = {}
    variants: dict[str, Run] = {}
    for run in runs:
        variants.setdefault(_variant(run), run)
    for i, (key, run) in enumerate(variants.items(), start=1):
        costs[key] = UNKNOWN_SECONDS_A_ROUND * run.rounds
        if run.foreign:  # it compiles where it is played
            costs[key] = _asked("seconds", run, costs[key]) if uncompiled else costs[key]
            continue
        try:
            env = run.build_environment()
            player = run.build_player(env)
            if not (uncompiled or player.plays_blocks):
                continue
            if progress is not None:  # before it, not after: a minute may pass
                progress.stage = f"compiling {run.label} ({i} of {len(variants)})"
                tell(progress)
            rounds = min(run.rounds, WARM_ROUNDS)
            play(env, player, seed=run.environment_seed(), rounds=min(rounds, 2))
            played = play(env, run.build_player(env), seed=run.environment_seed(), rounds=rounds)
            costs[key] = played.seconds[-1] / rounds * run.rounds
        except (Exception, SystemExit):  # what fails here fails in its run, where it is recorded with its traceback
            continue
    return costs


def _asked(question: str, run: Run, default: Any) -> Any:
    """Return what a worker answers of a run with foreign code; where it cannot, the run will fail and be recorded."""
    try:
        return ask(question, run)
    except (LostError, UsageError):
        return default


# ------------------------------------------------------------------------------------------------------------------- workers


def _work(tasks: list[Task], jobs: int, store: Store) -> Iterator[tuple[list[Outcome], Task]]:
    """Yield outcomes as they come, with their task.

    joblib's processes do the package's own runs, or this one does alone. Runs that have a limit, and those in which a lab's
    or a plug-in's code takes part, are always done by a crew: its workers can be ended one by one.
    """
    own, foreign = ([task for task in tasks if task.foreign is apart] for apart in (False, True))
    if any(task.limit for task in own):
        yield from crew.dispatch(own, jobs, store)
    elif jobs > 1 and len(own) > 1:
        yield from pool.dispatch(own, jobs, store)
    else:
        for task in own:
            yield execute(task), task
    if foreign:
        yield from crew.dispatch(foreign, jobs, store)
