"""Write files atomically, with the usual permissions of a new file: after a crash, a file is complete or as before."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

_UMASK = os.umask(0)  # reading it requires setting it
os.umask(_UMASK)


def make_readable(number: int) -> None:
    """Set the permissions of an open file to those of a new file, because `tempfile` creates private files."""
    if hasattr(os, "fchmod"):  # other systems have no such permissions
        os.fchmod(number, 0o666 & ~_UMASK)


def keep_entry(folder: Path) -> None:
    """Write a folder's directory entries to disk, without which a power failure may lose a new file."""
    with contextlib.suppress(OSError):  # Windows and some file systems do not support this
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_whole(file: Path, data: bytes, put: Callable[[str, Path], None] = os.replace) -> None:
    """Write a file atomically: write and fsync it under a temporary name, then rename it with `put`."""
    number, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
    try:
        with open(number, "wb") as out:
            make_readable(number)
            out.write(data)
            out.flush()
            os.fsync(number)
        put(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    keep_entry(file.parent)
