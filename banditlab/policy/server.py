"""`banditlab serve`: a policy over HTTP.

A single process writes, and simultaneous requests share one commit to the log. The event loop checks every request. A
thread then processes all pending requests in one transaction. Responses are sent when the transaction is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hmac
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from banditlab.errors import LogError, UnknownDecisionError, UsageError
from banditlab.policy.http_connections import BACKLOG, protocol
from banditlab.policy.metrics import Metrics
from banditlab.policy.openapi import PAGE, schema
from banditlab.policy.policy import Policy, without_duplicates
from banditlab.validation import BATCH, BODY, limit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LEAST_TOKEN = 16
SLOWEST = 30.0
"""Time limit in seconds for the body of a request."""
MOST_TOGETHER = 512
"""The largest number of requests in a transaction."""
DEADLINE = 10.0
"""Time limit in seconds for processing a request."""
SMALL = 8 * 2**10
"""Bodies up to this size in bytes are always accepted; larger ones count towards `BODIES`."""
BODIES = 32 * 2**20
"""The largest total size of larger bodies in memory, in bytes."""
BATCHES = 4
"""The largest number of larger bodies and lists that are processed at a time; as objects they need 20 times the memory."""
CLOSING = 1.0
"""Seconds between two checks for overdue decisions."""
QUEUE = 2048
"""The number of connections that the system queues until the event loop accepts them."""
STOP = 9.0
"""Seconds from SIGTERM to the end of the process, even if something hangs."""


class Answer(JSONResponse):
    """A response with JSON in ASCII, because an error may quote half of a surrogate pair, which UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Refused(Exception):
    """A request that the server rejects with an error, after which it may close the connection."""

    def __init__(self, status: int, why: str, *, close: bool = False) -> None:
        super().__init__(why)
        self.status, self.close = status, close


@dataclass
class Job:
    """A request to the policy, with a future for the response."""

    work: Callable[[], Any]
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Desk:
    """Collect jobs from the event loop, and run them in batches in order of arrival."""

    def __init__(self, policy: Policy, metrics: Metrics) -> None:
        self.policy, self.metrics = policy, metrics
        self.jobs: asyncio.Queue[Job | None] = asyncio.Queue()

    async def ask(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns, once it is on disk."""
        job = Job(work)
        self.jobs.put_nowait(job)
        try:
            return await asyncio.wait_for(job.answer, DEADLINE)
        except TimeoutError:  # the job is cancelled, and not done if it has not begun
            return LogError(
                f"the log did not respond within {DEADLINE:g} s; the request may nevertheless have been done"
            )

    async def run(self) -> None:
        """Run jobs until None arrives."""
        while (job := await self.jobs.get()) is not None:
            jobs = [job]
            while len(jobs) < MOST_TOGETHER and not self.jobs.empty():
                more = self.jobs.get_nowait()
                if more is None:
                    self.jobs.put_nowait(None)
                    break
                jobs.append(more)
            begin = time.perf_counter()
            if self.policy.logged:  # the loop accepts requests while a commit waits for the disk
                answers = await asyncio.to_thread(self._together, jobs)
            else:
                answers = self._together(jobs)
            self.metrics.commits.observe(time.perf_counter() - begin)
            for one, found in zip(jobs, answers, strict=True):
                if not one.answer.cancelled():
                    one.answer.set_result(found)

    def _together(self, jobs: list[Job]) -> list[Any]:
        """Return each job's result or exception; if the commit fails, return its LogError for all jobs."""
        answers: list[Any] = []
        try:
            with self.policy.together():
                for job in jobs:
                    if job.answer.cancelled():  # no client waits for it any more
                        answers.append(None)
                        continue
                    before = self.policy.mark()
                    try:
                        answers.append(job.work())
                    except Exception as error:
                        # A job must not be stored in part, and its effects cannot be separated from those of the
                        # others.
                        if self.policy.logged and not isinstance(error, UsageError) and self.policy.mark() != before:
                            raise
                        answers.append(error)
        except Exception as error:  # nothing of the batch is in the log
            self.metrics.failures.inc()
            return [error] * len(jobs)
        return answers


# ------------------------------------------------------------------------------------------------------------------- app


def make_app(policy: Policy, *, token: str = "", hosts: tuple[str, ...] = ()) -> Starlette:
    """Return the ASGI application of a policy, which it closes at shutdown.

    Parameters
    ----------
    policy
        An open policy, which no other code may use.
    token
        The token that requests must send as `Authorization: Bearer TOKEN`; "" for none.
    hosts
        Allowed Host headers, which keep foreign web pages in a browser from reaching the server; () for any.
    """
    server = Server(policy, token, hosts)
    routes = [
        Route("/decide", server.endpoint(server.decide), methods=["POST"]),
        Route("/feedback", server.endpoint(server.feedback), methods=["POST"]),
        Route("/policy", server.endpoint(server.about)),
        Route("/health", server.endpoint(server.health, open_to_all=True)),
        Route("/ready", server.endpoint(server.ready, open_to_all=True)),
        Route("/metrics", server.endpoint(server.numbers)),
        Route("/openapi.json", server.endpoint(server.openapi)),
        Route("/", server.endpoint(server.page, open_to_all=True)),
    ]
    app = Starlette(routes=routes, lifespan=server.lifespan)
    app.router.redirect_slashes = False  # a redirect would repeat an unchecked Host header
    return app


class Server:
    """The endpoints of one policy; see `make_app`."""

    def __init__(self, policy: Policy, token: str, hosts: tuple[str, ...]) -> None:
        self.policy, self.token, self.hosts = policy, token, hosts
        self.metrics = Metrics(policy.imputed, policy.unknown, policy.late, policy.spent)
        self.desk = Desk(policy, self.metrics)
        self.most_bytes, self.most_rows = limit(BODY), limit(BATCH)
        self.held = 0  # total bytes of larger bodies
        self.batches = asyncio.Semaphore(BATCHES)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the desk from start to end, then close the policy."""
        task, closing = asyncio.create_task(self.desk.run()), asyncio.create_task(self.close_overdue())
        try:
            yield
        finally:
            closing.cancel()
            self.desk.jobs.put_nowait(None)  # earlier jobs are still done
            await task
            self.policy.close()

    async def close_overdue(self) -> None:
        """Close overdue decisions of the policy regularly, also without requests."""
        while True:
            await asyncio.sleep(CLOSING)
            with contextlib.suppress(LogError):  # the next request reports the error
                await asyncio.to_thread(self.policy.close_overdue)

    def endpoint(self, handle: Callable[[Request], Any], *, open_to_all: bool = False) -> Any:
        """Wrap `handle` with the common parts of all paths: the token, error responses, metrics."""

        async def answer(request: Request) -> Response:
            begin = time.perf_counter()
            try:
                if "content-length" in request.headers and "transfer-encoding" in request.headers:
                    raise Refused(400, "send Content-Length or Transfer-Encoding, not both", close=True)
                if self.hosts and host_of(request.headers.get("host", "")) not in self.hosts:
                    raise Refused(421, f"the header Host must name one of {', '.join(self.hosts)}")
                if self.token and not open_to_all and not bears(request, self.token):
                    raise Refused(401, "send the token in the header Authorization: Bearer TOKEN")
                found = await handle(request)
                response = found if isinstance(found, Response) else Answer(found)
            except Refused as refused:
                headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
                if refused.close:
                    headers["Connection"] = "close"
                response = Answer({"error": str(refused)}, refused.status, headers)
                if request.method == "POST" and refused.status < 500:
                    self.policy.count_refused()
            self.metrics.request(request.url.path, response.status_code, time.perf_counter() - begin)
            return response

        return answer

    @contextlib.asynccontextmanager
    async def asked(self, request: Request) -> AsyncIterator[dict[str, Any]]:
        """Return the JSON object of a request; at most `BATCHES` large ones are parsed at a time."""
        async with self.body(request) as body:
            found = decoded(body) if len(body) <= SMALL else None
            if found is not None and not {"rows", "feedback"} & set(found):
                yield found
                return
            try:
                await asyncio.wait_for(self.batches.acquire(), DEADLINE)
            except TimeoutError:
                raise Refused(503, "too many large requests at a time; try again") from None
            try:
                yield decoded(body) if found is None else found
            finally:
                self.batches.release()

    @contextlib.asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytearray]:
        """Return the body of a request; bytes beyond the first `SMALL` count in `held`."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "the content type must be application/json")
        body, counted = bytearray(), 0
        try:
            async with asyncio.timeout(SLOWEST):
                async for part in request.stream():
                    body += part
                    if len(body) > self.most_bytes:
                        raise Refused(413, f"the body has more than {self.most_bytes:,} bytes", close=True)
                    more = max(0, len(body) - SMALL) - counted
                    if more and self.held + more > BODIES:
                        raise Refused(503, f"large requests already take {BODIES:,} bytes; try again", close=True)
                    self.held, counted = self.held + more, counted + more
            yield body
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {SLOWEST:g} s", close=True) from None
        except ClientDisconnect:
            raise Refused(400, "the body ended too early") from None  # no client reads this response
        finally:
            self.held -= counted

    async def ask(self, work: Callable[[], Any]) -> Any:
        """Return the result of `work` when it is on disk, or raise the error for the response."""
        found = await self.desk.ask(work)
        if isinstance(found, Exception):
            raise refusal(found)
        return found

    # ----------------------------------------------------------------------------------------------------------- endpoints

    async def decide(self, request: Request) -> Response:
        """Respond to {"row": ...} with a choice, and to {"rows": [...]} with a list of choices."""
        async with self.asked(request) as asked:
            known(asked, "row", "rows", "allowed")
            allowed = asked.get("allowed")
            if ("row" in asked) == ("rows" in asked):
                raise Refused(400, 'send "row", an object, or "rows", a list of objects')
            if "row" in asked:
                choice = await self.ask(lambda: self.policy.decide(asked["row"], allowed=allowed))
                self.metrics.decisions.inc()
                return Answer(choice.to_dict())
            rows = batch(asked["rows"], "rows", self.most_rows)
            choices = await self.ask(lambda: self.policy.decide_many(rows, allowed=allowed))
            self.metrics.decisions.inc(len(choices))
            return Answer({"choices": [choice.to_dict() for choice in choices]})

    async def feedback(self, request: Request) -> Response:
        """Store {"id": ..., "correct": ...} or {"feedback": [...]}; single entries of a list may be rejected."""
        async with self.asked(request) as asked:
            if "feedback" not in asked:
                name, correct = pair(asked)
                await self.ask(lambda: self.policy.feedback(name, correct))
                self.metrics.feedback(correct)
                return Answer({"accepted": 1})
            known(asked, "feedback")
            answers = [pair(one) for one in batch(asked["feedback"], "feedback", self.most_rows)]
            refused = []
            errors = await self.ask(lambda: self.policy.feedback_many(answers))
            for (name, correct), why in zip(answers, errors, strict=True):
                if why is None:
                    self.metrics.feedback(correct)
                else:
                    refused.append({"id": name, "error": why})
            return Answer({"accepted": len(answers) - len(refused), "refused": refused})

    async def about(self, _: Request) -> dict[str, Any]:
        """Return the description of the policy."""
        return dict(await self.ask(self.policy.describe))

    async def health(self, _: Request) -> dict[str, Any]:
        """Return that the process responds, without access to the log."""
        return {"status": "ok"}

    async def ready(self, _: Request) -> dict[str, Any]:
        """Return whether a decision can be stored now."""
        await self.ask(self.policy.ready)
        return {"status": "ready"}

    async def page(self, _: Request) -> Response:
        """Return the web page."""
        return HTMLResponse(PAGE, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"})

    async def openapi(self, _: Request) -> dict[str, Any]:
        """Return the OpenAPI description."""
        return schema(await self.ask(self.policy.describe), self.most_rows, bool(self.token))

    async def numbers(self, _: Request) -> Response:
        """Return the counters."""
        return Response(self.metrics.text(), media_type=self.metrics.media_type)


# ------------------------------------------------------------------------------------------------------------- requests


def decoded(body: bytearray) -> dict[str, Any]:
    """Return the JSON object of a body; duplicate keys are rejected, because parsers differ in which one they use."""
    try:
        found = json.loads(body, object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise Refused(400, "the body must be a JSON object")
    return found


def known(asked: dict[str, Any], *names: str) -> None:
    """Raise `Refused` for a key that is not among `names`."""
    if odd := sorted(set(asked) - set(names)):
        raise Refused(400, f"unknown key {odd[0][:60]!r} (known: {', '.join(names)})")


def pair(one: Any) -> tuple[str, Any]:
    """Return the decision id and the bit of one feedback."""
    if not isinstance(one, dict) or set(one) != {"id", "correct"}:
        raise Refused(400, 'feedback must be an object with "id" and "correct"')
    if not isinstance(one["id"], str):
        raise Refused(400, 'an "id" must be a string')
    return one["id"], one["correct"]


def batch(given: Any, name: str, most: int) -> list[Any]:
    """Return a list after a check of its length."""
    if not isinstance(given, list):
        raise Refused(400, f'"{name}" must be a list')
    if len(given) > most:
        raise Refused(413, f'"{name}" has {len(given):,} entries, above the limit of {most:,}')
    return given


def refusal(error: Exception) -> Refused:
    """Return a job's result as the HTTP response."""
    text = " ".join(str(error).split())
    if isinstance(error, UnknownDecisionError):
        return Refused(409 if "already" in text else 404, text)
    if isinstance(error, UsageError):
        return Refused(400, text)
    return Refused(503 if isinstance(error, LogError) else 500, text or type(error).__name__)


def bears(request: Request, token: str) -> bool:
    """Return whether a request has the token, compared in constant time."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def host_of(header: str) -> str:
    """Return a Host header without its port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


# ------------------------------------------------------------------------------------------------------------------ serve


def serve(policy: Policy, *, host: str = "127.0.0.1", port: int = 8080, token: str = "") -> None:
    """Serve a policy until SIGTERM or SIGINT, then respond to pending requests and close the policy.

    If this takes longer than `STOP` seconds, because a write to the log hangs, the process ends with exit code 1.
    Acknowledged requests are in the log.

    Raises
    ------
    UsageError
        The host is not the machine itself and there is no token of at least 16 characters, or the port is in use.
    """
    if host not in LOOPBACK and not token:
        raise UsageError(
            f"--host {host}: everyone who can reach this address could request decisions and send feedback; set a "
            "token (--token-file)"
        )
    if token and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(f"a token must have at least {LEAST_TOKEN} printable characters, all ASCII")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol TCP given, asyncio sends at once; otherwise a response waits 40 ms for the client's ACK of its
    # head.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as opened:
        if os.name == "posix":  # on Windows the option would allow two servers on the same port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, port))
        except OSError as error:
            raise UsageError(f"--host {host} --port {port}: {error.strerror}") from None
        policy.warm()
        gc.collect()
        gc.freeze()  # exclude existing objects from garbage collections, which would delay requests
        app = make_app(policy, token=token, hosts=LOOPBACK if host in LOOPBACK else ())
        config = uvicorn.Config(
            app, log_level="error", access_log=False, timeout_graceful_shutdown=5, lifespan="on", server_header=False,
            http=protocol(), ws="none", backlog=BACKLOG, h11_max_incomplete_event_size=16 * 2**10,
        )  # fmt: skip
        opened.listen(QUEUE)
        where = f"[{host}]" if ":" in host else host
        print(f"serving {policy!r} on http://{where}:{opened.getsockname()[1]}", flush=True)
        _Stoppable(config).run(sockets=[opened])


class _Stoppable(uvicorn.Server):
    """A server that ends normally after a stop signal; uvicorn's own server raises the signal again."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, with a longer queue of connections than the loop accepts at once."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(QUEUE)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT: the first stops the server gracefully, the second at once."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop the server, and set a deadline after which the process ends."""
        if not self.should_exit:
            last = threading.Timer(STOP, _give_up)
            last.daemon = True
            last.start()
        super().handle_exit(sig, frame)


def _give_up() -> None:
    print(
        f"banditlab: stopped {STOP:g} s after the signal; acknowledged requests are in the log",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)
