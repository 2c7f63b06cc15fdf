"""Child Python processes: their import path, and a test import of plug-ins in a separate process.

A child is started with `-P`, or with `PYTHONSAFEPATH` if a library starts it. Python then leaves the working folder out
of the path, so a file `json.py` there does not replace the standard library's.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

from banditlab.errors import UsageError
from banditlab.validation import PLUGIN_SECONDS, limit

SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable with the effect of `-P`."""
DEATH_SIGNAL = 1
"""Linux: PR_SET_PDEATHSIG."""
_DONE = "BANDITLAB_PROBED"
_MARK = "banditlab: imported"
_PROBE = f"""
from importlib.metadata import EntryPoint
try:
    EntryPoint(*sys.argv[1:]).load()
except BaseException:
    pass  # the parent raises it with a message
print({_MARK!r}, flush=True)
import os
os._exit(0)
"""
_lock = threading.RLock()


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs `code` in a child with `import_path()` as `sys.path`; `code` may use `sys`."""
    options = ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    start = f"import json, sys\nsys.path[:] = json.loads(sys.argv.pop(1))\n{code}"
    return [sys.executable, "-P", *options, "-c", start, json.dumps(import_path()), *arguments]


def import_path() -> list[str]:
    """Return `sys.path` for a child, with the standard library first, and the working folder and script's folder last.

    Folders are absolute. The folder that contains this package keeps its position, even if it is the working folder.
    """
    here = ""
    with contextlib.suppress(OSError):  # the folder was removed
        here = os.getcwd()
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = os.path.join(here, getattr(sys.modules.get("__main__"), "__file__", None) or "")
    local = {here, *(os.path.dirname(way(script)) for way in (os.path.normpath, os.path.realpath))} - {package}
    library = os.path.dirname(os.__file__)
    standard = {library, os.path.join(library, "lib-dynload")}

    def place(entry: str) -> int:
        return 0 if entry in standard else 2 if entry in local else 1

    def whole(entry: str) -> str:
        path = os.path.normpath(os.path.join(here, entry))
        return path if os.path.exists(path) else entry  # an entry for an import hook is not a path

    entries = [whole(entry) for entry in sys.path if isinstance(entry, str) and (entry or here)]
    return sorted(dict.fromkeys(entries), key=place)


def begin(path: list[str], parent: int) -> None:
    """Set the import path of this child process to `path`, and end it when the process `parent` ends."""
    sys.path[:] = path
    end_with(parent)


def end_with(parent: int) -> None:
    """Let the system kill this process when its parent ends."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # the parent has already ended
            os._exit(1)


@contextlib.contextmanager
def safe_start() -> Iterator[None]:
    """Leave the working folder out of the path of Python processes started inside the block."""
    with _lock:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[SAFE_PATH]
            else:
                os.environ[SAFE_PATH] = before


def probe(point: Any, name: str) -> None:
    """Test the import of an entry point in a separate process, once; child processes do not repeat the test.

    If the module has already been imported, nothing is done.

    Raises
    ------
    UsageError
        The import ends the process or takes too long. The message begins with `name`.
    """
    key = f"{point.group}:{point.name}={point.value}"
    done = os.environ.get(_DONE, "").split("\n")
    if key in done or point.value.partition(":")[0] in sys.modules:
        return
    seconds = limit(PLUGIN_SECONDS)
    command = python(_PROBE, point.name, point.value, point.group)
    try:
        child = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{name} cannot be loaded: its import did not end within {seconds} s ({PLUGIN_SECONDS.variable})"
        ) from None
    if not child.stdout.rstrip().endswith(_MARK.encode()):
        code = child.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise UsageError(f"{name} cannot be loaded: its import ended the process ({how})")
    os.environ[_DONE] = "\n".join([*filter(None, done), key])
