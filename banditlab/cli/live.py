"""`banditlab run --live`: a page, reachable from this machine only, that shows a running sweep.

The page requests new data every two seconds. Results are read only on request, and for at most a tenth of the time.
When the sweep ends, the server waits briefly until an open page has fetched the outcome, and stops.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from banditlab.cli.progress_words import done_of, left_of, stage_of
from banditlab.engine import Progress
from banditlab.engine.plan import Plan
from banditlab.errors import BanditlabError, UsageError

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""The allowed host names of a request; any other name may be an attack by DNS rebinding."""
SHARE = 10
"""The smallest time between two readings of the results, in multiples of the time of a reading."""
LINGER = 5.0
"""The longest time in seconds that the server waits for an open page to fetch the outcome."""


class Live:
    """The live page of one sweep: a server in a separate thread, from the start until `close`.

    Parameters
    ----------
    name, plan, folder
        The name of the sweep, its plan, and the folder of its results.
    port
        The port; 0 selects a free one.

    Raises
    ------
    UsageError
        The port is in use, or is not allowed.
    """

    def __init__(self, name: str, plan: Plan, folder: Path, port: int = 0) -> None:
        self.name, self.folder = name, folder
        self.planned = Counter((run.environment_label, run.label) for run in plan.runs)
        self.progress: Progress | None = None
        """The progress of the sweep, set by its watcher."""
        self.ended = ""
        self.secret = secrets.token_urlsafe(9)
        self._lock = threading.Lock()
        self._ranking, self._error, self._next = "", "", 0.0
        self._asked, self._told = 0.0, threading.Event()
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        except OSError as error:
            why = f"--live-port {port}: not available on {HOST} ({error.strerror}); give another port, or none for a free one"
            raise UsageError(why) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True, name="live page")
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page; the server answers only requests that contain its secret part."""
        return f"http://{HOST}:{self._server.server_address[1]}/{self.secret}/"

    def finish(self, how: str) -> None:
        """Publish the outcome of the sweep, and wait briefly until an open page has fetched it."""
        with self._lock:
            self.ended, self._next = how, 0.0
        if time.monotonic() - self._asked < LINGER:
            self._told.wait(LINGER)

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)

    def part(self) -> str:
        """Return the changing part of the page, as HTML."""
        from banditlab.analysis.live import live_part

        self._asked = time.monotonic()
        with self._lock:
            ended = self.ended
            if time.monotonic() >= self._next:
                self._read()
            ranking, error = self._ranking, self._error
        said, done = self._progress_words()
        notices = [] if self.progress is None else list(self.progress.notices)
        text = live_part(said=said, done=done, ended=ended, ranking=ranking, error=error, notices=notices)
        if ended:
            self._told.set()
        return text

    def page(self) -> str:
        """Return the whole page."""
        from banditlab.analysis.live import live_page

        return live_page(self.name, self.part())

    def _progress_words(self) -> tuple[str, tuple[int, int]]:
        """Return the state of the sweep as a sentence, and the finished and total amounts of work."""
        progress = self.progress
        if progress is None:
            return "starting", (0, 1)
        parts = (stage_of(progress), done_of(progress), left_of(progress), f"{progress.seconds:,.0f} s so far")
        total = max(1, progress.runs + progress.streams)
        return ", ".join(filter(None, parts)), (min(total, progress.runs_done + progress.streams_done), total)

    def _read(self) -> None:
        """Read the results again; if they cannot be read, the page shows the reason and the last ranking."""
        from banditlab.analysis.live import ranking_so_far
        from banditlab.analysis.tables import load

        begin = time.monotonic()
        try:
            self._ranking, self._error = ranking_so_far(load(self.folder), dict(self.planned)), ""
        except BanditlabError as error:
            self._error = str(error)
        except Exception as error:  # another process may be replacing a file
            self._error = f"the results could not be read ({type(error).__name__}: {error})"
        self._next = time.monotonic() + max(1.0, SHARE * (time.monotonic() - begin))


def _handler(live: Live) -> type[BaseHTTPRequestHandler]:
    from banditlab.analysis.live import live_policy

    class Handler(BaseHTTPRequestHandler):
        """A handler that answers GET requests for two addresses only."""

        protocol_version = "HTTP/1.0"  # connections are closed after each answer, so none remains after the sweep
        timeout = 30
        server_version, sys_version = "banditlab", ""

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
            makers = {f"/{live.secret}/": live.page, f"/{live.secret}/part": live.part}
            make = makers.get(self.path)
            if host not in NAMES or make is None:
                self._answer(HTTPStatus.NOT_FOUND, "not found; the address was printed at the start of the sweep\n")
                return
            self._answer(HTTPStatus.OK, make(), "text/html")

        def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
            body = text.encode("utf-8", "replace")
            self.send_response(status)
            for name, value in (
                ("Content-Type", f"{kind}; charset=utf-8"),
                ("Content-Length", str(len(body))),
                ("Content-Security-Policy", live_policy()),
                ("Cache-Control", "no-store"),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing, because the terminal shows the progress."""

    return Handler
