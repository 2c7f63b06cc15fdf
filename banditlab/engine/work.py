"""What a worker does: build from descriptions, play, write what came out. Any failure becomes a record, never a dead sweep."""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents import LabelAgent
from banditlab.engine.comparing import compare_run, compare_stream
from banditlab.engine.plan import Run
from banditlab.engine.play import BLOCK, Blocks, Played, is_compiled, play, play_together
from banditlab.engine.store import Rows, Store

REFERENCE = "reference"
"""The stored kind of a label agent: neither "bit" nor a forecaster's "label", so that it is ranked with neither."""
STREAM_BYTES = 128 * 2**20
"""A stream up to this size is kept in memory for the players of a task; through a longer one they go together."""


@dataclass(frozen=True)
class Task:
    """A few runs of one stream, or one stream's comparators: what is sent to a worker."""

    folder: str
    labs: tuple[str, ...]
    runs: tuple[Run, ...]
    balls: tuple[float, ...] = ()
    comparators: bool = False
    together: bool = False
    """Whether the runs go through their stream side by side, because it is too long to be kept."""


@dataclass(frozen=True)
class Outcome:
    """What comes back: the id, how long it took, and why it failed if it did."""

    id: str
    rounds: int
    seconds: float
    failure: str = ""


def execute(task: Task) -> list[Outcome]:
    """Do a task in this process with one thread, write its files, and say how it went."""
    import numba
    from threadpoolctl import threadpool_limits

    from banditlab.registry import registry

    numba.set_num_threads(1)
    with threadpool_limits(limits=1):
        for lab in task.labs:
            registry().open_lab(lab)
        store = Store(task.folder)
        if task.comparators:
            run = task.runs[0]
            compare = _compare_adaptive if run.adaptive else compare_stream
            return [_guarded(store, run, True, lambda: compare(store, run, task.balls))]
        return list(_play_all(store, task))


def _play_all(store: Store, task: Task) -> Iterator[Outcome]:
    if task.together:
        yield from _play_long(store, task)
        return
    streams: dict[str, tuple[Any, Blocks | None]] = {}
    for run in task.runs:
        met: list[_Recorder] = []  # what an adaptive environment showed, for the run's own comparators
        yield _guarded(store, run, False, lambda run=run, met=met: _play_one(store, run, streams, met))  # type: ignore[misc]
        if met and task.balls:
            _guarded(store, run, True, lambda run=run, met=met: met[0].compare(store, run, task.balls))  # type: ignore[misc]


def is_long(run: Run) -> bool:
    """Return whether the run's stream is oblivious and too long to be kept; False where it cannot be built."""
    if run.adaptive:
        return False
    try:
        return bool(run.rounds * run.build_environment().unwrapped.problem.n_features * 8 > STREAM_BYTES)
    except (Exception, SystemExit):  # it fails in its run, where it is recorded
        return False


def _play_long(store: Store, task: Task) -> Iterator[Outcome]:
    """Play runs of one long stream side by side, so that it is drawn once; players without kernels play alone."""
    env = task.runs[0].build_environment()
    ready: list[tuple[Run, Any]] = []
    for run in task.runs:
        try:
            _load_kernels(run, env)
            player = run.build_player(env)
        except (Exception, SystemExit) as error:
            yield _failed(store, run, False, error)
            continue
        if is_compiled(player):
            ready.append((run, player))
        else:
            yield _guarded(store, run, False, lambda run=run: _play_one(store, run, {}, []))  # type: ignore[misc]
    begin = time.perf_counter()
    try:
        seed, stops = task.runs[0].environment_seed(), task.runs[0].checkpoints
        played: list[Any] = play_together(env, [player for _, player in ready], seed=seed, checkpoints=stops)
    except (Exception, SystemExit) as error:  # the environment's own
        played = [error] * len(ready)
    share = (time.perf_counter() - begin) / max(1, len(ready))
    for (run, player), left in zip(ready, played):
        if isinstance(left, BaseException):
            yield _failed(store, run, False, left)
        else:
            yield _guarded(store, run, False, lambda run=run, p=player, left=left: _write(store, run, p, left), share)  # type: ignore[misc]


def _guarded(store: Store, run: Run, comparator: bool, work: Callable[[], None], seconds: float = 0.0) -> Outcome:
    begin = time.perf_counter()
    try:
        work()
    except (Exception, SystemExit) as error:  # a plug-in may raise anything: it is listed, the other runs go on
        return _failed(store, run, comparator, error)
    seconds += time.perf_counter() - begin
    return Outcome(run.stream_id if comparator else run.run_id, run.rounds, seconds)


def _failed(store: Store, run: Run, comparator: bool, error: BaseException) -> Outcome:
    trace = "".join(traceback.format_exception(error))
    return store_failure(store, run, comparator, f"{type(error).__name__}: {error}", trace)


def store_failure(store: Store, run: Run, comparator: bool, error: str, trace: str) -> Outcome:
    """Record why a run, or its stream's comparators, failed."""
    id_ = run.stream_id if comparator else run.run_id
    record = {
        "run_id": id_,
        "environment": run.environment_label,
        "player": "comparator" if comparator else run.label,
        "repetition": run.repetition,
        "settings": {} if comparator else {name: str(value) for name, value in run.written.items()},
        "error": error,
        "traceback": trace,
        "facts": facts(),
    }
    store.write_failure(id_, record)
    return Outcome(id_, run.rounds, 0.0, error)


def _play_one(store: Store, run: Run, streams: dict[str, tuple[Any, Blocks | None]], met: list[_Recorder]) -> None:
    if run.stream_id not in streams:
        streams.clear()
        streams[run.stream_id] = _open_stream(run)
    env, blocks = streams[run.stream_id]
    _load_kernels(run, env)
    player = run.build_player(env)
    if run.adaptive:
        env = _Recorder(env)
    played = play(env, player, seed=run.environment_seed(), checkpoints=run.checkpoints, blocks=blocks)
    _write(store, run, player, played)
    if run.adaptive:
        met.append(env)


def _write(store: Store, run: Run, player: Any, played: Played) -> None:
    store.write_run(run.run_id, run_rows(run, player, played), run.description | {"facts": facts()})


def _compare_adaptive(store: Store, run: Run, balls: Sequence[float]) -> None:
    """Play a finished run of an adaptive environment again for its stream, and compute what its comparators lack."""
    env = _Recorder(run.build_environment())
    play(env, run.build_player(env), seed=run.environment_seed())
    env.compare(store, run, balls)


_loaded: set[str] = set()


def _load_kernels(run: Run, env: Any) -> None:
    """Play two rounds of a kind of player once in a process: reading compiled code back is no part of a run's time."""
    key = f"{run.label}|{run.adaptive}"
    if key not in _loaded:
        play(env, run.build_player(env), seed=run.environment_seed(), rounds=min(2, run.rounds))
        _loaded.add(key)


def _open_stream(run: Run) -> tuple[Any, Blocks | None]:
    """Return the environment, and its stream where it is oblivious and small enough to keep."""
    env = run.build_environment()
    problem = env.unwrapped.problem
    if run.adaptive or run.rounds * problem.n_features * 8 > STREAM_BYTES:
        return env, None
    env.reset(seed=run.environment_seed())
    return env, list(env.unwrapped.blocks(run.rounds, BLOCK))


class _Recorder:
    """An adaptive environment that remembers what it showed, for the run's own comparator."""

    def __init__(self, env: Any) -> None:
        self.env, self.unwrapped = env, env.unwrapped
        self.contexts: list[Any] = []
        self.labels: list[int] = []

    def reset(self, **options: Any) -> Any:
        context, info = self.env.reset(**options)
        self.contexts, self.labels = [np.array(context)], []
        return context, info

    def step(self, action: int) -> Any:
        answer = self.env.step(action)
        self.contexts.append(np.array(answer[0]))
        self.labels.append(self.unwrapped.label())
        return answer

    def stream(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        n = len(self.labels)
        return np.array(self.contexts[:n]), np.array(self.labels, dtype=np.int64)

    def compare(self, store: Store, run: Run, balls: Sequence[float]) -> None:
        """Compute and store what the comparators of the run that met this stream lack."""
        compare_run(store, run, self.unwrapped.problem, self.stream(), balls)


def run_rows(run: Run, player: Any, played: Played) -> Rows:
    """Return the run's rows as columns, one row per checkpoint."""
    n = len(played.rounds)
    same = {
        "run_id": run.run_id,
        "stream_id": run.stream_id,
        "kind": REFERENCE if isinstance(player, LabelAgent) else player.feedback,
        "environment": run.environment_label,
        "player": run.player["id"],
        "label": run.label,
        "repetition": run.repetition,
        "expected_kind": getattr(player, "expected_kind", "unconditional"),
        "bound_unit": player.bound_unit,
    }
    each = {
        "round": played.rounds,
        **{name: getattr(played, name) for name in ("mistakes", "expected_mistakes", "log_loss", "explored")},
        **{name: getattr(played, name) for name in ("bound", "certificate", "seconds")},
    }
    each |= {f"diagnostic.{name}": values for name, values in played.diagnostics.items()}
    params = {f"param.{name}": _cell(value) for name, value in player.params().items()}
    written = {f"setting.{name}": str(value) for name, value in run.written.items()}
    repeated = {name: [value] * n for name, value in (same | params | written).items()}
    order = ["run_id", "stream_id", "kind", "environment", "player", "label", "repetition", "round", "mistakes"]
    columns = repeated | each
    return {name: columns[name] for name in order} | {k: v for k, v in columns.items() if k not in order}


def _cell(value: Any) -> float | str | None:
    """Return a resolved setting as one plain number or text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None if value is None else str(value)
    return float(value)


@cache
def facts() -> dict[str, Any]:
    """Return the versions, thread and processor facts that are stored beside each run."""
    packages = {}
    for name in ("banditlab", "numpy", "scipy", "numba", "gymnasium"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "python": platform.python_version(),
        "packages": packages,
        "threads": 1,
        "processor": processor(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }


def processor() -> str:
    """Return the processor's name as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
