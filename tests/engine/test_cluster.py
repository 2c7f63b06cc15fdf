"""A sweep on a Dask cluster is the sweep on one machine, whoever dies: two plain local workers that share no results folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from banditlab.engine import Sweep
from banditlab.engine.executors import cluster as cluster_module
from banditlab.engine.executors import freight, remote
from banditlab.engine.executors.cluster import Cluster, differences
from banditlab.engine.work import Task, execute, facts
from banditlab.errors import ClusterError, UsageError
from banditlab.results.incoming import DamagedError, take
from banditlab.results.store import Store
from benchmarks.measure.rig import Rig

distributed = pytest.importorskip("distributed", reason="the extra `cluster` brings it")

TABLE = "a,b,kind\n" + "\n".join(f"{i % 7},{i * i % 11},{'xyz'[i * i % 3]}" for i in range(60)) + "\n"
LAB = """
    import os, signal, time
    import numpy as np
    from banditlab.agents import Agent
    from banditlab.problem import Decision

    class Odd(Agent):
        id = "odd"
        summary = "plays at random, and does what it is told to beside"
        explores = False

        def __init__(self, problem, rng, *, deed: str = "none"):
            super().__init__(problem, rng)
            self.deed = deed
            self.rounds = 0

        def act(self, context):
            self.rounds += 1
            if self.rounds == 20 and self.deed == "exits":
                os._exit(7)
            if self.rounds == 20 and self.deed == "kills":  # the cluster's worker, and itself with it
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(60)
            if self.deed == "sleeps":
                time.sleep(0.005)
            u = self.rng.random(2)
            K = self.problem.n_classes
            return Decision(int(u[1] * K), np.full(K, 1 / K))

        def learn(self, context, decision, correct):
            pass
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.end()


@pytest.fixture
def lab(tmp_path: Path, fresh_registry: Any) -> Path:
    folder = tmp_path / "lab"
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "odd.py").write_text(textwrap.dedent(LAB))
    fresh_registry.open_lab(folder)
    return folder


@pytest.fixture
def mixed(tmp_path: Path, lab: Path) -> Any:
    """Return a function that makes a sweep over a table, an adaptive environment and a planted model."""
    (tmp_path / "my table.csv").write_text(TABLE)

    def make(**keys: Any) -> Sweep:
        base: dict[str, Any] = {
            "rounds": 120,
            "repetitions": 3,
            "norm_bounds": [1.0],
            "environment": [
                {"id": "banditlab/Table-v0", "path": str(tmp_path / "my table.csv"), "label": "kind"},
                {"id": "banditlab/Adversary-v0"},
                {"id": "banditlab/Logistic-v0", "n_features": 4, "n_classes": 3},
            ],
            "agent": [{"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}, {"id": "uniform"}, {"id": "odd"}],
        }
        return Sweep(**base | keys)

    return make


def tables(folder: Path) -> list[pd.DataFrame]:
    """Return what a folder holds, but for seconds."""
    names = ("results.parquet", "comparators.parquet")
    found = [pd.read_parquet(folder / name).drop(columns="seconds") for name in names if (folder / name).exists()]
    keys = (["run_id", "round"], ["stream_id", "round", "norm_bound"])
    return [table.sort_values(key, ignore_index=True)[sorted(table)] for table, key in zip(found, keys, strict=False)]


def assert_same(one: Path, other: Path) -> None:
    for left, right in zip(tables(one), tables(other), strict=True):
        assert not left.duplicated(
            subset=[name for name in left if name in ("run_id", "stream_id", "round", "norm_bound")]
        ).any()
        pd.testing.assert_frame_equal(left, right, check_exact=True)


def told(progress_lines: list[Any]) -> int:
    return max((state.workers for state in progress_lines if state), default=0)


@pytest.mark.slow
def test_a_cluster_is_one_machine(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """A table, a lab's agent, comparators and an adaptive environment, on workers that have none of the files."""
    mixed().run(tmp_path / "serial")
    rig.start()
    states: list[Any] = []
    notices: list[str] = []

    def watch(progress: Any) -> None:
        states.append(progress.cluster)
        notices[:] = progress.notices

    result = mixed().run(tmp_path / "cluster", cluster=rig.address, watch=watch)
    assert (result.failures, result.played, told(states)) == ([], 36, 2)
    assert [line for line in notices if not line.startswith("dashboard: http://127.0.0.1:")] == []
    assert_same(tmp_path / "serial", tmp_path / "cluster")
    assert [*tmp_path.glob("w*/**/my table.csv")]  # it came by the wire
    assert not [*tmp_path.glob("w*/**/shards")]  # what was played in is gone
    again = mixed(norm_bounds=[1.0, 2.0]).run(tmp_path / "cluster", cluster=str(rig.file))
    assert (again.present, again.played) == (36, 0)
    mixed(norm_bounds=[1.0, 2.0]).run(tmp_path / "serial")
    assert_same(tmp_path / "serial", tmp_path / "cluster")


SLOW = [{"id": "odd", "deed": "sleeps"}, {"id": "uniform"}]


@pytest.mark.slow
def test_who_is_killed_costs_nothing(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """A worker for good, then the scheduler, whose successor finds new workers."""
    mixed(agent=SLOW).run(tmp_path / "serial")
    rig.start()
    told: list[tuple[int, int]] = []
    deeds = [lambda: rig.kill("w0"), lambda: (rig.kill("scheduler"), rig.kill("w1"), rig.start(1))]

    def watch(progress: Any) -> None:
        told.append((progress.runs_done, progress.cluster.deaths if progress.cluster else 0))
        if deeds and progress.runs_done >= (2 if len(deeds) == 2 else 6):
            deeds.pop(0)()

    result = mixed(agent=SLOW).run(tmp_path / "cluster", cluster=rig.address, watch=watch, patience=60)
    assert (result.failures, result.played, deeds) == ([], 18, [])
    assert told[-1][1] >= 1
    assert_same(tmp_path / "serial", tmp_path / "cluster")


@pytest.mark.slow
def test_the_guilty_run_is_found(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """One run ends its own process, another kills the cluster's worker each time: both are recorded, nobody else is."""
    rig.environment["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "1"
    rig.start()
    agents = [{"id": "odd", "grid": {"deed": ["none", "exits", "kills"]}}, {"id": "uniform"}]
    environment = [{"id": "banditlab/Logistic-v0", "n_features": 4, "n_classes": 3}]
    sweep = mixed(agent=agents, environment=environment, repetitions=1, norm_bounds=[])
    result = sweep.run(tmp_path / "out", cluster=rig.address)
    errors = {failure["settings"]["deed"]: failure["error"] for failure in result.failures}
    assert errors.keys() == {"exits", "kills"}
    assert "exit code 7" in errors["exits"]
    assert "workers died while it was all there was in the cluster" in errors["kills"]
    assert result.played == 2


def command(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "banditlab", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # In the background of a script SIGINT is ignored, and whoever is started there ignores it, too.
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(words, **pipes, text=True, cwd=cwd, preexec_fn=heeding)


SPEC = """
name = "tiny"
rounds = 120
repetitions = 12
norm_bounds = []
[[environment]]
id = "banditlab/Logistic-v0"
n_features = 4
n_classes = 3
[[agent]]
id = "odd"
deed = "sleeps"
[[agent]]
id = "uniform"
"""


def wait_for_runs(folder: Path, n: int, process: subprocess.Popen[str]) -> None:
    from banditlab.results.reading import finished_runs

    until = time.monotonic() + 300
    while len(finished_runs(folder)) < n:
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


@pytest.mark.slow
def test_the_command_line_ends_in_one_line_and_resumes(rig: Rig, lab: Path, tmp_path: Path) -> None:
    """The driver is interrupted, then killed; then the scheduler is, for good. The same command does the rest."""
    (tmp_path / "tiny.toml").write_text(SPEC)
    rig.start(1)
    line = [
        "run",
        "tiny.toml",
        "-o",
        "out",
        "--lab",
        "lab",
        "--no-report",
        "--cluster",
        rig.address,
        "--patience",
        "12",
    ]
    done = 0
    for sign, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = command(*line, cwd=tmp_path)
        wait_for_runs(tmp_path / "out", done + 3, process)
        process.send_signal(sign)
        out, error = process.communicate(timeout=300)
        assert process.returncode == code, (out, error)
        done = len(list_of_runs(tmp_path / "out"))
        assert done < 24
    process = command(*line, cwd=tmp_path)
    wait_for_runs(tmp_path / "out", done + 2, process)
    rig.kill("scheduler")
    out, error = process.communicate(timeout=300)
    assert process.returncode == 2, (out, error)
    assert len(error.splitlines()) == 1
    assert "has not answered for 12 s; finished runs are stored, the same command does the rest" in error
    rig.end()
    rig.start(1)
    process = command(*line, cwd=tmp_path)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, (out, error)
    assert len(list_of_runs(tmp_path / "out")) == 24
    assert "there already" in out


def list_of_runs(folder: Path) -> set[str]:
    from banditlab.results.reading import finished_runs

    return finished_runs(folder)


@pytest.mark.slow
def test_a_worker_with_another_package_gets_no_tasks(rig: Rig, small: Any, tmp_path: Path) -> None:
    shutil.copytree(freight.PACKAGE, tmp_path / "other" / "banditlab", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "other" / "banditlab" / "problem.py").open("a") as file:
        file.write("# another\n")
    rig.environment["PYTHONPATH"] = str(tmp_path / "other")
    rig.start(1)
    with pytest.raises(ClusterError, match=r"a worker has banditlab .* of other sources than here; it gets no tasks"):
        small().run(tmp_path / "out", cluster=rig.address)
    rig.environment["PYTHONPATH"] = str(freight.PACKAGE.parent)
    rig.worker("w1")
    with distributed.Client(
        rig.address, set_as_default=False
    ) as client:  # alone, the other one would be refused once more
        client.wait_for_workers(2, timeout=120)
    notices: list[str] = []
    result = small(norm_bounds=[]).run(
        tmp_path / "out", cluster=rig.address, watch=lambda progress: notices.__setitem__(slice(None), progress.notices)
    )
    assert (result.played, result.failures) == (6, [])
    assert any("of other sources than here" in line for line in notices)


@pytest.mark.slow
def test_tls(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """With a certificate made here; whoever has none gets no further."""
    cert, key = certificate(tmp_path)
    rig.options = ["--protocol", "tls", "--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    rig.start(1)
    assert rig.address.startswith("tls://")
    security = distributed.Security(tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
    sweep = mixed(agent=[{"id": "uniform"}], norm_bounds=[], repetitions=1)
    with pytest.raises(ClusterError, match="no scheduler answers"):
        sweep.run(tmp_path / "out", cluster=rig.address, patience=2)
    with distributed.Client(rig.address, security=security, set_as_default=False) as client:
        result = sweep.run(tmp_path / "out", cluster=client)
        assert client.status == "running"  # whose it is closes it
    assert (result.played, result.failures) == (3, [])


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate that vouches for itself; return the paths of it and of its key."""
    import datetime

    x509 = pytest.importorskip("cryptography.x509", reason="makes the certificate")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "banditlab test")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    cert = made.sign(key, hashes.SHA256())
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "cert.pem").write_bytes(cert.public_bytes(encoding))
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    return str(folder / "cert.pem"), str(folder / "key.pem")


# ------------------------------------------------------------------------------------------------------- without a cluster


@pytest.mark.parametrize("where", ["local:0", "local:x", "somewhere:8786", "nowhere.json", 7])
def test_what_is_no_address_is_refused(where: Any, small: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tcp://HOST:PORT|an address"):
        small().run(tmp_path, cluster=where)


def test_nobody_answers(small: Any, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no scheduler answers there"):
        small().run(tmp_path, cluster="tcp://127.0.0.1:9", patience=1)


def test_files_are_known_by_their_bytes(tmp_path: Path) -> None:
    key = freight.key_of("a.csv", b"content")
    freight.put(tmp_path, {key: ("a.csv", b"content")})
    freight.put(tmp_path, {key: ("a.csv", b"content")})
    assert freight.only_file(tmp_path, key).read_bytes() == b"content"
    with pytest.raises(UsageError, match="damaged on its way"):
        freight.put(tmp_path / "b", {key: ("a.csv", b"Content")})
    assert not freight.has(tmp_path / "b", key)
    outside = freight.key_of("../a.csv", b"content")
    with pytest.raises(UsageError, match="damaged on its way"):
        freight.put(tmp_path / "b", {outside: ("../a.csv", b"content")})


def test_a_lab_is_laid_out_once(lab: Path, tmp_path: Path) -> None:
    ship = freight.Freight()
    layout = ship.of_lab(str(lab))
    freight.put(tmp_path / "home", ship.parts)
    one, two = (freight.laid_out(tmp_path / "home", layout) for _ in range(2))
    assert one == two
    assert (Path(one) / "agents" / "odd.py").read_bytes() == (lab / "agents" / "odd.py").read_bytes()


def test_rows_are_taken_once_and_whole(small: Any, tmp_path: Path) -> None:
    """Of files from elsewhere: a run that is there is left out, a flipped bit is seen, a stranger's rows are not written."""
    sweep = small()
    sweep.run(tmp_path / "whole")
    made = Store(tmp_path / "made")
    runs = sweep.plan.runs[:3]
    execute(Task(str(made.folder), (), tuple(runs), ()))
    files = sent(made.folder)
    [name] = set(files) - {"SHA256SUMS"}
    ids = [run.run_id for run in runs]
    out = Store(tmp_path / "out")
    flipped = bytearray(files[name])
    flipped[len(flipped) // 2] ^= 1
    with pytest.raises(DamagedError):
        take(out, files | {name: bytes(flipped)}, set(ids))
    assert take(out, files, {"of nobody"}) == set()
    assert take(out, files, {ids[0]}) == {ids[0]}
    assert take(out, files, set(ids[1:])) == set(ids[1:])
    out.compact()
    rows = pd.read_parquet(tmp_path / "out" / "results.parquet").drop(columns="seconds")
    whole = pd.read_parquet(tmp_path / "whole" / "results.parquet").drop(columns="seconds")
    mine = whole[whole.run_id.isin(ids)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, mine[list(rows)], check_exact=True)
    stream = runs[0].stream_id
    files = sent(tmp_path / "whole")
    assert take(out, files, {stream}) == {stream}
    with pytest.raises(DamagedError):
        take(out, files | {"comparators/other.parquet": files[f"comparators/{stream}.parquet"]}, {"other"})


def sent(folder: Path) -> dict[str, bytes]:
    """Return the files that a worker sends that has played in a folder."""
    return dict(remote._files(folder))


class Future:
    """A task's future that has come to something."""

    def __init__(self, key: str, status: str, result: Any = None) -> None:
        self.key, self.status, self._result = key, status, result

    def result(self, timeout: float) -> Any:
        return self._result

    def exception(self) -> Any:
        return self._result


@pytest.fixture
def idle(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Task]:
    """Return (a cluster's executor that knows of no cluster, a task of three runs it has sent)."""

    class Nobody:
        name, client = "tcp://nobody", type("Client", (), {"status": "running"})()
        run = staticmethod(lambda *_, **__: {})
        dashboard = staticmethod(lambda: "")
        close = staticmethod(lambda: None)
        restored = staticmethod(lambda: Nobody.client)

    monkeypatch.setattr(cluster_module, "Link", lambda *_: Nobody())
    monkeypatch.setattr(Cluster, "_wait_for_the_first", lambda self: None)
    store = Store(tmp_path / "idle")
    task = Task(str(store.folder), (), tuple(small(norm_bounds=[]).plan.runs[:3]))
    made = Cluster("tcp://nobody", store, 60.0)
    made.submit(task)
    made.queue.clear()
    return made, task


def reply(task: Task, folder: Path, **more: Any) -> dict[str, Any]:
    """Return what a worker sends that has done a task."""
    outcomes = execute(replace(task, folder=str(folder)))
    told = [astuple(each) for each in outcomes]
    return {"worker": "tcp://w", "outcomes": told, "files": sent(folder), "refused": ""} | more


def test_a_task_that_comes_back_twice_is_told_of_once(idle: tuple[Cluster, Task], tmp_path: Path) -> None:
    made, task = idle
    flight = cluster_module._Flight(task, None)
    answer = reply(task, tmp_path / "worker")
    for outcomes in (3, 0):
        made.arrived.put(Future("k", "finished", answer))
        made.flying["k"] = flight
        told = sum(len(mine) for mine, _ in settled(made))
        assert told == outcomes
    assert not made.queue


def settled(made: Cluster) -> list[Any]:
    """Return what is told of everything that has arrived."""
    found = []
    for future in list(made._arrivals(0.0)):
        for outcomes, task in made._received(future):
            mine = [outcome for outcome in outcomes if outcome.id in made._owed]
            for outcome in mine:
                made._settle(outcome)
            found.append((mine, task))
    return found


def test_damaged_and_empty_answers_come_back_and_end_as_failures(idle: tuple[Cluster, Task], tmp_path: Path) -> None:
    made, task = idle
    answer = reply(task, tmp_path / "worker")
    spoilt = answer | {"files": {name: data[:-9] for name, data in answer["files"].items()}}
    for tries in range(5):
        assert not [outcome for outcomes, _ in settled(made) for outcome in outcomes]
        made.flying["k"] = cluster_module._Flight(task, None)
        made.arrived.put(Future("k", "finished", spoilt if tries % 2 else answer | {"outcomes": [], "files": {}}))
    outcomes = [outcome for outcomes, _ in settled(made) for outcome in outcomes]
    assert [outcome.failure[:32] for outcome in outcomes] == ["the cluster gave no result in 5 "] * 3
    assert len(made.store.failed()) == 3


def test_who_loses_workers_is_tried_alone_and_nobody_is_blamed_for_being_there(idle: tuple[Cluster, Task]) -> None:
    from distributed.scheduler import KilledWorker

    made, task = idle
    error = KilledWorker("k", None, 3)  # type: ignore[arg-type]
    made.flying["k"] = cluster_module._Flight(task, None)
    made.arrived.put(Future("k", "error", error))
    assert settled(made) == []
    assert [len(each.runs) for each in made.suspects] == [1, 1, 1]
    guilty = made.suspects.popleft()
    made.flying["k"] = cluster_module._Flight(guilty, None, alone=True)
    made.arrived.put(Future("k", "error", error))
    [(outcomes, _)] = settled(made)
    assert [outcome.id for outcome in outcomes] == [guilty.runs[0].run_id]
    assert made.store.failed() == {guilty.runs[0].run_id}


def test_a_worker_that_came_later_and_has_no_files_is_nobodys_doing(idle: tuple[Cluster, Task]) -> None:
    """Nor is it a try; but where workers die while a run is alone, they are counted, whoever answers in their place."""
    made, task = idle
    made._provide = lambda *_: None  # type: ignore[method-assign]
    made.deaths_since = 3
    without = {"worker": "tcp://late", "missing": []}
    for _ in range(10):
        made.flying["k"] = cluster_module._Flight(task, None, there=frozenset({"tcp://w"}))
        made.arrived.put(Future("k", "finished", without))
        assert settled(made) == []
        assert made.queue.popleft() is task
    assert made.deaths_since == 3  # nothing was done: a storm goes on
    alone = replace(task, runs=task.runs[:1])
    for loss in range(1, 5):
        made.flying["k"] = cluster_module._Flight(
            alone, None, alone=True, there=frozenset({"tcp://w"}), deaths=made.deaths
        )
        made.deaths += 1
        made.arrived.put(Future("k", "finished", without))
        told = settled(made)
        assert len(told) == (loss == 4)
    assert [outcome.id for outcome in told[0][0]] == [alone.runs[0].run_id]
    assert "workers died while it was all there was" in told[0][0][0].failure
    for tries in range(1, 6):  # one that was given the files, and says again and again that it has none
        made.flying["k"] = cluster_module._Flight(task, None, there=frozenset({"tcp://late"}))
        made.arrived.put(Future("k", "finished", without))
        assert bool(settled(made)) == (tries == 5)


def test_what_does_not_move_ends_in_a_line(idle: tuple[Cluster, Task]) -> None:
    made, task = idle
    made.queue.append(task)
    made.moved -= 61
    with pytest.raises(ClusterError, match="nothing has moved for 60 s"):
        made._watch({})
    made.moved, made.most, made.deaths_since = time.monotonic(), 2, 24  # 20, and two for each there was
    made._watch({})
    made.deaths_since = 25
    with pytest.raises(ClusterError, match="25 workers were lost since the last result"):
        made._watch({})


def test_differences_are_said() -> None:
    ours = facts()
    theirs = ours | {"packages": ours["packages"] | {"numba": "0.1"}, "processor": "another"}
    assert differences(ours, ours) == ""
    said = differences(theirs, ours)
    assert said.startswith(f"numba 0.1 (here {ours['packages']['numba']}), processor another (here ")
