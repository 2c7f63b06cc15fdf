"""The log in a PostgreSQL database, by SQLAlchemy (extra `postgres`): any host can take over from one that died.

One process writes at a time. It holds an advisory lock of the database, which the server drops with the connection; and it
writes its own mark into the log when it begins, which every commit looks at: a writer that lost its connection, and whose place
was taken, can store nothing more.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from banditlab.distributions import refuse_without
from banditlab.errors import LogError, UsageError
from banditlab.policy.sql_log import TABLES, SQLLog

SYNCHRONOUS = ("on", "remote_write", "remote_apply")
"""Values of PostgreSQL's synchronous_commit with which a commit is on disk when it returns."""


class PostgresLog(SQLLog):
    """See `SQLLog`. The tables stand in the first schema of the search path: one log for each schema.

    Parameters
    ----------
    address
        "postgresql://user:password@host/database"; options of libpq may follow, as in "?options=-csearch_path%3Dmy_schema".
    write
        Whether to take the writer's place; else it is opened to read.

    Raises
    ------
    UsageError
        SQLAlchemy or psycopg is not installed, or the address is none.
    LogError
        Another process writes; the server cannot be reached; it acknowledges commits that are not on disk.
    """

    words = {"key": "BIGINT", "real": "DOUBLE PRECISION", "blob": "BYTEA"}

    def __init__(self, address: str, write: bool = True) -> None:
        refuse_without("a log in PostgreSQL", "sqlalchemy", "psycopg")
        try:
            import sqlalchemy

            url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
            self._engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
        except Exception as error:
            raise UsageError(f"log: not an address of a database ({' '.join(str(error).split())[:100]})") from None
        self._sql = sqlalchemy
        self.source = url.render_as_string(hide_password=True)
        self._write, self._mark = write, os.urandom(8).hex()
        self._db: Any = None
        self._depth = 0
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        with self.reading():
            self._db = self._engine.connect()
            self._db.rollback()
            schema = self.run("SELECT current_schema()")[0][0]
        if schema is None:
            raise LogError(f"{self.source}: its search path names no schema that is there")
        names = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        with self.reading():
            found = {name for (name,) in self.run(names)} & set(TABLES)
        if not self._write:
            if found != set(TABLES):
                raise LogError(f"{self.source}: no policy's log")
            return
        with self.reading():
            [(synchronous,)] = self.run("SHOW synchronous_commit")
            [(synced,)] = self.run("SHOW fsync")
            [(own,)] = self.run("SELECT pg_try_advisory_lock(:key)", {"key": _key(str(schema))})
        if not own:
            raise LogError(f"{self.source}: another process writes to this log; there can be one writer only")
        if synchronous not in SYNCHRONOUS or synced != "on":
            raise LogError(
                f"{self.source}: synchronous_commit is {synchronous} and fsync {synced}: what was acknowledged could be lost"
            )
        if not found:
            with self._transaction():
                self.make_tables()
        elif found != set(TABLES):
            raise LogError(f"{self.source}: not a policy's log, or half of one")
        with self._transaction():
            self.run("DELETE FROM meta WHERE name = 'writer'")
            self.run("INSERT INTO meta VALUES ('writer', :mark)", {"mark": self._mark})

    def run(self, sql: str, values: dict[str, Any] | list[dict[str, Any]] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement with named values `:name` (a list of them: once for each), and return its rows."""
        found = self._db.execute(self._sql.text(sql), values or {})
        return [tuple(row) for row in found] if found.returns_rows else []

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run the statements inside all or none, if the writer's place is still this one's; durable at the end."""
        if not self._write:
            raise LogError(f"{self.source}: opened to read")
        with self._transaction():
            if self.run("SELECT value FROM meta WHERE name = 'writer' FOR SHARE") != [(self._mark,)]:
                raise LogError(f"{self.source}: another process has taken the writer's place")
            yield

    def refresh(self) -> None:
        """Take up a connection that was lost, and the writer's place with it; where that was taken, say so."""
        if self._db is None or self._db.closed or self._db.invalidated:
            with suppress(Exception):
                self._db.close()
            self._connect()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self.reading():
            try:
                yield
                self._db.commit()
            except BaseException:
                with suppress(Exception):
                    self._db.rollback()
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the database raises inside into a LogError of one line; no transaction is left open at the end."""
        self._depth += 1
        try:
            yield
            if self._depth == 1 and self._db is not None:
                self._db.rollback()  # of a commit nothing is left to roll back
        except self._sql.exc.SQLAlchemyError as error:
            text = " ".join(str(getattr(error, "orig", error)).split())[:200]
            raise LogError(f"{self.source}: the log cannot be used ({text}); what was acknowledged is in it") from error
        finally:
            self._depth -= 1

    def close(self) -> None:
        """Close it and let another writer in."""
        with suppress(Exception):
            if self._db is not None:
                self._db.close()
        self._engine.dispose()


def _key(schema: str) -> int:
    """Return the number of a schema's advisory lock."""
    return int.from_bytes(hashlib.sha256(f"banditlab log {schema}".encode()).digest()[:8], "big", signed=True)
