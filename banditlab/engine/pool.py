"""The package's own runs side by side, by joblib's loky; where a worker of it dies, `workers` does the rest.

loky's pool breaks as a whole, and which run was being played when a worker died is not known: so nobody is blamed here.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from banditlab.children import begin, import_path, safe_start
from banditlab.engine import workers
from banditlab.engine.processes import environment
from banditlab.engine.work import Outcome, Task, execute
from banditlab.results.store import Store

IDLE_SECONDS = 300
"""How long the pool's processes wait for the next sweep."""
IN_FLIGHT = 2
"""Tasks per process that are sent at a time: one that is played, and the next one."""


def dispatch(tasks: Iterable[Task], jobs: int, store: Store) -> Iterator[tuple[list[Outcome], Task]]:
    """Play tasks without foreign code or limits in `jobs` processes; yield outcomes as they come, with their task.

    A deque is used itself, and may grow meanwhile.

    Raises
    ------
    UsageError
        One worker after another ends before it begins a run.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    queue = tasks if isinstance(tasks, deque) else deque(tasks)
    flying: dict[Any, Task] = {}
    before = store.failed()
    try:
        yield from _parallel(queue, flying, jobs)
    except BrokenProcessPool:
        for task in reversed(flying.values()):
            stored, left = workers.stored_outcome(task, store, before)
            if stored:
                yield stored
            if left:
                queue.appendleft(replace(task, runs=tuple(left)))
        if queue:
            yield from workers.dispatch(queue, jobs, store)


def _parallel(queue: deque[Task], flying: dict[Any, Task], jobs: int) -> Iterator[tuple[list[Outcome], Task]]:
    """Send tasks, a few at a time, and yield results; `flying` holds the tasks without a result yet."""
    from concurrent.futures import FIRST_COMPLETED, wait

    from joblib.executor import get_memmapping_executor  # the one that joblib's own Parallel uses in this process

    start = {"initializer": begin, "initargs": (import_path(), os.getpid())}
    with safe_start():
        pool = get_memmapping_executor(jobs, timeout=IDLE_SECONDS, env=environment(), **start)
    try:
        while queue or flying:
            while queue and len(flying) < IN_FLIGHT * jobs:
                task = queue.popleft()
                try:
                    with safe_start():  # joblib starts processes when it needs them
                        flying[pool.submit(execute, task)] = task
                except BaseException:  # the pool is broken
                    queue.appendleft(task)
                    raise
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: future.exception() is not None):  # results before errors
                outcomes = future.result()
                yield outcomes, flying.pop(future)
    finally:
        if flying:  # interrupted, or broken: the rest is not waited for
            pool.terminate(kill_workers=True)
