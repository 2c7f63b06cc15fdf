"""Files that are on disk and whole, or not there: the permission bits of a new file, its entry in its folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

_UMASK = os.umask(0)  # the only way to read it is to set it
os.umask(_UMASK)


def make_readable(number: int) -> None:
    """Give an open file that `tempfile` made, which is private, the permission bits any other new file has."""
    if hasattr(os, "fchmod"):  # elsewhere there are no such bits
        os.fchmod(number, 0o666 & ~_UMASK)


def keep_entry(folder: Path) -> None:
    """Have a folder's list of files on disk, too: without it a new file may be gone after a loss of power, whole as it was."""
    with contextlib.suppress(
        OSError
    ):  # Windows opens no folder, some file systems sync none: there it is their own affair
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_whole(file: Path, data: bytes, put: Callable[[str, Path], None] = os.replace) -> None:
    """Write a file atomically: temporary name, fsync, then `put` renames it."""
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
