"""Whether SQLite's write-ahead log is whole up to its end.

SQLite itself takes the first frame whose checksum is wrong for the end, and drops all commits behind it without a word: as it
should after a loss of power, when that commit was never synced. A byte that has flipped in a commit that was acknowledged looks
the same but for one thing: a whole commit follows, or stands, of the same generation (salts). So that is looked for before
SQLite opens the file. https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from pathlib import Path

from banditlab.errors import LogError

HEAD, FRAME = 32, 24
"""Bytes of the file's header and of a frame's."""
MAGIC = (0x377F0682, 0x377F0683)
"""Checksums over little-endian and over big-endian words."""


def refuse_damaged(database: Path) -> None:
    """Raise a LogError where the write-ahead log beside a database has lost a commit."""
    wal = Path(f"{database}-wal")
    try:
        data = wal.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise LogError(f"{wal}: cannot be read ({error.strerror})") from None
    bad = first_lost(data)
    if bad is not None:
        raise LogError(
            f"{wal}: damaged at byte {bad}, in or before a commit that was finished: restore the log from a copy; "
            "nothing was changed"
        )


def first_lost(data: bytes) -> int | None:
    """Return where a write-ahead log is damaged if a finished commit stands there or behind, else None."""
    if len(data) < HEAD:
        return None
    magic, _, page, _, salt1, salt2, *sums = struct.unpack(">8I", data[:HEAD])
    if not any(data[:HEAD]):
        return None
    if magic not in MAGIC or not 512 <= page <= 65536 or page & (page - 1):
        return 0
    order, size = "<>"[magic & 1], FRAME + page
    s = (0, 0)
    s = _sum(data[: HEAD - 8], order, s)
    if s != tuple(sums):
        return 0
    for at in range(HEAD, len(data) - size + 1, size):
        _, _, a, b, x, y = struct.unpack(">6I", data[at : at + FRAME])
        s = _sum(data[at + FRAME : at + size], order, _sum(data[at : at + 8], order, s))
        if (a, b, x, y) != (salt1, salt2, *s):
            return at if _commits(data, at, size, (salt1, salt2)) else None
    return None


def _commits(data: bytes, start: int, size: int, salts: tuple[int, int]) -> bool:
    """Return whether a frame from `start` on ends a commit of this generation."""
    for at in range(start, len(data) - size + 1, size):
        _, commit, a, b, _, _ = struct.unpack(">6I", data[at : at + FRAME])
        if commit and (a, b) == salts:
            return True
    return False


def _sum(data: bytes, order: str, s: tuple[int, int]) -> tuple[int, int]:
    """Return SQLite's running checksum over 32-bit words, taken in pairs."""
    x, y = s
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for i in range(0, len(words), 2):
        x = (x + words[i] + y) & 0xFFFFFFFF
        y = (y + words[i + 1] + x) & 0xFFFFFFFF
    return x, y
