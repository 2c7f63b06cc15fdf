"""A process that has imported what other people wrote, and forks a pytest for every line it reads: run as a script.

A line is JSON: the tree to run in, pytest's arguments, variables of the environment, a file for what is said, a limit in
seconds. The answer is pytest's exit code, or null where the limit was reached. Bytecode is kept beside the trees.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from typing import Any

WARM = (
    *("numpy", "numba", "numba.np.arrayobj", "llvmlite.binding", "scipy.linalg", "scipy.optimize", "scipy.sparse"),
    *("scipy.special", "scipy.stats", "pandas", "sklearn.base", "sklearn.utils.validation", "gymnasium", "joblib"),
    *("threadpoolctl", "mpmath", "pytest", "platformdirs"),
)
"""Not hypothesis, whose plugin pytest wants to import itself."""


def main() -> None:
    """Answer lines until there are none."""
    sys.path.pop(0)  # the folder of this script
    for module in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line))), flush=True)


def answered(asked: dict[str, Any]) -> int | None:
    """Fork a child that runs pytest, wait for it, and return its exit code."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = played(asked)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + asked["limit"]
    found, status = 0, 0
    while not found and time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it left running as well
    if found:
        return os.waitstatus_to_exitcode(status)
    os.waitpid(child, 0)
    return None


def played(asked: dict[str, Any]) -> int:
    """Run pytest in the tree, in a session of its own."""
    os.setsid()
    said = os.open(asked["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(asked["tree"])
    os.environ.update(asked["environment"])
    sys.path.insert(0, asked["tree"])
    sys.pycache_prefix = asked["bytecode"]
    import pytest

    return int(pytest.main(asked["arguments"]))


if __name__ == "__main__":
    main()
