"""Clients of the server that are many, slow or greedy, and requests that two readers understand differently."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab import Policy

pytest.importorskip("uvicorn", reason="the extra serve")
import uvicorn

from banditlab.policy import http_connections, server

ROW = {"plan": "pro", "age": 31, "visits": 2.0}
KIND = b"Content-Type: application/json\r\n"


def request(body: bytes, head: bytes = b"") -> bytes:
    """Return a POST to /decide."""
    length = b"" if head else b"Content-Length: %d\r\n" % len(body)
    return b"POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\n" + KIND + head + length + b"\r\n" + body


WHOLE = request(json.dumps({"row": ROW}).encode())


def served(policy: Policy, talk: Callable[[int, Any], Awaitable[None]], hosts: tuple[str, ...] = ()) -> None:
    """Have `talk(port, server)` talk to a server of the policy."""

    async def run() -> None:
        app = server.make_app(policy, hosts=hosts)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            kind = http_connections.protocol()
            running = server._Stoppable(uvicorn.Config(app, log_level="error", http=kind, lifespan="on", backlog=4))
            task = asyncio.create_task(running._serve(sockets=[listening]))
            while not running.started:
                await asyncio.sleep(0.01)
            await talk(listening.getsockname()[1], running)
            running.should_exit = True
            await task

    asyncio.run(run())


async def ask(port: int, data: bytes = WHOLE) -> bytes:
    """Return what a new connection answers, until it has a head or is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    found = await asyncio.wait_for(reader.read(4096), 10)
    writer.close()
    return found


@pytest.fixture
def policy(policy_file: Path) -> Policy:
    return Policy.load(policy_file)


def test_idle_connections_make_place_for_new_ones(policy: Policy, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_CONNECTIONS", "8")

    async def talk(port: int, _: Any) -> None:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        for _, writer in idle:
            writer.write(b"POST /dec")
        assert (await ask(port)).startswith(b"HTTP/1.1 200")
        reader, _ = idle[0]
        with contextlib.suppress(ConnectionError):  # a reset is as good as an end
            assert await asyncio.wait_for(reader.read(), 5) == b""
        for _, writer in idle:
            writer.close()

    served(policy, talk)
    assert capfd.readouterr().err.count("more than 8 connections") == 1  # one notice, not forty


def test_a_client_that_reads_nothing_is_closed(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "WAIT", 0.5)
    many = request(json.dumps({"rows": [ROW] * 1000}).encode())

    async def talk(port: int, running: Any) -> None:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", port))
        deaf.sendall(many * 4)
        for _ in range(100):
            await asyncio.sleep(0.1)
            if not running.server_state.connections:
                break
        assert not running.server_state.connections
        deaf.close()
        assert (await ask(port)).startswith(b"HTTP/1.1 200")

    served(policy, talk)


class Held:
    """A connection that waits for its client to read so many bytes."""

    def __init__(self, pool: http_connections.Pool, size: int) -> None:
        self.pool, self.size, self.transport = pool, size, self
        pool.open.add(self)  # type: ignore[arg-type]
        pool.waiting[self] = None  # type: ignore[index]

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.pool.open.discard(self)  # type: ignore[arg-type]
        del self.pool.waiting[self]  # type: ignore[arg-type]


def test_notices_that_were_not_printed_are_counted_in_the_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds, notices = iter([0.0, 30.0, 59.5, 60.0]), http_connections.Notices()
    monkeypatch.setattr(http_connections, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    for _ in range(4):
        notices.say("full")
    assert capsys.readouterr().err == "banditlab: full\nbanditlab: full (2 more since the last notice)\n"


def test_a_server_leaves_open_files_for_what_is_not_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 for the log and the interpreter, and three rounds of 16 connections that are not counted yet."""
    resource = pytest.importorskip("resource")
    for files, most in ((200, 200 - 32 - 48), (50, 1)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, 4096))
        assert http_connections.Pool().most == most


def test_unread_answers_are_bounded_together(capfd: Any) -> None:
    pool = http_connections.Pool()
    connections = [Held(pool, size) for size in (0, 1, 2**24, 2**24)]
    pool.bound_unread()
    assert list(pool.waiting) == [connections[0], *connections[2:]]  # the oldest that holds anything is closed
    assert "more than 33,554,432 unread bytes of responses" in capfd.readouterr().err


def test_bodies_are_bounded_together_and_small_ones_still_come_in(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BODIES", 200_000)
    half = request(b"x" * 150_000, b"Content-Length: 160000\r\n")

    async def talk(port: int, _: Any) -> None:
        waits = await asyncio.open_connection("127.0.0.1", port)
        waits[1].write(half)
        await asyncio.sleep(0.3)
        assert (await ask(port, half)).startswith(b"HTTP/1.1 503")
        assert (await ask(port)).startswith(b"HTTP/1.1 200")
        waits[1].close()
        await asyncio.sleep(0.3)
        assert b"not JSON" in await ask(port, request(b"x" * 160_000))  # what the first one held is free again

    served(policy, talk)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (request(b'{"row": {}, "row": {}}'), b"occurs twice"),
        (request(b'{"row": {"age": 1, "age": 2}}'), b"occurs twice"),
        (
            request(b"2\r\n{}\r\n0\r\n\r\n", b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
            b"Content-Length or Transfer-Encoding",
        ),
    ],
)
def test_what_two_readers_understand_differently_is_refused(policy: Policy, data: bytes, says: bytes) -> None:
    async def talk(port: int, _: Any) -> None:
        answer = await ask(port, data)
        assert answer.startswith(b"HTTP/1.1 400")
        assert says in answer
        assert (b"connection: close" in answer.lower()) == (b"Transfer" in says)

    served(policy, talk)


def test_nothing_is_redirected_to_a_host_that_nobody_checked(policy: Policy) -> None:
    async def talk(port: int, _: Any) -> None:
        for path in (b"/decide/", b"//evil.example/", b"/health/"):
            answer = await ask(port, b"GET " + path + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            assert b"evil.example" not in answer
            assert not answer.startswith(b"HTTP/1.1 3")

    served(policy, talk, hosts=("127.0.0.1",))


def test_sixteen_clients_read_an_end_when_the_server_stops(policy: Policy) -> None:
    ends = []

    async def client(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while True:
                writer.write(WHOLE)
                if not await reader.read(4096):
                    ends.append("end")
                    return
        except ConnectionError as error:
            ends.append(type(error).__name__)
        finally:
            writer.close()

    async def talk(port: int, running: Any) -> None:
        tasks = [asyncio.create_task(client(port)) for _ in range(16)]
        await asyncio.sleep(0.5)
        running.should_exit = True
        await asyncio.gather(*tasks)

    served(policy, talk)
    assert ends == ["end"] * 16
