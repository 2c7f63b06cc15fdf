"""Who does the tasks of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from banditlab.engine.executors import local
from banditlab.engine.executors.local import Local
from banditlab.engine.work import Task
from banditlab.results.store import Store


@pytest.mark.parametrize(
    ("jobs", "own", "foreign", "who"),
    [
        (1, 2, 0, ["here", "here"]),
        (2, 1, 0, ["here"]),
        (2, 2, 0, ["workers"]),
        (3, 3, 1, ["workers", "workers"]),
        (2, 0, 2, ["workers"]),
        (2, -2, 1, ["workers", "workers"]),  # with a limit
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

    monkeypatch.setattr(local.workers, "dispatch", does("workers"))
    monkeypatch.setattr(local, "execute", lambda task: seen.append("here") or [])
    made = Local(jobs, Store(tmp_path))
    given = [replace(task, limit=5.0) if own < 0 else task for task in tasks[: abs(own)]]
    given += [replace(task, foreign=True) for task in tasks[4 : 4 + foreign]]
    for task in reversed(given):
        made.submit(task)
    assert len(list(made.completed())) == abs(own) + foreign
    assert seen == who
