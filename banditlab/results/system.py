"""What operating systems do differently: locking a file."""

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

WAIT = 0.05  # seconds between two tries, where a lock cannot be waited for


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made if need be; the operating system drops it if this process dies.

    Raises
    ------
    UsageError
        The file system has no locks, or gives none.
    """
    with open(file, "ab") as opened:
        number = opened.fileno()
        if fcntl is not None:
            try:
                fcntl.flock(number, fcntl.LOCK_EX)
            except OSError as error:
                reason = f"{file}: the file system gives no lock ({error.strerror})"
                raise UsageError(f"{reason}; choose a folder on another with -o") from None
            try:
                yield
            finally:
                _unlock(opened)
            return
        opened.seek(0)  # where the byte lies that is locked; it need not be there
        while True:
            try:
                msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
                break
            except OSError:  # another process has it
                time.sleep(WAIT)
        try:
            yield
        finally:
            _unlock(opened)


def try_lock(file: Path) -> BinaryIO | None:
    """Return the open file, which is made if need be, with its lock held until `release`; None where another has it.

    Raises
    ------
    UsageError
        The file cannot be made, or its file system has no locks.
    """
    try:
        opened = open(file, "ab")  # noqa: SIM115 -- its lock lasts as long as it is open
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror})") from None
    try:
        if fcntl is not None:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            opened.seek(0)
            msvcrt.locking(opened.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        opened.close()
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise UsageError(f"{file}: the file system gives no lock ({error.strerror})") from None
    return opened


def release(locked_file: BinaryIO) -> None:
    """Release a lock of `try_lock`, and close its file. A process that ends releases it as well."""
    if not locked_file.closed:
        _unlock(locked_file)
        locked_file.close()


def _unlock(opened: BinaryIO) -> None:
    if fcntl is not None:  # closing does not drop it, where a child that was forked meanwhile has the file open, too
        fcntl.flock(opened.fileno(), fcntl.LOCK_UN)
        return
    opened.seek(0)
    msvcrt.locking(opened.fileno(), msvcrt.LK_UNLCK, 1)
