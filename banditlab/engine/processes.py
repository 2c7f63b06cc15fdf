"""Worker processes, each with one task at a time: start, call, interrupt, end.

A worker is a loky executor (part of joblib) with one process, so the task in which it died or hung is known.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from banditlab.children import SAFE_PATH, begin, import_path, safe_start
from banditlab.errors import BanditlabError, UsageError

ASK_SECONDS = 300.0  # time limit for building a player or an environment, or running a few rounds
START_SECONDS = 120.0  # time limit for the start of a process
IDLE_SECONDS = 300  # how long an idle process waits for the next sweep or call
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment() -> dict[str, str]:
    """Return a worker's additional environment variables: one thread unless the user set more, and `PYTHONSAFEPATH`."""
    return {name: os.environ.get(name, "1") for name in THREADS} | {SAFE_PATH: "1"}


class LostError(Exception):
    """A worker returned no result: its process ended, was killed, or raised an error that is not the package's."""


class Worker:
    """A process that does one task at a time."""

    future: Future[Any]
    """The result of the last call."""

    def __init__(self, labs: Sequence[str], key: str = "") -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        start = {"initializer": _begin, "initargs": (import_path(), os.getpid())}
        with safe_start():
            self.executor = ProcessPoolExecutor(1, timeout=IDLE_SECONDS, env=environment(), **start)
        self.task: Any = None
        self.preparing = False
        self.key = key
        self.call(START_SECONDS, _ready, tuple(labs))

    def call(self, seconds: float, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in the process, with a limit in seconds; loky starts a process if there is none."""
        self.until = time.monotonic() + seconds
        with safe_start(), _may_have_children():
            self.future = self.executor.submit(function, *arguments)

    def interrupt(self) -> None:
        """Interrupt the process, which then stores finished runs and ends."""
        for process in (self.executor._processes or {}).values():
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGINT if os.name == "posix" else signal.SIGTERM)

    def end(self) -> None:
        """Kill the process if it still exists."""
        self.executor.shutdown(wait=False, kill_workers=True)


@contextlib.contextmanager
def _may_have_children() -> Iterator[None]:
    """Allow a daemonic process, such as a Dask worker, to start child processes, which end with it."""
    config: Any = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    before = config.get("daemon")
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = before


_idle: list[Worker] = []
"""Workers that wait for the next sweep or call."""


def acquire(labs: Sequence[str], *, foreign: bool) -> Worker:
    """Return an idle or new worker with these labs, the current environment variables and the current working folder."""
    import joblib  # noqa: F401  (it sets an environment variable, which belongs to the key)

    from banditlab.registry import KINDS, registry

    sources = sorted(entry.source for kind in KINDS for entry in registry().entries(kind) if entry.source)
    here = ""
    with contextlib.suppress(OSError):  # the folder was removed
        here = os.getcwd()
    key = f"{foreign} {(os.getpid(), tuple(labs), sources, sys.path, here, sorted(os.environ.items()))!r}"
    for worker in list(_idle):
        try:
            _idle.remove(worker)
        except ValueError:  # another thread has it
            continue
        if worker.key == key:
            with contextlib.suppress(RuntimeError):  # its process has ended
                worker.call(START_SECONDS, _ready, tuple(labs))
                return worker
        elif worker.key.partition(" ")[0] != str(foreign):
            _idle.append(worker)
            continue
        worker.end()
    return Worker(labs, key)


def make_idle(worker: Worker) -> None:
    """Add a worker to the idle ones, for the next sweep or call."""
    worker.task = None
    _idle.append(worker)


def is_death(error: BaseException | None) -> bool:
    from concurrent.futures.process import BrokenProcessPool

    return isinstance(error, BrokenProcessPool)


def how_it_ended(error: BaseException | None) -> str:
    """Return how a process ended (a signal's name or an exit code), from loky's message."""
    found = re.search(r"\{(\w+)\((-?\d+)\)", str(error))
    if found is None:
        return "no exit code"
    name, code = found.groups()
    return name if code.startswith("-") else f"exit code {code}"


# ---------------------------------------------------------------------------------------------------------- in a worker

interrupts: list[int] = []
"""The number of interrupts by the user, in a worker; a plug-in's KeyboardInterrupt does not count."""


def _begin(path: list[str], parent: int) -> None:
    """Set up a new process: what plug-ins print goes to stderr, and standard input is empty."""
    begin(path, parent)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, _interrupted)


def _ready(labs: tuple[str, ...]) -> None:
    """Import the modules of the tasks, and open lab folders, so a run's time does not include this."""
    from banditlab.engine.work import open_labs

    open_labs(labs)


def _interrupted(*_: Any) -> None:
    interrupts.append(1)
    if len(interrupts) == 1:  # a second interrupt must not stop the storing
        raise KeyboardInterrupt


def ask(question: str, argument: Any, seconds: float = ASK_SECONDS) -> Any:
    """Call a function of `questions` in a worker and return its result, so plug-ins do not run in this process.

    Raises
    ------
    LostError
        The process ended, took longer than `seconds`, or raised an error that is not the package's.
    UsageError
        The function raised an error of the package.
    """
    from banditlab.registry import registry

    worker = acquire(registry().labs(), foreign=True)
    try:
        worker.future.result(START_SECONDS)
        worker.call(seconds, _answer, question, argument)
        kind, answer = json.loads(worker.future.result(seconds))
    except TimeoutError:
        worker.end()
        raise LostError(f"no response within {seconds:g} s") from None
    except BaseException as error:
        worker.end()
        if not is_death(error):
            raise
        raise LostError(f"its process ended ({how_it_ended(error)})") from None
    make_idle(worker)
    if kind == "refused":
        raise UsageError(answer)
    if kind == "broken":
        raise LostError(answer)
    return answer


def _answer(question: str, argument: Any) -> str:
    from banditlab.engine.questions import KNOWN
    from banditlab.engine.work import error_text

    process = os.getpid()
    try:
        return json.dumps(("answer", KNOWN[question](argument)))
    except BanditlabError as error:
        return json.dumps(("refused", str(error)))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and interrupts:
            raise
        return json.dumps(("broken", error_text(error)))
    finally:
        if os.getpid() != process:  # a child process that a plug-in forked returns here
            os._exit(1)
