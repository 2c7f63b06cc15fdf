"""What a policy's log holds: decisions, feedback, changes of the classes, in one order, each with its own checksum."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import LogError
from banditlab.policy.choice import Name, Record


class Decided(NamedTuple):
    """A decision that was taken."""

    seq: int
    """Its place among all events, from 1."""
    id: str
    at: float
    """Seconds since 1970, never below those of the event before."""
    record: Record
    mask: NDArray[np.bool_] | None
    """(K,), which classes were allowed; None for all."""


class Answered(NamedTuple):
    """Feedback on a decision."""

    seq: int
    decision: int
    """The decision's seq."""
    at: float
    correct: bool


class Changed(NamedTuple):
    """A class was added or retired."""

    seq: int
    at: float
    kind: str
    """ "add" or "retire"."""
    name: Name


Event = Decided | Answered | Changed


class EventLog(Protocol):
    """Where events are kept. Any method raises a `LogError` of one line where the store fails."""

    source: str
    """Its file or address, as errors name it."""

    def refresh(self) -> None:
        """Make good a connection that was lost, where that can happen."""

    def append(self, events: list[Event]) -> None:
        """Store events, all or none; they are durable when this returns."""

    def decided(self, id_: str) -> tuple[Decided, bool] | None:
        """Return a decision by its id, and whether it has feedback; None where it is not there."""

    def decision(self, seq: int) -> Decided:
        """Return a decision by its place."""

    def events(self, after: int) -> Iterator[Event]:
        """Yield the events after a place, in order."""

    def last(self) -> tuple[int, float]:
        """Return place and time of the last event, (0, 0.0) where there is none."""

    def uid(self) -> str | None:
        """Return the uid of the policy whose log it is, None where it is new."""

    def snapshot(self) -> tuple[int, bytes]:
        """Return the last snapshot that is whole: the place of the event before it, and a policy's file."""

    def keep(self, seq: int, data: bytes, uid: str | None = None) -> None:
        """Store a snapshot, whole or not at all; the two last ones are kept. With a uid: the first, of a new log."""

    def close(self) -> None:
        """Close it and let another writer in."""


# ----------------------------------------------------------------------------------------------------- numbers as bytes


def to_bytes(x: NDArray[np.float64]) -> bytes:
    """Return numbers (n,) as bytes, every bit of them; few that differ from +0.0 take little room."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    filled = np.flatnonzero(x.view(np.int64))
    if 12 * len(filled) + 8 < 8 * len(x):
        head = struct.pack("<BI", 1, len(x))
        return head + filled.astype("<u4").tobytes() + x[filled].astype("<f8").tobytes()
    return struct.pack("<BI", 0, len(x)) + x.astype("<f8").tobytes()


def from_bytes(data: bytes) -> NDArray[np.float64]:
    """Return the numbers (n,) of `to_bytes`; a ValueError where it is nothing of the kind."""
    if len(data) < 5:
        raise ValueError("no numbers")
    kind, n = struct.unpack_from("<BI", data)
    if kind == 0:
        if len(data) != 5 + 8 * n:
            raise ValueError("no numbers")
        return np.frombuffer(data, "<f8", offset=5).astype(np.float64)
    m, rest = divmod(len(data) - 5, 12)
    if kind != 1 or rest or n > MOST_NUMBERS:
        raise ValueError("no numbers")
    x, places = np.zeros(n), np.frombuffer(data, "<u4", m, 5)
    if m and places.max() >= n:
        raise ValueError("no numbers")
    x[places] = np.frombuffer(data, "<f8", m, 5 + 4 * m)
    return x


MOST_NUMBERS = 2**27
"""A gigabyte: no context or distribution is longer."""


# ---------------------------------------------------------------------------------------------------------- events as rows


def row_of(event: Event) -> dict[str, Any]:
    """Return the columns of an event, the checksum over all others last."""
    if isinstance(event, Decided):
        record = event.record
        row: dict[str, Any] = {
            "seq": event.seq,
            "id": event.id,
            "at": event.at,
            "action": int(record.action),
            "probability": float(record.probabilities[record.action]),
            "context": to_bytes(record.context),
            "distribution": to_bytes(record.probabilities),
            "payload": None if record.payload is None else to_bytes(record.payload),
            "explored": None if record.explored is None else int(record.explored),
            "generation": record.generation,
            "allowed": None if event.mask is None else np.packbits(event.mask).tobytes(),
        }
    elif isinstance(event, Answered):
        row = {"seq": event.seq, "decision": event.decision, "at": event.at, "correct": int(event.correct)}
    else:
        row = {"seq": event.seq, "at": event.at, "kind": event.kind, "name": json.dumps(event.name)}
    return row | {"crc": checksum(row)}


def checksum(row: dict[str, Any]) -> int:
    """Return the CRC-32 over the values of a row, in order."""
    crc = 0
    for value in row.values():
        part = bytes(value) if isinstance(value, bytes | memoryview) else repr(value).encode()
        crc = zlib.crc32(part, crc)
    return crc


def event_of(kind: type, row: dict[str, Any], source: str) -> Event:
    """Return the event of a row, whose columns come in the order of `row_of`, or raise a LogError that names it."""
    try:
        given = {name: bytes(value) if isinstance(value, memoryview) else value for name, value in row.items()}
        if given.pop("crc") != checksum(given):
            raise ValueError("its checksum is wrong")
        return _event_of(kind, given)
    except Exception as error:
        raise LogError(
            f"{source}: event {row.get('seq')} is damaged ({error}): restore the log from a copy; nothing was changed"
        ) from error


def _event_of(kind: type, row: dict[str, Any]) -> Event:
    if kind is Answered:
        return Answered(row["seq"], row["decision"], row["at"], bool(row["correct"]))
    if kind is Changed:
        return Changed(row["seq"], row["at"], row["kind"], json.loads(row["name"]))
    p = from_bytes(row["distribution"])
    payload = None if row["payload"] is None else from_bytes(row["payload"])
    explored = None if row["explored"] is None else bool(row["explored"])
    if not 0 <= row["action"] < len(p):
        raise ValueError("its action is no class")
    record = Record(from_bytes(row["context"]), row["action"], p, explored, payload, row["generation"])
    mask = None
    if row["allowed"] is not None:
        mask = np.unpackbits(np.frombuffer(row["allowed"], np.uint8), count=len(p)).astype(np.bool_)
    return Decided(row["seq"], row["id"], row["at"], record, mask)
