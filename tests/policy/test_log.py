"""The durable log: what was acknowledged is there after any end, and the policy stands again as it stood, bit for bit."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab import Policy
from banditlab.errors import LogError, UnknownDecisionError, UsageError
from banditlab.policy.container import read
from banditlab.policy.events import Answered, Decided, from_bytes, row_of, to_bytes
from banditlab.policy.log import EventLog
from banditlab.policy.training import train
from tests.policy.customers import new_rows

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


def drop(policy: Policy) -> None:
    """Let a policy go as a killed process does: no snapshot, no word."""
    settle(policy)
    policy._log.drop()  # type: ignore[union-attr]
    policy._closed = True


def settle(policy: Policy) -> None:
    """Wait until a snapshot that is being written is there."""
    if policy._keeper is not None:
        policy._keeper.join()


def state(policy: Policy) -> tuple[bytes, Any]:
    return policy._core.agent.to_bytes(), policy._core.rng.bit_generator.state


def undisturbed(policy_file: Path, log: Path) -> tuple[bytes, Any]:
    """Return the state of the policy's file after all events of the log, each played once from the first on."""
    core, records = read(policy_file).core, {}
    store = EventLog(str(log), write=False)
    try:
        for event in store.events(0):
            if isinstance(event, Decided):
                record = core.choose(event.record.context, event.mask)
                assert (record.action, record.explored) == (event.record.action, event.record.explored)
                assert record.probabilities.tobytes() == event.record.probabilities.tobytes()
                records[event.seq] = record
            elif isinstance(event, Answered):
                core.learn(records[event.decision], event.correct)
            elif event.kind == "add":
                core.add(event.name)
            else:
                core.retire(event.name)
    finally:
        store.close()
    return core.agent.to_bytes(), core.rng.bit_generator.state


def work(policy: Policy, n: int, seed: int = 3) -> list[str]:
    """Decide n rows, answer some late and in any order, add a class and retire one; return what is still open."""
    rng, waiting = np.random.default_rng(seed), []
    for i, row in enumerate(new_rows(n, seed)):
        allowed = ["call", "upgrade"] if i % 5 == 0 else None
        waiting.append(policy.decide(row, allowed=allowed).id)
        if i % 3:
            policy.feedback(waiting.pop(int(rng.integers(len(waiting)))), bool(rng.random() < 0.5))
        if i == n // 2:
            policy.add_class("gift")
        if i == 2 * n // 3:
            policy.retire_class("none")
    return waiting


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


def test_a_policy_stands_again_as_it_stood(policy_file: Path, log: Path) -> None:
    policy = Policy.open(policy_file, log, snapshot_every=25)
    waiting = work(policy, 40)
    before = state(policy)
    drop(policy)
    assert undisturbed(policy_file, log) == before
    again = Policy.open(policy_file, log)
    assert state(again) == before
    assert again.describe() == policy.describe()
    again.feedback(waiting[0], True)  # decided before the snapshot
    with pytest.raises(UnknownDecisionError, match="already has feedback"):
        again.feedback(waiting[0], True)
    with pytest.raises(UnknownDecisionError, match="no decision has the id"):
        again.feedback("unknown", True)
    after = state(again)
    again.close()
    again.close()
    with pytest.raises(UsageError, match="the policy is closed"):
        again.feedback(waiting[1], True)
    with Policy.open(policy_file, log) as third:
        assert state(third) == after


def test_feedback_in_one_commit_counts_once(policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditlab.policy.policy.REMEMBERED", 1)
    with Policy.open(policy_file, log) as policy:
        choice, other = policy.decide(ROW), policy.decide(ROW)
        assert [int(each.id[:12], 16) for each in (choice, other)] == [1, 2]  # their places in the log
        answers = policy.feedback_many([(choice.id, True), (other.id, True), (choice.id, False), ("x", True)])
        assert answers[:2] == [None, None]
        assert "already" in str(answers[2])
        assert "no decision" in str(answers[3])
        with policy.together():
            inner = policy.decide(ROW)
            policy.feedback(inner.id, True)
        assert policy.describe()["feedback"] == 3
    with Policy.open(policy_file, log) as policy:
        assert policy.describe()["feedback"] == 3


def test_what_is_interrupted_is_not_in_the_log_nor_in_the_policy(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        policy.decide(ROW)
        before = state(policy)
        with contextlib.suppress(KeyboardInterrupt), policy.together():
            policy.decide(ROW)
            raise KeyboardInterrupt
    with Policy.open(policy_file, log) as again:
        assert state(again) == before
        assert again.describe()["decisions"] == 1


def test_a_full_disk_is_one_line_and_the_policy_goes_on(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        waiting = [policy.decide(row).id for row in new_rows(5)]
        before = state(policy)
        store = policy._log
        assert store is not None
        store._run("PRAGMA max_page_count = 1")
        refused: list[str] = []
        while len(refused) < 3:
            try:
                waiting.append(policy.decide(ROW).id)
                before = state(policy)
            except LogError as error:
                refused.append(str(error))
        assert all("full" in line and "\n" not in line for line in refused)
        policy._ready()
        assert state(policy) == before
        with pytest.warns(RuntimeWarning, match="no snapshot was written"):
            policy.close()
    with Policy.open(policy_file, log) as again:
        assert state(again) == before
        for name in waiting:
            again.feedback(name, True)


def test_a_log_that_may_not_be_written_is_one_line(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        policy.decide(ROW)
        store = policy._log
        assert store is not None
        store._run("PRAGMA query_only = ON")
        with pytest.raises(LogError, match="readonly"):
            policy.decide(ROW)
        store._run("PRAGMA query_only = OFF")
        assert policy.describe()["decisions"] >= 1
        policy.decide(ROW)
    with pytest.raises(LogError, match=r"cannot be written"):
        Policy.open(policy_file, log.parent / "none" / "events.db")
    (log.parent / "folder").mkdir()
    with pytest.raises(LogError):
        Policy.open(policy_file, log.parent / "folder")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become a user who may not write"
)
def test_a_folder_that_may_not_be_written_is_one_line(policy_file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copy(policy_file, folder)
        with Policy.open(policy_file, Path(folder) / "events.db") as policy:
            policy.decide(ROW)
        code = (
            "import os\nfrom banditlab.policy.log import EventLog\nfrom banditlab.errors import LogError\n"
            f"EventLog({folder + '/another.db'!r}).close()\n"  # what is imported late may lie where only root reads
            f"os.setuid(65534)\ntry: EventLog({folder + '/events.db'!r})\n"
            "except LogError as error: print(error)"
        )
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
        assert "events.db: the log cannot be used (unable to open database file)" in out.stdout
        assert out.stdout.count("\n") == 1


@pytest.mark.slow
def test_a_closed_log_lets_another_process_write_while_this_one_lives(policy_file: Path, log: Path) -> None:
    for opened in (lambda: Policy.open(policy_file, log), lambda: EventLog(str(log))):
        opened().close()
        code = "import sys; from banditlab import Policy; Policy.open(*sys.argv[1:]).close()"
        found = subprocess.run([sys.executable, "-c", code, str(policy_file), str(log)], check=False, timeout=120)
        assert found.returncode == 0


def test_a_second_writer_is_one_line(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log), pytest.raises(LogError, match="another process writes to this log"):
        Policy.open(policy_file, log)
    Policy.open(policy_file, log).close()


def test_the_log_of_another_policy_is_one_line(policy_file: Path, table: Path, log: Path) -> None:
    Policy.open(policy_file, log).close()
    train(table, "offer", out=log.parent / "other")
    with pytest.raises(UsageError, match="belongs to a policy other than"):
        Policy.open(log.parent / "other", log)
    with pytest.raises(UsageError, match="postgresql"):
        EventLog("mysql://x")


def test_a_clock_that_goes_back_is_one_line_and_no_time_does(
    policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    with Policy.open(policy_file, log) as policy:
        choice = policy.decide(ROW)
        now[0] -= 1.0
        policy.decide(ROW)  # a second is nothing
        now[0] -= 0.75
        with pytest.warns(RuntimeWarning, match="the clock went back by 2 s"):
            policy.feedback(choice.id, True)
    store = EventLog(str(log), write=False)
    at = [event.at for event in store.events(0)]
    store.close()
    assert at == sorted(at)


# ------------------------------------------------------------------------------------------------------------------- damage


def edited(log: Path, *statements: str) -> None:
    db = sqlite3.connect(log)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE events SET probability = probability / 2 WHERE seq = 2", "event 2 is damaged"),
        ("UPDATE events SET context = zeroblob(5) WHERE seq = 2", "event 2 is damaged"),
        ("UPDATE events SET correct = 1 - correct WHERE seq = (SELECT MAX(seq) FROM answers)", "is damaged"),
        ("DELETE FROM events WHERE seq = 2", "event 2 is missing"),
        ("DELETE FROM answers WHERE seq = (SELECT MAX(seq) FROM answers)", "its answers and decisions do not match"),
        ("UPDATE answers SET decision = 5 WHERE decision = 2", "its answers and decisions do not match"),
        ("UPDATE snapshots SET data = zeroblob(length(data))", "all snapshots are damaged"),
        ("UPDATE head SET format = 7", "not a policy's log of format 2"),
        ("DROP TABLE answers", "not a policy's log"),
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM answers; END", "not a policy's log"),
    ],
)
def test_a_changed_log_is_one_line(policy_file: Path, log: Path, statement: str, message: str) -> None:
    policy = Policy.open(policy_file, log)
    work(policy, 6)
    drop(policy)
    edited(log, statement)
    with pytest.raises(LogError, match=message) as error:
        Policy.open(policy_file, log)
    assert "\n" not in str(error.value)


def test_a_damaged_snapshot_is_stood_in_for_by_the_one_before(policy_file: Path, log: Path) -> None:
    policy = Policy.open(policy_file, log, snapshot_every=10)
    work(policy, 12)
    before = state(policy)
    drop(policy)
    edited(log, "UPDATE snapshots SET data = zeroblob(9) WHERE place = (SELECT MAX(place) FROM snapshots)")
    with Policy.open(policy_file, log) as again:
        assert state(again) == before


def test_what_is_no_log_is_one_line(policy_file: Path, log: Path) -> None:
    log.write_bytes(b"no database at all, but long enough for one" * 100)
    with pytest.raises(LogError, match="not a database"):
        Policy.open(policy_file, log)
    log.unlink()
    edited(log, "CREATE TABLE mine (x)")
    with pytest.raises(LogError, match="not a policy's log"):
        Policy.open(policy_file, log)


def test_a_policy_played_again_by_other_numbers_says_so(policy_file: Path, log: Path) -> None:
    policy = Policy.open(policy_file, log)
    work(policy, 6)
    drop(policy)
    store = EventLog(str(log), write=False)
    event = store.decision(1)
    p = event.record.probabilities.copy()
    p[[0, 1]] += [1e-13, -1e-13]
    store.close()

    row = row_of(event._replace(record=event.record._replace(probabilities=p)))
    db = sqlite3.connect(log)
    db.execute(
        "UPDATE events SET distribution = :distribution, probability = :probability, crc = :crc WHERE seq = 1", row
    )
    db.commit()
    db.close()
    with pytest.warns(RuntimeWarning, match=r": the replay of 1 decisions gave another result"):
        Policy.open(policy_file, log).close()


def test_numbers_keep_every_bit() -> None:
    for x in (
        np.zeros(0),
        np.zeros(50),
        np.array([0.0, -0.0, 5e-324, 1e308, -1.5]),
        np.eye(40)[3] * -0.0,
        np.random.default_rng(0).normal(size=33),
    ):
        assert from_bytes(to_bytes(x)).tobytes() == x.tobytes()
    assert len(to_bytes(np.eye(1000)[3])) < 30


# -------------------------------------------------------------------------------------------------------------------- kills


def keep_working(policy_file: Path, log: Path, seed: int, told: int) -> None:
    """Decide and answer for ever, and tell in the pipe `told` what was acknowledged; a child process does this."""
    policy, rng, waiting = Policy.open(policy_file, log, snapshot_every=20), np.random.default_rng(seed), []
    while True:
        for row in new_rows(50, seed):
            waiting.append(policy.decide(row).id)
            os.write(told, f"decided {waiting[-1]}\n".encode())
            if rng.random() < 0.7:
                name, bit = waiting.pop(int(rng.integers(len(waiting)))), int(rng.random() < 0.5)
                policy.feedback(name, bool(bit))
                os.write(told, f"answered {name} {bit}\n".encode())


def killed(policy_file: Path, log: Path, seed: int, after: float) -> list[list[str]]:
    """Return what a child acknowledged until it was killed, `after` seconds from its first word on."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            keep_working(policy_file, log, seed, told)
        except BaseException:
            traceback.print_exc()  # whoever reads of a child that ended by itself wants to know why
        finally:
            os._exit(1)
    os.close(told)
    with open(heard, encoding="ascii") as words:
        lines = [words.readline()]
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        lines += words.readlines()
    _, status = os.waitpid(child, 0)
    assert lines[0], f"the child ended by itself: {os.waitstatus_to_exitcode(status)}"
    return [line.split() for line in lines if line.endswith("\n")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")
@pytest.mark.slow
def test_kill_9_loses_nothing_acknowledged_and_the_state_is_the_undisturbed_one(policy_file: Path, log: Path) -> None:
    rng, decided, answered = random.Random(7), [], {}
    for kill in range(5):
        for word, name, *bit in killed(policy_file, log, kill, rng.uniform(0.0, 0.2)):
            if word == "decided":
                decided.append(name)
            else:
                answered[name] = bool(int(bit[0]))
    policy = Policy.open(policy_file, log)
    before, store = state(policy), policy._log
    assert store is not None
    for name in decided:
        found = store.decided(name)
        assert found is not None
        assert found[1] or name not in answered
    drop(policy)
    assert undisturbed(policy_file, log) == before
    db = sqlite3.connect(log)
    bits = dict(db.execute("SELECT d.id, f.correct FROM events f JOIN events d ON d.seq = f.decision"))
    db.close()
    assert {name: bool(bits[name]) for name in answered} == answered
    assert len(decided) >= 5
