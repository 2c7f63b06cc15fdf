"""A checksum inside one file of a policy: SHA-256 over all its bytes, the checksum's own digits taken as zeros."""

from __future__ import annotations

import hashlib

MARK = "banditlab.sha256:"
BLANK = MARK + 64 * "0"
"""What a writer puts where the seal is to stand."""


def sealed(data: bytes) -> bytes:
    """Return a file's bytes with the last `BLANK` in them replaced by their seal."""
    at = data.rindex(BLANK.encode()) + len(MARK)
    return b"".join((data[:at], _digest(data, at), data[at + 64 :]))


def is_whole(data: bytes) -> bool:
    """Return whether a file has a seal and is as it was sealed."""
    at = data.rfind(MARK.encode())
    if at < 0:
        return False
    at += len(MARK)
    return data[at : at + 64] == _digest(data, at)


def _digest(data: bytes, at: int) -> bytes:
    view, digest = memoryview(data), hashlib.sha256()
    for part in (view[:at], 64 * b"0", view[at + 64 :]):
        digest.update(part)
    return digest.hexdigest().encode()
