"""Files that are either complete on disk or absent, with the permission bits of a new file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

_UMASK = os.umask(0)  # the only way to read it is to set it
os.umask(_UMASK)


def make_readable(number: int) -> None:
    """Give an open file that `tempfile` created, which is private, the permission bits of any other new file."""
    if hasattr(os, "fchmod"):  # elsewhere there are no such bits
        os.fchmod(number, 0o666 & ~_UMASK)


def keep_entry(folder: Path) -> None:
    """Write a folder's list of files to disk, too; otherwise a new, complete file may be lost in a power failure."""
    with contextlib.suppress(
        OSError
    ):  # Windows opens no folder, some file systems sync none: there it is their own affair
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_whole(file: Path, data: bytes, put: Callable[[str, Path], None] = os.replace) -> None:
    """Write a file atomically: with a temporary name and fsync, after which `put` renames it."""
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
