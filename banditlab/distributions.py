"""Import optional libraries, and report other distributions that own files in this package's folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from banditlab.errors import UsageError

VERSION = "0.1.0"
NAME = "onebit-bandits"
"""The name of this package's distribution on PyPI, where `banditlab` is another project."""
_ON_INDEX = {"prometheus_client": "prometheus-client", "psycopg": '"psycopg[binary]"'}
"""The names of distributions that differ from those of their modules."""
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_LOOKED = "BANDITLAB_LOOKED_FOR_OTHERS"
"""The environment variable with the folder that was already checked."""
MOST_RECORD = 2**24
"""The largest number of bytes that are read of a distribution's record."""


def report_others(*, always: bool = False) -> None:
    """Print one line on stderr if another distribution owns files in this package's folder.

    A child of a process that has checked does not check again, unless `always`.
    """
    if not always and os.environ.get(_LOOKED) == _PACKAGE:
        return
    os.environ[_LOOKED] = _PACKAGE
    _report()


@cache
def _report() -> None:
    with suppress(OSError, ValueError, MemoryError):  # zipped package, unreadable folder or closed stream
        if (found := others()) and sys.stderr is not None:
            print(
                f"banditlab: {' and '.join(found)} has written into this package's folder, {_PACKAGE}; to repair it: "
                f"pip uninstall {' '.join(found)}, then reinstall {NAME} with pip install --force-reinstall",
                file=sys.stderr,
            )


def others() -> list[str]:
    """Return the names of other distributions that own files in this package's folder, according to their RECORD."""
    folder, package = os.path.split(_PACKAGE)
    mark, found = f"\n{package}/".encode(), []
    for entry in os.scandir(folder):
        stem, _, kind = entry.name.rpartition(".")
        name = stem.rpartition("-")[0]
        ours = name.lower().replace("-", "_").replace(".", "_") == NAME.replace("-", "_")
        # pip leaves folders ~NAME that it could not remove
        if kind == "dist-info" and name and not ours and not name.startswith("~"):
            record = os.path.join(entry.path, "RECORD")
            if os.path.isfile(record) and mark in b"\n" + _head_of(record):
                found.append(name)
    return sorted(found)


def _head_of(record: str) -> bytes:
    with suppress(OSError), open(record, "rb") as opened:
        return opened.read(MOST_RECORD)
    return b""


def library(module: str, user: str) -> Any:
    """Import and return a module of another library that `user` needs.

    Side effects of the import are reverted; for example, coba 8.1.0 replaces `sys.excepthook`.

    Raises
    ------
    UsageError
        The library is not installed. The message has the command that installs it.
    """
    hook = sys.excepthook
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if (error.name or "").partition(".")[0] == top:
            raise _lacking(user, [top]) from None
        raise  # the library is installed, but a dependency is missing
    finally:
        sys.excepthook = hook


def refuse_without(user: str, *modules: str) -> None:
    """Raise a UsageError with an install command if modules that `user` needs are not installed."""
    if absent := missing(modules):
        raise _lacking(user, absent)


def missing(modules: Iterable[str]) -> list[str]:
    """Return the modules that are not installed, without importing any."""
    return [module for module in modules if sys.modules.get(module) is None and find_spec(module) is None]


def install_command(modules: Iterable[str]) -> str:
    """Return the command that installs the libraries of these modules."""
    return f"pip install {' '.join(_ON_INDEX.get(module, module) for module in modules)}"


def _lacking(user: str, modules: Sequence[str]) -> UsageError:
    return UsageError(f"{user} needs {', '.join(modules)}: {install_command(modules)}")
