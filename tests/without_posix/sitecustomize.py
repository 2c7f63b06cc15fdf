"""Hide what only POSIX systems have: with this folder on PYTHONPATH, every Python process imports this file first.

`PYTHONPATH=tests/without_posix python -m pytest tests/...` runs tests in this way. It shows that the package needs none of
these names, not that all is well on Windows. What Python's own modules and the libraries look for on Linux is imported first.
"""

from __future__ import annotations

import asyncio  # noqa: F401
import contextlib
import ctypes.util  # noqa: F401
import fcntl
import multiprocessing.popen_spawn_posix  # noqa: F401
import os
import signal
import subprocess  # noqa: F401
import sys
import types
from typing import Any

import platformdirs  # noqa: F401

with contextlib.suppress(ImportError):  # some libraries bring it
    import psutil  # noqa: F401

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "syslog", "posix_ipc")
IN_OS = """
    chown fchmod fchown fork forkpty getegid geteuid getgid getloadavg getpgid killpg mkfifo mknod nice
    O_DIRECTORY O_NOFOLLOW posix_fallocate posix_spawn pread pwrite register_at_fork sched_getaffinity sched_setaffinity setpgid
    setsid statvfs sync sysconf
"""
IN_SIGNAL = "SIGALRM SIGCHLD SIGHUP SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 alarm getitimer setitimer"
PLACES = ("/proc/cpuinfo", "/proc/sys/", "/dev/shm", "/sys/fs/cgroup/memory.max")


class Msvcrt(types.ModuleType):
    """Locks as Python documents them: LK_NBLCK raises OSError where another has the byte at the file's position."""

    LK_NBLCK, LK_UNLCK = 2, 0
    calls: list[int] = []

    def locking(self, number: int, mode: int, n: int) -> None:
        """Lock one byte at the start of the file, or unlock it."""
        assert os.lseek(number, 0, os.SEEK_CUR) == 0
        assert n == 1
        flock(number, LOCK if mode == self.LK_NBLCK else UNLOCK)
        self.calls.append(mode)


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Let no file that only Linux has be opened, and none of its folders listed."""
    file = str(arguments[0]) if event in ("open", "os.listdir", "os.scandir") else ""
    if file.startswith(PLACES):
        raise FileNotFoundError(2, "No such file or directory", file)


flock, LOCK, UNLOCK = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
sys.modules["msvcrt"] = Msvcrt("msvcrt")
for module in MODULES:
    sys.modules[module] = None  # type: ignore[assignment]  # importing it raises ImportError
for owner, names in ((os, IN_OS), (signal, IN_SIGNAL)):
    for name in names.split():
        delattr(owner, name)
sys.addaudithook(refuse)
