"""uvicorn's HTTP protocol, for connections that do not come to the point: each holds a file descriptor."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD = 30.0
"""Seconds from a connection's begin, or the answer before, until the head of a request is there."""

Base: Any = AutoHTTPProtocol


class Punctual(Base):
    """A connection that is closed where no request is there in time; a body has a limit of its own, in the endpoint."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Give the first request its time."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Give the next request its time."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(HEAD, self._late)

    def _late(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
