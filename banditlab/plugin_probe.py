"""A plug-in is imported in a process of its own first: an import that ends the process, or never ends, then costs a line.

That is asked once in a process and those it starts, and not of modules that are imported already.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from banditlab.errors import UsageError
from banditlab.validation import PLUGIN_SECONDS, limit

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


def probe(point: Any, name: str) -> None:
    """Raise a UsageError that begins with `name` where importing an entry point ends a process or takes too long."""
    key = f"{point.group}:{point.name}={point.value}"
    done = os.environ.get(_DONE, "").split("\n")
    if key in done or point.value.partition(":")[0] in sys.modules:
        return
    seconds = limit(PLUGIN_SECONDS)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", _CODE, point.name, point.value, point.group]
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
