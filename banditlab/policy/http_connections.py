"""HTTP connections with limits on their number, on the time to wait for a client, and on unread output."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from banditlab.validation import CONNECTIONS, limit

WAIT = 30.0
"""Time limit in seconds for a client to send the head of a request, or to read a response."""
LINGER = 1.0
"""Seconds for which a closed connection stays half open, so a late request does not cause a reset."""
UNREAD = 32 * 2**20
"""The largest number of response bytes, over all connections, that clients have not read."""
BACKLOG = 16
"""The number of connections that the event loop may accept before any of them is counted."""
OTHER_FILES = 32
"""The number of file descriptors for other purposes: the log, the listening socket, libraries."""
NOTICE = 60.0
"""Seconds between two notices of the same kind."""

Base: Any = H11Protocol


def files() -> float:
    """Return the number of files that this process may have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return float("inf")
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Notices:
    """Messages on stderr, at most one per kind and minute, with the number of suppressed ones."""

    def __init__(self) -> None:
        self._left_out: Counter[str] = Counter()
        self._next: dict[str, float] = {}

    def say(self, kind: str) -> None:
        """Print a message, or count it as suppressed."""
        now = time.monotonic()
        if now < self._next.get(kind, 0.0):
            self._left_out[kind] += 1
            return
        more = f" ({self._left_out.pop(kind)} more since the last notice)" if self._left_out[kind] else ""
        self._next[kind] = now + NOTICE
        print(f"banditlab: {kind}{more}", file=sys.stderr, flush=True)


class Pool:
    """The open connections of a server. Above the limit, the one that has waited longest for its client is closed."""

    def __init__(self) -> None:
        # The loop may accept three rounds of connections before the first of them is counted.
        self.most = max(1, int(min(limit(CONNECTIONS), files() - OTHER_FILES - 3 * BACKLOG)))
        self.notices = Notices()
        self.open: set[Connection] = set()
        self.waiting: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        """Register a connection; close another one if there are too many."""
        self.open.add(connection)
        if len(self.open) > self.most:
            self.notices.say(f"more than {self.most:,} connections: the longest waiting ones are closed")
            next(iter(self.waiting), connection).abort()

    def bound_unread(self) -> None:
        """If the total unread output is too large, close the connections that have waited longest for their clients to read."""
        unread = sum(one.transport.get_write_buffer_size() for one in self.open)
        for one in list(self.waiting):
            if unread <= UNREAD:
                return
            if size := one.transport.get_write_buffer_size():
                self.notices.say(
                    f"clients have more than {UNREAD:,} unread bytes of responses: their connections are closed"
                )
                unread -= size
                one.abort()


class Connection(Base):
    """A connection that is closed if its client does not send a request or read a response in time."""

    pool: Pool
    """Set by `protocol`."""
    _deadline: asyncio.TimerHandle | None = None
    _stopping = _closing = False

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()
        self.pool.add(self)

    def data_received(self, data: bytes) -> None:
        """Receive data from the client; a complete request stops its timeout."""
        if self._closing:
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel()  # the endpoint sets the deadline of a body
            if not self.cycle.more_body:
                self.pool.waiting.pop(self, None)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._wait()
        if self._stopping:
            self._linger()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._wait()
        self.pool.bound_unread()

    def resume_writing(self) -> None:
        """Resume writing."""
        super().resume_writing()
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection."""
        self._cancel()
        self.pool.open.discard(self)
        self.pool.waiting.pop(self, None)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection when the server stops, after the current response, so the client does not see a reset."""
        self._stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self._linger()

    def _linger(self) -> None:
        self._closing = True  # further input is read and ignored
        with contextlib.suppress(OSError):
            self.transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER, self.abort)

    def abort(self) -> None:
        """Close the connection immediately and drop its pending output."""
        self.pool.open.discard(self)
        self.pool.waiting.pop(self, None)
        self.transport.abort()

    def _wait(self) -> None:
        self._cancel()
        self.pool.waiting.pop(self, None)
        self.pool.waiting[self] = None  # the newest comes last
        self._deadline = asyncio.get_running_loop().call_later(WAIT, self.abort)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


def protocol() -> type[Connection]:
    """Return the protocol class of one server, whose connections share a pool."""
    return type("Connection", (Connection,), {"pool": Pool()})
