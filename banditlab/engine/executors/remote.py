"""What runs in a cluster's worker: it says what it is, takes files, and plays tasks in temporary folders.

The worker is a courier. The runs are played by this package's own processes beside it (see `workers`), one thread each,
as many as the worker has threads: who ends such a process ends nothing else, limits and blame are theirs.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from banditlab.engine import workers
from banditlab.engine.executors import freight
from banditlab.engine.executors.freight import Parcel, Parts
from banditlab.engine.plan import Run
from banditlab.engine.work import Outcome, Task, facts
from banditlab.errors import UsageError
from banditlab.results.schema import SHARDS, SUMS
from banditlab.results.store import Store

FOLDER = "banditlab"
CACHED = ("run_id", "stream_id", "description", "foreign")
"""What the driver knows of a run: identities are hashes of classes' settings, and a worker need not know a lab's classes."""

TRIM = "MALLOC_TRIM_THRESHOLD_"
"""With it Dask's nannies have free memory given back at once, for tasks that leave much of it behind. The C library then asks
the system for every large array anew: twice the page faults, some 5 % of the time of short runs."""

_stopped: set[str] = set()
"""Sweeps that were told to stop."""


def hello() -> dict[str, Any]:
    """Return what this worker is: the package's digest, versions and processor."""
    return {"package": freight.package_digest(), "facts": facts()}


def receive(parts: Parts, dask_worker: Any = None) -> None:
    """Take files over; an error where one is not what its key says."""
    freight.put(_home(dask_worker), parts)


def stop(sweep: str) -> None:
    """Have the tasks of a sweep store what is finished and end."""
    _stopped.add(sweep)


def played(parcel: Parcel) -> dict[str, Any]:
    """Do a parcel's task and return {outcomes, files, refused}; or what is missing; or that this is another package."""
    from distributed import get_worker

    worker = get_worker()
    if parcel["package"] != freight.package_digest():
        return {"worker": worker.address, "stranger": True}
    home = _home(worker)
    missing = [key for key in parcel["needs"] if not freight.has(home, key)]
    if missing:
        return {"worker": worker.address, "missing": missing}
    key = worker.get_current_task()

    def stopped() -> bool:
        known = worker.state.tasks.get(key)  # the driver may be gone, and nobody want this any more
        return parcel["sweep"] in _stopped or known is None or known.state in ("cancelled", "released", "forgotten")

    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix="task-", ignore_cleanup_errors=True) as folder:
            return {"worker": worker.address, **_play(parcel, home, Path(folder) / "store", stopped)}
    except (OSError, UsageError) as error:  # its disk is full, and no run's fault: it would fail one after another
        return {"worker": worker.address, "outcomes": [], "files": {}, "refused": _why(error)}


def _home(worker: Any) -> Path:
    return Path(worker.local_directory) / FOLDER


def _play(parcel: Parcel, home: Path, folder: Path, stopped: Any) -> dict[str, Any]:
    task: Task = pickle.loads(parcel["task"])
    os.environ.pop(TRIM, None)  # this process has read it; those that play have not been started
    store = Store(folder)
    for name, content in parcel["files"].items():  # comparators that are there already
        store.write(name, content)
    labs = tuple(freight.laid_out(home, layout) for layout in parcel["labs"])
    runs = tuple(_located(run, paths, home) for run, paths in zip(task.runs, parcel["paths"], strict=True))
    task = replace(task, folder=str(store.folder), labs=labs, runs=runs)
    outcomes: list[Outcome] = []
    refused = ""
    try:
        for told, _ in workers.dispatch([task], 1, store, stopped) if runs else ():
            outcomes += told
    except (OSError, UsageError) as error:
        refused = _why(error)
    files = {name: content for name, content in _files(store.folder) if parcel["files"].get(name) != content}
    return {"outcomes": [astuple(outcome) for outcome in outcomes], "files": files, "refused": refused}


def _why(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


def _located(run: Run, paths: dict[str, str], home: Path) -> Run:
    """Return a run whose environment reads the files that were sent; its identity stays."""
    if not paths:
        return run
    here = {setting: str(freight.only_file(home, key)) for setting, key in paths.items()}
    settings = run.environment["settings"] | here
    moved = replace(run, environment=run.environment | {"settings": settings})
    vars(moved).update({name: vars(run)[name] for name in CACHED if name in vars(run)})
    return moved


def _files(folder: Path) -> Any:
    for pattern in (SUMS, SHARDS, "comparators/*.npz", "comparators/*.parquet", "failed/*.json"):
        for file in sorted(folder.glob(pattern)):
            yield file.relative_to(folder).as_posix(), file.read_bytes()
