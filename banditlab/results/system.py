"""Differences between operating systems: locking a file."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from banditlab.errors import UsageError

fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

WAIT = 0.01  # seconds between two tries


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait until a file's lock is free, and hold it. Raises the errors that `try_lock` raises."""
    while (lock := try_lock(file)) is None:
        time.sleep(WAIT)
    try:
        yield
    finally:
        release(lock)


def try_lock(file: Path) -> BinaryIO | None:
    """Return the open file with its lock, held until `release`, or None if another process has it; create it if needed.

    Raises
    ------
    UsageError
        The file system has no locks, or does not grant one.
    OSError
        The file cannot be created.
    """
    opened = open(file, "ab")  # noqa: SIM115 -- its lock lasts as long as it is open
    try:
        if fcntl is not None:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            opened.seek(0)  # where the byte lies that is locked; it need not be there
            msvcrt.locking(opened.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        opened.close()
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        reason = f"{file}: the file system gives no lock ({error.strerror})"
        raise UsageError(f"{reason}; choose a folder on another with -o") from None
    return opened


def release(locked_file: BinaryIO) -> None:
    """Release a lock of `try_lock`, and close its file; a process that ends releases it as well."""
    if fcntl is not None:  # closing does not drop it, where a child that was forked meanwhile has the file open, too
        fcntl.flock(locked_file.fileno(), fcntl.LOCK_UN)
    else:
        locked_file.seek(0)
        msvcrt.locking(locked_file.fileno(), msvcrt.LK_UNLCK, 1)
    locked_file.close()
