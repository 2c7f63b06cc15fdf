"""The cache of compiled kernels: one folder for each version of the sources.

Folders that were not used for a long time are removed.

Folders are not locked. A process whose folder is removed compiles the missing kernels again, and stores them in a new
folder if possible. A folder is renamed in one step before its files are removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from pathlib import Path

from banditlab.numerics.private_folders import make_private

NEWEST = 8
"""Number of most recently used folders that are never removed, for different branches or installed versions."""
IDLE = 3 * 3600.0
"""Any other folder is removed this many seconds after a process last began to use it."""
_USED = ".used"
_LEAVING = ".leaving-"


def folder_for(root: Path, sources: str) -> Path:
    """Return the folder in `root` for this version of the sources, and record the time of its use.

    Old folders are removed only when a new one is created, because the process then waits for the compiler anyway.
    """
    folder = root / sources
    with contextlib.suppress(OSError):  # read-only home: numba chooses another folder or does not cache
        new = not folder.exists()
        make_private(folder)
        (folder / _USED).touch(mode=0o600)
        if new:
            clear(root)
    return folder


def clear(root: Path) -> None:
    """Remove folders in `root` that no process opened in the last `IDLE` seconds, except the `NEWEST` most recent."""
    folders = [Path(entry) for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    for left in (folder for folder in folders if folder.name.startswith(_LEAVING)):  # by a stopped process
        shutil.rmtree(left, ignore_errors=True)
    used = {folder: _last_use(folder) for folder in folders if not folder.name.startswith(_LEAVING)}
    for folder in sorted(used, key=used.__getitem__, reverse=True)[NEWEST:]:
        if time.time() - used[folder] > IDLE:
            leaving = root / f"{_LEAVING}{uuid.uuid4().hex}"
            with contextlib.suppress(OSError):  # another process removed it, or has one of its files open
                folder.rename(leaving)
                shutil.rmtree(leaving, ignore_errors=True)


def _last_use(folder: Path) -> float:
    """Return the time when a process last began to use the folder; if unknown, return the time of its newest kernel."""
    with contextlib.suppress(OSError):
        return (folder / _USED).stat().st_mtime
    try:
        subfolders = [entry.stat().st_mtime for entry in os.scandir(folder) if entry.is_dir()]
        return max([folder.stat().st_mtime, *subfolders])
    except OSError:  # gone meanwhile
        return time.time()


def current_folder() -> Path | None:
    """Return the current folder of compiled kernels, or None before `jit` has chosen one."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) if named else None
