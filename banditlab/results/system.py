"""What operating systems do differently: locking a file, and the permission bits of a new one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

_UMASK = os.umask(0)  # the only way to read it is to set it
os.umask(_UMASK)
WAIT = 0.05  # seconds between two tries, where a lock cannot be waited for


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made if need be; the operating system drops it if this process dies."""
    with open(file, "ab") as opened:
        number = opened.fileno()
        if fcntl is not None:
            fcntl.flock(number, fcntl.LOCK_EX)
            yield  # closing drops it
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
            opened.seek(0)
            msvcrt.locking(number, msvcrt.LK_UNLCK, 1)


def make_readable(number: int) -> None:
    """Give an open file that `tempfile` made, which is private, the permission bits any other new file has."""
    if hasattr(os, "fchmod"):  # elsewhere there are no such bits
        os.fchmod(number, 0o666 & ~_UMASK)
