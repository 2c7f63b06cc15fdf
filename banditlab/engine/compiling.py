"""One compilation per machine: processes that need the same kernels wait for the one that compiles them."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator

from banditlab.errors import UsageError
from banditlab.numerics.cache_folders import current_folder
from banditlab.numerics.private_folders import make_private
from banditlab.results.system import release, try_lock

LONGEST_WAIT = 300.0
"""Seconds for which a process waits for another that compiles the same kernels, before it compiles them itself."""
WAIT = 0.1


@contextlib.contextmanager
def one_compiler(key: str) -> Iterator[None]:
    """Run the block in one process per key at a time; other processes on this machine wait, then read the cache.

    If no folder can be locked, or after `LONGEST_WAIT`, every process compiles, which only takes longer.
    """
    folder = current_folder()
    until = time.monotonic() + LONGEST_WAIT
    with contextlib.ExitStack() as locks:
        while folder is not None and time.monotonic() < until:
            file = folder / "locks" / hashlib.sha256(key.encode()).hexdigest()[:24]
            try:
                make_private(file.parent)
                if lock := try_lock(file):
                    locks.callback(release, lock)
                    break
            except (OSError, UsageError):
                break
            time.sleep(WAIT)
        yield
