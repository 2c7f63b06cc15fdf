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

from banditlab.engine.comparing import compare_run, compare_stream
from banditlab.engine.plan import Run
from banditlab.engine.runner import BLOCK, Blocks, Played, play, play_together
from banditlab.players.label_agent import LabelAgent
from banditlab.results.schema import COUNTED, Finished, Rows
from banditlab.results.store import Store

REFERENCE = "reference"
"""The stored kind of a label agent: neither "bit" nor a forecaster's "label", so that it is ranked with neither."""
STORE_SECONDS = 1.0
"""Finished runs wait at most about this long for others, to be stored in one file with them."""
STREAM_BYTES = 128 * 2**20
"""A stream up to this size is kept in memory for the players of a task; through a longer one they go together."""


@dataclass(frozen=True)
class Task:
    """A few runs, those of one stream together, or the comparators of their streams: what is sent to a worker."""

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
            return [_compare(store, run, task.balls) for run in task.runs]
        shelf = _Shelf(store)
        try:
            outcomes = list((_play_long if task.together else _play_all)(shelf, task))
        finally:  # an interrupt loses no finished run
            left = shelf.store_all()
        return outcomes + left


class _Shelf:
    """Finished runs on their way to the store.

    A file costs as much as some ten thousand rounds, so short runs share one: what was played in the last STORE_SECONDS
    is what a crash may lose.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._waiting: list[tuple[Run, Finished, float]] = []
        self._since = time.perf_counter()

    def add(self, run: Run, player: Any, played: Played, seconds: float) -> list[Outcome]:
        """Take a finished run over and return the outcomes of those that went to the store by it."""
        if not self._waiting:
            self._since = time.perf_counter() - seconds
        rows = run_rows(run, player, played)
        self._waiting.append((run, Finished(run.run_id, rows, run.description | {"facts": facts()}), seconds))
        return self.store_all() if time.perf_counter() - self._since >= STORE_SECONDS else []

    def store_all(self) -> list[Outcome]:
        """Store what waits and return its outcomes; runs that cannot be stored even alone have failed."""
        outcomes: list[Outcome] = []
        try:
            if self._waiting:
                self.store.write_runs([finished for _, finished, _ in self._waiting])
                outcomes = [Outcome(run.run_id, run.rounds, seconds) for run, _, seconds in self._waiting]
        except Exception:  # one run's odd rows are no reason to lose the others'
            outcomes = [self._store_one(*each) for each in self._waiting]
        self._waiting = []  # not before they are stored: an interrupt comes at any time
        return outcomes

    def _store_one(self, run: Run, finished: Finished, seconds: float) -> Outcome:
        try:
            self.store.write_runs([finished])
        except Exception as error:
            return _failed(self.store, run, False, error)
        return Outcome(run.run_id, run.rounds, seconds)


def _play_all(shelf: _Shelf, task: Task) -> Iterator[Outcome]:
    streams: dict[str, tuple[Any, Blocks | None]] = {}
    for run in task.runs:
        met: list[_Recorder] = []  # what an adaptive environment showed, for the run's own comparators
        begin = time.perf_counter()
        try:
            player, played = _play_one(run, streams, met)
            yield from shelf.add(run, player, played, time.perf_counter() - begin)
        except (Exception, SystemExit) as error:  # a plug-in may raise anything: it is listed, the other runs go on
            yield _failed(shelf.store, run, False, error)
        if met and task.balls:
            _guarded(shelf.store, run, lambda run=run, met=met: met[0].compare(shelf.store, run, task.balls))  # type: ignore[misc]


def is_long(run: Run) -> bool:
    """Return whether the run's stream is oblivious and too long to be kept; False where it cannot be built."""
    if run.adaptive:
        return False
    try:
        return bool(run.rounds * _row_bytes(run.build_environment()) > STREAM_BYTES)
    except (Exception, SystemExit):  # it fails in its run, where it is recorded
        return False


def _row_bytes(env: Any) -> int:
    """Return what a context takes in a block: what the environment says, else what a dense one does."""
    base = env.unwrapped
    return int(getattr(base, "row_bytes", 8 * base.problem.n_features))


def _play_long(shelf: _Shelf, task: Task) -> Iterator[Outcome]:
    """Play runs of one long stream side by side, so that it is drawn once; players without kernels play alone."""
    env = task.runs[0].build_environment()
    ready: list[tuple[Run, Any]] = []
    for run in task.runs:
        begin = time.perf_counter()
        try:
            _load_kernels(run, env)
            player = run.build_player(env)
            if player.plays_blocks:
                ready.append((run, player))
            else:
                yield from shelf.add(run, *_play_one(run, {}, []), time.perf_counter() - begin)
        except (Exception, SystemExit) as error:
            yield _failed(shelf.store, run, False, error)
    begin = time.perf_counter()
    try:
        seed, stops = task.runs[0].environment_seed(), task.runs[0].checkpoints
        played: list[Any] = play_together(env, [player for _, player in ready], seed=seed, checkpoints=stops)
    except (Exception, SystemExit) as error:  # the environment's own
        played = [error] * len(ready)
    share = (time.perf_counter() - begin) / max(1, len(ready))
    for (run, player), left in zip(ready, played):
        try:
            if isinstance(left, BaseException):
                raise left
            yield from shelf.add(run, player, left, share)
        except (Exception, SystemExit) as error:
            yield _failed(shelf.store, run, False, error)


def _compare(store: Store, run: Run, balls: Sequence[float]) -> Outcome:
    compare = _compare_adaptive if run.adaptive else compare_stream
    return _guarded(store, run, lambda: compare(store, run, balls))


def _guarded(store: Store, run: Run, compare: Callable[[], None]) -> Outcome:
    """Compute a stream's comparators and say how it went."""
    begin = time.perf_counter()
    try:
        compare()
    except (Exception, SystemExit) as error:
        return _failed(store, run, True, error)
    return Outcome(run.stream_id, run.rounds, time.perf_counter() - begin)


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


def _play_one(run: Run, streams: dict[str, tuple[Any, Blocks | None]], met: list[_Recorder]) -> tuple[Any, Played]:
    """Play a run on its stream, which is drawn once for the runs of it that follow one another; return its player too."""
    if run.stream_id not in streams:
        streams.clear()
        streams[run.stream_id] = _open_stream(run)
    env, blocks = streams[run.stream_id]
    _load_kernels(run, env)
    player = run.build_player(env)
    if run.adaptive:
        env = _Recorder(env)
    played = play(env, player, seed=run.environment_seed(), checkpoints=run.checkpoints, blocks=blocks)
    if run.adaptive:
        met.append(env)
    return player, played


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
    if run.adaptive or run.rounds * _row_bytes(env) > STREAM_BYTES:
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
        "verified": played.verified,
    }
    each = {
        "round": played.rounds,
        **{name: getattr(played, name) for name in ("mistakes", "expected_mistakes", "log_loss", "explored")},
        **{name: getattr(played, name) for name in ("bound", "certificate", "seconds")},
        **{name: getattr(played, name) for name in COUNTED},
        "row_losses": [None] * (n - 1) + [played.row_losses],
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
        for line in cpuinfo.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
