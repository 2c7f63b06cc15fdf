"""What a worker of a cluster does with a parcel, and the files that travel."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.engine.executors import freight, remote
from banditlab.engine.work import Outcome, Task
from banditlab.errors import UsageError
from banditlab.results.files import listing
from banditlab.results.schema import SUMS
from banditlab.results.store import Store


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a worker of a cluster that is asked for its folder and its task's state."""
    tasks = {"key": SimpleNamespace(state="executing")}
    made = SimpleNamespace(
        address="tcp://w", local_directory=str(tmp_path / "w"), get_current_task=lambda: "key",
        state=SimpleNamespace(tasks=tasks),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=lambda: made))
    return made


def test_a_worker_plays_what_it_has_the_files_for(
    worker: Any, tasks: list[Task], tmp_path: Path, monkeypatch: Any
) -> None:
    seen: list[Any] = []

    def dispatch(some: list[Task], jobs: int, store: Store, stopped: Any) -> Any:
        [task] = some
        assert Path(task.folder).parents[1] == tmp_path / "w" / "banditlab"
        assert (store.folder / "comparators" / "s.npz").read_bytes() == b"old"
        seen.append((jobs, task.runs, stopped()))
        store.write("comparators/t.npz", b"new")
        for run in task.runs:
            yield [Outcome(task.id_of(run), 300, 1.0)], task

    monkeypatch.setattr(remote.workers, "dispatch", dispatch)
    task = replace(tasks[0], runs=tasks[0].runs + tasks[1].runs)
    parcel = {
        "sweep": "s1", "package": freight.package_digest(), "needs": [], "paths": [{}, {}], "labs": [],
        "files": {"comparators/s.npz": b"old"}, "task": pickle.dumps(task),
    }  # fmt: skip
    said = remote.played(parcel)
    assert said["files"].pop(SUMS).split(b"\n")[1:] == [
        listing("comparators/s.npz", b"old"),
        listing("comparators/t.npz", b"new"),
    ]
    ids = [task.id_of(run) for run in task.runs]
    assert said == {
        "worker": "tcp://w",
        "outcomes": [(id_, 300, 1.0, "", 0.0) for id_ in ids],
        "files": {"comparators/t.npz": b"new"},
        "refused": "",
    }
    assert seen[0] == (1, task.runs, False)
    assert not [*(tmp_path / "w" / "banditlab").iterdir()]
    assert remote.played(parcel)["files"].keys() == {SUMS, "comparators/t.npz"}
    assert remote.played(parcel | {"package": "another"}) == {"worker": "tcp://w", "stranger": True}
    freight.put(tmp_path / "w" / "banditlab", {freight.key_of("a", b"x"): ("a", b"x")})
    needs = [freight.key_of("a", b"x"), "not there"]
    assert remote.played(parcel | {"needs": needs}) == {"worker": "tcp://w", "missing": ["not there"]}


@pytest.mark.parametrize("where", ["home", "lab", "store"])
def test_a_worker_whose_disk_is_full_says_so_and_fails_no_run(
    where: str, worker: Any, tasks: list[Task], tmp_path: Path, monkeypatch: Any
) -> None:
    """An error would be the task's: a worker that fails at once gets one after the other."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remote.workers, "dispatch", lambda *_: pytest.fail("it has no folder"))
    if where == "home":
        monkeypatch.setattr(remote.tempfile, "TemporaryDirectory", full)
    elif where == "lab":
        monkeypatch.setattr(remote.freight, "laid_out", full)
    else:
        monkeypatch.setattr(Store, "write", full)
    parcel = {
        "sweep": "s3", "package": freight.package_digest(), "needs": [], "paths": [{}], "labs": [[]],
        "files": {"comparators/s.npz": b"old"}, "task": pickle.dumps(tasks[0]),
    }  # fmt: skip
    said = remote.played(parcel)
    assert said == {"worker": "tcp://w", "outcomes": [], "files": {}, "refused": "No space left on device"}


@pytest.mark.parametrize("state", ["executing", "cancelled", "released", "forgotten", "gone", "stopped"])
def test_a_worker_stops_when_nobody_wants_it_any_more(
    state: str, worker: Any, tasks: list[Task], monkeypatch: Any
) -> None:
    if state == "gone":
        worker.state.tasks.clear()
    elif state == "stopped":
        monkeypatch.setattr(remote, "_stopped", set())
        remote.stop("s2")
    else:
        worker.state.tasks["key"].state = state
    seen: list[bool] = []
    monkeypatch.setattr(remote.workers, "dispatch", lambda some, jobs, store, stopped: seen.append(stopped()) or [])
    parcel = {
        "sweep": "s2", "package": freight.package_digest(), "needs": [], "paths": [{}], "labs": [], "files": {},
        "task": pickle.dumps(tasks[0]),
    }  # fmt: skip
    remote.played(parcel)
    assert seen == [state != "executing"]


def test_a_run_reads_the_file_that_was_sent_and_keeps_its_identity(small: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n2,y\n3,x\n")
    environment = [{"id": "banditlab/Table-v0", "path": str(tmp_path / "t.csv"), "label": "kind"}]
    run = small(environment=environment, agent=[{"id": "uniform"}], norm_bounds=[], rounds=5).plan.runs[0]
    ship = freight.Freight()
    paths = ship.of_run(run)
    assert ship.of_run(run) == paths
    id_, _ = run.run_id, run.stream_id
    freight.put(tmp_path / "deep" / "home", ship.parts)
    moved = remote._located(run, paths, tmp_path / "deep" / "home")
    here = freight.only_file(tmp_path / "deep" / "home", paths["path"])
    assert moved.environment["settings"] == run.environment["settings"] | {"path": str(here)}
    assert moved.environment["identity"] == run.environment["identity"]
    assert {name: vars(moved)[name] for name in ("run_id", "stream_id")} == {"run_id": id_, "stream_id": run.stream_id}
    assert remote._located(run, {}, tmp_path) is run


def test_a_file_is_what_its_key_says_under_a_plain_name(tmp_path: Path, monkeypatch: Any) -> None:
    assert (freight.PACKAGE.name, (freight.PACKAGE / "problem.py").exists()) == ("banditlab", True)
    for name in ("", ".", "..", "a/b"):
        with pytest.raises(UsageError, match="damaged on its way"):
            freight.put(tmp_path, {freight.key_of(name, b"x"): (name, b"x")})
    assert not [*tmp_path.iterdir()]
    key = freight.key_of("a", b"x")
    freight.put(tmp_path, {key: ("a", b"x")})
    freight.only_file(tmp_path, key).unlink()  # somebody cleared old files away
    assert not freight.has(tmp_path, key)
    freight.put(tmp_path, {key: ("a", b"x")})
    assert freight.only_file(tmp_path, key).read_bytes() == b"x"
    for _ in range(2):  # another thread was quicker
        monkeypatch.setattr(freight, "has", lambda *_: False)
        freight.put(tmp_path, {key: ("a", b"x")})
    assert [each.name for each in tmp_path.iterdir()] == [key]
    for inside in ("evil/a", "agents/../a", "agents/b/a", "a"):
        with pytest.raises(UsageError, match="not a lab's file"):
            freight.laid_out(tmp_path, [(inside, key)])
    lab = Path(freight.laid_out(tmp_path, [("agents/a", key), ("envs/a", key)]))
    assert [(lab / room / "a").read_bytes() for room in ("agents", "envs")] == [b"x", b"x"]
