"""What the engine does at its turns: a pool's tasks, environments of others, and what is left out."""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
from collections import deque
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from banditlab.engine import (
    Progress,
    Sweep,
    make_forecaster,
    make_spec,
    plan,
    play,
    pool,
    processes,
    runner,
    work,
    workers,
)
from banditlab.engine import sweep as sweep_module
from banditlab.engine.describe import _is_described
from banditlab.engine.executors.executor import Executor
from banditlab.engine.plan import Seen
from banditlab.engine.progress import Kind
from banditlab.engine.runner import Played
from banditlab.engine.warming import drawing_of, kind_of_run, unknown_seconds, warmed_seconds
from banditlab.engine.work import Outcome, Task
from banditlab.problem import Problem
from banditlab.results.store import Store

# ------------------------------------------------------------------------------------------------------------- a sweep's round


class Hands(Executor):
    """Does every task at once: what is compiled took two seconds, and so did every run."""

    def __init__(self, jobs: int, *, remote: bool = False) -> None:
        super().__init__(jobs)
        self.remote = remote  # type: ignore[misc]
        self.taken: list[Task] = []
        self.left: deque[Task] = deque()
        self.stands: list[int] = []
        """How many tasks had been taken when each was done."""

    def _take(self, task: Task) -> None:
        self.taken.append(task)
        self.left.append(task)

    def _done(self) -> Any:
        while self.left:
            task = self.left.popleft()
            rounds = 0 if task.warming else 300
            self.stands.append(len(self.taken))
            yield [Outcome(task.id_of(run), rounds, 2.0) for run in task.runs], task


@pytest.fixture
def rounds(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that plays a small sweep with such hands; which players are cold and streams long is made up."""

    def go(jobs: int, cold: str, *, long: bool = False, remote: bool = False) -> Any:
        sweep, hands, stages = small(), Hands(jobs, remote=remote), []
        warm: list[str] = []

        def warm_up(runs: Any, progress: Any, tell: Any) -> dict[str, float]:
            warm.extend(run.label for run in runs)
            return {kind_of_run(run): 0.5 for run in runs}

        monkeypatch.setattr(sweep_module, "is_cold", lambda run: run.label in cold.split())
        monkeypatch.setattr(sweep_module, "long_streams", lambda runs: {"a stream"} if long else set())
        monkeypatch.setattr(sweep_module, "warm_up", warm_up)
        stand = Progress(runs=6, streams=2)
        made = sweep_module._Round(sweep, hands, Store(tmp_path), stand, lambda progress: stages.append(progress.stage))
        made.play(sweep.plan.runs, list(sweep.plan.streams().values()))
        assert (stand.runs_done, stand.streams_done, stand.rounds_done, stand.failed) == (6, 2, 1800, 0)
        assert {kind.done - kind.runs for kind in stand.kinds.values()} == {0}
        assert stand.jobs == hands.jobs
        assert stand.playing_since is not None
        played = [run.label for task in hands.taken for run in task.runs if not task.warming and not task.comparators]
        assert sorted(played) == sorted(run.label for run in sweep.plan.runs)
        return made, hands, stages, warm

    return go


def what(task: Task) -> str:
    kind = "compile" if task.warming else "compare" if task.comparators else "play"
    return f"{kind} {' '.join(dict.fromkeys(run.label for run in task.runs))}"


def test_who_is_compiled_already_plays_while_others_are_compiled(rounds: Any) -> None:
    made, hands, stages, warm = rounds(99, "banditron")
    assert set(warm) == {"uniform"}
    assert what(hands.taken[0]) == "compile banditron"
    before = [what(task) for task in hands.taken[1:] if what(task) != "play banditron"]
    assert "play uniform" in before
    assert what(hands.taken[-1]) == "play banditron"
    assert stages[0] == "compiling banditron"
    assert stages[-1] == "playing"
    assert hands.jobs == 8  # as many as there are runs and streams: more tasks are to come
    costs = {run.label: made.costs[kind] for kind, run in made.first.items()}
    assert costs == {"banditron": 2.0, "uniform": 0.5}


def test_one_process_compiles_for_itself(rounds: Any) -> None:
    _, hands, stages, warm = rounds(1, "banditron uniform")
    assert set(warm) == {"banditron", "uniform"}
    assert not any(task.warming for task in hands.taken)
    assert (set(stages), hands.jobs) == ({"playing"}, 1)


def test_no_more_processes_than_tasks(rounds: Any) -> None:
    _, hands, _, _ = rounds(99, "")
    assert hands.jobs == len(hands.taken)


def test_players_of_a_long_stream_wait_for_each_other(rounds: Any) -> None:
    for long in (True, False):
        _, hands, _, warm = rounds(2, "banditron uniform", long=long)
        assert warm == []
        assert [what(task).split()[0] for task in hands.taken[:2]] == ["compile"] * 2
        assert (hands.stands[1] == hands.stands[0]) == long  # nothing follows from the first alone
        assert not any(task.together for task in hands.taken)
    made, hands, stages, _ = rounds(2, "banditron", long=True)
    assert made.together
    assert stages[0] == "compiling banditron"


def test_no_more_is_played_before_all_is_compiled_than_keeps_the_workers_busy(small: Any, tmp_path: Path) -> None:
    sweep, hands = small(norm_bounds=[], repetitions=9), Hands(1, remote=True)
    made = sweep_module._Round(sweep, hands, Store(tmp_path), Progress(runs=27, streams=9), lambda progress: None)
    by_kind = sweep_module.runs_by_kind(sweep.plan.runs)
    (uniform, alone), (banditron, both) = sorted(by_kind.items(), key=lambda each: len(each[1]))
    assert (len(alone), len(both)) == (9, 18)
    made.costs, made.waiting, made.held = {uniform: 0.149}, {banditron: both}, list(alone)
    made._feed()
    played = [run for task in hands.taken for run in task.runs]
    # 0.15 s each, and the first beyond 1 s is the last
    assert {run.run_id for run in played} == {run.run_id for run in alone[:7]}
    made._feed()
    assert sum(len(task.runs) for task in hands.taken) == 7
    made._note(Task("", (), tuple(played)), [Outcome(run.run_id, 300, 9.0) for run in played[:3]])
    made._feed()  # 0.6 s are under way
    made._note(Task("", (), (), comparators=True), [])
    assert len(made.held) == 2
    made._note(Task("", (), tuple(played)), [Outcome(played[3].run_id, 300, 9.0)])
    made.together = True
    made._feed()
    assert len(made.held) == 2
    made.together = False
    made.held += made.waiting.pop(banditron)
    made.costs[banditron] = 0.1
    before = len(hands.taken)
    made._feed()
    assert made.held == []
    streams = [run.stream_id for task in hands.taken[before:] for run in task.runs]
    assert len(streams) == 20
    assert sum(a != b for a, b in pairwise(streams)) == 8  # each is drawn once for all that are left
    assert sorted(map(streams.count, set(streams))) == [2] * 7 + [3] * 2


def test_what_is_played_last_keeps_nobody_busy_while_others_compile(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine plays foreign code after all others: fed to it before, it would wait, and workers would, too."""
    monkeypatch.setattr("banditlab.engine.tasks.long_streams", lambda runs: set())
    for remote in (False, True):
        sweep, hands = small(norm_bounds=[], repetitions=2), Hands(1, remote=remote)
        made = sweep_module._Round(sweep, hands, Store(tmp_path), Progress(runs=6, streams=2), lambda progress: None)
        for run in sweep.plan.runs:
            vars(run)["foreign"] = run.label == "uniform"
        own, foreign = ([run for run in sweep.plan.runs if run.foreign is each] for each in (False, True))
        made.first = {kind_of_run(run): run for run in (foreign[0], own[0])}
        made.costs, made.waiting = dict.fromkeys(made.first, 2.0), {"another": []}
        made.held = [*foreign, *own]
        made._feed()
        played = {run.run_id for task in hands.taken for run in task.runs}
        assert bool(played & {run.run_id for run in foreign}) == remote
        assert played & {run.run_id for run in own}
        made.waiting.clear()
        made._feed()
        assert made.held == []
        assert sum(len(task.runs) for task in hands.taken) == 6


def test_a_clusters_workers_compile_everything(rounds: Any) -> None:
    _, hands, stages, warm = rounds(50, "", remote=True)
    assert (warm, hands.jobs) == ([], 50)
    assert {what(task) for task in hands.taken if task.warming} == {"compile banditron", "compile uniform"}
    assert stages[0] == "compiling banditron, uniform"


# -------------------------------------------------------------------------------------------------------------------- pool


class Pool:
    """Does nothing by itself; futures are done when a test says so, here at once."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.sent, self.ended = answer, 0, []  # type: ignore[var-annotated]

    def submit(self, function: Any, task: Task, parent: int) -> Future[Any]:
        assert parent == os.getpid()
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
    warming = dataclasses.replace(tasks[0], warming=True)
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
    assert settled(warming, [run.run_id], [warming.id_of(run)]) is None
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


def test_what_a_warm_up_learns(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = small().plan.runs
    seconds = iter([2.0, None])
    told: list[str] = []

    def warmed(run: Any, *, uncompiled: bool) -> Any:
        assert uncompiled is False
        answer = next(seconds, ValueError)
        if answer is ValueError:
            raise ValueError
        return answer

    drawn: list[str] = []
    monkeypatch.setattr(sweep_module, "warmed_seconds", warmed)
    monkeypatch.setattr(sweep_module, "drawing_seconds", lambda run: drawn.append(run.label) or 0.25)
    stand = Progress(runs=1, streams=0)
    costs = sweep_module.warm_up(runs, stand, lambda progress: told.append(progress.stage))
    kinds = list(dict.fromkeys(kind_of_run(run) for run in runs))
    assert [costs[kind] for kind in kinds][:2] == [2.0, unknown_seconds(runs[0])]
    assert costs[drawing_of(runs[0])] == 0.25
    assert drawn == [runs[0].label]  # once for an environment
    assert told[0] == f"compiling {runs[0].label} (1 of {len(kinds)})"


def test_what_a_call_leaves_out() -> None:
    def default(function: Any, name: str) -> Any:
        return inspect.signature(function).parameters[name].default

    assert default(Sweep.run, "jobs") == 1
    assert default(workers.dispatch, "stopped")() is default(sweep_module.warm_up, "uncompiled") is False
    assert default(play, "keep_trace") is False
    assert default(warmed_seconds, "uncompiled") is default(runner._Score.__init__, "labelled") is True
    assert default(make_forecaster, "seed") == 0
    assert Task("", (), ()) == Task("", (), (), (), False, False, False, 0.0, False)
    assert Kind(1.0, 2) == Kind(1.0, 2, done=0, seconds=0.0)
    stand = Progress(runs=1, streams=2)
    counts = (stand.runs_done, stand.streams_done, stand.rounds_done, stand.failed, stand.jobs, stand.stream_seconds)
    assert counts == (0, 0, 0, 0, 1, 0.0)
