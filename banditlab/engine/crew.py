"""A sweep's tasks, done by worker processes: who dies takes down nobody else, and nobody else is blamed.

A worker has one task at a time and says which run it begins; of the package's own short runs it names several at once. When it
dies, the run it was in is tried again alone, in a fresh process (of several that were named, each is named by itself then), and
what it had not begun goes back to the queue. Only a run that was alone is ever blamed. A worker whose run takes longer than
allowed is ended.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from banditlab.engine.processes import GOODBYE, START_SECONDS, TICK, Mail, Worker, circumstances, dismissed, engaged
from banditlab.engine.work import Outcome, Task, store_failure
from banditlab.errors import UsageError
from banditlab.results.store import Store

ATTEMPTS = 2  # tries, alone, of a run that ends its process
KILLS = 5  # the same of a plug-in's run whose process was killed by a signal that may have come from outside
OUTSIDERS = (
    100  # the same of the package's own, which sends no such signal: where the system ran out of memory, ATTEMPTS
)
STARTS = 5  # workers in a row that may end before they begin a run; of those killed from outside, ten times as many
OUTSIDE = {"SIGKILL", "SIGTERM", "SIGHUP", "SIGINT"}
STUCK = 900.0  # seconds without any use of the processor after which a run without a limit is stuck: none of ours waits so long
HELD_UP = 5.0  # seconds between two looks at the clock from which on they are no run's: this process was held up


def dispatch(
    tasks: Iterable[Task], jobs: int, store: Store, stopped: Callable[[], bool] = lambda: False
) -> Iterator[tuple[list[Outcome], Task]]:
    """Have tasks done by `jobs` processes; yield outcomes as they come, with the task they belong to.

    All tasks are the package's own, or all are `foreign`: a plug-in may leave a process in any state. A deque is taken as it
    is, and may grow while its tasks are done. Once `stopped` says so the workers store what is finished, and nothing follows.

    Raises
    ------
    UsageError
        One worker after another ends before it begins a run.
    """
    crew = _Crew(tasks, jobs, store)
    try:
        yield from crew.work(stopped)
    finally:
        crew.leave()


class _Crew:
    def __init__(self, tasks: Iterable[Task], jobs: int, store: Store) -> None:
        self.queue = tasks if isinstance(tasks, deque) else deque(tasks)
        self.alone = deque[Task]()
        self.jobs, self.store = jobs, store
        self.mail: Mail = queue.SimpleQueue()
        self.key = circumstances(self.queue[0].labs, foreign=self.queue[0].foreign)
        self.workers: list[Worker] = []
        self.memory_kills = memory_kills()
        self.tries, self.kills, self.starts = Counter[str](), Counter[str](), Counter[bool]()
        self.looked = self.asked = time.monotonic()

    def work(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[tuple[list[Outcome], Task]]:
        self.looked = self.asked = time.monotonic()
        while self.queue or self.alone or any(worker.task for worker in self.workers):
            if stopped():
                return
            self._give()
            try:
                worker, word = self.mail.get(timeout=TICK)
            except queue.Empty:
                self._look_at_the_clock()
                continue
            if worker is None:
                self._look_at_the_clock()
                continue
            if time.monotonic() - self.asked >= TICK:
                # Others have much to say, and one hangs. What was said before the look counts.
                self.asked = time.monotonic()
                self.mail.put((None, None))
            if worker not in self.workers:  # dealt with already
                continue
            if word is None:
                yield from self._lost(worker)
            elif "began" in word:
                worker.running, worker.since = list(word["began"]), time.monotonic() + word.get("spare", 0.0)
                worker.late = False  # killed for the run before, which ended in that moment: this one took no time
                self.starts.clear()
            elif "refused" in word:
                number, text = word["refused"]
                raise OSError(number, text) if number else UsageError(text)
            elif "outcomes" in word and worker.task is not None:
                yield self._told(worker, word["outcomes"])
            elif "done" in word:
                if worker.left:  # not one of its runs may go unmentioned
                    self.queue.append(_of(worker.task, worker.left.values()))
                worker.fresh = False
                worker.rest(None)

    def _give(self) -> None:
        """Give every worker without a task one; a run that is tried alone goes to a process that has done nothing else."""
        for worker in [each for each in self.workers if not each.task]:
            if self.alone and not worker.fresh:
                self._discharge(worker)
            elif self.alone or self.queue:
                self._assign(worker)
        while (self.alone or self.queue) and len(self.workers) < self.jobs:
            worker = engaged(self.key, self.mail, fresh=bool(self.alone))
            self.workers.append(worker)
            self._assign(worker)

    def _assign(self, worker: Worker) -> None:
        task = self.alone.popleft() if self.alone and worker.fresh else self.queue.popleft() if self.queue else None
        if task is not None:
            worker.rest(task)
            worker.send("task", task)

    def _told(self, worker: Worker, said: list[list[Any]]) -> tuple[list[Outcome], Task]:
        assert worker.task is not None
        outcomes = [outcome for each in said if (outcome := Outcome(*each)).id in worker.left]
        return outcomes, _of(worker.task, [worker.left.pop(outcome.id) for outcome in outcomes])

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        held_up, self.looked, self.asked = now - self.looked, now, now
        for worker in self.workers:
            if held_up > HELD_UP:  # Ctrl-Z stops workers as well: that time is no run's
                worker.since += held_up
                worker.stirred += held_up
            if worker.task and worker.process.poll() is not None:  # a child of it may hold the pipe open
                self.mail.put((worker, None))
            elif worker.task and now - worker.since > _allowed(worker.task, len(worker.running)):
                worker.late = True
                worker.process.kill()
            elif worker.task and _computes(worker.task) and now - worker.since > STUCK and worker.is_idle_for(STUCK):
                worker.stuck = True
                worker.process.kill()

    def _lost(self, worker: Worker) -> Iterator[tuple[list[Outcome], Task]]:
        """A worker is gone: the run it was in is tried alone, or blamed if it was; the others go back to the queue."""
        task, left, running = worker.task, worker.left, worker.running
        why, late, fresh = worker.why(), worker.late, worker.fresh
        if worker.stuck:
            why = f"it used no processor for {STUCK:g} s"
        self._discharge(worker)
        if task is None or not left:
            return
        suspects = [left.pop(id_) for id_ in running if id_ in left]
        if left:
            self.queue.appendleft(_of(task, left.values()))
        if not suspects:
            self._count_start(f"none within {START_SECONDS:g} s" if late else why)
            return
        if len(suspects) == 1 and late:
            yield self._blame(task, suspects[0], f"it took longer than run_timeout = {task.limit:g} s")
        elif (
            len(suspects) == 1
            and fresh
            and len(task.runs) == 1
            and self._is_guilty(task.id_of(suspects[0]), why, task.foreign)
        ):
            yield self._blame(task, suspects[0], f"its worker died each time it was tried, alone ({why})")
        else:
            self._suspect(task, suspects)

    def _suspect(self, task: Task, runs: list[Any]) -> None:
        """Have runs, one of which may have ended its process, tried alone; of short ones told of at once, find out which."""
        if len(runs) > 1 and not (task.careful or task.together):
            self.queue.appendleft(replace(_of(task, runs), careful=True))
        else:
            self.alone.extend(_of(task, [run]) for run in runs)

    def _is_guilty(self, id_: str, why: str, foreign: bool) -> bool:
        """Count a run that was alone when its process ended, and return whether that is enough to blame it."""
        before, self.memory_kills = self.memory_kills, memory_kills()
        outside = why in OUTSIDE and before == self.memory_kills
        (self.kills if outside else self.tries)[id_] += 1
        most = KILLS if foreign or before is None else OUTSIDERS
        return self.kills[id_] >= most or self.tries[id_] >= ATTEMPTS

    def _blame(self, task: Task, run: Any, error: str) -> tuple[list[Outcome], Task]:
        if task.warming:  # the run itself will say so
            return [Outcome(task.id_of(run), 0, 0.0)], _of(task, [run])
        outcome = store_failure(self.store, run, task.comparators, error, "the worker process left no traceback")
        return [outcome], _of(task, [run])

    def _count_start(self, why: str) -> None:
        self.starts[why in OUTSIDE] += 1
        if self.starts[False] > STARTS or self.starts[True] > 10 * STARTS:
            raise UsageError(
                f"worker processes end before they begin a run ({why}); finished runs are stored, the same command does "
                "the rest"
            )

    def _discharge(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.end()

    def leave(self) -> None:
        """Let idle workers wait for other sweeps; interrupt the others, which store what is finished, and end them."""
        for worker in [each for each in self.workers if not each.task]:
            self.workers.remove(worker)
            if worker.process.poll() is None:
                dismissed(self.key, worker)
            else:
                worker.end()
        for worker in self.workers:
            with contextlib.suppress(OSError):
                worker.process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        until = time.monotonic() + GOODBYE
        for worker in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
            worker.end()
        self.workers = []


def memory_kills() -> int | None:
    """Return how many processes the system has killed for want of memory, None where it does not say."""
    try:
        lines = Path("/proc/vmstat").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def _allowed(task: Task, running: int) -> float:
    """Return the seconds a worker has: for the runs it said it was in, else to begin; a lab without a limit has any number."""
    if running:
        return running * task.limit if task.limit else math.inf
    return math.inf if task.foreign and not task.limit else task.limit + START_SECONDS


def _computes(task: Task) -> bool:
    """Return whether a task without a limit computes all the time: a lab's may wait for whatever it likes."""
    return not (task.limit or task.foreign)


def _of(task: Task, runs: Any) -> Task:
    return replace(task, runs=tuple(runs))
