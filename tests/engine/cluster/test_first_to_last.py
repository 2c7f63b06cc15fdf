"""A cluster's executor from the first task to the last, and where a sweep ends early."""

from __future__ import annotations

from typing import Any

import pytest

from banditlab.engine.executors.cluster import Cluster
from banditlab.engine.work import Outcome, Task
from tests.engine.cluster.by_hand import Clock, Future, Wire, failed, flying


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
