"""Where compiled kernels lie: a folder for every state of the sources, of which the ones long unused are cleared away.

Nothing is locked. A process that loses a folder it still uses compiles again what it lacks, and keeps that in a new one, or
keeps nothing. A folder leaves its place in one step before its files go.
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
"""So many folders stay whenever they were used last: branches and worktrees of a developer, versions of a user."""
IDLE = 3 * 3600.0
"""Seconds since a process last began to use it after which any other folder goes."""
_USED = ".used"
_LEAVING = ".leaving-"


def folder_for(root: Path, sources: str) -> Path:
    """Return the folder in `root` for this state of the sources, marked as used now.

    A new folder clears old ones away: the process is about to wait for the compiler anyway.
    """
    folder = root / sources
    with contextlib.suppress(
        OSError
    ):  # a home that may not be written: numba looks for another place, or keeps nothing
        new = not folder.exists()
        make_private(folder)
        (folder / _USED).touch(mode=0o600)
        if new:
            clear(root)
    return folder


def clear(root: Path) -> None:
    """Remove the folders in `root` that no process began to use within `IDLE` seconds, the `NEWEST` excepted."""
    folders = [Path(entry) for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    for left in (folder for folder in folders if folder.name.startswith(_LEAVING)):  # by a process that was stopped
        shutil.rmtree(left, ignore_errors=True)
    used = {folder: _last_use(folder) for folder in folders if not folder.name.startswith(_LEAVING)}
    for folder in sorted(used, key=used.__getitem__, reverse=True)[NEWEST:]:
        if time.time() - used[folder] > IDLE:
            leaving = root / f"{_LEAVING}{uuid.uuid4().hex}"
            with contextlib.suppress(OSError):  # another process was quicker, or holds a file of it open
                folder.rename(leaving)
                shutil.rmtree(leaving, ignore_errors=True)


def _last_use(folder: Path) -> float:
    """Return when a process last began to use a folder; of one without a mark, when a kernel was last added."""
    with contextlib.suppress(OSError):
        return (folder / _USED).stat().st_mtime
    try:
        rooms = [entry.stat().st_mtime for entry in os.scandir(folder) if entry.is_dir()]
        return max([folder.stat().st_mtime, *rooms])
    except OSError:  # gone meanwhile
        return time.time()


def current_folder() -> Path | None:
    """Return the folder compiled kernels lie in now, None as long as none was chosen (see `jit`)."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) if named else None
