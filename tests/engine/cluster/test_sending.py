"""What a cluster's executor sends, to whom, and when."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from banditlab.engine.executors import freight
from banditlab.engine.executors.cluster import _is_silence
from banditlab.engine.work import Task, facts
from tests.engine.cluster.by_hand import Wire


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
    started: Any, tasks: list[Task], monkeypatch: Any
) -> None:
    made, [run] = started(a=1), tasks[0].runs
    both = {f"comparators/{run.stream_id}.npz": b"W", f"comparators/{run.stream_id}.parquet": b"rows"}
    adaptive = replace(tasks[0], runs=(replace(run, adaptive=True),))
    monkeypatch.setattr(type(run), "stream_id", run.stream_id)
    asked = [replace(tasks[0], comparators=True), adaptive, tasks[0], replace(tasks[0], comparators=True, warming=True)]
    for name, data in both.items():
        assert made._comparators(asked[0]) == {}
        made.store.write(name, data)
    assert [made._comparators(task) for task in asked] == [both, both, {}, {}]
    for name in both:
        (made.store.folder / name).write_bytes(b"damaged")
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
