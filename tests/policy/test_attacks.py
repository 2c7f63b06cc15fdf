"""What a hostile caller hands over, and what befalls a log that is open: one line, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import socket
import threading
import time
import warnings
from collections.abc import AsyncIterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab import Policy
from banditlab.errors import LogError, UnknownDecisionError, UsageError
from banditlab.policy.choice import LONGEST_NAME
from banditlab.policy.log import EventLog
from tests.policy.customers import new_rows
from tests.policy.test_log import drop, state

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture
def policy(policy_file: Path) -> Policy:
    return Policy.load(policy_file)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


class Odd:
    """Neither a number nor a text, whoever asks."""

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class OddRow(dict[str, Any]):
    """A table that has no values when it is asked for them."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("nothing")

    __getitem__ = get


@pytest.mark.parametrize(
    "row",
    [
        "[" * 200_000,
        '{"plan":' * 100_000,
        '{"plan": "pro", "visits": 1, "age": ' + "9" * 5000 + "}",
        OddRow(ROW),
        {**ROW, "age": Odd()},
        {**ROW, "plan": Odd()},
        {**ROW, "age": {"a": {"b": 1}}},
        {**ROW, "plan": b"pro"},
        {**ROW, "age": 10**5000},
        {**ROW, "age": np.array(3.0)},
        {("key" + "ag" * 20_000 + str(i)): 1 for i in range(30)},
    ],
    ids=[f"row-{number}" for number in range(11)],
)
def test_a_row_of_anything_is_refused_in_one_line_and_soon(policy: Policy, row: Any) -> None:
    before, begin = state(policy), time.process_time()
    with pytest.raises(UsageError) as error:
        policy.decide(row)
    assert time.process_time() - begin < 1.0
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 3000
    assert state(policy) == before


@pytest.mark.parametrize(
    "value",
    [True, np.bool_(True), np.float32(3), np.int8(3), "\ud800", "x" * 10**6],
    ids=[f"value-{number}" for number in range(6)],
)
def test_odd_values_that_are_values_are_taken(policy: Policy, value: Any) -> None:
    key = "plan" if isinstance(value, str) else "age"
    assert policy.decide({**ROW, key: value}).action in policy.classes


# ------------------------------------------------------------------------------------------------------- names of classes


@pytest.mark.parametrize(
    "name",
    ["\ud800", "x" * (LONGEST_NAME + 1), None, ["x"], b"x", 1.5, float("inf"), 10**5000],
    ids=[f"name-{number}" for number in range(8)],
)
def test_a_name_that_a_file_or_an_answer_could_not_hold_is_no_class(policy_file: Path, log: Path, name: Any) -> None:
    with Policy.open(policy_file, log, snapshot_every=1) as policy:
        with pytest.raises(UsageError) as error:
            policy.add_class(name)
        assert "\n" not in str(error.value)
        policy.decide(ROW)
    Policy.open(policy_file, log).close()


@pytest.mark.parametrize(
    "name",
    ["", "a\nb", "\0", "\U0001f600", "x" * LONGEST_NAME, np.str_("numpy's")],
    ids=[f"name-{number}" for number in range(6)],
)
def test_names_that_are_odd_and_names_are_kept(policy_file: Path, log: Path, name: str) -> None:
    with Policy.open(policy_file, log, snapshot_every=1) as policy:
        policy.add_class(name)
        choice = policy.decide(ROW, allowed=[name])
        assert (choice.action, choice.probability) == (name, 1.0)
        assert json.loads(choice.to_json())["action"] == name
        with pytest.raises(UsageError, match="no class is called 'other'") as error:
            policy.retire_class("other")
        assert "\n" not in str(error.value)
        policy.feedback(choice.id, True)
    with Policy.open(policy_file, log) as again:
        assert again.classes[-1] == name


def test_numbers_name_classes_as_json_tells_them(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i % 7},{0.5 * (i % 3)}\n" for i in range(30)))
    policy = Policy.train(table, "y", agent="uniform")
    assert policy.classes == [0.0, 0.5, 1.0]
    assert policy.decide({"x": 1}, allowed=[1]).action == 1.0  # 1.0 is 1 where JavaScript writes it
    assert policy.decide({"x": 1}, allowed=[np.float64(0.5)]).action == 0.5
    for other in (True, "1.0", 2, 10**400, float("nan")):
        with pytest.raises(UsageError, match="no class is called"):
            policy.decide({"x": 1}, allowed=[other])


def test_an_unknown_class_among_a_thousand_is_told_soon_and_briefly(policy: Policy) -> None:
    core = policy._core
    core.classes += [f"class number {i}" for i in range(1000)]
    begin = time.process_time()
    with pytest.raises(UsageError, match="and 903 more") as error:
        policy.decide(ROW, allowed=["class" * 200_000])
    assert time.process_time() - begin < 1.0
    assert len(str(error.value)) < 4000


# ---------------------------------------------------------------------------------------------------------------- feedback


@pytest.mark.parametrize(
    "id_",
    ["\ud800", "\0", "x" * 10**6, "", None, 7, b"x", [], "A" * 32],
    ids=[f"id-{number}" for number in range(9)],
)
def test_ids_that_are_none_are_told_so_with_a_log_and_without(policy_file: Path, log: Path, id_: Any) -> None:
    with Policy.open(policy_file, log) as logged:
        for policy in (logged, Policy.load(policy_file)):
            with pytest.raises(UnknownDecisionError) as error:
                policy.feedback(id_, True)
            assert "\n" not in str(error.value)
            assert len(str(error.value)) < 400


def test_ids_out_of_an_array_are_ids(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        ids = np.array([policy.decide(ROW).id, policy.decide(ROW).id])
        policy.feedback(ids[0], True)
        policy._open.clear()  # older than those remembered: it is in the log
        policy.feedback(ids[1], True)
        with pytest.raises(UnknownDecisionError, match="already"):
            policy.feedback(ids[1], True)


def test_one_of_eight_threads_gives_the_feedback(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as logged:
        for policy in (logged, Policy.load(policy_file)):
            name, told, at_once = policy.decide(ROW).id, [], threading.Barrier(8)

            def answer(policy: Policy = policy, name: str = name, told: list[str] = told, at: Any = at_once) -> None:
                at.wait()
                try:
                    policy.feedback(name, True)
                    told.append("taken")
                except UnknownDecisionError:
                    told.append("refused")

            threads = [threading.Thread(target=answer) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(told) == ["refused"] * 7 + ["taken"]
            assert policy.describe()["feedback"] == 1


def test_ids_of_another_policy_are_unknown(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as one, Policy.open(policy_file, log.parent / "other.db") as other:
        name, _ = one.decide(ROW).id, other.decide(ROW)  # both are the first decisions of their logs
        with pytest.raises(UnknownDecisionError, match="no decision has the id"):
            other.feedback(name, True)


# ------------------------------------------------------------------------------------------- a log under the policy's feet


@pytest.mark.parametrize("what", ["moved", "replaced", "removed", "wal removed", "shm removed"])
def test_a_log_that_is_no_longer_there_acknowledges_nothing(policy_file: Path, log: Path, what: str) -> None:
    policy = Policy.open(policy_file, log)
    known = policy.decide(ROW).id
    place = Path(f"{log}-{what[:3]}") if what.endswith(" removed") else log
    away = log.parent / "away"
    os.link(place, away)
    place.unlink()
    if what == "replaced":
        shutil.copy(away, place)
    before = state(policy)
    for _ in range(2):
        with pytest.raises(LogError, match="moved, replaced or removed while the log was open") as error:
            policy.decide(ROW)
        assert "\n" not in str(error.value)
    place.unlink(missing_ok=True)
    os.rename(away, place)  # put back
    policy.feedback(known, True)
    assert policy.describe()["decisions"] == 1
    drop(policy)
    with Policy.open(policy_file, log) as again:
        assert again.describe()["feedback"] == 1
        assert state(again)[1] == before[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked")
def test_a_forked_process_does_not_write_to_its_parent_s_log(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log) as policy:
        policy.decide(ROW)
        heard, told = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a test before may have left
            child = os.fork()
        if child == 0:
            try:
                policy.decide(ROW)
            except UsageError as error:
                os.write(told, str(error).encode())
            finally:
                os._exit(0)
        os.close(told)
        with open(heard, encoding="utf-8") as words:
            assert "before this process was forked" in words.read()
        os.waitpid(child, 0)
        policy.decide(ROW)
        assert policy.describe()["decisions"] == 2


@pytest.mark.parametrize("name", ["", ":memory:", "file:x?mode=memory"])
def test_a_log_in_no_file_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="log must name a file"):
        EventLog(name)


def test_a_password_is_in_no_message() -> None:
    pytest.importorskip("psycopg", reason="the extra postgres")
    with pytest.raises(LogError, match="the log cannot be used") as error:
        EventLog("postgresql://tester:secret@127.0.0.1:9/postgres")  # where nobody listens
    assert "tester" in str(error.value)
    assert "secret" not in str(error.value)


# ---------------------------------------------------------------------------------------------------------------- server

WHY = "the extra serve, and httpx, which tests ask it with"


def served() -> tuple[Any, Any, Any]:
    """Return the server's module, uvicorn and httpx."""
    for module in ("starlette", "uvicorn", "prometheus_client", "httpx"):
        pytest.importorskip(module, reason=WHY)
    return tuple(importlib.import_module(name) for name in ("banditlab.policy.server", "uvicorn", "httpx"))


def test_answers_hold_whatever_a_request_said(policy_file: Path, log: Path) -> None:
    server, _, httpx = served()
    kind = {"Content-Type": "application/json"}

    async def ask() -> None:
        app = server.make_app(Policy.open(policy_file, log))
        transport = httpx.ASGITransport(app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://t") as one:
            for path, body, status in (
                ("/feedback", rb'{"id": "\ud800", "correct": true}', 404),
                ("/feedback", rb'{"feedback": [{"id": "\ud800", "correct": true}]}', 200),
                ("/feedback", b'{"feedback": [{"id": NaN, "correct": true}]}', 400),
                ("/feedback", b'{"id": 7, "correct": true}', 400),
                ("/feedback", b'{"id": "x", "correct": NaN}', 400),
                ("/decide", rb'{"row": {"plan": "\ud800", "age": "\ud800", "visits": 2}}', 400),
                ("/decide", rb'{"row": {"plan": "\ud800", "age": 2, "visits": 2}}', 200),
                ("/decide", rb'{"row": {}, "\ud800": 1}', 400),
            ):
                answer = await one.post(path, content=body, headers=kind)
                assert answer.status_code == status, body
                assert answer.json()
            chunks = [json.dumps({"row": ROW}).encode()[i::1][:1] for i in range(len(json.dumps({"row": ROW})))]

            async def parts() -> AsyncIterator[bytes]:
                for part in chunks:
                    yield part

            assert (await one.post("/decide", content=parts(), headers=kind)).status_code == 200

    asyncio.run(ask())


def test_a_job_that_fails_oddly_fails_alone(policy_file: Path, log: Path) -> None:
    server, _, _ = served()
    from banditlab.policy.metrics import Metrics

    def fails() -> None:
        raise RuntimeError("odd")

    with Policy.open(policy_file, log) as logged:
        for policy in (logged, Policy.load(policy_file)):
            desk = server.Desk(policy, Metrics({}, {}, {}, {}))
            rows = new_rows(2)
            jobs = [partial(policy.decide, rows[0]), fails, partial(policy.decide, rows[1])]
            found = desk._together([server.Job(job, answer=Future()) for job in jobs])
            assert isinstance(found[1], RuntimeError)
            policy.feedback(found[0].id, True)
            policy.feedback(found[2].id, True)
            assert policy.describe()["decisions"] == 2

        def fails_half_way() -> None:
            logged.decide(ROW)
            raise RuntimeError("odd")

        desk = server.Desk(logged, Metrics({}, {}, {}, {}))
        jobs = [lambda: logged.decide(ROW), fails_half_way]
        found = desk._together([server.Job(job, answer=Future()) for job in jobs])
        assert all(isinstance(each, RuntimeError) for each in found)  # nothing of it is in the log
        logged.feedback(logged.decide(ROW).id, True)
        assert logged.describe()["decisions"] == 3


def test_connections_and_bodies_that_do_not_come_are_not_waited_for(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, uvicorn, _ = served()
    connections = importlib.import_module("banditlab.policy.http_connections")
    monkeypatch.setattr(connections, "WAIT", 0.2)
    monkeypatch.setattr(server, "SLOWEST", 0.2)
    head = b"POST /decide HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
    body = json.dumps({"row": ROW}).encode()

    async def said(port: int, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        found = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return found

    async def ask() -> None:
        app = server.make_app(Policy.load(policy_file))
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            port = listening.getsockname()[1]
            running = uvicorn.Server(uvicorn.Config(app, log_level="error", http=connections.protocol(), lifespan="on"))
            task = asyncio.create_task(running._serve(sockets=[listening]))
            while not running.started:
                await asyncio.sleep(0.01)
            assert await said(port, b"") == b""
            assert await said(port, b"POST /dec") == b""
            late = await said(port, head + b"Content-Length: 99\r\n\r\n{")
            assert late.startswith(b"HTTP/1.1 408")
            assert b"connection: close" in late
            whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
            answered = await said(port, whole + b"POST /dec")  # one that is answered, and half a second one
            assert answered.startswith(b"HTTP/1.1 200")
            running.should_exit = True
            await task

    asyncio.run(ask())
