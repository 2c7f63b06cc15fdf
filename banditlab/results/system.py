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

WAIT = 0.01  # seconds between two attempts


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait for a file's lock and hold it during the block; errors are as for `try_lock`."""
    while (lock := try_lock(file)) is None:
        time.sleep(WAIT)
    try:
        yield
    finally:
        release(lock)


def try_lock(file: Path) -> BinaryIO | None:
    """Lock a file, created if needed, until `release`. Return the open file, or None if another process has the lock.

    Raises
    ------
    UsageError
        The file system does not support locks, or denies this one.
    OSError
        The file cannot be created.
    """
    opened = open(file, "ab")  # noqa: SIM115 -- the lock lasts as long as the file is open
    try:
        if fcntl is not None:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            opened.seek(0)  # the locked byte, which need not exist
            msvcrt.locking(opened.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        opened.close()
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        reason = f"{file}: the file system denies a lock ({error.strerror})"
        raise UsageError(f"{reason}; choose a folder on another file system with -o") from None
    return opened


def release(locked_file: BinaryIO) -> None:
    """Release a lock of `try_lock`, and close its file. The lock of a process that ends is also released."""
    if fcntl is not None:  # closing does not release it if a forked child also has the file open
        fcntl.flock(locked_file.fileno(), fcntl.LOCK_UN)
    else:
        locked_file.seek(0)
        msvcrt.locking(locked_file.fileno(), msvcrt.LK_UNLCK, 1)
    locked_file.close()
