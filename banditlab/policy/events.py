"""The events of a policy's log: decisions, feedback and changes of classes, in one sequence, each with a checksum."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import LogError
from banditlab.policy.choice import Held, Name, Record


class Decided(NamedTuple):
    """A decision."""

    seq: int
    """The event's number among all events, from 1."""
    id: str
    at: float
    """Seconds since 1970, not before the time of the previous event."""
    record: Record
    mask: NDArray[np.bool_] | None
    """(K,), which classes were allowed; None for all."""
    person: str | None = None
    """The person of the decision, as KEY=VALUE; None if the policy was opened without such a key."""
    imputed: int = 0
    """Number of columns of the row that were imputed."""
    unknown: int = 0
    """Number of columns of the row with a category that the training table did not have."""


class Answered(NamedTuple):
    """Feedback on a decision."""

    seq: int
    decision: int
    """The `seq` of the decision."""
    at: float
    correct: bool
    closed: bool = False
    """Whether there was no feedback in time, which counts as wrong."""


class Changed(NamedTuple):
    """A class was added or retired."""

    seq: int
    at: float
    kind: str
    """ "add" or "retire"."""
    name: Name


Event = Decided | Answered | Changed


# ----------------------------------------------------------------------------------------------------- numbers as bytes


def to_bytes(x: NDArray[np.float64]) -> bytes:
    """Return numbers (n,) as bytes, exactly; arrays with few entries other than +0.0 are stored as sparse."""
    x = np.ascontiguousarray(x, dtype="<f8")
    filled = np.flatnonzero(x.view(np.int64))
    if 12 * len(filled) + 8 < 8 * len(x):
        return struct.pack("<BI", 1, len(x)) + filled.astype("<u4").tobytes() + x[filled].tobytes()
    return struct.pack("<BI", 0, len(x)) + x.tobytes()


def from_bytes(data: bytes) -> NDArray[np.float64]:
    """Return the numbers (n,) that `to_bytes` wrote, or raise a ValueError for other bytes."""
    sparse, n = struct.unpack_from("<BI", data) if len(data) >= 5 else (2, 0)
    m = (len(data) - 5) // 12 if sparse else n
    if sparse > 1 or n > MOST_NUMBERS or len(data) != 5 + (8 + 4 * sparse) * m:
        raise ValueError("no numbers")
    values = np.frombuffer(data, "<f8", m, len(data) - 8 * m).astype(np.float64)
    if not sparse:
        return values
    x, places = np.zeros(n), np.frombuffer(data, "<u4", m, 5)
    if m and places.max() >= n:
        raise ValueError("no numbers")
    x[places] = values
    return x


MOST_NUMBERS = 2**27
"""The largest length of a context or distribution (a gigabyte)."""


# ---------------------------------------------------------------------------------------------------------- events as rows

DECIDED, ANSWERED, CLOSED, CHANGED = "decision", "feedback", "closed", "change"
"""The kinds of events, as in the column `kind`."""
PLACE = 12
"""The number of hexadecimal digits of an id that encode its decision's number; the other 20 are random."""
RESTORE = ": restore the log from a copy; nothing was changed"
NEVER = -1
"""The generation of a decision whose context was removed, so feedback on it leads to no update."""
COLUMNS = (
    "seq", "kind", "at", "decision", "correct", "id", "person", "action", "probability", "explored", "generation", "name",
    "allowed", "distribution", "payload", "context", "imputed", "unknown",
    "held", "share", "other",
)  # fmt: skip
"""The columns of an event without its checksum, in the order of the checksum; those without meaning for a kind are NULL."""


def row_of(event: Event) -> dict[str, Any]:
    """Return an event's columns, with a checksum over all of them."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row["seq"], row["at"] = event.seq, event.at
    if isinstance(event, Decided):
        record, held = event.record, event.record.held or Held(False, 0.0, 0.0)
        row |= {name: getattr(event, name) for name in ("id", "person", "imputed", "unknown")}
        row |= {
            "kind": DECIDED,
            "action": int(record.action),
            "probability": float(record.probabilities[record.action]),
            "explored": None if record.explored is None else int(record.explored),
            "generation": record.generation,
            "allowed": None if event.mask is None else np.packbits(event.mask).tobytes(),
            "distribution": to_bytes(record.probabilities),
            "payload": None if record.payload is None else to_bytes(record.payload),
            "context": to_bytes(record.context),
            "held": int(held.held),
            "share": held.share,
            "other": held.other,
        }
    elif isinstance(event, Answered):
        kind = CLOSED if event.closed else ANSWERED
        row |= {"kind": kind, "decision": event.decision, "correct": int(event.correct)}
    else:
        row |= {"kind": CHANGED, "correct": int(event.kind == "add"), "name": json.dumps(event.name)}
    row["crc"] = checksum([row[name] for name in COLUMNS])
    return row


def checksum(values: Sequence[Any]) -> int:
    """Return the CRC-32 checksum over values in order: the bytes of blobs, and the string form of all other values."""
    crc = zlib.crc32(repr([len(v) if isinstance(v, bytes) else v for v in values]).encode())
    for value in values:
        if isinstance(value, bytes):
            crc = zlib.crc32(value, crc)
    return crc


def event_of(row: Mapping[str, Any], source: str) -> Event:
    """Return the event of a row, or raise a LogError that names it."""
    try:
        if row["crc"] != checksum([row[name] for name in COLUMNS]):
            raise ValueError("its checksum is wrong")
        return _event_of(row)
    except Exception as error:
        raise LogError(f"{source}: event {row.get('seq')} is damaged ({error}){RESTORE}") from error


def _event_of(row: Mapping[str, Any]) -> Event:
    if row["kind"] in (ANSWERED, CLOSED):
        return Answered(row["seq"], row["decision"], row["at"], bool(row["correct"]), row["kind"] == CLOSED)
    if row["kind"] == CHANGED:
        return Changed(row["seq"], row["at"], "add" if row["correct"] else "retire", json.loads(row["name"]))
    p = from_bytes(row["distribution"])
    payload = None if row["payload"] is None else from_bytes(row["payload"])
    explored = None if row["explored"] is None else bool(row["explored"])
    if not 0 <= row["action"] < len(p):
        raise ValueError("its action is not a class")
    held = Held(bool(row["held"]), row["share"], row["other"]) if row["share"] else None
    record = Record(from_bytes(row["context"]), row["action"], p, explored, payload, row["generation"], held)
    mask = None
    if row["allowed"] is not None:
        mask = np.unpackbits(np.frombuffer(row["allowed"], np.uint8), count=len(p)).astype(np.bool_)
    return Decided(row["seq"], row["id"], row["at"], record, mask, row["person"], row["imputed"], row["unknown"])


def blanked(event: Decided) -> Decided:
    """Return a decision without its context, its payload (which depends on the context) and its person."""
    record = event.record._replace(context=np.zeros(0), payload=None, generation=NEVER)
    return event._replace(record=record, person=None)
