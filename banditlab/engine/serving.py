"""What runs in a worker process: it does tasks, answers questions, and ends when its parent does."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import pickle
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from banditlab.engine.work import COMPILE_SECONDS, Log, Outcome, execute, open_labs, said
from banditlab.errors import BanditlabError, UsageError
from banditlab.results.files import NO_ROOM

IDLE_SECONDS = 300.0
"""How long a worker waits for its next task before it ends."""
DEATH_SIGNAL = 1  # Linux: PR_SET_PDEATHSIG


def serve(parent: int) -> None:
    """Do what comes from the parent, a message at a time, until its end of the pipe is closed or nothing comes."""
    end_with(parent)
    into, out = _pipes()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    interrupts: list[int] = []

    def interrupted(*_: Any) -> None:
        interrupts.append(1)
        if len(interrupts) == 1:  # a second one must not keep it from storing what is finished
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    threading.Thread(target=_listen, args=(into, inbox), daemon=True).start()
    log = _Told(out, interrupts)
    try:
        while True:
            name, argument = inbox.get(timeout=IDLE_SECONDS)
            if name == "task":
                execute(argument, log)
                log.send({"done": True})
            else:
                log.began([])
                log.send(_answer(*argument))
    except (queue.Empty, KeyboardInterrupt):
        pass
    except OSError as error:
        if error.errno in NO_ROOM:  # no run's fault
            log.send({"refused": [error.errno, error.strerror]})
    except UsageError as error:
        log.send({"refused": [0, str(error)]})
    finally:
        os._exit(0)  # a plug-in's threads and exit handlers hold nobody up


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take over the pipes; what a plug-in prints goes where errors go, what it reads is empty."""
    into, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return into, out


def end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends; where it cannot, `_listen` notices."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
        except (OSError, AttributeError):
            return
        if os.getppid() != parent:  # it ended before that
            os._exit(1)


def _listen(into: BinaryIO, inbox: queue.SimpleQueue[Any]) -> None:
    """Hand messages on; when the pipe is closed the parent is gone, or does not want this process any more."""
    try:
        while True:
            (size,) = struct.unpack("!Q", into.read(8))
            inbox.put(pickle.loads(into.read(size)))
    except BaseException:
        os._exit(1)


class _Told(Log):
    """What the parent is told while a task is done."""

    def __init__(self, out: BinaryIO, interrupts: list[int]) -> None:
        super().__init__()
        self.out, self.interrupts, self.process = out, interrupts, os.getpid()
        self.begun: list[str] = []

    def is_interrupt(self) -> bool:
        return bool(self.interrupts)

    def began(self, ids: list[str]) -> None:
        self.begun = ids
        self.send({"began": ids})

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        self.send({"began": self.begun, "spare": COMPILE_SECONDS})
        yield
        self.send({"began": self.begun})

    def ended(self, outcomes: list[Outcome]) -> None:
        if outcomes:
            self.send({"outcomes": [dataclasses.astuple(outcome) for outcome in outcomes]})

    def send(self, word: dict[str, Any]) -> None:
        """Send a message, from this process only: not from a child that a plug-in made."""
        if os.getpid() == self.process:
            data = json.dumps(word).encode()
            self.out.write(struct.pack("!Q", len(data)) + data)
            self.out.flush()


def _answer(labs: tuple[str, ...], question: str, argument: Any) -> dict[str, Any]:
    from banditlab.engine.questions import KNOWN

    known: dict[str, Callable[[Any], Any]] = KNOWN
    process = os.getpid()
    try:
        open_labs(labs)
        return {"answer": known[question](argument)}
    except BanditlabError as error:
        return {"refused": str(error)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"broken": said(error)}
    finally:
        if os.getpid() != process:  # a plug-in's child that came back
            os._exit(1)
