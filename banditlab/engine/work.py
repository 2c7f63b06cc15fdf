"""What a worker does: build from descriptions, play, write what came out. Any failure becomes a record, never a dead sweep."""

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
"""Finished runs wait at most about this long for others, to be stored in one file with them."""
LONGEST_ERROR = 2000
"""Characters of an exception's text that are kept."""
COMPILE_SECONDS = 600.0
"""How long the kernels of a run may take to be compiled here, or by another process that is waited for, beside its limit."""
STREAM_BYTES = 128 * 2**20
"""A stream up to this size is kept in memory for the players of a task; a longer one is drawn for each."""


@dataclass(frozen=True)
class Task:
    """A few runs, those of one stream together, or the comparators of their streams: what is sent to a worker."""

    folder: str
    labs: tuple[str, ...]
    runs: tuple[Run, ...]
    balls: tuple[float, ...] = ()
    comparators: bool = False
    foreign: bool = False
    """Whether a lab's or a plug-in's code takes part: it is run in a process of its own."""
    limit: float = 0.0
    """Seconds a run may take, 0 for any number."""

    def id_of(self, run: Run) -> str:
        """Return the id by which the outcome of a run, or of its stream's comparators, is known."""
        return run.stream_id if self.comparators else run.run_id


@dataclass(frozen=True)
class Outcome:
    """What comes back: the id, how long it took, and why it failed if it did."""

    id: str
    rounds: int
    seconds: float
    failure: str = ""


class Log:
    """Who is told what a task comes to."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def is_interrupt(self) -> bool:
        """Return whether a KeyboardInterrupt is the user's, not one that a plug-in raised."""
        return True

    def ended(self, outcomes: list[Outcome]) -> None:
        """Take note of runs that ended, stored or recorded as failed."""
        self.outcomes += outcomes


def execute(task: Task, log: Log | None = None) -> list[Outcome]:
    """Do a task in this process with one thread, write its files, and say how it went, to the log as well."""
    from banditlab.numerics.threads import one_thread

    log = Log() if log is None else log
    with one_thread():
        open_labs(task.labs)
        store = Store(task.folder)
        if task.comparators:
            for run in task.runs:
                log.ended([_compare(store, run, task.balls, log)])
            return log.outcomes
        shelf = _Shelf(store, log)
        try:
            _play_all(shelf, task)
        finally:  # an interrupt loses no finished run
            shelf.store_all()
    return log.outcomes


def open_labs(labs: Sequence[str]) -> None:
    """Open lab folders, each once in a process."""
    from banditlab.registry import registry

    for lab in labs:
        registry().open_lab(lab)


def tried(call: Callable[[], T], log: Log) -> tuple[T | None, BaseException | None]:
    """Return (what a plug-in's code returned, None) or (None, what it raised), in the process and folder that were before.

    Whatever it raises is caught, but for the user's interrupt and a results folder without room. A child process that it made
    and that comes back ends here: what is stored is this process's.
    """
    process, here = os.getpid(), _working_folder()
    try:
        return call(), None
    except NoRoomError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and log.is_interrupt():
            raise
        return None, error
    finally:
        if os.getpid() != process:
            os._exit(1)
        if here is not None and _working_folder() != here:
            with contextlib.suppress(OSError):
                os.chdir(here)


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


class _Shelf:
    """Finished runs on their way to the store.

    A file costs as much as some ten thousand rounds, so short runs share one: what was played in the last STORE_SECONDS
    is what a crash may lose.
    """

    def __init__(self, store: Store, log: Log | None = None) -> None:
        self.store, self.log = store, log or Log()
        self._waiting: list[tuple[Run, Finished, float]] = []
        self._since = time.perf_counter()

    def add(self, run: Run, rows: Rows, seconds: float) -> None:
        """Take a finished run over; what has waited long enough goes to the store, and to the log."""
        if not self._waiting:
            self._since = time.perf_counter() - seconds
        self._waiting.append((run, Finished(run.run_id, rows, run.description | {"facts": facts()}), seconds))
        if time.perf_counter() - self._since >= STORE_SECONDS:
            self.store_all()

    def fail(self, run: Run, error: BaseException, seconds: float) -> None:
        """Record a run that failed."""
        self.log.ended([_failed(self.store, run, False, error, seconds)])

    def store_all(self) -> list[Outcome]:
        """Store what waits, log it and return its outcomes; runs that cannot be stored even alone have failed."""
        outcomes: list[Outcome] = []
        try:
            if self._waiting:
                self.store.write_runs([finished for _, finished, _ in self._waiting])
                outcomes = [Outcome(run.run_id, run.rounds, seconds) for run, _, seconds in self._waiting]
        except NoRoomError:
            raise
        except Exception:  # one run's odd rows are no reason to lose the others'
            outcomes = [self._store_one(*each) for each in self._waiting]
        self._waiting = []  # not before they are stored: an interrupt comes at any time
        self.log.ended(outcomes)
        return outcomes

    def _store_one(self, run: Run, finished: Finished, seconds: float) -> Outcome:
        try:
            self.store.write_runs([finished])
        except NoRoomError:
            raise
        except Exception as error:
            return _failed(self.store, run, False, error, seconds)
        return Outcome(run.run_id, run.rounds, seconds)


def prepare(task: Task) -> None:
    """Have the kernels of a task's runs compiled and in this process, so that they count for no run's limit."""
    from banditlab.numerics.threads import one_thread

    with one_thread():
        open_labs(task.labs)
        for run in [] if task.comparators else task.runs:
            tried(partial(_load_kernels, run, None), Log())  # what fails here fails in its run, where it is recorded


def _play_all(shelf: _Shelf, task: Task) -> None:
    streams: dict[str, tuple[Any, Blocks | None]] = {}
    for run in task.runs:
        met: list[_Recorder] = []  # what an adaptive environment showed, for the run's own comparators
        begin = time.perf_counter()
        played, error = tried(partial(_play_one, run, streams, met), shelf.log)
        if played is None:  # a plug-in may raise anything: it is listed, the other runs go on
            shelf.fail(run, error or RuntimeError("no rows"), time.perf_counter() - begin)
        else:
            shelf.add(run, *played)
        if met and task.balls:
            _guarded(shelf.store, run, partial(met[0].compare, shelf.store, run, task.balls), shelf.log)


def _row_bytes(env: Any) -> int:
    """Return what a context takes in a block: what the environment says, else what a dense one does."""
    base = env.unwrapped
    return int(getattr(base, "row_bytes", 8 * base.problem.n_features))


def _compare(store: Store, run: Run, balls: Sequence[float], log: Log) -> Outcome:
    compare = _compare_adaptive if run.adaptive else compare_stream
    return _guarded(store, run, partial(compare, store, run, balls), log)


def _guarded(store: Store, run: Run, compare: Callable[[], None], log: Log) -> Outcome:
    """Compute a stream's comparators and say how it went."""
    begin = time.perf_counter()
    _, error = tried(compare, log)
    seconds = time.perf_counter() - begin
    return Outcome(run.stream_id, run.rounds, seconds) if error is None else _failed(store, run, True, error, seconds)


def said(error: BaseException) -> str:
    """Return "Type: text" of an exception, whatever its text does when it is asked for."""
    try:
        text = str(error)
    except BaseException as another:
        text = f"(its text cannot be had: {type(another).__name__})"
    return f"{type(error).__name__}: {text[:LONGEST_ERROR]}"


def _failed(store: Store, run: Run, comparator: bool, error: BaseException, seconds: float) -> Outcome:
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # it is made of what the exception says of itself
        trace = "the exception gives no traceback"
    return store_failure(store, run, comparator, said(error), trace[-20 * LONGEST_ERROR :], seconds)


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


def _play_one(run: Run, streams: dict[str, tuple[Any, Blocks | None]], met: list[_Recorder]) -> tuple[Rows, float]:
    """Play a run on its stream, which is drawn once for the runs of it that follow one another; return rows and seconds."""
    begin = time.perf_counter()
    if run.stream_id not in streams:
        streams.clear()
        streams[run.stream_id] = _open_stream(run)
    env, blocks = streams[run.stream_id]
    compiling = _load_kernels(run, env)
    player = run.build_player(env)
    if run.adaptive:
        env = _Recorder(env)
    played = play(env, player, seed=run.environment_seed(), checkpoints=run.checkpoints, blocks=blocks)
    if run.adaptive:
        met.append(env)
    return run_rows(run, player, played), time.perf_counter() - begin - compiling


def _compare_adaptive(store: Store, run: Run, balls: Sequence[float]) -> None:
    """Play a finished run of an adaptive environment again for its stream, and compute what its comparators lack."""
    env = _Recorder(run.build_environment())
    play(env, run.build_player(env), seed=run.environment_seed())
    env.compare(store, run, balls)


_loaded: set[str] = set()
"""Kinds of players whose kernels this process has."""


def _load_kernels(run: Run, env: Any) -> float:
    """Play two rounds of a kind of player once in a process, on `env` or one of its own; return the seconds it took.

    Compiling kernels, or reading them, is no part of a run's time.
    """
    key, begin = f"{run.label}|{run.adaptive}", time.perf_counter()
    if key not in _loaded:
        env = run.build_environment() if env is None else env
        with one_compiler(key):  # others on this machine that need the same wait and read it
            play(env, run.build_player(env), seed=run.environment_seed(), rounds=min(2, run.rounds))
        _loaded.add(key)
    return time.perf_counter() - begin


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
        if getattr(self.unwrapped, "labelled", True):
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
    """Return the processor's name as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
