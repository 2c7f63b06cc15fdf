"""The log as tables of SQL, and everything about it in which databases agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from banditlab.errors import LogError
from banditlab.policy.events import Answered, Changed, Decided, Event, event_of, row_of
from banditlab.results.seal import is_whole

FORMAT = 1
STEP = 1000
"""Events read at a time."""
KEPT = 2
"""Snapshots kept: one that is damaged is stood in for by the one before."""
COLUMNS: dict[type, tuple[str, tuple[str, ...]]] = {
    Decided: (
        "decisions",
        (
            "seq", "id", "at", "action", "probability", "context", "distribution", "payload", "explored", "generation",
            "allowed", "crc",
        ),
    ),
    Answered: ("feedback", ("seq", "decision", "at", "correct", "crc")),
    Changed: ("changes", ("seq", "at", "kind", "name", "crc")),
}  # fmt: skip
"""For each kind of event its table and the columns, in the order of `events.row_of`."""
TABLES = {
    "decisions": """(seq {key} PRIMARY KEY, id TEXT NOT NULL UNIQUE, at {real} NOT NULL, action INTEGER NOT NULL,
        probability {real} NOT NULL, context {blob} NOT NULL, distribution {blob} NOT NULL, payload {blob},
        explored INTEGER, generation INTEGER NOT NULL, allowed {blob}, crc {key} NOT NULL)""",
    "feedback": """(seq {key} PRIMARY KEY, decision {key} NOT NULL UNIQUE, at {real} NOT NULL, correct INTEGER NOT NULL,
        crc {key} NOT NULL)""",
    "changes": "(seq {key} PRIMARY KEY, at {real} NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, crc {key} NOT NULL)",
    "snapshots": "(seq {key} PRIMARY KEY, data {blob} NOT NULL)",
    "meta": "(name TEXT PRIMARY KEY, value TEXT NOT NULL)",
}


class SQLLog(ABC):
    """An `EventLog` over a database; a subclass connects, runs statements, and says what its errors mean."""

    source: str
    words: dict[str, str]
    """The names of types in `TABLES`."""

    @abstractmethod
    def run(self, sql: str, values: dict[str, Any] | list[dict[str, Any]] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement with named values `:name` (a list of them: once for each), and return its rows."""

    @abstractmethod
    def together(self) -> AbstractContextManager[None]:
        """Run the statements inside all or none; they are durable at the end. Errors come as LogErrors."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """Turn what the database raises inside into a LogError of one line."""

    @abstractmethod
    def close(self) -> None:
        """Close it and let another writer in."""

    def refresh(self) -> None:  # noqa: B027 -- most need not
        """Make good a connection that was lost, where that can happen."""

    def make_tables(self) -> None:
        """Make the tables of a new log."""
        for name, columns in TABLES.items():
            self.run(f"CREATE TABLE {name} {columns.format(**self.words)}")
        self.run("INSERT INTO meta VALUES ('format', :format)", {"format": str(FORMAT)})

    def refuse_other_format(self) -> None:
        """Raise a LogError where the log was written by another version."""
        with self.reading():
            found = self.run("SELECT value FROM meta WHERE name = 'format'")
        if found != [(str(FORMAT),)]:
            raise LogError(f"{self.source}: not a policy's log of format {FORMAT}")

    # ------------------------------------------------------------------------------------------------------------- events

    def append(self, events: list[Event]) -> None:
        """Store events, all or none; they are durable when this returns."""
        with self.together():
            for kind, (table, columns) in COLUMNS.items():
                rows = [row_of(event) for event in events if isinstance(event, kind)]
                if rows:
                    self.run(f"INSERT INTO {table} VALUES ({', '.join(f':{name}' for name in columns)})", rows)

    def _select(self, kind: type, where: str, values: dict[str, Any]) -> list[Event]:
        table, columns = COLUMNS[kind]
        with self.reading():
            rows = self.run(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}", values)
        return [event_of(kind, dict(zip(columns, row, strict=True)), self.source) for row in rows]

    def decided(self, id_: str) -> tuple[Decided, bool] | None:
        """Return a decision by its id, and whether it has feedback; None where it is not there."""
        for found in self._select(Decided, "id = :id", {"id": id_}):
            assert isinstance(found, Decided)
            return found, bool(self._select(Answered, "decision = :seq", {"seq": found.seq}))
        return None

    def decision(self, seq: int) -> Decided:
        """Return a decision by its place."""
        for found in self._select(Decided, "seq = :seq", {"seq": seq}):
            assert isinstance(found, Decided)
            return found
        raise LogError(f"{self.source}: event {seq} is missing: restore the log from a copy; nothing was changed")

    def events(self, after: int) -> Iterator[Event]:
        """Yield the events after a place, in order; a LogError where one is damaged or missing."""
        last, wanted = self.last()[0], after + 1
        for low in range(after, last, STEP):
            values = {"low": low, "high": low + STEP}
            found = [e for kind in COLUMNS for e in self._select(kind, "seq > :low AND seq <= :high", values)]
            for event in sorted(found, key=lambda event: event.seq):
                if event.seq != wanted:
                    raise LogError(
                        f"{self.source}: event {wanted} is missing: restore the log from a copy; nothing was changed"
                    )
                wanted += 1
                yield event

    def last(self) -> tuple[int, float]:
        """Return place and time of the last event, (0, 0.0) where there is none."""
        with self.reading():
            ends = [self.run(f"SELECT seq, at FROM {t} ORDER BY seq DESC LIMIT 1") for t, _ in COLUMNS.values()]
        return max(((int(seq), float(at)) for rows in ends for seq, at in rows), default=(0, 0.0))

    # ---------------------------------------------------------------------------------------------------------- snapshots

    def uid(self) -> str | None:
        """Return the uid of the policy whose log it is, None where it is new."""
        with self.reading():
            found = self.run("SELECT value FROM meta WHERE name = 'uid'")
        return str(found[0][0]) if found else None

    def snapshot(self) -> tuple[int, bytes]:
        """Return the last snapshot that is whole: the place of the event before it, and a policy's file."""
        with self.reading():
            places = self.run("SELECT seq FROM snapshots ORDER BY seq DESC")
            for (seq,) in places:
                [(data,)] = self.run("SELECT data FROM snapshots WHERE seq = :seq", {"seq": seq})
                if is_whole(bytes(data)):
                    return int(seq), bytes(data)
        raise LogError(f"{self.source}: no snapshot is whole: restore the log from a copy; nothing was changed")

    def keep(self, seq: int, data: bytes, uid: str | None = None) -> None:
        """Store a snapshot, whole or not at all; the two last ones are kept. With a uid: the first, of a new log."""
        with self.together():
            if uid is not None:
                self.run("INSERT INTO meta VALUES ('uid', :uid)", {"uid": uid})
            self.run("DELETE FROM snapshots WHERE seq = :seq", {"seq": seq})
            self.run("INSERT INTO snapshots VALUES (:seq, :data)", {"seq": seq, "data": data})
            places = [place for (place,) in self.run("SELECT seq FROM snapshots ORDER BY seq DESC")]
            for place in places[KEPT:]:
                self.run("DELETE FROM snapshots WHERE seq = :seq", {"seq": place})
