"""What a cluster's executor makes of what comes back, and of what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from banditlab.engine.executors import cluster as cluster_module
from banditlab.engine.work import Outcome, Task
from tests.engine.cluster.by_hand import Clock, failed, flying, told


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
