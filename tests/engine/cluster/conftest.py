"""A cluster's executor whose scheduler, clock and futures a test moves by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from banditlab.engine.executors import cluster as cluster_module
from banditlab.engine.executors.cluster import Cluster
from banditlab.results.store import Store
from tests.engine.cluster.by_hand import Clock, Inbox, Wire


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(cluster_module, "time", made)
    return made


@pytest.fixture
def wire(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire(clock)
    monkeypatch.setattr(cluster_module, "Link", lambda *_: made)
    monkeypatch.setattr(cluster_module, "threading", SimpleNamespace(Thread=made.thread))
    return made


@pytest.fixture
def started(wire: Wire, clock: Clock, tmp_path: Path) -> Callable[..., Cluster]:
    """Return a function that makes an executor, its workers by name with their threads."""

    def start(**threads: int) -> Cluster:
        wire.workers = {name: {"nthreads": n, "last_seen": 0} for name, n in threads.items()}
        made = Cluster("tcp://here", Store(tmp_path / "out"), 60.0)
        made.arrived = Inbox(clock)  # type: ignore[assignment]
        return made

    return start
