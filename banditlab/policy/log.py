"""A policy's event log: tables in a SQLite file or a PostgreSQL database, read and written with SQLAlchemy Core.

One process writes at a time. It holds the writer's mark, a row of the log with a token, the process and a heartbeat.
Every writing transaction checks the token, so a writer that lost the mark stores nothing more. Another process may take
over the mark if its process has ended (on the same machine), or if the heartbeat is `SILENT` seconds old (from another
machine, or if the system does not list processes).

The primary key of the table of events is an event's place in the sequence. An answer is the feedback for a decision, or
its closing without feedback. The primary key of the table of answers is the decision, so a decision has at most one
answer. There are no other indices, because a damaged index could disagree with its table. An id is found without an
index, because it begins with the place of its decision.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Column, Double, Integer, LargeBinary, MetaData, Table, Text

from banditlab.errors import LogError
from banditlab.players.saved import is_whole
from banditlab.policy import connections
from banditlab.policy import events as ev
from banditlab.policy.connections import engine_of, one_line

FORMAT = 2
STEP = 1000
"""Number of events that are read, or removed, at a time."""
PART = 2**20
"""Number of bytes of a snapshot that one transaction writes, so no decision waits long for a transaction."""
PARTS = 2**20
"""Largest number of parts of a snapshot."""
BEAT, SILENT = 10.0, 30.0
"""Seconds between two heartbeats; seconds without a heartbeat after which the writer's mark may be taken over."""
WHOLE = BigInteger().with_variant(Integer, "sqlite")
"""The type of 64-bit integers. As a primary key in SQLite it is the row's id, which needs no index."""
TYPES: dict[str, Any] = dict.fromkeys(("at", "probability", "share", "other"), Double)
TYPES |= dict.fromkeys(("kind", "id", "person", "name"), Text)
TYPES |= dict.fromkeys(("allowed", "distribution", "payload", "context"), LargeBinary)
SCHEMA = MetaData()


def _table(name: str, /, **columns: Any) -> Table:
    """Return a table whose first column is its primary key."""
    key = next(iter(columns))
    parts = (Column(part, kind, primary_key=part == key, autoincrement=False) for part, kind in columns.items())
    return Table(name, SCHEMA, *parts)


EVENTS = _table("events", **{name: TYPES.get(name, WHOLE) for name in (*ev.COLUMNS, "crc")})
ANSWERS = _table("answers", decision=WHOLE, seq=WHOLE)
SNAPSHOTS = _table("snapshots", place=WHOLE, seq=WHOLE, crc=WHOLE, data=LargeBinary)
"""One row per part. The row's place is the snapshot's number times `PARTS` plus the part's number."""
HEAD = _table(
    "head", one=WHOLE, format=WHOLE, uid=Text, pruned=WHOLE, token=Text, process=Text, beat=WHOLE, refused=WHOLE
)
"""One row, with the policy, the place up to which events were removed, and the writer's mark."""
NOW = sa.cast(sa.extract("epoch", sa.func.now()), WHOLE)
"""Seconds since 1970 by the database's clock."""
_HOLDER = sa.select(HEAD.c.token).with_for_update(read=True)
_OPEN: weakref.WeakValueDictionary[str, EventLog] = weakref.WeakValueDictionary()
"""The logs that this process writes, by token."""


class EventLog:
    """The stored events. Every method raises a one-line `LogError` if the database fails or does not answer.

    Parameters
    ----------
    address
        A SQLite file, which is created if it does not exist; or "postgresql://user:password@host/database". In
        PostgreSQL the tables are in the first schema of the search path (options of libpq may follow, as in
        "?options=-csearch_path%3Dmy_schema").
    write
        Whether to acquire the writer's mark; otherwise the log is opened for reading only.

    Raises
    ------
    UsageError
        The address is invalid, or psycopg is not installed.
    LogError
        Another process writes; the log cannot be created, reached or written; or it is damaged or not a log.
    """

    def __init__(self, address: str, write: bool = True) -> None:
        self._engine, self.source = engine_of(address, write)
        dialect: Any = self._engine.dialect
        self._dialect, self._raised = dialect.name, (sa.exc.SQLAlchemyError, dialect.dbapi.Error)
        self._sql = [str(s.compile(dialect=dialect)) for s in (sa.insert(EVENTS), sa.insert(ANSWERS), _HOLDER)]
        self._token = os.urandom(8).hex()
        self._lock, self._done = threading.Lock(), threading.Event()
        self._files: dict[str, tuple[int, int]] = {}
        """For SQLite: device and inode of each file when the log was opened."""
        self._whole = 0
        """Number of the last undamaged snapshot."""
        self._db: Any = None
        try:
            self._open(write)
        except BaseException as error:
            self.close()
            if isinstance(error, AttributeError | TypeError | ValueError):  # a value of another type than was written
                raise self._error(f"damaged ({one_line(error)}){ev.RESTORE}") from error
            raise

    def _error(self, text: str) -> LogError:
        return LogError(f"{self.source}: {text}")

    def _open(self, write: bool) -> None:
        with self._alone():
            self._db = self._engine.connect()
        found = self._tables_of_file() if self._dialect == "sqlite" else self._tables_of_server()
        if not found and write:
            with self._reading() as db:
                SCHEMA.create_all(db, checkfirst=False)
                db.execute(sa.insert(HEAD), {"one": 1, "format": FORMAT, "pruned": 0, "refused": 0})
        elif found != set(SCHEMA.tables) or self.head().format != FORMAT:
            raise self._error(f"not a policy's log of format {FORMAT}")
        elif self._dialect == "sqlite":
            self._check_answers()
        if write:
            self._take()
        else:
            self._db.begin()  # one moment of the log for all that is asked

    def _tables_of_file(self) -> set[str]:
        """Return the tables of a SQLite file, or raise a LogError if it is damaged.

        A file may come from anybody. If it has triggers or views, which our statements would execute, the result also
        contains "trigger" or "view", and `_open` refuses the file.
        """
        self._check_pages("quick_check")
        found = self.rows(sa.text("SELECT type, name FROM sqlite_master"))
        return {name if kind == "table" else kind for kind, name in found}

    def _tables_of_server(self) -> set[str]:
        """Return the tables of a log's schema; raise a LogError if the database may lose commits."""
        with self._reading() as db:
            settings = [db.exec_driver_sql(f"SHOW {name}").scalar() for name in ("fsync", "synchronous_commit")]
            if "off" in settings:
                raise self._error("fsync or synchronous_commit is off: acknowledged events could be lost")
            return set(sa.inspect(db).get_table_names()) & set(SCHEMA.tables)

    def head(self) -> Any:
        """Return the row that describes the log."""
        return self.rows(sa.select(HEAD))[0]

    def _check_pages(self, check: str) -> None:
        """Raise a LogError if SQLite reports that its file is damaged."""
        if (damage := self.rows(sa.text(f"PRAGMA {check}(1)"))) != [("ok",)]:
            raise self._error(f"damaged ({' '.join(damage[0][0].split())}){ev.RESTORE}")

    def _check_answers(self) -> None:
        """Raise a LogError if the table of answers disagrees with the events: a decision might then get feedback
        twice.
        """
        pair = (EVENTS.c.seq == ANSWERS.c.seq) & (EVENTS.c.decision == ANSWERS.c.decision)
        of_answers = sa.select(EVENTS.c.seq).where(EVENTS.c.kind.in_((ev.ANSWERED, ev.CLOSED))).subquery()
        counts = (sa.select(sa.func.count()).select_from(w) for w in (of_answers, ANSWERS, ANSWERS.join(EVENTS, pair)))
        wanted, found, matched = self.rows(sa.select(*(count.scalar_subquery() for count in counts)))[0]
        if not wanted == found == matched:
            raise self._error(f"damaged (its answers and decisions do not match){ev.RESTORE}")

    # ------------------------------------------------------------------------------------------------------------- writer

    def _take(self) -> None:
        """Acquire the writer's mark, or raise a LogError if another process has it."""
        with self._reading() as db:
            db.execute(sa.update(HEAD).values(one=1))  # nobody else changes the row until this is done
            head = db.execute(sa.select(HEAD, NOW.label("now"))).one()
            if head.token is not None and _writes(head.token, head.process, head.now - head.beat):
                host, pid, *_ = head.process.split()
                raise self._error(f"another process writes to this log ({pid} on {host}); there can be one writer only")
            process = _process(os.getpid())
            db.execute(sa.update(HEAD).values(token=self._token, process=process, beat=NOW))
        _OPEN[self._token] = self
        if self._dialect == "sqlite":
            self._run("PRAGMA wal_checkpoint(PASSIVE)")  # whoever loses the write-ahead file sees the mark
            place = os.path.realpath(self.source)
            self._files = {f"{place}{end}": _file_at(f"{place}{end}") for end in ("", "-wal", "-shm")}
        threading.Thread(target=_keep_beating, args=(weakref.ref(self), self._done), daemon=True).start()

    def prove(self) -> None:
        """Commit a test row and remove it, to check that an event could be stored now; this also renews the heartbeat."""
        blank = {"place": -1, "seq": 0, "crc": 0, "data": bytes(8192)}
        with self._writing() as db:
            db.execute(sa.insert(SNAPSHOTS), blank)
            db.execute(sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.place == -1))
            db.execute(sa.update(HEAD).where(HEAD.c.token == self._token).values(beat=NOW))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock during the block; convert the database's errors to a one-line LogError."""
        if not self._lock.acquire(timeout=connections.LIMIT):
            raise self._error(f"the log did not answer within {connections.LIMIT:g} s; no acknowledged event is lost")
        try:
            yield
        except self._raised as error:
            twice = "another process has written to it; " if "Integrity" in type(error).__name__ else ""
            stored = "; no acknowledged event is lost" * (self._token in _OPEN)
            raise self._error(f"the log cannot be used ({twice}{one_line(error)}){stored}") from error
        finally:
            self._lock.release()

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Yield a transaction."""
        with self._alone(), nullcontext() if self._db.in_transaction() else self._db.begin():
            yield self._db

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """Yield a transaction that is durable at its end, if this process still has the writer's mark."""
        with self._reading() as db:
            yield db
            self._check_place(db.execute(_HOLDER).scalar())

    def _check_place(self, token: object) -> None:
        """Raise a LogError if another process has taken the writer's mark, or if the log's file was replaced."""
        if token != self._token:
            raise self._error("another process has taken the writer's place")
        for place, was in self._files.items():
            if _file_at(place) != was:
                raise LogError(
                    f"{place}: moved, replaced or removed while the log was open; the acknowledged events are in the "
                    "original file: restore it, or close the policy and open it again"
                )

    def close(self) -> None:
        """Close the log and release the writer's mark."""
        with suppress(LogError):
            if _OPEN.pop(self._token, None) is not None:
                with self._reading() as db:
                    db.execute(sa.update(HEAD).where(HEAD.c.token == self._token).values(token=None))
        self.drop()

    def drop(self) -> None:
        """Disconnect without releasing the writer's mark, as a killed process does."""
        self._done.set()
        _OPEN.pop(self._token, None)
        with suppress(Exception):
            self._db.close()
        self._engine.dispose()

    # ------------------------------------------------------------------------------------------------------------- events

    def append(self, events: list[ev.Event]) -> None:
        """Store events, all or none; they are durable when this returns."""
        rows = [ev.row_of(event) for event in events]
        answers = [{"decision": event.decision, "seq": event.seq} for event in events if isinstance(event, ev.Answered)]
        insert, answer, holder = self._sql
        with self._alone():
            raw: Any = self._db.connection.dbapi_connection  # SQLAlchemy's own `execute` takes twice as long
            try:
                cursor = raw.cursor()
                if self._dialect == "sqlite":
                    cursor.execute("BEGIN")
                cursor.executemany(insert, rows)
                if answers:
                    cursor.executemany(answer, answers)
                cursor.execute(holder)
                self._check_place(cursor.fetchone()[0])
                raw.commit()
            except BaseException as error:
                with suppress(Exception):
                    raw.rollback()
                if self._engine.dialect.is_disconnect(error, raw, None):  # type: ignore[arg-type]
                    self._db.invalidate()  # the next call connects anew
                raise

    def count_refused(self, requests: int) -> None:
        """Add to the log's count of refused requests."""
        with self._writing() as db:
            db.execute(sa.update(HEAD).values(refused=HEAD.c.refused + requests))

    def rows(self, query: Any) -> list[Any]:
        """Return the rows of a query."""
        with self._reading() as db:
            return list(db.execute(query).all())

    def _found(self, where: Any, most: int = STEP) -> list[ev.Event]:
        query = sa.select(EVENTS).where(where).order_by(EVENTS.c.seq).limit(most)
        return [ev.event_of(row._mapping, self.source) for row in self.rows(query)]

    def decided(self, id_: str) -> tuple[ev.Decided, str] | None:
        """Return the decision with this id (32 hexadecimal digits), and the kind of its answer ("" if it has none).

        Return None if there is no such decision.
        """
        for found in self._found(EVENTS.c.seq == int(id_[: ev.PLACE], 16)):
            if isinstance(found, ev.Decided) and found.id == id_:
                answer = (ANSWERS.c.decision == found.seq) & (ANSWERS.c.seq == EVENTS.c.seq)
                return found, "".join(kind for (kind,) in self.rows(sa.select(EVENTS.c.kind).where(answer)))
        return None

    def first_open(self, after: int) -> Any:
        """Return the first decision without feedback after a place, or None."""
        answered = sa.exists().where(ANSWERS.c.decision == EVENTS.c.seq)
        return next(iter(self._found((EVENTS.c.seq > after) & (EVENTS.c.kind == ev.DECIDED) & ~answered, 1)), None)

    def decision(self, seq: int) -> ev.Decided:
        """Return a decision by its place."""
        for found in self._found(EVENTS.c.seq == seq):
            if isinstance(found, ev.Decided):
                return found
        raise self._missing(seq)

    def _missing(self, seq: int) -> LogError:
        return self._error(f"event {seq} is missing{ev.RESTORE}")

    def numbers(self, *names: str) -> NDArray[np.float64]:
        """Return an array (len(names) + 4, n), with a column for each of the n decisions, in order.

        The rows are the fields `names` of the decision, then four numbers of its answer: place, time, bit, and whether
        the decision was closed without feedback. These four are NaN for a decision without an answer.
        """
        answer = EVENTS.alias()
        columns: list[Any] = [EVENTS.c[name] for name in names] + [answer.c[name] for name in ("seq", "at", "correct")]
        columns.append(answer.c.kind == ev.CLOSED)
        pairs = EVENTS.outerjoin(ANSWERS, ANSWERS.c.decision == EVENTS.c.seq)
        pairs = pairs.outerjoin(answer, answer.c.seq == ANSWERS.c.seq)
        query = sa.select(*columns).select_from(pairs).where(EVENTS.c.kind == ev.DECIDED).order_by(EVENTS.c.seq)
        with self._reading() as db:
            rows = db.execute(query.execution_options(yield_per=STEP))
            return np.fromiter((value for row in rows for value in row), np.float64).reshape(-1, len(columns)).T

    def names(self, classes: list[Any]) -> list[Any]:
        """Return the classes' names: those of a snapshot, and those added since."""
        e = EVENTS.c
        added = self.rows(sa.select(e.name).where(e.kind == ev.CHANGED, e.correct == 1).order_by(e.seq))
        return list(dict.fromkeys([*classes, *(json.loads(name) for (name,) in added)]))

    def events(self, after: int) -> Iterator[ev.Event]:
        """Yield the events after a place, in order; raise a LogError at an event that is damaged or missing."""
        last = self.last()[0]
        while after < last:
            for event in self._found(EVENTS.c.seq > after):
                after += 1
                if event.seq != after:
                    raise self._missing(after)
                yield event
        if after > last:
            raise self._missing(last + 1)

    def answered(self) -> Iterator[tuple[ev.Decided, bool]]:
        """Yield, in order, the decisions that have an answer and whose context is still stored, with the answers;
        errors are those of `events`.
        """
        events, decision = self.events(self.head().pruned), ANSWERS.c.decision
        while some := list(islice(events, STEP)):
            near = decision.between(some[0].seq, some[-1].seq) & (ANSWERS.c.seq == EVENTS.c.seq)
            bits = dict(self.rows(sa.select(decision, EVENTS.c.correct).where(near)))
            for event in some:
                if isinstance(event, ev.Decided) and event.seq in bits and event.record.generation != ev.NEVER:
                    yield event, bool(bits[event.seq])

    def count(self) -> tuple[int, int]:
        """Return two counts: of all decisions, and of the decisions that `answered` yields."""
        kept = sa.func.count(ANSWERS.c.seq).filter(EVENTS.c.generation != ev.NEVER)
        pairs = EVENTS.outerjoin(ANSWERS, ANSWERS.c.decision == EVENTS.c.seq)
        query = sa.select(sa.func.count(), kept).select_from(pairs).where(EVENTS.c.kind == ev.DECIDED)
        return tuple(self.rows(query)[0])

    def last(self) -> tuple[int, float]:
        """Return place and time of the last event; without events, the place of the last removed event and 0.0."""
        for event in self._found(EVENTS.c.seq == sa.select(sa.func.max(EVENTS.c.seq)).scalar_subquery()):
            return event.seq, event.at
        return self.head().pruned, 0.0

    # ---------------------------------------------------------------------------------------------------------- snapshots

    def own(self, uid: str) -> None:
        """Store the header of the policy that owns the log."""
        with self._writing() as db:
            db.execute(sa.update(HEAD).values(uid=uid))

    def snapshot(self) -> tuple[int, bytes]:
        """Return the last undamaged snapshot: the place of the event before it, and the policy's file."""
        places = sorted(self._places())
        for number in sorted({place // PARTS for place in places}, reverse=True):
            parts = [self._part(place) for place in places if place // PARTS == number]
            data = b"".join(part.data for part in parts if part is not None)
            if None not in parts and is_whole(data):
                self._whole = number
                return parts[0].seq, data
        raise self._error(f"all snapshots are damaged{ev.RESTORE}")

    def _places(self) -> list[int]:
        return [place for (place,) in self.rows(sa.select(SNAPSHOTS.c.place).where(SNAPSHOTS.c.place >= 0))]

    def _part(self, place: int) -> Any:
        [part] = self.rows(sa.select(SNAPSHOTS).where(SNAPSHOTS.c.place == place))
        return part if part.crc == ev.checksum([part.place, part.seq, part.data]) else None

    def keep(self, seq: int, data: bytes) -> None:
        """Store a snapshot part by part, then remove all others except the previous one, a fallback if the new one is
        damaged.
        """
        number = max(self._places(), default=0) // PARTS + 1
        for at in range(0, len(data), PART):
            part = {"place": number * PARTS + at // PART, "seq": seq, "data": data[at : at + PART]}
            with self._writing() as db:
                db.execute(sa.insert(SNAPSHOTS), part | {"crc": ev.checksum(list(part.values()))})
        for place in self._places():
            if place // PARTS not in (self._whole, number):
                with self._writing() as db:
                    db.execute(sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.place == place))
        self._whole = number

    # ------------------------------------------------------------------------------------------------------------ tending

    def verify(self) -> int:
        """Verify the checksum of every event and return the number of events; a LogError names the fault."""
        if self._dialect == "sqlite":
            self._check_pages("integrity_check")
        self._check_answers()
        if None in map(self._part, self._places()):
            raise self._error("a snapshot is damaged")
        self.snapshot()
        pruned = self.head().pruned
        if self.rows(sa.select(EVENTS.c.seq).where(EVENTS.c.seq <= pruned).limit(1)):
            raise self._error("damaged: it contains events that should have been removed")
        return sum(1 for _ in self.events(pruned))

    def prune(self, before: float) -> int:
        """Remove the events before a time, which must all be in snapshots; return the number of removed decisions."""
        end = self.rows(sa.select(sa.func.max(EVENTS.c.seq)).where(EVENTS.c.at < before))[0][0] or self.head().pruned
        [(count,)] = self.rows(sa.select(sa.func.count()).where(EVENTS.c.seq <= end, EVENTS.c.kind == ev.DECIDED))
        for high in (*range(self.head().pruned + STEP, end, STEP), end):
            with self._writing() as db:
                db.execute(sa.delete(EVENTS).where(EVENTS.c.seq <= high))
                db.execute(sa.delete(ANSWERS).where(ANSWERS.c.seq <= high))
                db.execute(sa.update(HEAD).values(pruned=high))
        self._compact()
        return int(count)

    def forget(self, person: str) -> int:
        """Blank the contexts of a person's decisions (all must be in snapshots); return the number of decisions."""
        found = self.rows(sa.select(EVENTS.c.seq).where(EVENTS.c.person == person))
        for (seq,) in found:
            row = ev.row_of(ev.blanked(self.decision(seq)))
            with self._writing() as db:
                db.execute(sa.update(EVENTS).where(EVENTS.c.seq == seq), row)
        self._compact()
        return len(found)

    def _compact(self) -> None:
        """Overwrite removed data in a SQLite file. PostgreSQL overwrites it later by itself."""
        if self._dialect == "sqlite":
            self._run("VACUUM")
            if self._run("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                raise self._error(
                    "the data was removed, but another process that reads the log keeps a copy in SQLite's write-ahead "
                    "file; run the command again after that process has closed the log"
                )

    def _run(self, statement: str) -> list[Any]:
        """Return the rows of a SQLite statement that runs outside of transactions."""
        with self._alone():
            return list(self._db.connection.dbapi_connection.execute(statement).fetchall())


# ----------------------------------------------------------------------------------------------------------------- marks


def _process(pid: int) -> str:
    """Return host, process id, machine (boot id and process namespace) and start time of a process; "-" if unknown."""
    machine = start = "-"
    with suppress(OSError):  # Linux says all of it, other systems nothing
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        start = "-" if state in "ZX" else fields[18]
    return f"{platform.node().replace(' ', '-') or '-'} {pid} {machine} {start}"


def _writes(token: str, process: str, silent: float) -> bool:
    """Return whether the process that holds the mark may still write; its last heartbeat was `silent` seconds ago."""
    _, pid, machine, _ = process.split()
    now = _process(int(pid))
    if machine == "-" or machine != now.split()[2]:
        return silent < SILENT
    return now == process and (int(pid) != os.getpid() or token in _OPEN)


def _keep_beating(log: weakref.ref[EventLog], done: threading.Event) -> None:
    """Renew the heartbeat of the writer's mark until the log is closed or freed."""
    while not done.wait(BEAT) and (found := log()) is not None:
        with suppress(LogError):
            found.prove()
        del found


def _file_at(place: str) -> tuple[int, int]:
    """Return the device and inode of the file now at a path, (0, 0) if there is none."""
    with suppress(OSError):
        found = os.stat(place)
        return found.st_dev, found.st_ino
    return 0, 0
