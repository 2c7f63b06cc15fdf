"""The worker's side of a cluster: run a task in a temporary folder and return its files.

Separate processes on the worker's machine execute the runs, one per thread (see `workers`). A run that kills or hangs
its process therefore does not end the worker and can be identified, as on a single machine.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin, get_worker

from banditlab.engine import workers
from banditlab.engine.executors.parcels import Parcel, unpack, versions
from banditlab.engine.work import Outcome, Task
from banditlab.errors import UsageError
from banditlab.results.schema import SHARDS
from banditlab.results.store import Store

FILES = 60.0
"""Time limit in seconds for a task's files to arrive on the worker."""

Played = tuple[list[Outcome], dict[str, bytes]]
"""Outcomes, and their files by name in a results folder."""


class Files(WorkerPlugin):
    """Packed files for every worker, including workers that connect later."""

    def __init__(self, key: str, content: bytes) -> None:
        self.key, self.content = key, content

    def setup(self, worker: Any) -> None:
        """Write the files on a worker's machine."""
        unpack(_home(worker), self.key, self.content)
        self.content = b""


def played(expected: dict[str, str], parcel: bytes) -> Played:
    """Run a task.

    Parameters
    ----------
    expected
        The `versions` on the machine of the sweep.
    parcel
        A pickled `Parcel`, which is opened only if the versions are the same.

    Raises
    ------
    UsageError
        Versions differ, processes cannot be started, or files do not arrive.
    OSError
        The worker's disk is full.
    """
    worker = get_worker()
    _check(worker.address, expected)
    home = _home(worker)
    opened: Parcel = pickle.loads(parcel)
    _wait_for(opened.paths(home), worker.address)
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix="task-", ignore_cleanup_errors=True) as folder:
        return _play(opened, home, Store(Path(folder) / "store"), worker)


def _home(worker: Any) -> Path:
    return Path(worker.local_directory) / "banditlab"


def _wait_for(paths: list[Path], address: str) -> None:
    until = time.monotonic() + FILES
    while not all(path.exists() for path in paths):
        if time.monotonic() > until:
            raise UsageError(f"worker {address} did not receive the files of tables and labs within {FILES:g} s")
        time.sleep(0.1)


def _check(address: str, expected: dict[str, str]) -> None:
    there = versions()
    other = [f"{name} {there.get(name)} (here {mine})" for name, mine in expected.items() if there.get(name) != mine]
    if other:
        raise UsageError(f"worker {address} has {', '.join(other)}; all workers need the versions installed here")


def _play(parcel: Parcel, home: Path, store: Store, worker: Any) -> Played:
    key = worker.get_current_task()

    def is_unwanted() -> bool:
        """Return whether the sweep has ended, or the scheduler has sent the task to another worker."""
        known = worker.state.tasks.get(key)
        return known is None or known.state != "executing"

    # Dask sets it to return free memory immediately, which makes short runs 5 % slower.
    os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
    for name, content in parcel.comparators.items():
        store.write(name, content)
    outcomes: list[Outcome] = []
    for some, _ in workers.dispatch([_placed(parcel, home, store)], 1, store, is_unwanted):
        outcomes += some
    names = store.files.names(SHARDS, "comparators/*", "failed/*.json")
    return outcomes, {name: (store.folder / name).read_bytes() for name in names}


def _placed(parcel: Parcel, home: Path, store: Store) -> Task:
    """Return the task with paths to the folders and files on this machine; the ids of the runs do not change."""
    runs = []
    for run, places in zip(parcel.task.runs, parcel.places, strict=True):
        here = {setting: str(home / place) for setting, place in places.items()}
        settings = run.environment["settings"] | here
        placed = replace(run, environment=run.environment | {"settings": settings})
        vars(placed).update({name: value for name, value in vars(run).items() if name != "environment"})
        runs.append(placed)
    labs = tuple(str(home / lab) for lab in parcel.labs)
    return replace(parcel.task, folder=str(store.folder), labs=labs, runs=tuple(runs))
