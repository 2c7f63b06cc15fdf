"""The package's own runs side by side, by joblib; where a worker of it dies, the rest is done by a crew.

joblib's pool breaks as a whole, and which run was being played when a worker died is not known: so nobody is blamed here.
What is stored by then counts, and `crew`, whose workers say which run they begin, does the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from banditlab.engine import crew
from banditlab.engine.plan import Run
from banditlab.engine.serving import end_with
from banditlab.engine.work import Outcome, Task, execute
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store


def dispatch(tasks: Sequence[Task], jobs: int, store: Store) -> Iterator[tuple[list[Outcome], Task]]:
    """Have tasks without foreign code or limits done by `jobs` processes; yield outcomes as they come, with their task.

    Raises
    ------
    UsageError
        One worker after another ends before it begins a run.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = dict(enumerate(tasks))
    try:
        for index, outcomes in _parallel(left, jobs):
            yield outcomes, left.pop(index)
    except BrokenProcessPool:
        finished, failed = finished_runs(store.folder), store.failed()
        undone: list[Task] = []
        for task in left.values():
            known = [outcome for run in task.runs if (outcome := _known(task, run, finished, failed))]
            settled = {outcome.id for outcome in known}
            if known:
                yield known, replace(task, runs=tuple(run for run in task.runs if task.id_of(run) in settled))
            rest = tuple(run for run in task.runs if task.id_of(run) not in settled)
            if rest:
                undone.append(replace(task, runs=rest))
        if undone:
            yield from crew.dispatch(undone, jobs, store)


def _known(task: Task, run: Run, finished: set[str], failed: set[str]) -> Outcome | None:
    """Return what the folder says of a run that nobody has told of, None for nothing; comparators are computed again."""
    if task.id_of(run) in failed:
        return Outcome(task.id_of(run), run.rounds, 0.0, "recorded as failed")
    return Outcome(run.run_id, run.rounds, 0.0) if not task.comparators and run.run_id in finished else None


def _parallel(tasks: dict[int, Task], jobs: int) -> Iterator[tuple[int, list[Outcome]]]:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    yield from pool(delayed(_numbered)(index, task, os.getpid()) for index, task in list(tasks.items()))


def _numbered(index: int, task: Task, parent: int) -> tuple[int, list[Outcome]]:
    end_with(parent)
    return index, execute(task)
