"""Run a sweep's tasks in processes with one task at a time, so a run that kills or hangs its process can be identified.

If a process with a task of several runs is lost, its stored runs count, and the remaining runs are repeated in separate
tasks. A run is recorded as failed only if its task had no other runs.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace

from banditlab.engine import processes
from banditlab.engine.processes import Worker, acquire, how_it_ended, is_death, make_idle
from banditlab.engine.work import COMPILE_SECONDS, Outcome, Task, execute, prepare, store_failure
from banditlab.errors import UsageError
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store

ATTEMPTS = 2  # attempts at a run that ends its process, in a task of its own
STARTS = 5  # consecutive processes that may end during their start
TICK = 0.2  # seconds between two checks of the time limits
INTERRUPT_SECONDS = 5.0  # time limit for an interrupted process to store finished runs

Result = tuple[list[Outcome], Task]


def dispatch(
    tasks: Iterable[Task], jobs: int, store: Store, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Result]:
    """Run tasks in `jobs` processes; yield outcomes, with their task, as they arrive.

    If `tasks` is a deque, tasks may be added to it during the call. When `stopped` returns True, the workers store
    finished runs and end.

    Raises
    ------
    UsageError
        Several consecutive processes ended during their start, or a lab (a user's project folder) cannot be opened.
    """
    queue = tasks if isinstance(tasks, deque) else deque(tasks)
    before, tries, starts = store.failed(), Counter[str](), 0
    workers: list[Worker] = []
    try:
        while (queue or any(worker.task for worker in workers)) and not stopped():
            while queue and len(workers) < jobs:
                workers.append(acquire(queue[0].labs, foreign=queue[0].foreign))
            done = wait([worker.future for worker in workers], timeout=TICK, return_when=FIRST_COMPLETED).done
            for worker in list(workers):
                late = worker.future not in done and time.monotonic() > worker.until
                if worker.future not in done and not late:
                    continue
                error = None if late else worker.future.exception()
                if late or is_death(error):
                    workers.remove(worker)
                    worker.end()
                    if worker.task is None:
                        starts += 1
                        if starts > STARTS:
                            raise UsageError(f"worker processes end before they begin a run ({how_it_ended(error)})")
                    else:
                        yield from _lost(worker, late, how_it_ended(error), store, before, queue, tries)
                    continue
                starts = 0
                if error is not None:
                    raise error
                if worker.preparing:
                    _play(worker)
                    continue
                if worker.task is not None:
                    yield worker.future.result(), worker.task
                    worker.task = None
                if queue:
                    _assign(worker, queue.popleft())
                else:
                    workers.remove(worker)
                    make_idle(worker)
    finally:
        _end(workers)


def _end(workers: list[Worker]) -> None:
    busy = [worker for worker in workers if worker.task]
    for worker in busy:
        worker.interrupt()
    wait([worker.future for worker in busy], timeout=INTERRUPT_SECONDS)
    for worker in workers:
        worker.end()


def _lost(
    worker: Worker, late: bool, how: str, store: Store, before: set[str], queue: deque[Task], tries: Counter[str]
) -> Iterator[Result]:
    """Yield the stored outcomes of a task whose process ended; repeat its other runs singly, or record a single run as failed.

    If the task computes comparators, its finished runs are repeated too. `before` contains the ids of runs that
    failed before the sweep began; those records do not count as results of this task.
    """
    task = worker.task
    assert task is not None
    finished = set() if task.comparators else finished_runs(store.folder)
    failed = store.failed() - before
    alone = len(task.runs) == 1
    for run in task.runs:
        id_, single = task.id_of(run), replace(task, runs=(run,))
        tries[id_] += alone
        if id_ in finished or id_ in failed:
            yield [Outcome(id_, run.rounds, 0.0, "" if id_ in finished else "recorded as failed")], single
        elif alone and (late or tries[id_] >= ATTEMPTS):
            why = f"its worker process died in each attempt at this run alone ({how})"
            if late:
                limit = f"{COMPILE_SECONDS:g} s to compile" if worker.preparing else f"run_timeout = {task.limit:g} s"
                why = f"it took longer than {limit}"
            outcome = store_failure(store, run, task.comparators, why, "the worker process left no traceback")
            yield [outcome], single
        else:
            queue.appendleft(single)


def _assign(worker: Worker, task: Task) -> None:
    """Start a task. If it has a time limit, kernels are compiled first, and this time does not count."""
    worker.task, worker.preparing = task, bool(task.limit) and not task.foreign
    if worker.preparing:
        worker.call(COMPILE_SECONDS, prepare, task)
    else:
        _play(worker)


def _play(worker: Worker) -> None:
    worker.preparing = False
    worker.call(worker.task.limit or math.inf, _done, worker.task)


def _done(task: Task) -> list[Outcome]:
    return execute(task, lambda: bool(processes.interrupts))
