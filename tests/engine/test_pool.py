"""joblib's workers play the package's own runs; whoever kills one loses nothing and blames nobody."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from banditlab.engine import pool, workers
from banditlab.engine.work import Outcome, Task
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store


@pytest.fixture
def tasks(small: Any, tmp_path: Any) -> tuple[list[Task], Store]:
    """Three tasks of a run each, and the folder they go to."""
    sweep = small(norm_bounds=[])
    store = Store(tmp_path / "out")
    return [Task(str(store.folder), (), (run,)) for run in sweep.plan.runs[:3]], store


def test_what_was_stored_counts_and_the_rest_goes_to_workers(
    tasks: tuple[list[Task], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    mine, store = tasks
    told = pool.execute(mine[0])

    def breaks(queue: Any, flying: dict[Any, Task], jobs: int) -> Any:
        first, flying["second"] = queue.popleft(), queue.popleft()
        pool.execute(flying["second"])  # stored, and its worker died before it said so
        yield told, first
        raise TerminatedWorkerError("a worker is gone")

    sent: list[Task] = []

    def rest(undone: list[Task], jobs: int, store: Store) -> Any:
        sent.extend(undone)
        for task in undone:
            yield [Outcome(run.run_id, run.rounds, 0.0) for run in task.runs], task

    monkeypatch.setattr(pool, "_parallel", breaks)
    monkeypatch.setattr(workers, "dispatch", rest)
    told_of = list(pool.dispatch(mine, 2, store))
    seen = [outcome.id for outcomes, _ in told_of for outcome in outcomes]
    assert all([outcome.id for outcome in outcomes] == [run.run_id for run in task.runs] for outcomes, task in told_of)
    assert sorted(seen) == sorted(task.runs[0].run_id for task in mine)
    assert [task.runs for task in sent] == [mine[2].runs]
    assert finished_runs(store.folder) == {task.runs[0].run_id for task in mine[:2]}


def test_what_failed_on_an_earlier_call_is_tried_again_though_a_worker_dies(
    tasks: tuple[list[Task], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    from banditlab.engine.work import store_failure

    mine, store = tasks
    store_failure(store, mine[0].runs[0], False, "it failed last time", "")

    def breaks(queue: Any, flying: dict[Any, Task], jobs: int) -> Any:
        store_failure(store, mine[1].runs[0], False, "it failed now", "")
        flying["first"], flying["second"] = queue.popleft(), queue.popleft()
        raise TerminatedWorkerError("a worker is gone")
        yield

    sent: list[Task] = []
    monkeypatch.setattr(pool, "_parallel", breaks)
    monkeypatch.setattr(workers, "dispatch", lambda undone, jobs, store: sent.extend(undone) or iter(()))
    [(outcomes, _)] = list(pool.dispatch(mine, 2, store))
    assert [(outcome.id, outcome.failure) for outcome in outcomes] == [(mine[1].runs[0].run_id, "recorded as failed")]
    assert [task.runs for task in sent] == [mine[0].runs, mine[2].runs]


def killed_once(task: Task) -> list[Outcome]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.slow
def test_a_killed_worker_costs_and_blames_nobody(
    tasks: tuple[list[Task], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, store = tasks
    monkeypatch.setattr(pool, "execute", killed_once)
    outcomes = [outcome for outcomes, _ in pool.dispatch(mine, 2, store) for outcome in outcomes]
    assert not any(outcome.failure for outcome in outcomes)
    assert finished_runs(store.folder) == {task.runs[0].run_id for task in mine}


@pytest.mark.slow
def test_a_users_own_joblib_goes_on(small: Any, tmp_path: Any) -> None:
    """The processes are those that joblib's Parallel uses in the same program, before and after."""
    from joblib import Parallel, delayed

    for number in range(2):
        assert Parallel(n_jobs=2)(delayed(abs)(i) for i in (-1, 2)) == [1, 2]
        assert small(norm_bounds=[]).run(tmp_path / str(number), jobs=2).played == 6
    assert Parallel(n_jobs=2)(delayed(abs)(i) for i in (-1, 2)) == [1, 2]
