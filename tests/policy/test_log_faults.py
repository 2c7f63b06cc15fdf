"""Faults that a log's structure rules out: two writers, damage without a word, snapshots in the way, a database that hangs."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from banditlab import Policy
from banditlab.errors import LogError, UnknownDecisionError, UsageError
from banditlab.policy import connections, status_of_log, train, verify_log
from banditlab.policy import log as log_module
from banditlab.policy.log import HEAD, EventLog
from tests.policy.customers import new_rows
from tests.policy.test_log import drop, edited, settle, state, undisturbed, work

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


def changed(policy: Policy, **values: object) -> None:
    """Change the writer's mark."""
    assert policy._log is not None
    with policy._log._reading() as db:
        db.execute(sa.update(HEAD).values(**values))


# ---------------------------------------------------------------------------------------------------------------- writers


@pytest.mark.parametrize("way", ["path", "symlink", "relative path", "side files removed"])
@pytest.mark.few(1)
def test_a_second_writer_is_refused_however_it_comes(
    policy_file: Path, log: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    first = Policy.open(policy_file, log)
    first.decide(ROW)
    (log.parent / "link.db").symlink_to(log)
    if way == "side files removed":
        for side in log.parent.glob("events.db?*"):
            side.unlink()
    place = {"symlink": "link.db", "relative path": "events.db"}.get(way, str(log))
    code = f"from banditlab import Policy; Policy.open({str(policy_file)!r}, {place!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"another process writes to this log ({os.getpid()} on" in found.stderr
    if way == "side files removed":  # which held what was acknowledged: nothing more is
        with pytest.raises(LogError, match="moved, replaced or removed"):
            first.decide(ROW)
        drop(first)
    else:
        first.decide(ROW)
        first.close()
        Policy.open(policy_file, log).close()


def test_a_second_name_of_the_file_is_refused(policy_file: Path, log: Path) -> None:
    Policy.open(policy_file, log).close()
    os.link(log, log.parent / "other.db")
    with pytest.raises(LogError, match="several names"):
        Policy.open(policy_file, log.parent / "other.db")


def test_a_writer_whose_place_was_taken_stores_nothing(policy_file: Path, log: Path) -> None:
    first = Policy.open(policy_file, log)
    waiting = first.decide(ROW).id
    changed(first, process="elsewhere 1 m s")  # a mark of another machine: its heartbeat counts
    with pytest.raises(LogError, match=r"another process writes to this log \(1 on elsewhere\)"):
        Policy.open(policy_file, log)
    changed(first, beat=HEAD.c.beat - 30)
    second = Policy.open(policy_file, log)
    for act in (lambda: first.decide(ROW), lambda: first.feedback(waiting, True), first.ready):
        with pytest.raises(LogError, match="another process has taken the writer's place"):
            act()
    with pytest.warns(RuntimeWarning, match="no snapshot was written"):
        first.close()
    second.feedback(waiting, True)  # its mark is still there
    second.close()
    assert status_of_log(log).decisions == 1


def test_the_heartbeat_renews_the_mark(policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "BEAT", 0.05)
    with Policy.open(policy_file, log) as policy:
        changed(policy, beat=0)
        assert policy._log is not None
        end = time.monotonic() + 10
        while policy._log.rows(sa.select(HEAD.c.beat)) == [(0,)]:
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.mark.slow
def test_the_mark_of_a_process_that_ended_is_taken_over_at_once(policy_file: Path, log: Path) -> None:
    code = (
        f"import os\nfrom banditlab import Policy\np = Policy.open({str(policy_file)!r}, {str(log)!r})\n"
        f"p.decide({ROW!r})\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    policy = Policy.open(policy_file, log)
    assert policy.describe()["decisions"] == 1
    changed(policy, process=log_module._process(os.getpid()) + "0")  # the same number, another start
    Policy.open(policy_file, log).close()
    drop(policy)


def test_a_policy_that_was_dropped_does_not_hold_the_log(policy_file: Path, log: Path) -> None:
    policy = Policy.open(policy_file, log)
    policy.decide(ROW)
    del policy
    with Policy.open(policy_file, log) as again:
        assert again.describe()["decisions"] == 1


@pytest.mark.slow
def test_a_reader_holds_no_writer_up(policy_file: Path, log: Path) -> None:
    Policy.open(policy_file, log).close()
    db = sqlite3.connect(log, isolation_level=None)
    db.execute("BEGIN")
    db.execute("SELECT * FROM head").fetchall()
    begin = time.monotonic()
    with Policy.open(policy_file, log) as policy:
        policy.decide(ROW)
        assert time.monotonic() - begin < 4
        with pytest.raises(LogError, match="another process that reads the log keeps a copy"):
            policy.prune(datetime.now(UTC))
        db.execute("ROLLBACK")
        db.close()
        assert policy.prune(datetime.now(UTC)) == 0


def test_a_database_that_another_program_locks_is_given_up_in_time(
    policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LIMIT", 0.5)
    with Policy.open(policy_file, log) as policy:
        db = sqlite3.connect(log, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        begin = time.monotonic()
        for act in (lambda: policy.decide(ROW), policy.ready):
            with pytest.raises(LogError, match="locked"):
                act()
        assert time.monotonic() - begin < 5
        db.execute("ROLLBACK")
        db.close()
        policy.decide(ROW)


def test_events_have_one_sequence_and_a_decision_one_answer(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        policy.feedback(policy.decide(ROW).id, True)
    db = sqlite3.connect(log)
    for statement in ("UPDATE events SET seq = 1 WHERE seq = 2", "INSERT INTO answers VALUES (1, 3)"):
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(statement)
    assert db.execute("SELECT name FROM sqlite_master WHERE type <> 'table'").fetchall() == []
    db.close()


def test_files_are_private(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        policy.decide(ROW)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in log.parent.glob("events.db*")}
    assert modes == {"events.db": 0o600, "events.db-wal": 0o600, "events.db-shm": 0o600}


# ----------------------------------------------------------------------------------------------------------------- damage


@pytest.mark.slow
def test_a_flipped_byte_is_named_or_changes_nothing(table: Path, log: Path) -> None:
    """A log that was closed is one file; a byte of it flips. The state stays right, or the damage is named.

    The agent's snapshots are small: most bytes are those of decisions.
    """
    policy_file = log.parent / "small.policy"
    train(table, "offer", agent="fastcb", out=policy_file)
    with Policy.open(policy_file, log, snapshot_every=25) as policy:
        waiting, right = work(policy, 40), state(policy)
        right = state(policy)
        answered = policy.decide(ROW).id
        policy.feedback(answered, True)
        right = state(policy)
    data, rng, named = log.read_bytes(), random.Random(0), 0
    for _ in range(60):
        torn = bytearray(data)
        torn[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        log.write_bytes(torn)
        try:
            again = Policy.open(policy_file, log)
        except LogError:
            named += 1
            continue
        assert state(again) == right
        try:  # the damage may lie in a decision that is only now read
            with pytest.raises(UnknownDecisionError, match="already"):
                again.feedback(answered, True)
            again.feedback(waiting[0], True)
        except LogError:
            named += 1
        drop(again)
        for side in log.parent.glob("events.db-*"):
            side.unlink()
    assert 0 < named < 60
    log.write_bytes(data)
    assert verify_log(log) == status_of_log(log).decisions + status_of_log(log).feedback + 2


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE events SET action = 1 - action WHERE seq = 1", "event 1 is damaged"),
        ("DELETE FROM events WHERE seq = 1", "event 1 is missing"),
        ("UPDATE snapshots SET seq = 0 WHERE place = (SELECT MAX(place) FROM snapshots)", "a snapshot is damaged"),
        ("UPDATE head SET pruned = 1", "it contains events that should have been removed"),
    ],
)
def test_verify_finds_what_opening_need_not(policy_file: Path, log: Path, statement: str, message: str) -> None:
    with Policy.open(policy_file, log, snapshot_every=6) as policy:
        work(policy, 9)
        settle(policy)
    assert verify_log(log) > 9
    edited(log, statement)
    with pytest.raises(LogError, match=message):
        verify_log(log)


# -------------------------------------------------------------------------------------------------------------- snapshots


def test_decisions_go_on_while_a_snapshot_is_packed(
    policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from banditlab.policy import policy as module

    packed, hold, begun = module.packed, threading.Event(), threading.Event()

    def slowly(parts: object) -> bytes:
        begun.set()
        assert hold.wait(30)
        return packed(parts)  # type: ignore[arg-type]

    with Policy.open(policy_file, log, snapshot_every=5) as policy:
        monkeypatch.setattr(module, "packed", slowly)
        for row in new_rows(5):
            policy.decide(row)
        assert begun.wait(30)
        at_five = state(policy)
        work(policy, 6)
        hold.set()
        settle(policy)
        assert policy._log is not None
        place, data = policy._log.snapshot()
        core = module.unpacked(data, "t").core
        assert (place, core.agent.to_bytes(), core.rng.bit_generator.state) == (5, *at_five)
        now = state(policy)
        drop(policy)
    assert undisturbed(policy_file, log) == now


def test_a_snapshot_is_written_in_parts_and_one_that_was_cut_off_is_not_read(
    policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "PART", 1000)
    policy = Policy.open(policy_file, log)
    work(policy, 10)
    before, store = state(policy), policy._log
    assert store is not None
    first = [row.place for row in store.rows(sa.select(log_module.SNAPSHOTS))]
    assert len(first) > 3
    writing, left = store._writing, [2]

    def cut_off() -> object:
        left[0] -= 1
        if left[0] < 0:
            raise LogError("killed")
        return writing()

    monkeypatch.setattr(store, "_writing", cut_off)
    with pytest.raises(LogError, match="killed"):
        store.keep(policy._seq, policy._snapshot())
    assert len(store._places()) == len(first) + 2
    assert store.snapshot()[0] == 0
    drop(policy)
    with Policy.open(policy_file, log) as again:
        assert state(again) == before
    assert verify_log(log) > 10  # nothing is left of what was cut off


# ------------------------------------------------------------------------------------------------------- prune and forget


def test_what_is_pruned_is_gone_and_counted(policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day, start = timedelta(days=1), datetime(2026, 5, 1, tzinfo=UTC)
    with Policy.open(policy_file, log) as policy:
        ids = []
        for number in range(4):
            monkeypatch.setattr(time, "time", lambda number=number: (start + number * day).timestamp())
            ids += [policy.decide(row).id for row in new_rows(3, number)]
            policy.feedback(ids[-1], True)
        before = state(policy)
        assert policy.prune(start + 2 * day) == 6
        assert state(policy) == before
        with pytest.raises(UnknownDecisionError, match="no decision"):
            policy.feedback(ids[0], True)
        policy.feedback(ids[6], False)
        status, told = status_of_log(log), policy.describe()
        assert (
            (status.decisions, status.feedback, status.left) == (told["decisions"], told["feedback"], 6) == (12, 5, 6)
        )
        assert (len(status.delays), len(status.mistakes), status.waiting) == (3, 1, 3)
        assert "removed from the log: 6 decisions" in "\n".join(status.lines())
        assert verify_log(log) == 9
        after = state(policy)
        drop(policy)
    with Policy.open(policy_file, log) as again:
        assert state(again) == after
        assert again.prune(start + 9 * day) == 6
        assert verify_log(log) == 0
        again.decide(ROW)
        assert status_of_log(log).lines()[2:4] == [
            "feedback: 5 of 13 (38.5%)",
            "counted: 0 of 1 decision, in their order up to the oldest whose answer may still arrive in time; 1 are waiting",
        ]
        assert again.prune(start + 9 * day) == 1


def test_a_person_is_forgotten(policy_file: Path, log: Path) -> None:
    secret = 27182.8125
    with Policy.open(policy_file, log, person="customer") as policy:
        mine = [policy.decide({**ROW, "customer": who, "visits": secret}).id for who in ("4711", 4711)]
        other = policy.decide({**ROW, "customer": 12}).id
        [context, *_] = [record.context.tobytes() for _, _, record in policy._open.values()]
        before = state(policy)
        assert policy.forget("customer", 4711) == 2
        assert policy.forget("customer", 4711) == 0
        assert policy.forget("customer", "x") == 0
        assert state(policy) == before
        for name in mine:  # counted, not learnt from
            policy.feedback(name, True)
        assert state(policy) == before
        assert policy.describe()["feedback"] == status_of_log(log).feedback == 2
        policy.feedback(other, True)
        assert state(policy) != before
        after = state(policy)
        drop(policy)
    files = b"".join(file.read_bytes() for file in log.parent.glob("events.db*"))
    assert context not in files
    assert b"customer=4711" not in files
    assert b"customer=12" in files
    assert verify_log(log) == 6
    with Policy.open(policy_file, log) as again:
        assert state(again) == after


def test_a_policy_without_a_log_has_nothing_to_prune(policy_file: Path) -> None:
    with pytest.raises(UsageError, match="needs a policy with a log"):
        Policy.load(policy_file).prune(datetime.now(UTC))


def test_a_log_opened_to_read_is_not_made_nor_written(log: Path, policy_file: Path) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        EventLog(str(log), write=False)
    with pytest.raises(LogError, match="cannot be read"):
        Policy.resume(log)
    assert not log.exists()
    Policy.open(policy_file, log).close()
    reader = EventLog(str(log), write=False)
    with pytest.raises(LogError, match="readonly"):
        reader.own("x")
    reader.close()
    shutil.copy(log, log.parent / "copy.db")
    assert status_of_log(log.parent / "copy.db").decisions == 0
