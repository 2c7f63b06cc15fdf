"""One compiler on a machine: processes that need the same kernels wait for the one that compiles them."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator

from banditlab.errors import UsageError
from banditlab.numerics.cache_folders import current_folder
from banditlab.numerics.private_folders import make_private
from banditlab.results.system import hold, release

LONGEST_WAIT = 300.0
"""Seconds a process waits for another on this machine that compiles what it needs, too; then it compiles by itself."""
WAIT = 0.1


@contextlib.contextmanager
def one_compiler(key: str) -> Iterator[None]:
    """Compile what is inside while no other process on this machine compiles it: the others wait, and read it then.

    Without a folder that can be locked, or after `LONGEST_WAIT`, every process compiles: that costs time only.
    """
    folder = current_folder()
    until = time.monotonic() + LONGEST_WAIT
    with contextlib.ExitStack() as held:
        while folder is not None and time.monotonic() < until:
            file = folder / "locks" / hashlib.sha256(key.encode()).hexdigest()[:24]
            try:
                make_private(file.parent)
                if lock := hold(file):
                    held.callback(release, lock)
                    break
            except (OSError, UsageError):
                break
            time.sleep(WAIT)
        yield
