"""The executor for this machine, with one process or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from banditlab.engine import workers
from banditlab.engine.work import Outcome, Task, execute
from banditlab.results.store import Store


class Local:
    """An executor that runs tasks in this process, or in `jobs` processes.

    Runs with a time limit, and runs that involve code of a lab (a user's project folder) or a plug-in, always use
    separate processes, which can be ended one by one (see `workers`). Runs that use only the package's code come first.
    """

    def __init__(self, jobs: int, store: Store) -> None:
        self.jobs, self.store = jobs, store
        self.notices: list[str] = []
        self._own, self._foreign = deque[Task](), deque[Task]()

    def submit(self, task: Task) -> None:
        """Accept a task at any time."""
        (self._foreign if task.foreign else self._own).append(task)

    def state(self) -> None:
        """Return None, because there is no cluster."""

    def completed(self) -> Iterator[tuple[list[Outcome], Task]]:
        """Run the tasks and yield outcomes, with their task, as they arrive."""
        while self._own or self._foreign:
            if not self._own:
                yield from workers.dispatch(self._foreign, self.jobs, self.store)
            elif any(task.limit for task in self._own) or (self.jobs > 1 and len(self._own) > 1):
                yield from workers.dispatch(self._own, self.jobs, self.store)
            else:
                task = self._own.popleft()
                yield execute(task), task
