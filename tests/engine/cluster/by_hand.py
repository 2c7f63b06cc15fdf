"""A scheduler, a clock, futures and a connection that a test moves by hand."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from banditlab.engine.executors import freight, remote
from banditlab.engine.executors.cluster import Cluster, _Flight
from banditlab.engine.work import Outcome, Task, facts


class Clock:
    """A clock that a test moves; it gives up on what does not end."""

    def __init__(self) -> None:
        self.now, self.asked = 100.0, 0

    def monotonic(self) -> float:
        self.asked += 1
        assert self.asked < 20_000, "it does not end"
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Inbox:
    """Where futures arrive that are done; waiting takes as long as it says, and then the next step is made."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.there, self.steps = clock, deque[Any](), deque[Callable[[], Any]]()

    def put(self, future: Any) -> None:
        self.there.append(future)

    def get(self, timeout: float) -> Any:
        if not self.there:
            self.clock.now += timeout
            if self.steps:
                self.steps.popleft()()
            raise queue.Empty
        return self.there.popleft()

    def get_nowait(self) -> Any:
        if not self.there:
            raise queue.Empty
        return self.there.popleft()


class Future:
    def __init__(self, key: str, **options: Any) -> None:
        self.key, self.options, self.status, self.answer = key, options, "pending", None
        self.callbacks: list[Any] = []
        self.released = False

    def add_done_callback(self, function: Any) -> None:
        self.callbacks.append(function)

    def release(self) -> None:
        self.released = True

    def done(self) -> bool:
        return self.status != "pending"

    def result(self, timeout: float) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def exception(self) -> Any:
        return self.answer

    def come(self, answer: Any, status: str = "finished") -> None:
        self.answer, self.status = answer, status
        told, self.callbacks = self.callbacks, []
        for each in told:
            each(self)


class Wire:
    """A connection to a scheduler that answers what a test has put there."""

    name = "tcp://here"

    def __init__(self, clock: Clock) -> None:
        self.clock, self.slowness, self.seconds = clock, 0.0, 0.0
        self.workers: dict[str, dict[str, Any]] = {}
        self.busy: dict[str, Any] | None = {}
        self.silent = False
        self.says: dict[str, Any] = {}  # instead of "as here", by worker
        self.held: list[Callable[[], None]] | None = None  # greetings under way, where they take long
        self.ran: list[tuple[str, list[str]]] = []
        self.futures: list[Future] = []
        self.client = SimpleNamespace(status="running", submit=self.submit)
        self.closed = False

    def submit(self, function: Any, parcel: Any, **options: Any) -> Future:
        assert function is remote.played
        self.futures.append(Future(options.pop("key"), parcel=parcel, **options))
        return self.futures[-1]

    def restored(self) -> Any:
        return self.client

    def ask(self, question: str) -> Any:
        self.clock.now += self.slowness
        self.ran.append((question, []))
        if question == "identity":
            return None if self.silent else {"workers": dict(self.workers)}
        return self.busy

    def run(self, function: Any, *arguments: Any, workers: list[str], seconds: float) -> dict[str, Any]:
        self.ran.append((function.__name__, sorted(workers)))
        self.seconds = seconds
        same = {"package": freight.package_digest(), "facts": facts()} if function is remote.hello else None
        return {each: self.says.get(each, same) for each in workers}

    def thread(self, target: Any, args: Any, daemon: bool) -> Any:
        def start() -> None:
            if self.held is None:
                target(*args)
            else:
                self.held.append(lambda: target(*args))

        return SimpleNamespace(start=start)

    def dashboard(self) -> str:
        return ""

    def close(self) -> None:
        self.closed = True

    def done(self, what: str) -> list[list[str]]:
        """Return on which workers a function was run, call by call."""
        return [workers for name, workers in self.ran if name == what]


class FakeClient:
    def __init__(self, **options: Any) -> None:
        self.options, self.status, self.ended = options, "running", 0
        self.scheduler = SimpleNamespace(address="tcp://scheduler", identity="identity")
        self.dashboard_link = "http://page"
        self.answers: dict[str, Any] = {}
        self.asked: list[Any] = []

    def sync(self, function: Any, *arguments: Any, callback_timeout: float, **options: Any) -> Any:
        key = tuple(options.get("workers", [function]))
        self.asked.append((key, callback_timeout))
        if key not in self.answers:
            raise TimeoutError
        return self.answers[key]

    _run = "run"

    def close(self, timeout: float) -> None:
        self.ended += 1


def look(made: Cluster, clock: Clock, seconds: float = 2.0) -> None:
    clock.now += seconds
    made._look()


def failed(task: Task, **more: Any) -> dict[str, Any]:
    """Return a worker's reply that all runs of a task have failed."""
    outcomes = [(task.id_of(run), run.rounds, 0.0, "it failed") for run in task.runs]
    return {"worker": "a", "outcomes": outcomes, "files": {}, "refused": ""} | more


def told(made: Cluster, future: Any) -> list[Outcome]:
    return [outcome for outcomes, _ in made._received(future) for outcome in outcomes]


def flying(made: Cluster, task: Task, **options: Any) -> Future:
    """Return the future of a task under way."""
    future = Future(f"k{len(made.flying)}")
    made.submit(task)
    made.queue.clear()
    made.flying[future.key] = _Flight(task, future, **options)
    return future
