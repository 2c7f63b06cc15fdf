"""Python processes that this one starts: where they import from, and the one in which a plug-in is imported first.

A child is started with `-P`, or with `PYTHONSAFEPATH` where a library starts it: Python then leaves the working folder off
the path, and a file there called `json.py` is not run in the place of the standard library's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from banditlab.errors import UsageError
from banditlab.validation import PLUGIN_SECONDS, limit

SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""What the environment of a child holds that is started without `-P`."""
_DONE = "BANDITLAB_PROBED"
_MARK = "banditlab: imported"
_CODE = f"""
import sys
from importlib.metadata import EntryPoint
try:
    EntryPoint(*sys.argv[1:]).load()
except BaseException:
    pass  # which the parent will meet, and can name
print({_MARK!r}, flush=True)
import os
os._exit(0)
"""


def import_path() -> list[str]:
    """Return `sys.path` for a child: the standard library first, the working folder and the script's folder last.

    All entries are absolute. The folder that holds this package keeps its place, whichever it is.
    """
    here = ""
    with contextlib.suppress(OSError):  # the folder was removed
        here = os.getcwd()
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    local = {here, os.path.dirname(os.path.join(here, script or ""))} - {package}
    library = os.path.dirname(os.__file__)
    standard = {library, os.path.join(library, "lib-dynload")}

    def place(entry: str) -> int:
        return 0 if entry in standard else 2 if entry in local else 1

    entries = (os.path.normpath(os.path.join(here, entry)) for entry in sys.path if entry or here)
    return sorted(dict.fromkeys(entries), key=place)


def use_path(path: list[str]) -> None:
    """Import from `path` from now on, in a child that a library started."""
    sys.path[:] = path


@contextlib.contextmanager
def safe_start() -> Iterator[None]:
    """Have the Python processes that are started meanwhile leave the working folder off their path."""
    before = {name: os.environ.get(name) for name in SAFE_PATH}
    os.environ.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def probe(point: Any, name: str) -> None:
    """Import an entry point in a process of its own, once in this process and those it starts.

    Nothing is done where its module is imported already.

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
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(import_path())}
    command = [sys.executable, "-P", "-c", _CODE, point.name, point.value, point.group]
    try:
        child = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{name} cannot be loaded: its import did not end within {seconds} s ({PLUGIN_SECONDS.variable})"
        ) from None
    if not child.stdout.rstrip().endswith(_MARK.encode()):
        code = child.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise UsageError(f"{name} cannot be loaded: its import ended the process ({how})")
    os.environ[_DONE] = "\n".join([*filter(None, done), key])
