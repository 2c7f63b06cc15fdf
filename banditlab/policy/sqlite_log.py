"""The log in one SQLite file: write-ahead, every commit synced to disk before it is acknowledged, one writer."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from banditlab.errors import LogError, UsageError
from banditlab.policy.sql_log import TABLES, SQLLog
from banditlab.policy.wal import refuse_damaged
from banditlab.results.system import hold, release

APPLICATION = 0x62616E64
"""SQLite's application id of a log, "band": a file of somebody else's is not written to."""
WAIT = 5.0
"""Seconds for which a reader may hold the file up."""


class SQLiteLog(SQLLog):
    """See `SQLLog`. A lock file beside it, PATH.lock, keeps a second writer out; readers are welcome.

    Parameters
    ----------
    path
        The file; it is made where there is none.

    Raises
    ------
    LogError
        Another process writes to it; it cannot be made, opened or written; it is damaged, or no log.
    """

    words = {"key": "INTEGER", "real": "REAL", "blob": "BLOB"}

    def __init__(self, path: str) -> None:
        self.source, file = path, Path(path)
        self._files: dict[str, tuple[int, int] | None] = {}
        try:
            lock = hold(Path(f"{path}.lock"))
        except UsageError as error:
            raise LogError(str(error)) from None
        if lock is None:
            raise LogError(f"{path}: another process writes to this log; there can be one writer only")
        self._lock = lock
        try:
            refuse_damaged(file)
            self._connect()
        except BaseException:
            release(self._lock)
            raise

    def _connect(self) -> None:
        with self.reading():
            self._db = sqlite3.connect(self.source, timeout=WAIT, isolation_level=None, check_same_thread=False)
        try:
            with self.reading():
                found = harden(self._db, self.source)
                if self._db.execute("PRAGMA journal_mode = WAL").fetchall() != [("wal",)]:
                    raise LogError(f"{self.source}: its file system has no write-ahead log; put the log on another")
                self._db.execute("PRAGMA synchronous = FULL")  # a commit is on disk when it returns
                self._db.execute("PRAGMA fullfsync = ON")  # macOS: on the disk's platters, not in its memory
            if not found:
                with self.together():
                    self.make_tables()
                    self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self.refuse_other_format()
            self._files = {place: _file_at(place) for place in (self.source, f"{self.source}-wal")}
        except BaseException:
            self._db.close()
            raise

    def run(self, sql: str, values: dict[str, Any] | list[dict[str, Any]] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement with named values `:name` (a list of them: once for each), and return its rows."""
        if isinstance(values, list):
            self._db.executemany(sql, values)
            return []
        return self._db.execute(sql, values or {}).fetchall()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run the statements inside all or none; they are on disk at the end."""
        with self.reading():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._refuse_moved()
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled it back already
                    self._db.execute("ROLLBACK")
                raise

    def _refuse_moved(self) -> None:
        """Raise a LogError where the file that is open is no longer the one of that name: nobody would find what is written."""
        for place, was in self._files.items():
            now = _file_at(place)
            if was is None:  # the write-ahead log comes with the first commit
                self._files[place] = now
            elif now != was:
                raise LogError(
                    f"{place}: moved, replaced or removed while the log was open; what was acknowledged is in the file that "
                    "was there: put it back, or close the policy and open it anew"
                )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what SQLite raises inside into a LogError of one line."""
        with told(self.source):
            yield

    def close(self) -> None:
        """Close it and let another writer in."""
        try:
            with self.reading():
                self._db.close()
        finally:
            release(self._lock)


def _file_at(place: str) -> tuple[int, int] | None:
    """Return which file stands there now, None where there is none."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def told(source: str) -> Iterator[None]:
    """Turn what SQLite raises inside into a LogError of one line that names the log."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise LogError(f"{source}: another writer has written to this log ({error})") from error
    except sqlite3.Error as error:
        text = " ".join(str(error).split())
        raise LogError(f"{source}: the log cannot be used ({text}); what was acknowledged is in it") from error


def harden(db: sqlite3.Connection, source: str) -> bool:
    """Return whether there is a log in the file, False where it is empty; a LogError where it is anything else.

    A file may come from anybody: one with triggers or views, which would run with our statements, is refused.
    """
    db.execute("PRAGMA trusted_schema = OFF")
    found = db.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    if not found:
        return False
    [(application,)] = db.execute("PRAGMA application_id").fetchall()
    if application != APPLICATION or set(found) != {("table", name) for name in TABLES}:
        raise LogError(f"{source}: not a policy's log")
    return True
