"""The work of a worker: build environments and players from descriptions, execute runs, and store results.

A failure is recorded and does not end the sweep.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from banditlab.distributions import VERSION
from banditlab.engine.comparing import compare_run, compare_stream
from banditlab.engine.compiling import one_compiler
from banditlab.engine.plan import Run
from banditlab.engine.runner import BLOCK, Blocks, Played, play
from banditlab.results.files import NoRoomError
from banditlab.results.schema import COMPARATOR, COUNTED, Finished, Rows
from banditlab.results.store import Store

T = TypeVar("T")
STORE_SECONDS = 1.0
"""Finished runs wait about this long at most, and are then stored together in one file."""
LONGEST_ERROR = 2000
"""The largest number of characters of an exception's text that are stored."""
COMPILE_SECONDS = 600.0
"""Time limit for compiling a run's kernels, or waiting for a process that compiles them, in addition to the run's own
limit.
"""
STREAM_BYTES = 128 * 2**20
"""A stream of up to this size stays in memory for the players of a task; a larger one is drawn again for each."""


@dataclass(frozen=True)
class Task:
    """Work for one worker: a few runs (runs on the same stream stay together), or the comparators of their streams."""

    folder: str
    labs: tuple[str, ...]
    runs: tuple[Run, ...]
    balls: tuple[float, ...] = ()
    comparators: bool = False
    foreign: bool = False
    """Whether the runs use code of a lab or a plug-in, which needs a separate process."""
    limit: float = 0.0
    """Longest time of a run in seconds, 0 for no limit."""

    def id_of(self, run: Run) -> str:
        """Return the run's id, or its stream's id if the task computes comparators."""
        return run.stream_id if self.comparators else run.run_id


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: its id, its running time in seconds, and the reason if it failed."""

    id: str
    rounds: int
    seconds: float
    failure: str = ""


def execute(task: Task, by_user: Callable[[], bool] = lambda: True) -> list[Outcome]:
    """Run a task in this process with one thread, write its files, and return its outcomes.

    `by_user` returns whether a KeyboardInterrupt comes from the user and not from a plug-in.
    """
    from banditlab.numerics.threads import one_thread

    with one_thread():
        open_labs(task.labs)
        store = Store(task.folder)
        if task.comparators:
            return [_compare(store, run, task.balls, by_user) for run in task.runs]
        buffer = _Buffer(store)
        try:
            _play_all(buffer, task, by_user)
        finally:  # an interrupt loses no finished run
            buffer.store_all()
    return buffer.outcomes


def open_labs(labs: Sequence[str]) -> None:
    """Open lab folders, each of them once per process."""
    from banditlab.registry import registry

    for lab in labs:
        registry().open_lab(lab)


def tried(call: Callable[[], T], by_user: Callable[[], bool]) -> tuple[T | None, BaseException | None]:
    """Call code that may be a plug-in's; return (result, None) or (None, exception), and restore the working folder.

    All exceptions are caught, except an interrupt by the user and the error that the disk of the results folder is
    full. If the code forks, the child process ends in this function, so only this process stores results.
    """
    process, here = os.getpid(), _working_folder()
    try:
        return call(), None
    except NoRoomError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and by_user():
            raise
        return None, error
    finally:
        if os.getpid() != process:
            os._exit(1)
        if here is not None:
            with contextlib.suppress(OSError):
                os.chdir(here)


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


class _Buffer:
    """Finished runs that are not stored yet.

    Writing a file takes as long as ten thousand rounds, so short runs share a file. A crash may lose the runs of the
    last `STORE_SECONDS`.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.outcomes: list[Outcome] = []
        """The outcomes of runs that are stored or recorded as failed."""
        self._waiting: list[tuple[Run, Finished, float]] = []
        self._since = time.perf_counter()

    def add(self, run: Run, rows: Rows, seconds: float) -> None:
        """Add a finished run; store all waiting runs if the first has waited for `STORE_SECONDS`."""
        if not self._waiting:
            self._since = time.perf_counter() - seconds
        self._waiting.append((run, Finished(run.run_id, rows, run.description | {"facts": facts()}), seconds))
        if time.perf_counter() - self._since >= STORE_SECONDS:
            self.store_all()

    def fail(self, run: Run, error: BaseException, seconds: float) -> None:
        """Record a run that failed."""
        self.outcomes.append(_failed(self.store, run, False, error, seconds))

    def store_all(self) -> None:
        """Store the waiting runs together, or else one by one, and add their outcomes.

        A run that cannot be stored counts as failed.
        """
        outcomes: list[Outcome] = []
        try:
            if self._waiting:
                self.store.write_runs([finished for _, finished, _ in self._waiting])
                outcomes = [Outcome(run.run_id, run.rounds, seconds) for run, _, seconds in self._waiting]
        except NoRoomError:
            raise
        except Exception:  # the invalid rows of a run must not affect the others
            outcomes = [self._store_one(*each) for each in self._waiting]
        self._waiting = []  # only after storing, because an interrupt may occur at any time
        self.outcomes += outcomes

    def _store_one(self, run: Run, finished: Finished, seconds: float) -> Outcome:
        try:
            self.store.write_runs([finished])
        except NoRoomError:
            raise
        except Exception as error:
            return _failed(self.store, run, False, error, seconds)
        return Outcome(run.run_id, run.rounds, seconds)


def prepare(task: Task) -> None:
    """Compile or load the kernels of a task's runs in this process, outside the runs' time limit."""
    from banditlab.numerics.threads import one_thread

    with one_thread():
        open_labs(task.labs)
        for run in [] if task.comparators else task.runs:
            tried(partial(_load_kernels, run, None), lambda: True)  # its run will fail and is then recorded


def _play_all(buffer: _Buffer, task: Task, by_user: Callable[[], bool]) -> None:
    streams: dict[str, tuple[Any, Blocks | None]] = {}
    for run in task.runs:
        recorded: list[_Recorder] = []  # the stream of an adaptive environment, for the run's own comparators
        begin = time.perf_counter()
        played, error = tried(partial(_play_one, run, streams, recorded), by_user)
        if played is None:  # any exception of a plug-in is recorded, and the other runs continue
            buffer.fail(run, error or RuntimeError("no rows"), time.perf_counter() - begin)
        else:
            buffer.add(run, *played)
        if recorded and task.balls:
            compare = partial(recorded[0].compare, buffer.store, run, task.balls)
            _guarded(buffer.store, run, compare, by_user)


def _compare(store: Store, run: Run, balls: Sequence[float], by_user: Callable[[], bool]) -> Outcome:
    compare = _compare_adaptive if run.adaptive else compare_stream
    return _guarded(store, run, partial(compare, store, run, balls), by_user)


def _guarded(store: Store, run: Run, compare: Callable[[], None], by_user: Callable[[], bool]) -> Outcome:
    """Compute a stream's comparators and return the outcome."""
    begin = time.perf_counter()
    _, error = tried(compare, by_user)
    seconds = time.perf_counter() - begin
    return Outcome(run.stream_id, run.rounds, seconds) if error is None else _failed(store, run, True, error, seconds)


def error_text(error: BaseException) -> str:
    """Return "Type: text" for an exception, even if its `__str__` raises."""
    try:
        text = str(error)
    except BaseException as another:
        text = f"(its text is not available: {type(another).__name__})"
    return f"{type(error).__name__}: {text[:LONGEST_ERROR]}"


def _failed(store: Store, run: Run, comparator: bool, error: BaseException, seconds: float) -> Outcome:
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # a plug-in's exception class may raise here
        trace = "the exception has no traceback"
    return store_failure(store, run, comparator, error_text(error), trace[-20 * LONGEST_ERROR :], seconds)


def store_failure(store: Store, run: Run, comparator: bool, error: str, trace: str, seconds: float = 0.0) -> Outcome:
    """Record why a run, or its stream's comparators, failed."""
    id_ = run.stream_id if comparator else run.run_id
    record = {
        "run_id": id_,
        "environment": run.environment_label,
        "player": COMPARATOR if comparator else run.label,
        "repetition": run.repetition,
        "settings": {} if comparator else {name: str(value) for name, value in run.written.items()},
        "error": error,
        "traceback": trace,
        "facts": facts(),
    }
    store.write_failure(id_, record)
    return Outcome(id_, run.rounds, seconds, error)


def _play_one(run: Run, streams: dict[str, tuple[Any, Blocks | None]], recorded: list[_Recorder]) -> tuple[Rows, float]:
    """Execute a run on its stream; return its rows and its running time in seconds.

    The stream is drawn only once for successive runs on it.
    """
    begin = time.perf_counter()
    if run.stream_id not in streams:
        streams.clear()
        streams[run.stream_id] = _open_stream(run)
    env, blocks = streams[run.stream_id]
    compiling = _load_kernels(run, env)
    player = run.build_player(env)
    if run.adaptive:
        env = _Recorder(env)
    seed, stops = run.environment_seed(), run.checkpoints
    played = play(env, player, seed=seed, checkpoints=stops, blocks=blocks, feedback=run.feedback)
    if run.adaptive:
        recorded.append(env)
    return run_rows(run, player, played), time.perf_counter() - begin - compiling


def _compare_adaptive(store: Store, run: Run, balls: Sequence[float]) -> None:
    """Repeat a finished run of an adaptive environment to obtain its stream, and compute its missing comparators."""
    env = _Recorder(run.build_environment())
    play(env, run.build_player(env), seed=run.environment_seed(), feedback=run.feedback)
    env.compare(store, run, balls)


_loaded: set[str] = set()
"""Kinds of players whose kernels are loaded in this process."""


def _load_kernels(run: Run, env: Any) -> float:
    """Load a player's kernels, once per process, by two rounds on `env` or a new environment; return the seconds taken.

    The compilation or loading of kernels is not part of a run's time.
    """
    key, begin = f"{run.label}|{run.adaptive}|{bool(run.feedback)}", time.perf_counter()
    if key not in _loaded:
        env = run.build_environment() if env is None else env
        with one_compiler(key):  # other processes on this machine wait, then load them
            rounds, seed = min(2, run.rounds), run.environment_seed()
            play(env, run.build_player(env), seed=seed, rounds=rounds, feedback=run.feedback)
        _loaded.add(key)
    return time.perf_counter() - begin


def _open_stream(run: Run) -> tuple[Any, Blocks | None]:
    """Return the environment, and its stream if it is oblivious and has at most STREAM_BYTES."""
    env = run.build_environment()
    if run.adaptive or run.rounds * env.unwrapped.row_bytes > STREAM_BYTES:
        return env, None
    env.reset(seed=run.environment_seed())
    return env, list(env.unwrapped.blocks(run.rounds, BLOCK))


class _Recorder:
    """An adaptive environment that records its stream, for the run's own comparator."""

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
        if self.unwrapped.labelled:
            self.contexts.append(np.array(answer[0]))
            self.labels.append(self.unwrapped.label())
        return answer

    def stream(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        n = len(self.labels)
        return np.array(self.contexts[:n]), np.array(self.labels, dtype=np.int64)

    def compare(self, store: Store, run: Run, balls: Sequence[float]) -> None:
        """Compute and store the missing comparators of the recorded run."""
        compare_run(store, run, self.unwrapped.problem, self.stream(), balls)


def run_rows(run: Run, player: Any, played: Played) -> Rows:
    """Return the run's rows as columns, one row per checkpoint."""
    n = len(played.rounds)
    same = {
        "run_id": run.run_id,
        "stream_id": run.stream_id,
        "kind": played.kind,
        "environment": run.environment_label,
        "player": run.player["id"],
        "label": run.label,
        "repetition": run.repetition,
        "expected_kind": getattr(player, "expected_kind", "unconditional"),
        "bound_unit": player.bound_unit,
        "no_bound": played.no_bound,
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
    feedback = {f"feedback.{name}": str(value) for name, value in run.feedback.items()}
    change = {f"change.{name}": str(value) for name, value in run.environment.get("change", {}).items()}
    repeated = {name: [value] * n for name, value in (same | params | written | feedback | change).items()}
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
    """Return the versions, threads and processor, which are stored with each run."""
    packages = {"banditlab": VERSION}
    for name in ("numpy", "scipy", "numba", "gymnasium"):
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
    """Return the processor's name as the system reports it."""
    with contextlib.suppress(OSError):  # only Linux has the file
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
