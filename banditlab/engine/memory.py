"""The memory available to this process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def memory() -> int | None:
    """Return the bytes of memory that this process can use, or None if the system does not report them."""
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, ValueError):  # the limit of a container; "max" for none
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text("utf-8")))
    return min((size for size in found if size > 0), default=None)
