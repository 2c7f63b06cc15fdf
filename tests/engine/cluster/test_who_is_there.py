"""Which workers a cluster's executor counts on, when it gives up, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from banditlab.engine.executors import freight
from banditlab.engine.executors.cluster import _Flight, differences
from banditlab.engine.work import Task, facts
from banditlab.errors import ClusterError
from tests.engine.cluster.by_hand import Clock, Future, Wire, failed, flying, look


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


def test_differences_of_one_version() -> None:
    ours = {"packages": {"numba": "1", "numpy": "2"}, "python": "3.11", "processor": "p"}
    assert differences(ours, ours) == ""
    assert differences(ours | {"python": "3.12"}, ours) == "python 3.12 (here 3.11)"
    assert differences(ours | {"packages": {"numba": "1"}}, ours) == "numpy None (here 2)"


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
