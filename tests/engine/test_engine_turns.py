"""What the engine does at its turns: a pool's tasks, environments of others, and what is left out."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from banditlab.engine import (
    make_spec,
    plan,
    pool,
    processes,
    runner,
    work,
    workers,
)
from banditlab.engine.describe import _is_described
from banditlab.engine.plan import Seen
from banditlab.engine.runner import Played
from banditlab.engine.work import Outcome, Task
from banditlab.problem import Problem
from banditlab.results.store import Store

# ------------------------------------------------------------------------------------------------------------- a sweep's round


# -------------------------------------------------------------------------------------------------------------------- pool


class Pool:
    """Does nothing by itself; futures are done when a test says so, here at once."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.sent, self.ended = answer, 0, []  # type: ignore[var-annotated]

    def submit(self, function: Any, task: Task) -> Future[Any]:
        self.sent += 1
        future: Future[Any] = Future()
        self.answer(future, task)
        return future

    def terminate(self, kill_workers: bool) -> None:
        self.ended.append(kill_workers)


def test_a_pool_has_two_tasks_a_worker_and_is_ended_where_it_is_left(
    tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Pool(lambda future, task: future.set_result([task.runs[0].run_id]))
    monkeypatch.setattr("joblib.executor.get_memmapping_executor", lambda jobs, **options: made)
    flying: dict[Any, Task] = {}
    loop = pool._parallel(deque(tasks), flying, 2)
    outcomes, task = next(loop)
    assert (made.sent, outcomes) == (4, [task.runs[0].run_id])
    rest = list(loop)
    assert (made.sent, len(rest), made.ended, flying) == (6, 5, [], {})
    loop = pool._parallel(deque(tasks), flying, 1)
    next(loop)
    loop.close()
    assert made.ended == [True]


def test_what_is_told_comes_before_a_workers_death(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(future: Any, task: Task) -> None:
        if task is tasks[0]:
            future.set_exception(RuntimeError("a worker is gone"))
        else:
            future.set_result(["told"])

    monkeypatch.setattr("joblib.executor.get_memmapping_executor", lambda jobs, **options: Pool(answer))
    told: list[Any] = []
    loop = pool._parallel(deque(tasks[:3]), {}, 2)
    with pytest.raises(RuntimeError, match="a worker is gone"):
        told.extend(outcomes for outcomes, _ in loop)
    assert told == [["told"]] * 2


def test_what_a_folder_says_of_a_run_nobody_told_of(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    [run] = tasks[0].runs
    compared = dataclasses.replace(tasks[0], comparators=True)
    said = {"finished": set(), "failed": set()}
    monkeypatch.setattr(workers, "finished_runs", lambda folder: said["finished"])
    store: Any = SimpleNamespace(folder="", failed=lambda: said["failed"])

    def settled(task: Task, finished: Any = (), failed: Any = (), before: Any = ()) -> Any:
        said.update(finished=set(finished), failed=set(failed))
        told, left = workers.settled(task, store, set(before))
        assert (told is None) == (left == [run])
        return told and told[0]

    failure = "recorded as failed"
    assert settled(tasks[0], [run.run_id]) == [Outcome(run.run_id, 300, 0.0)]
    assert settled(tasks[0], failed=[run.run_id]) == [Outcome(run.run_id, 300, 0.0, failure)]
    assert settled(tasks[0], failed=[run.run_id], before=[run.run_id]) is None
    assert settled(tasks[0]) is None
    assert settled(compared, [run.run_id, run.stream_id]) is None
    assert settled(compared, failed=[run.stream_id]) == [Outcome(run.stream_id, 300, 0.0, failure)]
    # the record may be of its comparators, which bear its id where the environment is adaptive
    assert settled(tasks[0], [run.run_id], [run.run_id]) == [Outcome(run.run_id, 300, 0.0)]


# ----------------------------------------------------------------------------------------------------- environments, content


@pytest.mark.parametrize(
    ("used", "found", "planned", "same"),
    [
        ("old", {"content": "new"}, {"content": "old"}, True),  # replaced after it was read
        ("old", {"content": "new"}, {"content": "new"}, False),
        (None, {"content": "new"}, {"content": "new"}, True),
        (None, {"content": "new"}, {"content": "old"}, False),
        ("old", {"a": 1}, {"a": 1}, True),
        ("old", {"a": 1}, {"a": 2}, False),
    ],
)
def test_an_environment_is_of_the_content_it_read(used: Any, found: Any, planned: Any, same: bool) -> None:
    env = SimpleNamespace(unwrapped=SimpleNamespace(content=used))
    assert _is_described(SimpleNamespace(identity=lambda settings: found), env, {}, planned) is same
    assert _is_described(SimpleNamespace(), env, {}, {"whatever": 1}) is True


def bare(**more: Any) -> Any:
    env = SimpleNamespace(problem=Problem(2, 3, 1.0, 10), **more)
    env.unwrapped = env
    return env


def test_what_is_seen_of_an_environment_that_says_nothing() -> None:
    assert Seen.of(bare()) == Seen(Problem(2, 3, 1.0, 10), False, True, {}, "", True)
    table = bare(blocks=None, rows_per_pass=40, class_shares=[0.2, 0.5, 0.3], sparse=True, labelled=False)
    data = {"rows": 40, "features": 2, "classes": 3, "largest": 0.5}
    assert Seen.of(table) == Seen(Problem(2, 3, 1.0, 10), True, False, data, "no labels to be computed from", False)
    assert Seen.of(bare(rows_per_pass=40)).data == {"rows": 40, "features": 2, "classes": 3}
    assert Seen(Problem(2, 3, 1.0, 10), False, True, {}, "").labelled is True


@pytest.mark.parametrize("limit", [None, 7.0])
def test_an_environment_of_others_is_looked_at_elsewhere(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen.of(bare())
    asked: list[Any] = []

    def ask(question: str, arguments: Any, seconds: float) -> Any:
        asked.append((question, arguments, seconds))
        return dataclasses.asdict(seen)

    monkeypatch.setattr(plan, "ask", ask)
    monkeypatch.setattr(plan, "is_foreign", lambda description: True)
    spec: Any = SimpleNamespace(rounds=10, run_timeout=limit)
    assert plan._seen({"id": "x"}, spec, "where") == seen
    assert asked == [("environment", ({"id": "x"}, 10), limit or 300.0)]


@pytest.mark.parametrize("limit", [None, 7.0])
def test_players_are_asked_within_a_runs_limit(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(plan, "_why_not", lambda probe, env, shown, seconds: asked.append(seconds) or "no")
    keys: dict[str, Any] = {"name": "s", "rounds": 1, "environment": [{"id": "banditlab/Logistic-v0"}]}
    spec = make_spec(keys | {"agent": [{"id": "uniform"}], "run_timeout": limit}, "test")
    made = plan.make_plan(spec)
    assert asked == [limit or processes.ASK_SECONDS] == [limit or 300.0]
    assert made.skipped == [{"environment": "banditlab/Logistic-v0", "player": "uniform", "reason": "no"}]


def test_a_file_is_called_by_its_name() -> None:
    names = [plan._file_name({"path": path}) for path in ("a/b/c.csv", "a\\b\\c.csv", "c.csv")]
    assert names == [{"path": "c.csv"}] * 3
    assert plan._file_name({"label": "y"}) == {}


# --------------------------------------------------------------------------------------------------------------- one run


def test_numbers_among_diagnostics_are_rows_and_late_ones_are_nan_before() -> None:
    score = object.__new__(runner._Score)
    score.played = Played()
    for at, found in (
        (1, {"a": 1, "b": np.float32(0.5), "c": "text", "d": True}),
        (2, {}),
        (3, {"e": np.int64(3), "a": 2.0}),
    ):
        score.played.rounds.append(at)
        score._note(found)
    nan = math.nan
    expected = {"a": [1.0, nan, 2.0], "b": [0.5, nan, nan], "d": [1.0, nan, nan], "e": [nan, nan, 3.0]}
    assert set(score.played.diagnostics) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(score.played.diagnostics[name], values)


def test_a_cell_of_a_table_is_a_number_a_text_or_nothing() -> None:
    found = [work._cell(value) for value in (True, 3, 0.5, np.float64(0.25), "x", None, [1])]
    assert found == ["True", 3.0, 0.5, 0.25, "x", None, "[1]"]
    assert type(found[1]) is float


def test_facts_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert work.facts()["threads"] == 1
    monkeypatch.setattr(Path, "exists", lambda self: True)
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: "cores : 2\nmodel name\t: A: 3.5 GHz \n")
    assert work.processor() == "A: 3.5 GHz"
    monkeypatch.setattr(Path, "exists", lambda self: False)
    for name, machine, found in (("chip", "m", "chip"), ("", "m", "m")):
        monkeypatch.setattr("platform.processor", lambda name=name: name)
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert work.processor() == found


# -------------------------------------------------------------------------------------------------------------- what is left


def test_comparators_that_a_sweep_lacks(small: Any, tmp_path: Path) -> None:
    """A run of an adaptive environment brings its own along."""
    store = Store(tmp_path)
    oblivious = small()
    every = list(oblivious.plan.streams().values())
    ids = {run.run_id for run in oblivious.plan.runs}
    assert oblivious._streams_to_compare(oblivious.plan, store, ids) == every
    adaptive = small(environment=[{"id": "banditlab/Adversary-v0"}], rounds=60)
    runs = list(adaptive.plan.streams().values())
    assert len(runs) == 6
    assert adaptive._streams_to_compare(adaptive.plan, store, {runs[0].run_id}) == runs[1:]
    assert small(norm_bounds=[])._streams_to_compare(oblivious.plan, store, set()) == []
    assert math.isnan(adaptive.estimate_comparators())
    assert (
        small(environment=[{"id": "banditlab/Adversary-v0"}], rounds=60, norm_bounds=[]).estimate_comparators() == 0.0
    )
