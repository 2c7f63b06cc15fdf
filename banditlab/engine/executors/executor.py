"""What a sweep asks of whoever does its tasks: take a task, give a future; hand out what is done as it comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from banditlab.engine.work import Outcome, Task

Told = tuple[list[Outcome], Task | None]
"""Outcomes, and the task they belong to; nothing and None where only time has passed."""


@dataclass
class State:
    """Where an executor stands: workers that are there, tasks that were sent and have not come back, workers that were lost."""

    workers: int
    in_flight: int
    deaths: int


@dataclass
class _Owed:
    future: Future[list[Outcome]]
    left: set[str]
    outcomes: list[Outcome] = field(default_factory=list)


class Executor(ABC):
    """Does tasks. Whoever submits one gets a future, which holds the outcomes of all its runs once they are there.

    Tasks are done while somebody iterates over `completed`, which ends when nothing is left to do. More may be submitted
    meanwhile. A run is told of once, however often it was played.
    """

    remote = False
    """Whether tasks are done elsewhere, where nothing is known of what is compiled."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.notices: list[str] = []
        """Lines for the user, in the order in which they came up."""
        self._owed: dict[str, _Owed] = {}

    def submit(self, task: Task) -> Future[list[Outcome]]:
        """Take a task over."""
        owed = _Owed(Future(), {task.id_of(run) for run in task.runs})
        self._owed |= dict.fromkeys(owed.left, owed)
        self._take(task)
        return owed.future

    def completed(self) -> Iterator[Told]:
        """Do the tasks and yield outcomes as they come.

        Raises
        ------
        ClusterError, UsageError
            Nothing moves any more, in one line; what is finished is stored.
        """
        for outcomes, task in self._done():
            mine = [outcome for outcome in outcomes if outcome.id in self._owed]
            for outcome in mine:
                self._settle(outcome)
            yield mine, task

    def state(self) -> State | None:
        """Return where it stands, None where there is nothing to tell."""
        return None

    def close(self) -> None:
        """Let go of everything; what was not done is cancelled."""
        for owed in {id(each): each for each in self._owed.values()}.values():
            owed.future.cancel()
        self._owed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(self, outcome: Outcome) -> None:
        owed = self._owed.pop(outcome.id)
        owed.outcomes.append(outcome)
        owed.left.discard(outcome.id)
        if not owed.left:
            owed.future.set_result(owed.outcomes)

    @abstractmethod
    def _take(self, task: Task) -> None:
        """Put a task where `_done` finds it."""

    @abstractmethod
    def _done(self) -> Iterator[Told]:
        """Do what was taken, and what is taken meanwhile; yield outcomes as they come."""
