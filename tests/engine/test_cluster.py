"""A sweep on a Dask cluster gives the rows of one machine: two plain local workers that share no results folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from banditlab.engine import Sweep
from banditlab.engine.executors import parcels
from banditlab.engine.work import Task
from banditlab.errors import ClusterError, UsageError
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store
from benchmarks.measure.rig import Rig

distributed = pytest.importorskip("distributed", reason="the extra `cluster` brings it")
cluster_module = pytest.importorskip("banditlab.engine.executors.cluster")
remote = pytest.importorskip("banditlab.engine.executors.remote")
Cluster, Sent = cluster_module.Cluster, cluster_module.Sent

TABLE = "a,b,kind\n" + "\n".join(f"{i % 7},{i * i % 11},{'xyz'[i * i % 3]}" for i in range(60)) + "\n"
LAB = """
    import os, signal, time
    import numpy as np
    from banditlab.agents import Agent
    from banditlab.problem import Decision

    class Odd(Agent):
        id = "odd"
        summary = "plays at random, and misbehaves in round 20"
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
            if self.rounds == 20 and self.deed == "hangs":
                time.sleep(3600)
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


@pytest.mark.slow
def test_a_cluster_is_one_machine(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """A table, a lab's agent, comparators and an adaptive environment, on workers that have none of the files."""
    mixed().run(tmp_path / "serial")
    rig.start()
    workers: set[int] = set()

    def watch(progress: Any) -> None:
        workers.add(progress.cluster.workers if progress.cluster else 0)

    result = mixed().run(tmp_path / "cluster", cluster=rig.address, watch=watch)
    assert (result.failures, result.played, max(workers)) == ([], 36, 2)
    assert_same(tmp_path / "serial", tmp_path / "cluster")
    assert [*tmp_path.glob("w*/**/my table.csv")]  # it was sent
    assert not [*tmp_path.glob("w*/**/shards")]  # the temporary folders are gone
    again = mixed(norm_bounds=[1.0, 2.0]).run(tmp_path / "cluster", cluster=str(rig.file))
    assert (again.present, again.played) == (36, 0)
    mixed(norm_bounds=[1.0, 2.0]).run(tmp_path / "serial")
    assert_same(tmp_path / "serial", tmp_path / "cluster")


SLOW = [{"id": "odd", "deed": "sleeps"}, {"id": "uniform"}]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_freezes_costs_no_run(
    number: int, rig: Rig, mixed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "SILENT", 6.0)
    monkeypatch.setattr(cluster_module, "FETCH", 6.0)
    mixed(agent=SLOW).run(tmp_path / "serial")
    rig.start()
    hit: list[int] = []

    def watch(progress: Any) -> None:
        if progress.runs_done >= 2 and not hit:
            hit.append(number)
            rig.signal("w0", number)

    result = mixed(agent=SLOW).run(tmp_path / "cluster", cluster=rig.address, watch=watch, patience=60)
    assert (result.failures, result.played, hit) == ([], 18, [number])
    assert_same(tmp_path / "serial", tmp_path / "cluster")


@pytest.mark.slow
def test_the_guilty_run_is_named(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """One run ends its own process, one hangs, one kills the cluster's worker each time: they are recorded, no other is."""
    rig.environment["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "1"
    rig.start()
    agents = [{"id": "odd", "grid": {"deed": ["none", "exits", "hangs", "kills"]}}, {"id": "uniform"}]
    environment = [{"id": "banditlab/Logistic-v0", "n_features": 4, "n_classes": 3}]
    sweep = mixed(agent=agents, environment=environment, repetitions=1, norm_bounds=[], run_timeout=5)
    result = sweep.run(tmp_path / "out", cluster=rig.address)
    errors = {failure["settings"]["deed"]: failure["error"] for failure in result.failures}
    assert errors.keys() == {"exits", "hangs", "kills"}
    assert "exit code 7" in errors["exits"]
    assert "longer than run_timeout = 5 s" in errors["hangs"]
    assert errors["kills"] == "2 workers died while no other run was in the cluster"
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
LINE = ["run", "tiny.toml", "--lab", "lab", "--no-report"]


def wait_until(true: Any, process: subprocess.Popen[str] | None = None) -> None:
    until = time.monotonic() + 120
    while not true():
        assert time.monotonic() < until
        assert process is None or process.poll() is None, process and process.communicate()
        time.sleep(0.05)


def is_idle(rig: Rig) -> bool:
    """Return whether no worker plays any task."""
    with distributed.Client(rig.address, set_as_default=False) as client:
        return not any(client.processing().values()) and not [*rig.folder.glob("w*/**/task-*")]


@pytest.mark.slow
def test_the_command_line_ends_in_one_line_and_resumes(rig: Rig, lab: Path, tmp_path: Path) -> None:
    """The main process is interrupted, terminated, killed; the scheduler freezes, then dies. The same command resumes."""
    (tmp_path / "tiny.toml").write_text(SPEC)
    rig.start(1)
    line = [*LINE, "-o", "out", "--cluster", rig.address, "--patience", "12"]

    def more(n: int) -> subprocess.Popen[str]:
        wanted = len(finished_runs(tmp_path / "out")) + n if (tmp_path / "out").exists() else n
        process = command(*line, cwd=tmp_path)
        wait_until(lambda: len(finished_runs(tmp_path / "out")) >= wanted, process)
        return process

    for sign, code in ((signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)):
        process = more(2)
        process.send_signal(sign)
        out, error = process.communicate(timeout=30)
        assert process.returncode == code, (out, error)
        wait_until(partial(is_idle, rig))
    for number, why in (
        (signal.SIGSTOP, "has not responded for 12 s"),
        (signal.SIGKILL, "connection to the scheduler is lost"),
    ):
        process = more(2)
        rig.signal("scheduler", number)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 2, (out, error)
        assert len(error.splitlines()) == 1
        assert f"{why}; finished runs are stored; the same command runs the rest" in error
        rig.signal("scheduler", signal.SIGCONT)
    assert len(finished_runs(tmp_path / "out")) < 24
    rig.end()
    rig.start(1)
    for options in (line, [*LINE, "-o", "serial", "-j", "1"]):
        process = command(*options, cwd=tmp_path)
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, (out, error)
    assert_same(tmp_path / "serial", tmp_path / "out")


@pytest.mark.slow
def test_workers_with_another_package_are_refused(rig: Rig, small: Any, tmp_path: Path) -> None:
    shutil.copytree(parcels.PACKAGE, tmp_path / "other" / "banditlab", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "other" / "banditlab" / "problem.py").open("a") as file:
        file.write("# another\n")
    rig.environment["PYTHONPATH"] = str(tmp_path / "other")
    rig.start(1)
    with pytest.raises(ClusterError, match=r"worker tcp://.* has banditlab .*\(sources .*\(here .*; finished runs are"):
        small().run(tmp_path / "out", cluster=rig.address)


@pytest.mark.slow
def test_tls(rig: Rig, mixed: Any, tmp_path: Path) -> None:
    """With a certificate made here; whoever has none gets no further."""
    cert, key = certificate(tmp_path)
    rig.options = ["--protocol", "tls", "--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    rig.start(1)
    assert rig.address.startswith("tls://")
    security = distributed.Security(tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
    sweep = mixed(agent=[{"id": "uniform"}], norm_bounds=[], repetitions=1)
    with pytest.raises(ClusterError, match="no scheduler responds"):
        sweep.run(tmp_path / "out", cluster=rig.address, patience=2)
    with distributed.Client(rig.address, security=security, set_as_default=False) as client:
        result = sweep.run(tmp_path / "out", cluster=client)
        assert client.status == "running"  # who passed it closes it
    assert (result.played, result.failures) == (3, [])


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate that signs itself; return the paths of it and of its key."""
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
    with pytest.raises(ClusterError, match="no scheduler responds there"):
        small().run(tmp_path, cluster="tcp://127.0.0.1:9", patience=1)


def test_files_are_unpacked_once_under_their_hash(lab: Path, tmp_path: Path) -> None:
    files = [lab / "agents" / "odd.py"]
    key, content = parcels.packed(files, lab)
    assert key != parcels.packed(files, lab.parent)[0]
    parcels.unpack(tmp_path / "home", key, content)
    file = tmp_path / "home" / key / "agents" / "odd.py"
    assert file.read_bytes() == (lab / "agents" / "odd.py").read_bytes()
    before = file.stat()
    parcels.unpack(tmp_path / "home", key, content)
    assert file.stat() == before
    assert [each.name for each in (tmp_path / "home").iterdir()] == [key]


def test_other_versions_are_refused_by_name() -> None:
    remote._check("tcp://w", parcels.versions())
    with pytest.raises(UsageError, match=r"worker tcp://w has numba .* \(here 0\.1\), python 3\..* \(here 2\); all"):
        remote._check("tcp://w", parcels.versions() | {"numba": "0.1"} | {"python": "2"})


class Future:
    """A task's future that a test completes."""

    def __init__(self, key: str, status: str, answer: Any = None) -> None:
        self.key, self.status, self.answer, self.released = key, status, answer, False

    def result(self, timeout: float) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def exception(self) -> Any:
        return self.answer

    def release(self) -> None:
        self.released = True


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Return the executor of a cluster whose scheduler answers what a test puts into `client.answers`."""
    answers: dict[str, Any] = {"identity": {"workers": {}, "services": {}}, "processing": {}}
    client = SimpleNamespace(
        status="running", loop=None, answers=answers, scheduler=SimpleNamespace(identity="identity", processing="processing"),
        sync=lambda question, callback_timeout: answers[question], wait_for_workers=lambda n, timeout: None,
        dashboard_link="http://here:None/status",
    )  # fmt: skip
    monkeypatch.setattr(cluster_module, "as_completed", lambda loop: None)
    return Cluster(client, "tcp://here", Store(tmp_path / "out"), 10.0)


def arrive(made: Cluster, task: Task, status: str, answer: Any = None, *, alone: bool = False) -> list[Any]:
    """Return what comes of a task whose future has this status."""
    future = Future("k", status, answer)
    made.sent["k"] = Sent(task, future, alone)
    return list(made._received(future))


def test_a_result_that_cannot_be_fetched_is_played_again_and_ends_the_sweep_in_the_end(
    idle: Cluster, tasks: list[Task]
) -> None:
    assert arrive(idle, tasks[0], "cancelled") == []
    assert arrive(idle, tasks[0], "finished", TimeoutError()) == []
    assert arrive(idle, tasks[0], "lost", TimeoutError()) == []
    assert list(idle.queue) == [tasks[0]] * 3
    assert idle.idle == 2 * cluster_module.FETCH
    with pytest.raises(ClusterError, match=r"cannot be fetched \(TimeoutError\); finished runs are stored"):
        arrive(idle, tasks[0], "finished", TimeoutError())
    assert arrive(idle, tasks[1], "cancelled", alone=True) == []
    assert list(idle.suspects) == [tasks[1]]


def test_a_run_is_blamed_for_dead_workers_only_where_it_was_alone(idle: Cluster, tasks: list[Task]) -> None:
    error = cluster_module.KilledWorker("k", None, 3)  # type: ignore[arg-type]
    task = replace(tasks[0], runs=tasks[0].runs + tasks[1].runs)
    assert arrive(idle, task, "error", error) == []
    assert [each.runs for each in idle.suspects] == [tasks[0].runs, tasks[1].runs]
    [([outcome], _)] = arrive(idle, idle.suspects[0], "error", error, alone=True)
    assert outcome.failure == "4 workers died while no other run was in the cluster"
    assert idle.store.failed() == {tasks[0].runs[0].run_id}


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UsageError("tcp://w has no room"), "here: tcp://w has no room; fin"),
        (ImportError("no\n x"), "ImportError: no x; fin"),
    ],
)
def test_a_worker_that_cannot_play_ends_the_sweep(
    error: Exception, line: str, idle: Cluster, tasks: list[Task]
) -> None:
    with pytest.raises(ClusterError, match=line):
        arrive(idle, tasks[0], "error", error)


def test_a_suspect_is_sent_when_nothing_else_is_in_the_cluster(
    idle: Cluster, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[Task, bool]] = []

    def record(task: Task, *, alone: bool) -> None:
        sent.append((task, alone))
        idle.sent[str(len(sent))] = Sent(task, None, alone)

    monkeypatch.setattr(idle, "_submit", record)
    idle.suspects.append(tasks[0])
    idle.jobs = 2
    for task in tasks[1:6]:
        idle.submit(task)
    idle._send()
    assert sent == [(task, False) for task in tasks[1:5]]  # two for each thread
    idle.sent.clear()
    idle._send()
    assert sent[4:] == [(tasks[5], False)]
    idle.sent.clear()
    idle._send()
    idle.submit(tasks[4])
    idle._send()
    assert sent[5:] == [(tasks[0], True)]
    assert idle.state().in_flight == 1


def look(made: Cluster, seconds: float = 2.0) -> None:
    made.polled -= seconds
    made._poll()


def test_tasks_of_a_silent_or_paused_worker_go_to_others(idle: Cluster, tasks: list[Task]) -> None:
    workers = {name: {"last_seen": 0.0, "nthreads": 2, "status": "running"} for name in ("a", "b", "c")}
    idle.client.answers |= {
        "identity": {"workers": workers, "services": {"dashboard": 1}},
        "processing": {"a": ["0"], "b": ["1", "x"], "c": ["2"]},
    }
    for i, task in enumerate(tasks[:3]):
        idle.sent[str(i)] = Sent(task, Future(str(i), "pending"), False)
    for beat in range(16):
        workers["a"]["last_seen"] = workers["c"]["last_seen"] = float(beat)
        look(idle)
        assert (idle.silent, idle.jobs) == (set(), 6)
    workers["c"]["status"] = "paused"
    workers["a"]["last_seen"] = 99.0
    look(idle)
    assert (idle.silent, idle.jobs, idle.state().workers) == ({"b", "c"}, 2, 1)
    assert [each.future.released for each in idle.sent.values()] == [False, True, True]
    gone = [f"{name} does not respond, or has no memory left; its tasks go to others" for name in "bc"]
    assert idle.notices == ["dashboard: http://here:None/status", *gone]
    workers["b"]["last_seen"] = 1.0
    look(idle)
    assert idle.silent == {"c"}


def test_a_cluster_that_does_nothing_ends_the_sweep(idle: Cluster, tasks: list[Task]) -> None:
    worker = {"last_seen": 0.0, "nthreads": 1, "status": "running"}
    idle.client.answers["identity"]["workers"] = {"a": worker}
    idle.client.answers["processing"] = {"a": ["of another client"]}
    for _ in range(9):  # nothing was sent
        look(idle, 3.0)
    idle.sent["k"] = Sent(tasks[0], Future("k", "pending"), False)
    idle.client.answers["processing"] = {"a": ["k"]}
    for beat in range(9):
        worker["last_seen"] = float(beat)
        look(idle, 3.0)
    idle.client.answers["processing"] = {"a": ["of another client"]}
    for _ in range(3):
        look(idle, 3.0)
    with pytest.raises(ClusterError, match="no responding worker has had a task for 10 s; finished runs are stored"):
        look(idle, 3.0)
    idle.client.answers["identity"] = None
    with pytest.raises(ClusterError, match="the scheduler has not responded for 10 s"):
        look(idle)
    idle.client.status = "connecting"
    with pytest.raises(ClusterError, match="the connection to the scheduler is lost"):
        look(idle, 0.0)
