"""Worker processes: one is started, sent messages, heard, ended. Those with nothing to do wait for the next sweep.

A process is kept as long as it would find what it found when it was started: the same labs, environment variables and
working folder. All of them end with this process, however it ends (see `serving`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from banditlab.children import python
from banditlab.errors import UsageError

ASK_SECONDS = 300.0  # how long a question may take: a player or an environment is built, or plays a few rounds
START_SECONDS = 120.0  # how long a worker may take to begin, beside that
TICK = 0.2  # seconds between two looks at the clock
LONGEST = 2**26  # bytes of a message; what says that it is longer is none
GOODBYE = 5.0  # seconds a process has for ending
PIPE = 4096  # bytes that a pipe takes whoever reads it
START = "from banditlab.engine.serving import serve\nserve(int(sys.argv[1]))"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

Mail = queue.SimpleQueue[tuple["Worker | None", Any]]
"""What workers said, each word with whose it is; one of nobody is its reader's own."""


class LostError(Exception):
    """A worker has no answer: it ended, was ended, or met an error that is not the package's."""


class Worker:
    """One worker process, and what it was given."""

    _writer: threading.Thread | None = None  # who sends a long message

    def __init__(self, mail: Mail) -> None:
        environment = dict.fromkeys(THREADS, "1") | os.environ
        command = python(START, str(os.getpid()))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.mail = mail
        self.fresh = True
        self.rest(None)
        threading.Thread(target=self._listen, daemon=True).start()

    def rest(self, task: Any) -> None:
        """Note what the worker has to do from now on, None for nothing."""
        self.task, self.left = task, {} if task is None else {task.id_of(run): run for run in task.runs}
        self.running: list[str] = []
        self.since = time.monotonic()
        self.late = self.stuck = False
        self.ticks: int | None = None
        """Of the processor that it had used when it was last asked and there were more, which was `stirred`."""
        self.stirred = self.since

    def is_idle_for(self, seconds: float) -> bool:
        """Return whether the process has used no processor for so long, as far as the system says, while it was asked."""
        ticks = ticks_of(self.process.pid)
        if ticks is None or ticks != self.ticks:
            self.ticks, self.stirred = ticks, time.monotonic()
        return time.monotonic() - self.stirred > seconds

    def send(self, name: str, argument: Any) -> None:
        """Send a message; one that has ended is noticed by its last word, and one that does not read holds nobody up."""
        data = pickle.dumps((name, argument))
        if len(data) < PIPE:
            self._write(data)
        else:
            self._writer = threading.Thread(target=self._write, args=(data,), daemon=True)
            self._writer.start()

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, or was ended meanwhile
            self.process.stdin.write(struct.pack("!Q", len(data)) + data)  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def _listen(self) -> None:
        stream = self.process.stdout
        try:
            while True:
                size = stream.read(8)  # type: ignore[union-attr]
                if len(size) < 8:
                    break
                (n,) = struct.unpack("!Q", size)
                word = json.loads(stream.read(n)) if n <= LONGEST else None  # type: ignore[union-attr]
                if not isinstance(word, dict):
                    raise ValueError("no message")
                self.mail.put((self, word))
        except (OSError, ValueError, OverflowError, MemoryError):  # a plug-in wrote into the pipe, or it was closed
            self.process.kill()
        self.mail.put((self, None))
        stream.close()  # type: ignore[union-attr]

    def end(self) -> None:
        """Kill the process, if it is still there, and close its pipes.

        A child that a plug-in made may hold them open for ever. Who reads or writes one holds its lock, and closing it would
        wait: then it is left to him.
        """
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits for a dead disk is not even killed
            self.process.wait(GOODBYE)
        if self._writer is not None:
            self._writer.join(TICK)
        if self._writer is None or not self._writer.is_alive():
            with contextlib.suppress(OSError):
                self.process.stdin.close()  # type: ignore[union-attr]

    def why(self) -> str:
        """Return how the process ended: a signal's name or an exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GOODBYE)
        code = self.process.poll()
        if code is None or code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"


def ticks_of(process: int) -> int | None:
    """Return how much of the processor a process has used, in the system's ticks; None where it does not say."""
    try:
        _, _, text = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")  # after its name
        user, system = text.split()[11:13]
        return int(user) + int(system)
    except (OSError, ValueError):
        return None


# -------------------------------------------------------------------------------------------------- workers that wait

Key = tuple[bool, str]
_lock = threading.Lock()  # a cluster's worker has a thread for each task
_waiting: dict[Key, list[Worker]] = {}
"""Workers that have nothing to do, by whether a lab's or plug-in's code was run in them and by what they would find: labs as
they are now, environment variables, working folder."""


def circumstances(labs: Sequence[str], *, foreign: bool) -> Key:
    """Return what a worker must have in common with another to stand in for it."""
    from banditlab.registry import KINDS, registry

    sources = sorted(entry.source for kind in KINDS for entry in registry().entries(kind) if entry.source)
    here = ""
    with contextlib.suppress(OSError):
        here = os.getcwd()
    return foreign, repr((os.getpid(), tuple(labs), sources, sys.path, here, sorted(os.environ.items())))


def engaged(key: Key, mail: Mail, *, fresh: bool = False) -> Worker:
    """Return a worker: one that waits, or a new one."""
    while not fresh:
        with _lock:
            found = _waiting.get(key)
            worker = found.pop() if found else None
        if worker is None:
            break
        if worker.process.poll() is None:
            worker.mail = mail
            return worker
        worker.end()
    return Worker(mail)


def dismissed(key: Key, worker: Worker) -> None:
    """Let a worker wait for the next task; those that were engaged under other circumstances end."""
    worker.rest(None)
    with _lock:
        others = [each for each in _waiting if each[0] is key[0] and each != key]
        leaving = [each for other in others for each in _waiting.pop(other)]
        _waiting.setdefault(key, []).append(worker)
    for each in leaving:
        each.end()


@atexit.register
def _end_all(process: int = os.getpid()) -> None:
    """End the workers that wait: those of this process, not of one that forked it."""
    if os.getpid() == process:
        for worker in [each for waiting in _waiting.values() for each in waiting]:
            worker.end()


def ask(question: str, argument: Any, seconds: float = ASK_SECONDS) -> Any:
    """Return a worker's answer to a question of `serving`: plug-ins are built and tried there, not here.

    Raises
    ------
    LostError
        The worker ended, or took longer than so many seconds.
    UsageError
        The package's own error that the question raised; any other is a LostError, too.
    """
    from banditlab.registry import registry

    labs = tuple(registry().labs())
    mail: Mail = queue.SimpleQueue()
    key = circumstances(labs, foreign=True)
    worker = engaged(key, mail)
    worker.send("ask", (labs, question, argument))
    until = time.monotonic() + START_SECONDS
    try:
        while True:
            try:
                _, answer = mail.get(timeout=TICK)
            except queue.Empty:
                if time.monotonic() > until:
                    raise LostError(f"no answer within {seconds:g} s") from None
                if worker.process.poll() is not None:
                    raise LostError(f"its process ended ({worker.why()})") from None
                continue
            if answer is None:
                raise LostError(f"its process ended ({worker.why()})")
            if "began" in answer:
                until = time.monotonic() + seconds
            if not answer.keys().isdisjoint(("refused", "broken", "answer")):
                break
    except BaseException:
        worker.end()
        raise
    worker.fresh = False  # a lab's code was run in it
    dismissed(key, worker)
    if "refused" in answer:
        raise UsageError(answer["refused"])
    if "broken" in answer:
        raise LostError(answer["broken"])
    return answer["answer"]
