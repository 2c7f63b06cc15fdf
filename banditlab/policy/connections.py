"""Connections to a log's database (SQLite or PostgreSQL), with a time limit for its responses."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from banditlab.disk import keep_entry
from banditlab.distributions import refuse_without
from banditlab.errors import LogError, UsageError

LIMIT = 5.0
"""Time limit in seconds for a response of the database."""


def engine_of(address: str, write: bool) -> tuple[sa.Engine, str]:
    """Return a SQLAlchemy engine that connects to a log, and the log's name for error messages."""
    if address.startswith(("postgresql://", "postgresql+")):
        return _server(address, write)
    if not address or address.startswith((":", "file:")) or "://" in address:
        raise UsageError(f"log must name a file, or a PostgreSQL database (postgresql://...), got {address!r}")
    return _file(address, write), address


def _file(path: str, write: bool) -> sa.Engine:
    place = Path(path).resolve()
    try:
        if write and not place.exists():
            place.touch(0o600)
            keep_entry(place.parent)
        if place.stat().st_nlink > 1:  # each name would have a separate write-ahead log
            raise LogError(f"{path}: the file has several names (hard links), and a log must have one name only")
    except OSError as error:
        raise LogError(f"{path}: cannot be {'written' if write else 'read'} ({error.strerror})") from None

    def connect() -> sqlite3.Connection:
        uri = f"{place.as_uri()}?mode={'rw' if write else 'ro'}"
        db = sqlite3.connect(uri, uri=True, timeout=LIMIT, isolation_level=None, check_same_thread=False)
        if db.execute("PRAGMA journal_mode = WAL").fetchall() != [("wal",)]:
            raise sqlite3.OperationalError(
                "its file system does not support a write-ahead log; store the log on another file system"
            )
        # A commit is on disk when it returns; on macOS this includes the disk's cache.
        for setting in ("trusted_schema = OFF", "synchronous = FULL", "fullfsync = ON"):
            db.execute(f"PRAGMA {setting}")
        return db

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool, paramstyle="named")
    sa.event.listen(engine, "begin", lambda db: db.exec_driver_sql("BEGIN"))
    return engine


def _server(address: str, write: bool) -> tuple[sa.Engine, str]:
    refuse_without("a log in PostgreSQL", "psycopg")
    import psycopg

    class Punctual(psycopg.Connection[Any]):
        """A connection that fails if the server does not respond in time."""

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            """Run one exchange of psycopg with the server until it finishes or times out."""
            return super().wait(self._timed(gen), *args, **options)

        def _timed(self, gen: Any) -> Any:
            end, ready = time.monotonic() + LIMIT, None
            try:
                while True:
                    ready = yield gen.send(ready)
                    if time.monotonic() > end:
                        self.close()
                        raise psycopg.OperationalError(f"no response within {LIMIT:g} s")
            except StopIteration as done:
                return done.value

    try:
        url = sa.make_url(address).set(drivername="postgresql+psycopg")
        given: Any = url.get_dialect()().create_connect_args(url)[1]
    except Exception as error:
        raise UsageError(f"log: not an address of a database ({one_line(error)[:100]})") from None
    if write:
        limits = "".join(f"-c{kind}_timeout={LIMIT:.0f}s " for kind in ("statement", "lock"))
        given["options"] = limits + given.get("options", "")
    kind: Any = Punctual if write else psycopg.Connection
    level = "READ COMMITTED" if write else "REPEATABLE READ"
    given = {"connect_timeout": f"{LIMIT:.0f}"} | given
    engine = sa.create_engine(url, creator=lambda: kind.connect(**given), poolclass=sa.NullPool, isolation_level=level)
    return engine, url.render_as_string(hide_password=True)


def one_line(error: BaseException) -> str:
    """Return the first 200 characters of a database's error."""
    return " ".join(str(getattr(error, "orig", error)).split())[:200]
