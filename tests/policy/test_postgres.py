"""The log in a real PostgreSQL server, which the test starts: Debian's package `postgresql`."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

pytest.importorskip("psycopg", reason="the extra postgres")

from banditlab import Policy
from banditlab.errors import LogError, UnknownDecisionError, UsageError
from banditlab.policy import status_of_log, verify_log
from banditlab.policy.log import HEAD
from tests.policy.customers import new_rows
from tests.policy.test_log import drop, work

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
pytestmark = [
    pytest.mark.skipif(not BINARIES, reason="no PostgreSQL server is installed (Debian: apt install postgresql)"),
    pytest.mark.slow,
]
ROW = {"plan": "pro", "age": 31, "visits": 2.0}


def as_somebody() -> dict[str, str]:
    """Return how to start a process as a user who is not root: PostgreSQL refuses root."""
    if os.geteuid():
        return {}
    return {"user": "postgres" if "postgres" in {u.pw_name for u in pwd.getpwall()} else "nobody"}


class Server:
    """A PostgreSQL server in its own folder."""

    def __init__(self, folder: str) -> None:
        self.folder, self.who, self.bin = f"{folder}/data", as_somebody(), BINARIES[-1].parent
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if self.who:
            shutil.chown(folder, self.who["user"])
        self.do("initdb", "-D", self.folder, "-A", "trust", "-U", "tester", "--no-sync")
        self.start(folder)
        self.url = f"postgresql://tester@127.0.0.1:{self.port}/postgres"

    def do(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.bin / program), *arguments],
            check=True,
            capture_output=True,
            cwd="/tmp",
            **self.who,  # type: ignore[call-overload]
        )

    def start(self, folder: str) -> None:
        options = f"-p {self.port} -k {folder} -c listen_addresses=127.0.0.1"
        log = ["-l", f"{folder}/log"]
        subprocess.run(
            [str(self.bin / "pg_ctl"), "-D", self.folder, "-w", *log, "-o", options, "start"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/tmp", **self.who,  # type: ignore[call-overload]
        )  # fmt: skip

    def stop(self) -> None:
        self.do("pg_ctl", "-D", self.folder, "-m", "immediate", "-w", "stop")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="banditlab-pg-") as folder:
        os.chmod(folder, 0o755)
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop()


def of_schema(server: Server, name: str) -> str:
    """Return the address of a schema of its own."""
    where = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "tester"]
    psql = [str(server.bin / "psql"), *where, "-c", f"CREATE SCHEMA {name}", "postgres"]
    subprocess.run(psql, check=True, capture_output=True)
    return f"{server.url}?options=-csearch_path%3D{name}"


def state(policy: Policy) -> bytes:
    return policy._core.agent.to_bytes()


def test_a_policy_stands_again_as_it_stood(policy_file: Path, server: Server) -> None:
    log = of_schema(server, "again")
    policy = Policy.open(policy_file, log, snapshot_every=25)
    waiting = work(policy, 40)
    before = state(policy)
    with pytest.raises(LogError, match="another process writes to this log"):
        Policy.open(policy_file, log)
    drop(policy)
    with Policy.open(policy_file, log) as again:
        assert state(again) == before
        again.feedback(waiting[0], True)
        with pytest.raises(UnknownDecisionError, match="already"):
            again.feedback(waiting[0], True)
    status = status_of_log(log)
    assert status.decisions == 40
    assert sum(p.plays for p in status.plays) == 40
    assert not any(p.far for p in status.plays)
    assert "tester" in status.source


def test_a_server_that_went_away_is_one_line_and_loses_nothing(policy_file: Path, server: Server) -> None:
    log = of_schema(server, "away")
    policy = Policy.open(policy_file, log)
    choices = [policy.decide(row) for row in new_rows(5)]
    before = state(policy)
    server.stop()
    for _ in range(2):
        with pytest.raises(LogError, match="the log cannot be used") as error:
            policy.decide(ROW)
        assert "\n" not in str(error.value)
    server.start(str(Path(server.folder).parent))
    policy.feedback(choices[0].id, True)
    assert policy.describe()["decisions"] == 5
    assert state(policy) != before
    after = state(policy)
    policy.close()
    with Policy.open(policy_file, log) as again:
        assert state(again) == after


def test_a_writer_whose_place_was_taken_stores_nothing(policy_file: Path, server: Server) -> None:
    log = of_schema(server, "taken")
    first = Policy.open(policy_file, log)
    first.decide(ROW)
    assert first._log is not None
    with first._log._reading() as db:
        db.execute(sa.update(HEAD).values(process="elsewhere 1 m s", beat=HEAD.c.beat - 15))
    with pytest.raises(LogError, match="another process writes to this log \\(1 on elsewhere\\)"):
        Policy.open(policy_file, log)
    with first._log._reading() as db:
        db.execute(sa.update(HEAD).values(beat=HEAD.c.beat - 20))
    second = Policy.open(policy_file, log)  # the mark is 35 s old
    with pytest.raises(LogError, match="another process has taken the writer's place"):
        first.decide(ROW)
    second.decide(ROW)
    first.close()
    second.decide(ROW)
    second.close()
    assert status_of_log(log).decisions == 3


def test_a_backend_that_hangs_is_given_up_within_seconds(policy_file: Path, server: Server) -> None:
    log = of_schema(server, "hangs")
    with Policy.open(policy_file, log) as policy:
        policy.decide(ROW)
        assert policy._log is not None
        [(backend,)] = policy._log.rows(sa.text("SELECT pg_backend_pid()"))
        os.kill(backend, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            with pytest.raises(LogError, match=r"no response within 5 s"):
                policy.decide(ROW)
            assert 4 < time.monotonic() - begin < 7
        finally:
            os.kill(backend, signal.SIGCONT)
        policy.ready()
        policy.decide(ROW)
        assert policy.describe()["decisions"] == 2


def test_a_log_in_postgresql_is_pruned_and_verified(policy_file: Path, server: Server) -> None:
    log = of_schema(server, "pruned")
    with Policy.open(policy_file, log, person="age") as policy:
        waiting = work(policy, 30)
        assert policy.forget("age", new_rows(1, seed=3)[0]["age"]) >= 1
        assert verify_log(log) == policy._seq
        before = state(policy)
        assert policy.prune(datetime.now(UTC)) == 30
        with pytest.raises(UnknownDecisionError):
            policy.feedback(waiting[-1], True)
        policy.decide(ROW)
        assert verify_log(log) == 1
    with Policy.open(policy_file, log) as again:
        assert again.describe()["decisions"] == status_of_log(log).decisions == 31
        assert state(again) != before


def test_what_is_no_server_is_one_line(policy_file: Path, server: Server) -> None:
    begin = time.monotonic()
    with pytest.raises(LogError, match="the log cannot be used"):
        Policy.open(policy_file, "postgresql://tester@127.0.0.1:9/postgres")
    assert time.monotonic() - begin < 10
    with pytest.raises(LogError, match="no schema has been selected"):
        Policy.open(policy_file, f"{server.url}?options=-csearch_path%3Dnowhere")
    with pytest.raises(LogError, match="not a policy's log"):
        status_of_log(of_schema(server, "bare"))
    with pytest.raises(UsageError, match="not an address"):
        Policy.open(policy_file, "postgresql://a@b:port/c")


def test_silence_is_closed_once_and_counts_in_the_status(
    policy_file: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr("banditlab.policy.policy.CLOSED_AT_ONCE", 2)
    log = of_schema(server, "silence")
    policy = Policy.open(policy_file, log, unanswered="wrong", after="30 min")
    ids = [policy.decide(row).id for row in new_rows(5)]
    policy.feedback(ids[1], True)
    now[0] += 1801.0
    policy.close_overdue()
    before = state(policy)
    drop(policy)
    with Policy.open(policy_file, log) as again:
        assert state(again) == before
        again.close_overdue()
        assert again.describe()["closed"] == 4
        with pytest.raises(UnknownDecisionError, match="already closed as wrong"):
            again.feedback(ids[0], True)
    status = status_of_log(log)
    assert status.mistakes.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert (status.feedback, status.closed, status.waiting, status.drift) == (1, 4, 0, None)
    assert verify_log(log) == 10
