"""What is installed beside this package: other libraries, and other distributions that write into its folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from banditlab.errors import UsageError

VERSION = "0.1.0"
NAME = "onebit-bandits"
"""What this package's distribution is called on the package index, where `banditlab` is somebody else's."""
_ON_INDEX = {"prometheus_client": "prometheus-client", "psycopg": '"psycopg[binary]"'}
"""What a module's distribution is called, where it has another name."""
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_REPORTED = "BANDITLAB_OTHERS_REPORTED"
"""The environment variable that keeps children from repeating the report."""


@cache
def report_others() -> None:
    """Print one line on stderr where another distribution owns files in this package's folder."""
    found = [] if _REPORTED in os.environ else others()
    if found:
        os.environ[_REPORTED] = "1"
        print(
            f"banditlab: another distribution owns files in {_PACKAGE}: {', '.join(found)}; to repair, uninstall it "
            f"(pip uninstall {' '.join(found)}) and install {NAME} again",
            file=sys.stderr,
        )


def others() -> list[str]:
    """Return the other distributions that own files in this package's folder, as NAME of NAME-VERSION.dist-info."""
    folder, package = os.path.split(_PACKAGE)
    mark, found = f"\n{package}/".encode(), []
    for entry in os.scandir(folder):
        name = entry.name.partition("-")[0]
        if entry.name.endswith(".dist-info") and name != NAME.replace("-", "_"):
            try:
                with open(os.path.join(entry.path, "RECORD"), "rb") as record:
                    if mark in b"\n" + record.read():
                        found.append(name)
            except OSError:  # removed meanwhile, or installed by a tool that keeps no record
                continue
    return sorted(found)


def library(module: str, user: str) -> Any:
    """Return a module of another library, imported now, for `user`.

    What an import changes in the process besides is put back: coba 8.1.0 replaces `sys.excepthook`.

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
        raise  # the library is there and lacks another
    finally:
        sys.excepthook = hook


def refuse_without(user: str, *modules: str) -> None:
    """Raise a UsageError where modules that `user` needs are not installed; it has the command that installs them."""
    if absent := missing(modules):
        raise _lacking(user, absent)


def missing(modules: Iterable[str]) -> list[str]:
    """Return those of the modules that are not installed; nothing is imported."""
    return [module for module in modules if sys.modules.get(module) is None and find_spec(module) is None]


def install_command(modules: Iterable[str]) -> str:
    """Return the command that installs the libraries of these modules."""
    return f"pip install {' '.join(_ON_INDEX.get(module, module) for module in modules)}"


def _lacking(user: str, modules: Sequence[str]) -> UsageError:
    return UsageError(f"{user} needs {', '.join(modules)}: {install_command(modules)}")
