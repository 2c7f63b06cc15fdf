"""What a cluster's executor does at every turn, by a scheduler, a clock and futures that a test moves by hand."""

from __future__ import annotations

import logging
import pickle
import queue
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from banditlab.engine.executors import cluster as cluster_module
from banditlab.engine.executors import freight, link, local, remote
from banditlab.engine.executors.cluster import Cluster, _Flight, _is_silence, differences
from banditlab.engine.executors.link import Link, _address
from banditlab.engine.executors.local import Local
from banditlab.engine.work import Outcome, Task, facts
from banditlab.errors import ClusterError, UsageError
from banditlab.results.store import Store


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(cluster_module, "time", made)
    return made


@pytest.fixture
def wire(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire(clock)
    monkeypatch.setattr(cluster_module, "Link", lambda *_: made)
    monkeypatch.setattr(cluster_module, "threading", SimpleNamespace(Thread=made.thread))
    return made


@pytest.fixture
def started(wire: Wire, clock: Clock, tmp_path: Path) -> Callable[..., Cluster]:
    """Return a function that makes an executor, its workers by name with their threads."""

    def start(**threads: int) -> Cluster:
        wire.workers = {name: {"nthreads": n, "last_seen": 0} for name, n in threads.items()}
        made = Cluster("tcp://here", Store(tmp_path / "out"), 60.0)
        made.arrived = Inbox(clock)  # type: ignore[assignment]
        return made

    return start


@pytest.fixture
def tasks(small: Any, tmp_path: Path) -> list[Task]:
    """Return six tasks of a run each."""
    return [Task(str(tmp_path / "out"), (), (run,)) for run in small(norm_bounds=[]).plan.runs]


def look(made: Cluster, clock: Clock, seconds: float = 2.0) -> None:
    clock.now += seconds
    made._look()


def failed(task: Task, **more: Any) -> dict[str, Any]:
    """Return a worker's reply that all runs of a task have failed."""
    outcomes = [(task.id_of(run), run.rounds, 0.0, "it failed") for run in task.runs]
    return {"worker": "a", "outcomes": outcomes, "files": {}, "refused": ""} | more


# ------------------------------------------------------------------------------------------------------- who is there


def test_a_cluster_begins_with_nothing(started: Any) -> None:
    made = started(a=1)
    assert (made.state().workers, made.state().in_flight, made.state().deaths) == (1, 0, 0)
    assert (made.sent, made.deaths_since, made.most, made.jobs, made.remote) == (0, 0, 1, 1, True)
    assert _Flight(None, None) == _Flight(None, None, False, frozenset(), frozenset(), 0)  # type: ignore[arg-type]


def test_the_first_worker_is_waited_for_and_a_minute_long(started: Any, wire: Wire, clock: Clock) -> None:
    with pytest.raises(ClusterError, match=r"no worker to play on within 60 s \(no worker has come up\)"):
        started()
    assert 160.0 < clock.now < 162.0
    assert wire.closed
    wire.held = []
    with pytest.raises(AssertionError, match="it does not end"):  # they are asked what they are, which may take long
        started(a=1)
    assert len(wire.held) == 1


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (ImportError("no\n  numba"), r"cannot import this package \(ImportError: no numba\)"),
        ({"package": "x", "facts": facts()}, "has banditlab .* of other sources than here; it gets no tasks"),
        ({"package": "x", "facts": facts() | {"packages": {"banditlab": "0.0.1"}}}, r"has banditlab 0\.0\.1, here "),
    ],
)
def test_where_all_workers_are_refused_it_ends_at_once_and_says_why(
    said: Any, line: str, started: Any, wire: Wire, clock: Clock
) -> None:
    wire.says["a"] = said
    with pytest.raises(ClusterError, match=line):
        started(a=1)
    assert clock.now < 101.0
    assert started(a=1, b=2).jobs == 2  # b is as it should be


def test_workers_that_differ_are_told_of_once(started: Any, wire: Wire, clock: Clock) -> None:
    odd = {"package": freight.package_digest(), "facts": facts() | {"python": "3.0"}}
    wire.says |= {"a": odd, "b": odd}
    made = started(a=1, b=1)
    assert made.state().workers == 2
    assert len(made.notices) == 1
    assert made.notices[0].startswith("workers differ from here: python 3.0 (here 3.")


def test_who_has_been_asked_or_has_answered_is_not_asked_again(started: Any, wire: Wire, clock: Clock) -> None:
    wire.says["b"] = {"package": "x", "facts": facts()}
    wire.says["c"] = OSError("not reached")  # silence: it is asked again
    made = started(a=1, b=1, c=1)
    assert made._good() == ["a"]
    assert wire.done("hello") == [["a", "b", "c"]]
    wire.says["c"] = OSError(28, "No space left")
    look(made, clock)
    assert wire.done("hello")[1:] == [["c"]]
    assert made.refused["c"].startswith("a worker cannot import this package (OSError: ")
    wire.held = []
    wire.workers["d"] = {"nthreads": 3, "last_seen": 0}
    for _ in range(3):
        look(made, clock)
    assert len(wire.held) == 1
    assert (made.greeting, made.jobs) == ({"d"}, 1)
    wire.workers["e"] = {"nthreads": 1, "last_seen": 0}
    look(made, clock)
    del wire.workers["e"]
    for each in wire.held:  # d answers, and so does e, which is gone
        each()
    look(made, clock)
    assert (made.greeting, made.admitted, made.jobs) == (set(), {"a", "d"}, 4)


def test_who_is_gone_is_counted_and_forgotten(started: Any, wire: Wire, clock: Clock) -> None:
    made = started(a=1, b=2, c=3)
    assert (made.jobs, made.most) == (6, 3)
    for name in "ab":
        del wire.workers[name]
    look(made, clock)
    assert (made.state().workers, made.jobs, made.most, made.deaths, made.deaths_since) == (1, 3, 3, 2, 2)
    assert (made.admitted, set(made.heartbeats)) == ({"c"}, {"c"})
    wire.workers.clear()
    look(made, clock)
    assert (made.jobs, made.deaths, made.deaths_since) == (1, 3, 3)


def test_who_starts_again_at_the_same_address_is_another(started: Any, wire: Wire, clock: Clock) -> None:
    made = started(a=1, b=1)
    for name in "ab":
        wire.workers[name]["local_directory"] = f"/tmp/{name}"
    look(made, clock)
    assert made.deaths == 2  # nothing was known of their folders
    asked = len(wire.done("hello"))
    look(made, clock)
    assert (made.deaths, made.admitted) == (2, {"a", "b"})
    wire.workers["b"] = wire.workers["b"] | {"local_directory": "/tmp/another"}
    wire.says["b"] = {"package": "x", "facts": facts()}
    look(made, clock)
    assert (made.deaths, made.admitted, set(made.refused)) == (3, {"a"}, {"b"})
    assert wire.done("hello")[asked:] == [["b"]]


def test_the_cluster_is_looked_at_a_tenth_of_the_time(started: Any, wire: Wire, clock: Clock) -> None:
    made = started(a=1)
    assert made.pause == 1.0
    begin = len(wire.ran)
    clock.now += 0.9
    made._look()
    assert len(wire.ran) == begin
    wire.slowness = 0.3
    look(made, clock, 0.2)
    assert [name for name, _ in wire.ran[begin:]] == ["identity", "processing"]
    assert made.pause == pytest.approx(6.0)
    look(made, clock, 5.9)
    assert len(wire.ran) == begin + 2


@pytest.mark.parametrize("which", ["identity", "processing"])
def test_a_scheduler_may_be_silent_for_a_minute(which: str, started: Any, wire: Wire, clock: Clock) -> None:
    made = started(a=1)
    if which == "identity":
        wire.silent = True
    else:
        wire.busy = None
    del wire.workers["a"]
    look(made, clock, 59.0)
    assert made.deaths == 0  # nothing is known
    with pytest.raises(ClusterError, match="the scheduler has not answered for 60 s; finished runs are stored"):
        look(made, clock, 2.0)


def test_a_silent_scheduler_is_asked_again_at_once(started: Any, wire: Wire, clock: Clock) -> None:
    """What it did not answer says nothing of how long an answer takes."""
    made = started(a=1)
    wire.silent, wire.slowness = True, 10.0
    look(made, clock)
    assert made.pause == 1.0
    wire.silent = False
    look(made, clock)
    assert made.pause == 15.0  # a quarter of the patience
    wire.silent = True
    clock.now += 15.0
    begin = clock.now

    def looks() -> None:
        while True:
            look(made, clock, 0.5)

    with pytest.raises(ClusterError, match="the scheduler has not answered for 60 s"):
        looks()
    assert clock.now - begin < 80.0


def test_a_short_patience_is_one(started: Any, wire: Wire, clock: Clock, tasks: list[Task]) -> None:
    """Two looks lie further apart."""
    made = started(a=1)
    made.patience = 1.0
    made.submit(tasks[0])
    with pytest.raises(ClusterError, match="nothing has moved for 1 s"):
        look(made, clock, 1.5)


def test_between_two_slow_looks_nobody_is_frozen(started: Any, wire: Wire, clock: Clock) -> None:
    made = started(a=1, b=1)
    clock.now += 40.0
    assert made._good() == ["a", "b"]


def test_who_was_held_up_himself_gives_everybody_time(
    started: Any, wire: Wire, clock: Clock, tasks: list[Task]
) -> None:
    """By Ctrl-Z or by a disk: what was done meanwhile has arrived, and the connection is to be made again."""
    made = started(a=1)
    future = flying(made, tasks[0])
    future.come(failed(tasks[0]))
    clock.now += 1000.0
    made._look()  # nothing is being worked on, and nothing has moved
    wire.silent = True
    clock.now += 1000.0
    made._look()
    clock.now += 59.0
    made._look()
    with pytest.raises(ClusterError, match="the scheduler has not answered for 60 s"):
        look(made, clock)


def test_who_sends_no_heartbeat_for_half_a_minute_gets_no_tasks(
    started: Any, wire: Wire, clock: Clock, tasks: list[Task]
) -> None:
    made = started(a=1, b=1)
    for task in tasks[:3]:
        made.submit(task)
    made._send()
    assert [future.key.rpartition("-")[2] for future in wire.futures] == ["0", "1", "2"]
    keys = list(made.flying)
    wire.busy = {"a": [keys[0], "of another sweep"], "b": [keys[1]]}
    wire.workers["b"]["last_seen"] = 1
    look(made, clock, 29.0)
    assert made._good() == ["a", "b"]
    look(made, clock, 2.0)
    assert made._good() == ["b"]
    assert list(made.flying) == keys[1:]  # what it has goes to others; what others have does not
    assert wire.futures[0].released
    assert list(made.queue) == [tasks[0]]
    assert made.notices == ["a has not been heard of for 30 s; its tasks go to others"]
    wire.workers["a"]["last_seen"] = 1
    look(made, clock)
    assert made._good() == ["a", "b"]


def test_who_is_paused_and_plays_nothing_is_as_good_as_frozen(
    started: Any, wire: Wire, clock: Clock, tasks: list[Task]
) -> None:
    """Dask pauses a worker that is short of memory, and its tasks wait there, perhaps for ever: nothing moves."""
    made = started(a=1)
    made.submit(tasks[0])
    made._send()
    [key] = made.flying
    wire.busy = {"a": [key]}
    for second in range(1, 60):  # it still plays what it had begun
        wire.workers["a"] |= {"last_seen": second, "status": "paused", "metrics": {"task_counts": {"executing": 1}}}
        look(made, clock, 1.0)
    assert (made._good(), list(made.flying), made.notices) == (["a"], [key], [])

    def waits() -> None:
        for second in range(60, 300):
            wire.workers["a"] |= {"last_seen": second, "metrics": {"task_counts": {"ready": 1}}}
            look(made, clock, 1.0)

    begin = clock.now
    with pytest.raises(ClusterError, match="nothing has moved for 60 s"):
        waits()
    assert 80.0 < clock.now - begin < 100.0
    assert made.notices == ["a has begun nothing, for want of memory, for 30 s; its tasks go to others"]
    assert (made._good(), list(made.queue)) == ([], [tasks[0]])
    wire.workers["a"] |= {"last_seen": 300, "status": "running"}
    made.moved = clock.now
    look(made, clock, 1.0)
    assert made._good() == ["a"]


def test_what_only_workers_may_do_that_are_gone_is_taken_back(started: Any, tasks: list[Task]) -> None:
    made = started(a=1)
    for key, only in (("any", ()), ("there", ("a", "x")), ("gone", ("x", "y"))):
        made.flying[key] = _Flight(tasks[0], Future(key), only=frozenset(only))
    made._free_orphans()
    assert set(made.flying) == {"any", "there"}


# ---------------------------------------------------------------------------------------------------------- does it move


@pytest.mark.parametrize("left", ["queue", "suspects", "flying", "nothing"])
def test_whatever_is_left_must_move_within_a_minute(left: str, started: Any, clock: Clock, tasks: list[Task]) -> None:
    made = started(a=1, b=1)
    if left == "flying":
        made.flying["k"] = _Flight(tasks[0], Future("k"))
    elif left != "nothing":
        getattr(made, left).append(tasks[0])
    made.heartbeats.clear()  # nobody is frozen
    made.moved = clock.now
    clock.now += 59.0
    made._watch({})
    clock.now += 2.0
    if left == "nothing":
        made._watch({})
    else:
        with pytest.raises(ClusterError, match=r"nothing has moved for 60 s \(2 workers are there, 0 workers were"):
            made._watch({"a": ["of another sweep"]})
    made.flying["k"] = _Flight(tasks[0], None)
    made._watch({"b": ["k"]})  # it is being worked on
    assert made.moved == clock.now


def test_what_never_comes_is_sent_once_more(started: Any, clock: Clock, tasks: list[Task]) -> None:
    """The answer was lost with a connection, and nobody will ever say so."""
    made = started(a=1)
    made.heartbeats.clear()
    first = flying(made, tasks[0])
    made.moved = clock.now
    clock.now += 29.0
    made._watch({})
    assert list(made.flying) == [first.key]
    clock.now += 2.0
    made._watch({})
    assert (made.flying, list(made.queue), first.released) == ({}, [tasks[0]], True)
    made.queue.clear()
    second = Future("second")
    made.flying["second"] = _Flight(tasks[0], second)
    made._watch({})
    assert not second.released  # once
    made._watch({"a": ["second"]})
    clock.now += 31.0
    made._watch({})
    assert second.released  # since something moved


# --------------------------------------------------------------------------------------------------------------- sending


def test_a_connection_that_closes_while_a_task_is_packed_loses_no_task(
    started: Any, wire: Wire, tasks: list[Task]
) -> None:
    made = started(a=1)
    submit = wire.client.submit

    def closes(*_: Any, **__: Any) -> Any:
        wire.client.status = "closed"
        raise ValueError("Client is closed")

    wire.client.submit = closes
    made.submit(tasks[0])
    made._send()
    assert (made.flying, list(made.queue)) == ({}, [tasks[0]])
    made.queue.clear()
    made.suspects.append(tasks[0])
    wire.client.status = "running"
    made._send()
    assert (made.flying, list(made.suspects)) == ({}, [tasks[0]])
    wire.client.status, wire.client.submit = "running", submit
    made._send()
    assert ([flight.alone for flight in made.flying.values()], list(made.suspects)) == ([True], [])

    def refuses(*_: Any, **__: Any) -> Any:
        raise ValueError("too long")

    wire.client.submit = refuses
    made.submit(tasks[1])
    with pytest.raises(ValueError, match="too long"):
        made._send()


def test_two_tasks_a_thread_are_sent_and_nothing_where_nobody_is(started: Any, wire: Wire, tasks: list[Task]) -> None:
    made = started(a=2)
    made._send()  # nothing to send
    for task in tasks:
        made.submit(task)
    made.admitted.clear()
    made._send()
    made.admitted.add("a")
    wire.client.status = "closed"
    made._send()
    assert made.flying == {}
    wire.client.status = "running"
    made._send()
    assert (len(made.flying), list(made.queue)) == (4, tasks[4:])
    assert made.state().in_flight == 4
    options = [(future.options["pure"], future.options["workers"]) for future in wire.futures]
    assert options == [(False, None)] * 4
    assert {(flight.alone, flight.only, flight.there) for flight in made.flying.values()} == {
        (False, frozenset(), frozenset({"a"}))
    }


def test_where_some_are_refused_a_task_names_who_may_do_it(started: Any, wire: Wire, tasks: list[Task]) -> None:
    wire.says["b"] = {"package": "x", "facts": facts()}
    made = started(a=1, b=1)
    made.deaths = 7
    made.submit(tasks[0])
    made._send()
    assert wire.futures[0].options["workers"] == ["a"]
    [flight] = made.flying.values()
    assert (flight.only, flight.deaths) == (frozenset({"a"}), 7)


def test_a_suspect_is_sent_when_it_is_all_there_is(started: Any, wire: Wire, tasks: list[Task]) -> None:
    made = started(a=1)
    made.suspects.extend(tasks[:2])
    for task in tasks[2:5]:
        made.submit(task)
    made._send()
    assert [flight.alone for flight in made.flying.values()] == [False, False]
    made.queue.clear()
    made._send()
    assert len(made.suspects) == 2
    made.flying.clear()
    made._send()
    assert [flight.alone for flight in made.flying.values()] == [True]
    made._send()
    assert list(made.suspects) == tasks[1:2]


def test_a_parcel_says_what_it_needs_and_files_are_sent_once(
    started: Any, wire: Wire, small: Any, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n2,y\n3,x\n")
    (tmp_path / "lab" / "agents").mkdir(parents=True)
    (tmp_path / "lab" / "agents" / "odd.py").write_text("pass\n")
    environment = [{"id": "banditlab/Table-v0", "path": str(tmp_path / "t.csv"), "label": "kind"}]
    runs = small(environment=environment, agent=[{"id": "uniform"}], norm_bounds=[], rounds=5).plan.runs
    made = started(a=1)
    task = Task("out", (str(tmp_path / "lab"),), tuple(runs))
    parcel = made._parcel(task)
    table = freight.key_of("t.csv", (tmp_path / "t.csv").read_bytes())
    file = freight.key_of("odd.py", b"pass\n")
    assert parcel["needs"] == sorted([table, file])
    assert (parcel["paths"], parcel["labs"]) == ([{"path": table}] * len(runs), [[("agents/odd.py", file)]])
    assert (parcel["files"], parcel["package"], parcel["sweep"]) == ({}, freight.package_digest(), made.sweep)
    assert vars(pickle.loads(parcel["task"]).runs[0])["run_id"] == runs[0].run_id
    assert wire.done("receive") == [["a"]]
    assert made._parcel(task)["needs"] == parcel["needs"]
    assert wire.done("receive") == [["a"]]


def test_comparators_that_are_there_travel_with_who_adds_to_them(
    started: Any, tasks: list[Task], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(cluster_module, "read_comparator", lambda file: file.read_bytes() if file.exists() else None)
    made, [run] = started(a=1), tasks[0].runs
    rows, weights = made.store.comparator_files(run.stream_id)
    rows.parent.mkdir(parents=True, exist_ok=True)
    both = {f"comparators/{rows.name}": b"rows", f"comparators/{weights.name}": b"W"}
    adaptive = replace(tasks[0], runs=(replace(run, adaptive=True),))
    monkeypatch.setattr(type(run), "stream_id", run.stream_id)
    asked = [replace(tasks[0], comparators=True), adaptive, tasks[0], replace(tasks[0], comparators=True, warming=True)]
    rows.write_bytes(b"rows")
    assert made._comparators(asked[0]) == {}
    weights.write_bytes(b"W")
    assert [made._comparators(task) for task in asked] == [both, both, {}, {}]
    rows.unlink()
    assert made._comparators(asked[0]) == {}


@pytest.mark.parametrize(
    ("said", "silent", "refused"),
    [
        (None, False, False),
        (OSError("not reached"), True, False),
        (OSError(28, "No space left"), False, True),
        (ValueError("no"), False, True),
    ],
)
def test_who_takes_no_files_is_refused_but_not_for_silence(
    said: Any, silent: bool, refused: bool, started: Any, wire: Wire
) -> None:
    made = started(a=1)
    assert _is_silence(said) == silent
    wire.says["a"] = said
    made._provide(["a"], {})
    assert ("a" in made.refused, "a" in made.admitted) == (refused, not refused)


def test_a_large_file_has_the_time_it_takes(started: Any, wire: Wire) -> None:
    made = started(a=1, b=1)
    for size, workers, seconds in ((0, "a", 60.0), (2**26, "a", 76.0), (2**26, "ab", 92.0)):
        made._provide(list(workers), {"k1": ("f", bytes(size)), "k2": ("g", b"")})
        assert wire.seconds == seconds


# ------------------------------------------------------------------------------------------------------------- receiving


def told(made: Cluster, future: Any) -> list[Outcome]:
    return [outcome for outcomes, _ in made._received(future) for outcome in outcomes]


def flying(made: Cluster, task: Task, **options: Any) -> Future:
    """Return the future of a task under way."""
    future = Future(f"k{len(made.flying)}")
    made.submit(task)
    made.queue.clear()
    made.flying[future.key] = _Flight(task, future, **options)
    return future


def test_what_waits_is_taken_with_the_next_that_arrives(started: Any, clock: Clock) -> None:
    made = started(a=2)
    made.arrived.there.extend(range(10))
    assert list(made._arrivals(0.5)) == [0, 1, 2, 3, 4]
    made.arrived.there.clear()
    now = clock.now
    assert list(made._arrivals(0.5)) == []
    assert clock.now == now + 0.5


def test_a_future_that_came_to_nothing_is_waited_for_or_its_task_sent_again(started: Any, tasks: list[Task]) -> None:
    made = started(a=1)
    future = flying(made, tasks[0])
    future.status = "lost"
    assert told(made, future) == []
    assert len(future.callbacks) == 1
    future.answer, future.status = OSError("its worker is gone"), "finished"
    assert told(made, future) == []
    assert (len(future.callbacks), list(made.flying)) == (2, [future.key])
    future.status = "cancelled"
    assert told(made, future) == []
    assert (made.flying, list(made.queue)) == ({}, [tasks[0]])
    assert told(made, future) == []  # it has been dealt with
    assert list(made.queue) == [tasks[0]]


def test_what_was_done_is_told_and_the_rest_goes_back(started: Any, tasks: list[Task], monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster_module, "take", lambda store, files, ids: set(files) & ids)
    made = started(a=1)
    made.deaths_since = 3
    task = replace(tasks[0], runs=tuple(each.runs[0] for each in tasks))
    ids = [task.id_of(run) for run in task.runs]
    answer = {
        "worker": "a",
        "outcomes": [
            (ids[0], 300, 1.5, ""), (ids[1], 300, 0.0, "it failed"), (ids[2], 300, 1.0, "", 0.0), ("of nobody", 1, 1.0, ""),
        ],
        "files": {ids[0]: b"", ids[3]: b"", "of nobody": b""},
        "refused": "",
    }  # fmt: skip
    future = flying(made, task)
    future.answer, future.status = answer, "finished"
    assert told(made, future) == [
        Outcome(ids[0], 300, 1.5),
        Outcome(ids[1], 300, 0.0, "it failed"),
        Outcome(ids[3], 300, 0.0),  # stored in the last moment, before it could say so
    ]
    [left] = made.queue
    assert [left.id_of(run) for run in left.runs] == [ids[2], *ids[4:]]
    assert (made.deaths_since, made.tries) == (0, {})


def test_warming_and_comparators_leave_no_rows(started: Any, tasks: list[Task], monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster_module, "take", lambda store, files, ids: set(files))
    made = started(a=1)
    warming = replace(tasks[0], warming=True)
    id_ = warming.id_of(warming.runs[0])
    future = flying(made, warming)
    future.answer, future.status = failed(warming) | {"outcomes": [(id_, 0, 2.5, "")]}, "finished"
    assert told(made, future) == [Outcome(id_, 0, 2.5)]
    assert not made.queue
    stream = replace(tasks[0], comparators=True)
    future = flying(made, stream)
    future.answer, future.status = failed(stream) | {"outcomes": [], "files": {"a stream": b""}}, "finished"
    assert told(made, future) == []
    assert list(made.queue) == [stream]


def test_comparators_that_lacked_nothing_are_done(started: Any, tasks: list[Task]) -> None:
    """Another process was quicker, or they came before with others that were damaged: there is no file to send."""
    made, stream = started(a=1), replace(tasks[0], comparators=True)
    [id_] = [stream.id_of(run) for run in stream.runs]
    answer = failed(stream) | {"outcomes": [(id_, 300, 1.0, "", 0.0)]}
    future = flying(made, stream)
    future.answer, future.status = answer, "finished"
    assert told(made, future) == []  # there are none
    made.store.write_comparators(id_, {"stream_id": [id_], "round": [300], "norm_bound": [1.0]}, {"W": np.eye(2)})
    for _ in range(2):
        future = flying(made, stream)
        future.answer, future.status = answer, "finished"
        assert told(made, future) == [Outcome(id_, 300, 1.0)]
        assert not made.queue


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        ({"outcomes": []}, "finished", "a said nothing of it"),
        ({"outcomes": [], "refused": "No space left"}, "finished", "No space left"),
        (ValueError("no\n luck"), "error", "ValueError: no luck"),
    ],
)
def test_after_five_tries_a_run_has_failed(answer: Any, status: str, why: str, started: Any, tasks: list[Task]) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` brings it")
    made = started(a=1)
    task = tasks[0]
    for tries in range(1, 6):
        future = flying(made, task)
        future.answer = failed(task) | answer if isinstance(answer, dict) else answer
        future.status = status
        found = told(made, future)
        assert len(found) == (tries == 5)
        assert list(made.queue) == [task] * (tries < 5)
    assert found == [Outcome(task.runs[0].run_id, 300, 0.0, f"the cluster gave no result in 5 tries ({why})")]
    assert ("a" in made.refused) == (why == "No space left")


def test_who_dies_is_counted_for_a_run_alone_only(started: Any, tasks: list[Task]) -> None:
    scheduler = pytest.importorskip("distributed.scheduler", reason="the extra `cluster` brings it")
    made = started(a=1)
    made._provide = lambda *_: None
    made.deaths = 5
    future = flying(made, tasks[0])  # not alone, sent before five workers were lost
    future.answer, future.status = {"worker": "late", "missing": []}, "finished"
    assert told(made, future) == []
    assert (list(made.queue), list(made.suspects)) == ([tasks[0]], [])
    made.deaths_since = 9
    future = flying(made, tasks[0], alone=True)
    future.answer, future.status = scheduler.KilledWorker("k", None, 2), "error"
    assert told(made, future) == []
    assert (list(made.suspects), made.deaths_since) == ([tasks[0]], 9)
    future = flying(made, tasks[0], alone=True)
    future.answer, future.status = scheduler.KilledWorker("k", None, 0), "error"
    [outcome] = told(made, future)
    assert outcome.failure == "4 workers died while it was all there was in the cluster"
    assert made.deaths_since == 0


def test_workers_that_leave_while_a_run_is_alone_are_not_all_its_doing(started: Any, tasks: list[Task]) -> None:
    """A cluster that grows and shrinks by itself sends those home that have nothing to do."""
    made = started(a=1)
    made._provide = lambda *_: None
    for times in range(1, 5):
        future = flying(made, tasks[0], alone=True, deaths=made.deaths)
        made.deaths += 10
        future.answer, future.status = {"worker": "late", "missing": []}, "finished"
        assert bool(told(made, future)) == (times == 4)


def test_a_warming_task_that_loses_its_workers_is_over(started: Any, tasks: list[Task]) -> None:
    """The runs themselves will tell."""
    scheduler = pytest.importorskip("distributed.scheduler", reason="the extra `cluster` brings it")
    made = started(a=1)
    warming = replace(tasks[0], warming=True, runs=tasks[0].runs + tasks[1].runs)
    future = flying(made, warming)
    future.answer, future.status = scheduler.KilledWorker("k", None, 3), "error"
    nothing = [Outcome(warming.id_of(run), 0, 0.0) for run in warming.runs]
    assert told(made, future) == nothing
    assert made._blame(warming, "why") == nothing


# ----------------------------------------------------------------------------------------------------- from first to last


def test_a_sweep_from_first_to_last(started: Any, wire: Wire, clock: Clock, tasks: list[Task]) -> None:
    """What is under way is waited for, and every half second at the latest somebody is told that time has passed."""
    made = started(a=1)
    promise = made.submit(tasks[0])
    done = [*[lambda: None] * 3, lambda: wire.futures[0].come(failed(tasks[0]))]
    made.arrived.steps.extend(done)
    clock.now = begin = 128.0
    told_at: list[Any] = []
    for outcomes, of in made.completed():
        told_at.append((round(clock.now - begin, 3), len(outcomes), of is not None))
        assert len(told_at) < 99
    assert told_at == [(1.0, 0, False), (2.0, 0, False), (2.0, 1, True)]
    assert promise.result(timeout=0) == [Outcome(tasks[0].runs[0].run_id, 300, 0.0, "it failed")]
    made.suspects.append(tasks[1])
    made.submit(tasks[1])
    made.queue.clear()
    made.arrived.steps.append(lambda: wire.futures[1].come(failed(tasks[1])))
    assert sum(len(outcomes) for outcomes, _ in made.completed()) == 1


@pytest.fixture
def leaving(started: Any, wire: Wire, clock: Clock, tasks: list[Task]) -> Any:
    """Return a function that makes an executor with two tasks under way, the first of which has begun or not."""

    def make(begun: bool) -> tuple[Cluster, list[Future]]:
        made = started(a=1)
        clock.now = 128.0
        futures = [flying(made, task) for task in tasks[:2]]
        wire.futures.extend(futures)
        wire.busy = {"a": [futures[0].key]} if begun else {}
        return made, futures

    return make


def test_a_sweep_that_ends_early_waits_for_what_has_begun(leaving: Any, wire: Wire, clock: Clock) -> None:
    made, [first, second] = leaving(begun=True)
    task = made.flying[first.key].task
    first.add_done_callback(made.arrived.put)
    made.arrived.steps.extend([lambda: None, lambda: first.come(failed(task))])
    begin = clock.now
    made._rescue()
    assert wire.done("stop") == [["a"]]
    assert list(made.flying) == [second.key]
    assert clock.now - begin == 1.0


@pytest.mark.parametrize(("begun", "waited"), [(True, 10.0), (False, 0.0)])
def test_but_not_for_ever_nor_for_what_has_not(begun: bool, waited: float, leaving: Any, clock: Clock) -> None:
    made, _ = leaving(begun)
    begin = clock.now
    made._rescue()
    assert clock.now - begin == waited


def test_what_is_done_and_has_not_arrived_is_waited_for(leaving: Any, clock: Clock) -> None:
    made, [first, _] = leaving(begun=False)
    task = made.flying[first.key].task
    first.answer, first.status = failed(task), "finished"
    made.arrived.steps.append(lambda: made.arrived.put(first))
    begin = clock.now
    made._rescue()
    assert clock.now - begin == 0.5
    assert len(made.flying) == 1


def test_nobody_is_waited_for_where_the_connection_is_gone(leaving: Any, wire: Wire, clock: Clock) -> None:
    made, _ = leaving(begun=True)
    made.arrived.steps.append(lambda: setattr(wire.client, "status", "closed"))
    begin = clock.now
    made._rescue()
    assert clock.now - begin == 0.5
    made._rescue()
    assert (clock.now - begin, len(wire.done("stop"))) == (0.5, 1)


def test_differences_of_one_version() -> None:
    ours = {"packages": {"numba": "1", "numpy": "2"}, "python": "3.11", "processor": "p"}
    assert differences(ours, ours) == ""
    assert differences(ours | {"python": "3.12"}, ours) == "python 3.12 (here 3.11)"
    assert differences(ours | {"packages": {"numba": "1"}}, ours) == "numpy None (here 2)"


# -------------------------------------------------------------------------------------------------------- the connection


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


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the clusters that were started here; nobody is asked in earnest."""
    import contextlib

    started: list[Any] = []

    def local_cluster(**options: Any) -> Any:
        started.append(SimpleNamespace(scheduler_address="tcp://local", options=options, close=lambda timeout: None))
        return started[-1]

    config = SimpleNamespace(set=lambda options: contextlib.nullcontext())
    monkeypatch.setitem(sys.modules, "dask", SimpleNamespace(config=config))
    made = SimpleNamespace(Client=FakeClient, LocalCluster=local_cluster)
    monkeypatch.setitem(sys.modules, "distributed", made)
    return started


def test_a_link_to_an_address_is_our_own_and_ends(dask: list[Any]) -> None:
    loud, quiet = (logging.getLogger(name) for name in ("distributed.by_hand", "banditlab.by_hand"))
    loud.setLevel(logging.INFO)
    quiet.setLevel(logging.INFO)
    made = Link("tcp://h:1", 5.0)
    assert made.client.options == {"address": "tcp://h:1", "timeout": 5.0, "set_as_default": False}
    assert (made.own, made.name) == (True, "tcp://h:1")
    assert not loud.isEnabledFor(logging.CRITICAL)
    assert quiet.level == logging.INFO
    made._hush()
    made.close()
    assert (made.client.ended, loud.level) == (1, logging.INFO)
    theirs = FakeClient()
    made = Link(theirs, 5.0)
    assert (made.own, made.client, made.name) == (False, theirs, "tcp://scheduler")
    made.close()
    assert theirs.ended == 0


def test_a_link_that_fails_leaves_nothing_behind(dask: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    loud = logging.getLogger("distributed.by_hand")
    loud.setLevel(logging.INFO)
    ended: list[Any] = []

    class Refuses(FakeClient):
        def __init__(self, address: Any, **_: Any) -> None:
            if not isinstance(address, str):
                address.close = lambda timeout: ended.append(timeout)
            raise OSError("nobody is there")

    monkeypatch.setattr(sys.modules["distributed"], "Client", Refuses)
    for where in ("tcp://h:1", "local:2"):
        with pytest.raises(ClusterError, match="nobody is there"):
            Link(where, 5.0)
        assert loud.level == logging.INFO
    assert ended == [5]


def test_workers_started_here_have_a_thread_each(dask: list[Any]) -> None:
    made = Link("local:3", 99.0)
    [cluster] = dask
    names = ("n_workers", "threads_per_worker", "memory_limit", "dashboard_address", "host")
    assert [cluster.options[name] for name in names] == [3, 1, 0, None, "127.0.0.1"]
    assert (made.local, made.client.options["address"], made.client.options["timeout"]) == (cluster, cluster, 30.0)
    made.close()


@pytest.mark.parametrize("status", ["running", "closed"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("local_", [None, "one"])
def test_a_connection_that_is_ours_is_made_again(status: str, own: bool, local_: Any, dask: list[Any]) -> None:
    made = Link("tcp://h:1", 5.0)
    before = made.client
    made.own, made.local, before.status = own, local_, status
    assert (made.restored() is not before) == (status == "closed" and own and local_ is None)
    made.own, made.local = True, None
    made.close()


def test_a_scheduler_that_is_gone_with_its_file_is_waited_for(dask: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text("{}")
    made = Link(file, 5.0)
    before = made.client
    before.status = "closed"
    file.unlink()
    assert made.restored() is before
    file.write_text("{}")
    assert made.restored() is not before
    made.close()


def test_who_is_asked_has_a_limit_in_time(dask: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(link, "time", clock)
    made = Link("tcp://h:1", 5.0)
    client = made.client
    assert made.ask("identity") is None  # silence
    client.answers["identity",] = {"services": {}}
    assert made.ask("identity") == {"services": {}}
    assert made.dashboard() == ""
    client.answers["identity",] = {"services": {"dashboard": 1}}
    assert made.dashboard() == "http://page"
    client.answers["identity",] = None
    assert made.dashboard() == ""
    client.asked.clear()
    client.answers["a", "b"] = {"a": 1, "b": 2}
    assert made.run("f", workers=["a", "b"], seconds=60.0) == {"a": 1, "b": 2}
    client.answers["b",] = {"b": 2}
    assert made.run("f", workers=["a"], seconds=60.0) == {}
    assert made.run("f", workers=["c", "b"], seconds=60.0) == {"b": 2}  # one after the other: c is silent
    assert client.asked == [
        (("a", "b"), 60.0),
        (("a",), 60.0),
        (("c", "b"), 60.0),
        (("c",), 10.0),
        (("b",), 10.0),
    ]
    assert made.run("f", workers=[], seconds=60.0) == {}
    client.status = "closed"
    assert made.run("f", workers=["a", "b"], seconds=60.0) == {}
    assert made.ask("identity") is None
    assert len(client.asked) == 5
    made.close()


def test_addresses(tmp_path: Path) -> None:
    (tmp_path / "scheduler.json").write_text("{}")
    theirs = SimpleNamespace(scheduler_address="tcp://h:1")
    for where, options in (
        ("local:1", {"local": 1}),
        ("local:12", {"local": 12}),
        ("tls://h:1", {"address": "tls://h:1"}),
        (tmp_path / "scheduler.json", {"scheduler_file": str(tmp_path / "scheduler.json")}),
        (theirs, {"address": theirs}),
    ):
        assert _address(where) == options
    for where in ("local", "local:0", "local:-1", "remote:2", "", tmp_path / "none.json"):
        with pytest.raises(UsageError, match=r"must be tcp://HOST:PORT"):
            _address(where)


# ------------------------------------------------------------------------------------------------------------ its workers


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a worker of a cluster that is asked for its folder and its task's state."""
    tasks = {"key": SimpleNamespace(state="executing")}
    made = SimpleNamespace(
        address="tcp://w", local_directory=str(tmp_path / "w"), get_current_task=lambda: "key",
        state=SimpleNamespace(tasks=tasks),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=lambda: made))
    return made


def test_a_worker_plays_what_it_has_the_files_for(
    worker: Any, tasks: list[Task], tmp_path: Path, monkeypatch: Any
) -> None:
    seen: list[Any] = []

    def dispatch(some: list[Task], jobs: int, store: Store, stopped: Any) -> Any:
        [task] = some
        assert Path(task.folder).parents[1] == tmp_path / "w" / "banditlab"
        assert (store.folder / "comparators" / "s.npz").read_bytes() == b"old"
        seen.append((jobs, task.runs, stopped()))
        for name, content in (("comparators/s.npz", b"old"), ("comparators/t.npz", b"new")):
            (store.folder / name).write_bytes(content)
        for run in task.runs:
            yield [Outcome(task.id_of(run), 300, 1.0)], task

    monkeypatch.setattr(remote.crew, "dispatch", dispatch)
    task = replace(tasks[0], runs=tasks[0].runs + tasks[1].runs)
    parcel = {
        "sweep": "s1", "package": freight.package_digest(), "needs": [], "paths": [{}, {}], "labs": [],
        "files": {"comparators/s.npz": b"old"}, "task": pickle.dumps(task),
    }  # fmt: skip
    said = remote.played(parcel)
    ids = [task.id_of(run) for run in task.runs]
    assert said == {
        "worker": "tcp://w",
        "outcomes": [(id_, 300, 1.0, "", 0.0) for id_ in ids],
        "files": {"comparators/t.npz": b"new"},
        "refused": "",
    }
    assert seen[0] == (1, task.runs, False)
    assert not [*(tmp_path / "w" / "banditlab").iterdir()]
    assert remote.played(parcel)["files"] == said["files"]
    assert remote.played(parcel | {"package": "another"}) == {"worker": "tcp://w", "stranger": True}
    freight.put(tmp_path / "w" / "banditlab", {freight.key_of("a", b"x"): ("a", b"x")})
    needs = [freight.key_of("a", b"x"), "not there"]
    assert remote.played(parcel | {"needs": needs}) == {"worker": "tcp://w", "missing": ["not there"]}


@pytest.mark.parametrize("where", ["home", "lab", "store"])
def test_a_worker_whose_disk_is_full_says_so_and_fails_no_run(
    where: str, worker: Any, tasks: list[Task], tmp_path: Path, monkeypatch: Any
) -> None:
    """An error would be the task's: a worker that fails at once gets one after the other."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remote.crew, "dispatch", lambda *_: pytest.fail("it has no folder"))
    if where == "home":
        monkeypatch.setattr(remote.tempfile, "TemporaryDirectory", full)
    elif where == "lab":
        monkeypatch.setattr(remote.freight, "laid_out", full)
    else:
        monkeypatch.setattr(remote, "write_bytes", full)
    parcel = {
        "sweep": "s3", "package": freight.package_digest(), "needs": [], "paths": [{}], "labs": [[]],
        "files": {"comparators/s.npz": b"old"}, "task": pickle.dumps(tasks[0]),
    }  # fmt: skip
    said = remote.played(parcel)
    assert said == {"worker": "tcp://w", "outcomes": [], "files": {}, "refused": "No space left on device"}


@pytest.mark.parametrize("state", ["executing", "cancelled", "released", "forgotten", "gone", "stopped"])
def test_a_worker_stops_when_nobody_wants_it_any_more(
    state: str, worker: Any, tasks: list[Task], monkeypatch: Any
) -> None:
    if state == "gone":
        worker.state.tasks.clear()
    elif state == "stopped":
        monkeypatch.setattr(remote, "_stopped", set())
        remote.stop("s2")
    else:
        worker.state.tasks["key"].state = state
    seen: list[bool] = []
    monkeypatch.setattr(remote.crew, "dispatch", lambda some, jobs, store, stopped: seen.append(stopped()) or [])
    parcel = {
        "sweep": "s2", "package": freight.package_digest(), "needs": [], "paths": [{}], "labs": [], "files": {},
        "task": pickle.dumps(tasks[0]),
    }  # fmt: skip
    remote.played(parcel)
    assert seen == [state != "executing"]


def test_a_run_reads_the_file_that_was_sent_and_keeps_its_identity(small: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n2,y\n3,x\n")
    environment = [{"id": "banditlab/Table-v0", "path": str(tmp_path / "t.csv"), "label": "kind"}]
    run = small(environment=environment, agent=[{"id": "uniform"}], norm_bounds=[], rounds=5).plan.runs[0]
    ship = freight.Freight()
    paths = ship.of_run(run)
    assert ship.of_run(run) == paths
    id_, _ = run.run_id, run.stream_id
    freight.put(tmp_path / "deep" / "home", ship.parts)
    moved = remote._located(run, paths, tmp_path / "deep" / "home")
    here = freight.only_file(tmp_path / "deep" / "home", paths["path"])
    assert moved.environment["settings"] == run.environment["settings"] | {"path": str(here)}
    assert moved.environment["identity"] == run.environment["identity"]
    assert {name: vars(moved)[name] for name in ("run_id", "stream_id")} == {"run_id": id_, "stream_id": run.stream_id}
    assert remote._located(run, {}, tmp_path) is run


def test_a_file_is_what_its_key_says_under_a_plain_name(tmp_path: Path, monkeypatch: Any) -> None:
    assert (freight.PACKAGE.name, (freight.PACKAGE / "problem.py").exists()) == ("banditlab", True)
    for name in ("", ".", "..", "a/b"):
        with pytest.raises(UsageError, match="damaged on its way"):
            freight.put(tmp_path, {freight.key_of(name, b"x"): (name, b"x")})
    assert not [*tmp_path.iterdir()]
    key = freight.key_of("a", b"x")
    freight.put(tmp_path, {key: ("a", b"x")})
    freight.only_file(tmp_path, key).unlink()  # somebody cleared old files away
    assert not freight.has(tmp_path, key)
    freight.put(tmp_path, {key: ("a", b"x")})
    assert freight.only_file(tmp_path, key).read_bytes() == b"x"
    for _ in range(2):  # another thread was quicker
        monkeypatch.setattr(freight, "has", lambda *_: False)
        freight.put(tmp_path, {key: ("a", b"x")})
    assert [each.name for each in tmp_path.iterdir()] == [key]
    for inside in ("evil/a", "agents/../a", "agents/b/a", "a"):
        with pytest.raises(UsageError, match="not a lab's file"):
            freight.laid_out(tmp_path, [(inside, key)])
    lab = Path(freight.laid_out(tmp_path, [("agents/a", key), ("envs/a", key)]))
    assert [(lab / room / "a").read_bytes() for room in ("agents", "envs")] == [b"x", b"x"]


# --------------------------------------------------------------------------------------------------------- on this machine


@pytest.mark.parametrize(
    ("jobs", "own", "foreign", "who"),
    [
        (1, 2, 0, ["here", "here"]),
        (2, 1, 0, ["here"]),
        (2, 2, 0, ["pool"]),
        (3, 3, 1, ["pool", "crew"]),
        (2, 0, 2, ["crew"]),
        (2, -2, 1, ["crew", "crew"]),  # with a limit
    ],
)
def test_who_does_the_tasks_of_this_machine(
    jobs: int, own: int, foreign: int, who: list[str], tasks: list[Task], tmp_path: Path, monkeypatch: Any
) -> None:
    seen: list[str] = []

    def does(name: str) -> Any:
        def dispatch(some: Any, asked: int, store: Store) -> Any:
            seen.append(name)
            assert asked == jobs
            while some:
                yield [], some.popleft()

        return dispatch

    monkeypatch.setattr(local.crew, "dispatch", does("crew"))
    monkeypatch.setattr(local.pool, "dispatch", does("pool"))
    monkeypatch.setattr(local, "execute", lambda task: seen.append("here") or [])
    made = Local(jobs, Store(tmp_path))
    assert made.remote is False
    limit = 5.0 if own < 0 else 0.0
    given = [replace(task, limit=limit) for task in tasks[: abs(own)]]
    given += [replace(task, foreign=True) for task in tasks[4 : 4 + foreign]]
    for task in reversed(given):
        made.submit(task)
    assert len(list(made.completed())) == abs(own) + foreign
    assert seen == who
