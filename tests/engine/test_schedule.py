"""What a sweep does next: tasks of about two seconds, made of what is known of the time that runs take."""

from __future__ import annotations

from typing import Any

import pytest

from banditlab.engine.schedule import Schedule, kind_of
from banditlab.engine.work import Task


def handed(schedule: Schedule, seconds: Any, jobs: int = 1) -> list[Task]:
    """Take every task, one after the other, each done before the next; `seconds(run)` is what a run takes."""
    tasks = []
    while task := schedule.next(jobs):
        tasks.append(task)
        for run in task.runs:
            schedule.note(run, task.comparators, seconds(run))
    return tasks


@pytest.fixture
def many(small: Any) -> Any:
    """Return a sweep of 50 streams with three runs each."""
    return small(repetitions=50)


@pytest.mark.parametrize("cost", [0.0, 1e-3, 0.3, 1.5, 60.0])
@pytest.mark.parametrize("jobs", [1, 2, 300])
def test_everything_is_handed_out_once(cost: float, jobs: int, many: Any) -> None:
    runs, streams = many.plan.runs, list(many.plan.streams().values())
    tasks = handed(Schedule("out", (1.0,), None, runs, streams), lambda run: cost, jobs)
    played = [run.run_id for task in tasks if not task.comparators for run in task.runs]
    assert sorted(played) == sorted(run.run_id for run in runs)
    compared = [run.stream_id for task in tasks if task.comparators for run in task.runs]
    assert sorted(compared) == sorted(run.stream_id for run in streams)
    assert {task.balls for task in tasks} == {(1.0,)}


def test_the_first_run_of_every_kind_is_a_task_of_its_own(many: Any) -> None:
    schedule = Schedule("out", (), None, many.plan.runs, list(many.plan.streams().values()))
    first = [schedule.next(2) for _ in range(3)]
    kinds = [(run.label, task.comparators) for task in first for run in task.runs]
    assert sorted(kinds) == [("banditron", False), ("uniform", False), ("uniform", True)]
    assert len(schedule.next(2).runs) == 1  # none is done yet: another run by itself
    schedule.note(many.plan.runs[-1], False, 0.1)
    assert {run.label for run in schedule.next(1).runs} == {"uniform"}  # of which one is done
    kinds = [(kind.label, kind.guess, kind.runs) for kind in schedule.kinds.values()]
    assert kinds == [("", 1.0, 50), ("banditron", pytest.approx(0.03), 100), ("uniform", pytest.approx(0.03), 50)]


def test_tasks_take_two_seconds_and_less_towards_the_end(many: Any) -> None:
    long, short = [19, 19, 19, 19, 18, 13, 10, 7, 6, 4, 3, 2, 2], [36, 27, 21, 15, 12, 9, 6, 5, 4, 4, 4, 4]
    for cost, jobs, sizes in ((0.1, 1, long), (0.1, 2, [18, 16, 14, 12, 11, 9, 8, 7, 6]), (0.01, 1, short)):
        tasks = handed(Schedule("out", (), None, many.plan.runs, []), lambda run, cost=cost: cost, jobs)[2:]
        assert [len(task.runs) for task in tasks][: len(sizes)] == sizes


def test_more_than_200_processes_get_longer_tasks(many: Any) -> None:
    schedule = Schedule("out", (), None, many.plan.runs, [])
    for run in many.plan.runs[:3]:
        schedule.note(run, False, 1e5)
    queues = [schedule._queues[False, False]]
    assert [schedule._task_seconds(queues, jobs) for jobs in (1, 200, 300, 400)] == [2.0, 2.0, 3.0, 4.0]


def test_a_stream_is_drawn_for_as_few_tasks_as_may_be(many: Any) -> None:
    tasks = handed(Schedule("out", (), None, many.plan.runs, []), lambda run: 0.02)[2:]
    drawn = sum(len({run.stream_id for run in task.runs}) for task in tasks)
    assert drawn <= 50 + len(tasks)


def test_runs_longer_than_a_task_come_first_and_alone(small: Any) -> None:
    runs = small(repetitions=5, agent=[{"id": "uniform"}, {"id": "banditron"}]).plan.runs
    tasks = handed(Schedule("out", (), None, runs, []), lambda run: 5.0 if run.label == "banditron" else 0.1)[2:]
    assert [[run.label for run in task.runs] for task in tasks[:4]] == [["banditron"]] * 4
    assert {run.label for task in tasks[4:] for run in task.runs} == {"uniform"}


@pytest.mark.slow
def test_foreign_code_comes_last_with_an_hour_at_most(small: Any, lab: Any, fresh_registry: Any) -> None:
    fresh_registry.open_lab(lab("odd"))
    runs = small(agent=[{"id": "odd"}, {"id": "uniform"}], repetitions=3).plan.runs
    for limit, limits in ((None, {True: 3600.0, False: 0.0}), (5.0, {True: 5.0, False: 5.0})):
        tasks = handed(Schedule("out", (), limit, runs, []), lambda run: 0.01)
        assert {task.foreign: task.limit for task in tasks} == limits
        assert {task.foreign: len(task.labs) for task in tasks} == {True: 1, False: 0}
        assert [task.foreign for task in tasks] == sorted(task.foreign for task in tasks)


def test_a_task_takes_no_longer_than_half_of_what_a_run_may(many: Any) -> None:
    """The limit is that of the process that does the task."""
    tasks = handed(Schedule("out", (), 0.5, many.plan.runs, []), lambda run: 0.1)
    assert max(len(task.runs) for task in tasks) == 2  # of 0.101 s each
    assert {task.limit for task in tasks} == {0.5}


def test_runs_that_fail_count_with_the_time_they_took(many: Any) -> None:
    run = many.plan.runs[0]
    schedule = Schedule("out", (), None, many.plan.runs, [])
    kind = schedule.kinds[kind_of(run)]
    assert kind.mean == pytest.approx(0.03)  # 300 rounds, a guess
    schedule.note(run, False, 2.0)
    schedule.note(run, False, 0.0)
    assert (kind.done, kind.mean) == (2, pytest.approx(1.001))
