"""The executor for a Dask cluster: tasks are futures, and only this process writes the results folder.

Files are sent once to each worker. Failures have these consequences:

* A run ends its process, hangs, or takes all memory: each run is executed in a child process of a worker, so only this
  run fails (see `remote`).
* A worker dies: Dask gives its tasks to other workers, up to Dask's setting `allowed-failures` (3). Each death counts
  for every task of the worker. If a task exceeds the limit, each of its runs is therefore run again, with nothing else
  in the cluster. If the deaths of workers exceed the limit again, the run is recorded as failed.
* A worker does not respond for `SILENT` seconds: its tasks go to other workers.
* A task raises an error, for instance because a worker's disk is full: Dask retries it `RETRIES` times, then the sweep
  ends.
* The connection to the scheduler breaks: the sweep ends immediately.
* For `patience` seconds the scheduler does not respond, or no responding worker has a task: the sweep ends.

When a sweep ends early, finished runs are stored, and the next call runs the rest.

joblib's Dask backend is not used, because it waits forever for a future that fails.
"""

from __future__ import annotations

import contextlib
import pickle
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distributed import as_completed
from distributed.scheduler import KilledWorker

from banditlab.engine.executors.connection import CLOSE, connected
from banditlab.engine.executors.parcels import Parcel, packed, versions
from banditlab.engine.executors.remote import Files, played
from banditlab.engine.plan import Run
from banditlab.engine.progress import ClusterState
from banditlab.engine.work import Outcome, Task, store_failure
from banditlab.errors import BanditlabError, ClusterError, UsageError
from banditlab.registry import registry
from banditlab.results.incoming import take
from banditlab.results.store import Store

CONNECT = 30.0
"""Time limit in seconds for the connection to a scheduler."""
TICK = 0.02
"""Seconds between two checks for results."""
POLL = 2.0
"""Seconds between two queries of the scheduler about its workers."""
ANSWER = 10.0
"""Time limit in seconds for a response of the scheduler."""
FETCH = 30.0
"""Time limit in seconds for fetching a result from its worker; after that the task is run again."""
SILENT = 30.0
"""Seconds without a heartbeat after which a worker's tasks go to other workers."""
IN_FLIGHT = 2
"""Number of unfinished tasks per thread that are sent to the cluster."""
RETRIES = 2
"""How often a task that raises an error, or whose result cannot be fetched, is run again."""

Arrived = tuple[list[Outcome], Task | None]
"""Outcomes and their task; an empty list and None if no result arrived in the meantime."""


@contextlib.contextmanager
def on_cluster(where: Any, store: Store, patience: float) -> Iterator[Cluster]:
    """Connect to a cluster until the end of the `with` block; then cancel the remaining tasks.

    Parameters
    ----------
    where
        tcp://HOST:PORT, tls://HOST:PORT, a scheduler file, "local:N", a `distributed.Client` or a Dask cluster object.
    store
        The results folder, which only this process writes.
    patience
        Seconds without a response from the scheduler, or without a worker that runs tasks, after which the sweep ends.

    Raises
    ------
    UsageError
        The address does not exist.
    ClusterError
        No scheduler responds there, or no worker connects within `patience` seconds.
    """
    with connected(where, min(patience, CONNECT)) as client:
        cluster = Cluster(client, where if isinstance(where, str) else client.scheduler.address, store, patience)
        try:
            yield cluster
        finally:
            for sent in cluster.sent.values():
                sent.future.release()
            with contextlib.suppress(Exception):  # the cluster may be gone
                client.sync(cluster.forget, callback_timeout=CLOSE)


@dataclass(frozen=True)
class Sent:
    """A task that was sent to the cluster."""

    task: Task
    future: Any
    alone: bool
    """Whether no other task is in the cluster, so a worker that dies was lost because of this one."""


class Cluster:
    """An executor that runs tasks on the workers of a Dask cluster; see `on_cluster`."""

    def __init__(self, client: Any, name: str, store: Store, patience: float) -> None:
        self.client, self.name, self.store, self.patience = client, name, store, patience
        self.jobs = 1
        """Number of threads of the responding workers."""
        self.notices: list[str] = []
        self.queue, self.suspects = deque[Task](), deque[Task]()
        self.sent: dict[str, Sent] = {}
        self.arriving = as_completed(loop=client.loop)
        self.keys: dict[Path, str] = {}  # the hashes of files and lab folders that were sent
        self.id = uuid.uuid4().hex
        self.tries = Counter[str]()
        self.heartbeats: dict[str, tuple[float, int]] = {}  # by worker: last heartbeat, number of polls since then
        self.silent: set[str] = set()
        self.polled = time.monotonic() - POLL
        self.idle = 0.0  # seconds since tasks were sent but none was being executed
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            raise ClusterError(f"{name}: no worker connected within {patience:g} s") from None
        self._poll()

    def submit(self, task: Task) -> None:
        """Accept a task at any time."""
        self.queue.append(task)

    def state(self) -> ClusterState:
        """Return the number of workers that respond, and the number of tasks that are sent but not finished."""
        return ClusterState(len(self.heartbeats.keys() - self.silent), len(self.sent))

    def completed(self) -> Iterator[Arrived]:
        """Run the tasks and yield outcomes as they arrive.

        Raises
        ------
        ClusterError
            The scheduler is lost, no worker runs tasks, or a worker cannot run them. Finished runs are stored.
        """
        try:
            while self.queue or self.sent or self.suspects:
                self._poll()
                self._send()
                batch = self.arriving.next_batch(block=False)
                for future in batch:
                    self._poll()
                    yield from self._received(future)
                if not batch:
                    yield [], None
                    time.sleep(TICK)
        except BanditlabError:
            raise
        except Exception:  # Dask raises various exceptions when its connection breaks
            self._require_connection()
            raise

    # ---------------------------------------------------------------------------------------------------- polling the cluster

    def _require_connection(self) -> None:
        if self.client.status != "running":
            raise self._ended("the connection to the scheduler is lost")

    def _ended(self, why: str) -> ClusterError:
        return ClusterError(f"{self.name}: {why}; finished runs are stored; the same command runs the rest")

    def _notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)

    def _poll(self) -> None:
        """Ask the scheduler every `POLL` seconds which tasks each worker runs. Raise a ClusterError if for `patience`
        seconds the scheduler does not respond, or no responding worker has a task.
        """
        self._require_connection()
        before = self.polled
        if time.monotonic() - before < POLL:
            return
        found = self._asked("identity")
        busy = None if found is None else self._asked("processing")
        self.polled = time.monotonic()
        if busy is not None and "dashboard" in found["services"]:
            self._notice(f"dashboard: {self.client.dashboard_link}")
        is_playing = busy is not None and self._is_any_playing(found["workers"], busy)
        if is_playing or not self.sent:
            self.idle = 0.0
        else:  # limited to the duration of a poll, because this process may have been suspended
            self.idle += min(self.polled - before, POLL + ANSWER)
        if self.idle > self.patience:
            why = f"no responding worker has had a task for {self.patience:g} s"
            raise self._ended(why if busy is not None else f"the scheduler has not responded for {self.patience:g} s")

    def _asked(self, question: str) -> Any:
        """Return the scheduler's response, or None after `ANSWER` seconds."""
        try:
            return self.client.sync(getattr(self.client.scheduler, question), callback_timeout=ANSWER)
        except OSError:
            return None

    def _is_any_playing(self, workers: dict[str, Any], busy: dict[str, Any]) -> bool:
        """Return whether a responding worker has a task. Dask reassigns the tasks of workers that do not respond."""
        self.heartbeats = {
            address: self._heartbeat(address, worker["last_seen"]) for address, worker in workers.items()
        }
        late = {address for address, (_, polls) in self.heartbeats.items() if polls * POLL > SILENT}
        self.silent = late | {address for address, worker in workers.items() if worker["status"] == "paused"}
        self.jobs = max(1, sum(worker["nthreads"] for address, worker in workers.items() if address not in self.silent))
        places = {key: address for address, keys in busy.items() for key in keys if key in self.sent}
        for key, address in places.items():
            if address in self.silent:
                self._notice(f"{address} does not respond, or has no memory left; its tasks go to others")
                self.sent[key].future.release()  # it then arrives as cancelled
        return any(address not in self.silent for address in places.values())

    def _heartbeat(self, address: str, last_seen: float) -> tuple[float, int]:
        before, polls = self.heartbeats.get(address, (-1.0, 0))
        return last_seen, polls + 1 if last_seen == before else 0

    # ---------------------------------------------------------------------------------------------------------------- sending

    def _send(self) -> None:
        if any(sent.alone for sent in self.sent.values()):
            return
        while self.queue and len(self.sent) < IN_FLIGHT * self.jobs:
            self._submit(self.queue.popleft(), alone=False)
        if self.suspects and not self.sent:
            self._submit(self.suspects.popleft(), alone=True)

    def _submit(self, task: Task, *, alone: bool) -> None:
        parcel = pickle.dumps(self._parcel(task))
        answering = sorted(self.heartbeats.keys() - self.silent) if self.silent else []
        future = self.client.submit(
            played,
            versions(),
            parcel,
            key=f"banditlab-{uuid.uuid4().hex}",
            retries=RETRIES,
            workers=answering or None,
            allow_other_workers=bool(answering),
        )
        self.sent[future.key] = Sent(task, future, alone)
        self.arriving.add(future)

    def _parcel(self, task: Task) -> Parcel:
        """Return a task as a parcel after sending its files."""
        for run in task.runs:  # computed here, because they may depend on classes that a worker does not have
            _ = run.run_id, run.stream_id, run.foreign
        labs = tuple(self._key_of(Path(lab)) for lab in task.labs)
        return Parcel(task, tuple(self._places(run) for run in task.runs), labs, self._comparators(task))

    def _places(self, run: Run) -> dict[str, str]:
        """Return, for each setting of the run's environment that names a file, the file's path on a worker."""
        settings = getattr(registry().load("envs", run.environment["id"]), "path_settings", ())
        paths = {name: Path(path) for name in settings if (path := run.environment["settings"][name])}
        return {name: f"{self._key_of(path)}/{path.name}" for name, path in paths.items()}

    def _key_of(self, path: Path) -> str:
        """Return the hash of a file or a lab folder; send its content to the workers the first time."""
        if path not in self.keys:
            lab = sorted([*path.glob("agents/*.py"), *path.glob("envs/*.py")])
            try:
                key, content = packed(lab, path) if path.is_dir() else packed([path], path.parent)
            except OSError as error:
                raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
            if key not in self.keys.values():
                self._register(Files(key, content))
            self.keys[path] = key
        return self.keys[path]

    def _register(self, files: Files) -> None:
        """Send files to the workers; the scheduler also sends them to workers that connect later."""
        register, name = self.client.register_plugin, f"{self.id}-{files.key}"
        for tries in range(RETRIES + 1):
            try:
                self.client.sync(register, files, name=name, callback_timeout=FETCH)
                return
            except TimeoutError:  # a worker does not respond; on the others, tasks wait for the files
                return
            except Exception as error:  # a worker died, or its disk is full
                if tries == RETRIES:
                    self._require_connection()
                    raise self._ended(f"a worker does not accept files ({type(error).__name__}: {error})") from None

    async def forget(self) -> None:
        """Remove the files from the scheduler."""
        for key in set(self.keys.values()):
            await self.client.unregister_worker_plugin(f"{self.id}-{key}")

    def _comparators(self, task: Task) -> dict[str, bytes]:
        """Return the stored comparator files of a task's streams."""
        files: dict[str, bytes] = {}
        for run in task.runs:
            if task.comparators or run.adaptive:
                names = self.store.comparator_files(run.stream_id)
                found = {name: data for name in names if (data := self.store.files.data(name)) is not None}
                files |= found if len(found) == len(names) else {}
        return files

    # -------------------------------------------------------------------------------------------------------------- receiving

    def _received(self, future: Any) -> Iterator[Arrived]:
        """Store a task's results, or run the task again if there are none."""
        sent = self.sent.pop(future.key)
        if future.status not in ("error", "cancelled"):
            try:
                outcomes, files = future.result(timeout=FETCH)
            except Exception as error:  # its worker does not respond, or is gone
                self._count(sent.task, f"a result cannot be fetched ({type(error).__name__})")
                self.idle += FETCH
            else:
                self.idle = 0.0
                take(self.store, files)
                yield outcomes, sent.task
                return
        if future.status == "error":
            yield from self._failed(sent, future.exception())
        else:  # cancelled because its worker does not respond, or the scheduler is lost
            (self.suspects if sent.alone else self.queue).appendleft(sent.task)

    def _count(self, task: Task, why: str) -> None:
        """Count a failed attempt of a task; raise a ClusterError if there are more than `RETRIES`."""
        self.tries[id_ := task.id_of(task.runs[0])] += 1
        if self.tries[id_] > RETRIES:
            raise self._ended(why)

    def _failed(self, sent: Sent, error: BaseException) -> Iterator[Arrived]:
        task = sent.task
        if not isinstance(error, KilledWorker):
            kind = "" if isinstance(error, UsageError) else f"a worker raises {type(error).__name__}: "
            raise self._ended(kind + " ".join(str(error).split())[:500])
        if sent.alone:
            why = f"{error.allowed_failures + 1} workers died while no other run was in the cluster"
            [run] = task.runs
            yield [store_failure(self.store, run, task.comparators, why, "the worker left no traceback")], task
        else:
            self.suspects += [replace(task, runs=(run,)) for run in task.runs]
