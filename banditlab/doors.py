"""Front doors that load nothing: a package's public names are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Table = Mapping[str, Mapping[str, tuple[str, str]]]
"""By kind ("agents", "envs" ...), for each public class its id and the module it stands in."""


def places(built_in: Table, others: Mapping[str, str]) -> dict[str, str]:
    """Return the module of every public name: the classes of a table, and what has no id (contracts, records)."""
    return {name: module for kind in built_in.values() for name, (_, module) in kind.items()} | dict(others)


def door(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`, which know the names in `modules` before they are imported."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)  # the next look-up finds it without us
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return load, names


def after_import(module: str, act: Callable[[], None]) -> None:
    """Call `act` once `module` is imported: now, where it is already."""
    if module in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Watcher(module, act))


class _Watcher(MetaPathFinder):
    """Finds one module as Python would, acts when it has been executed, and is gone."""

    def __init__(self, module: str, act: Callable[[], None]) -> None:
        self.module, self.act = module, act

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module's own spec with a loader that acts afterwards; None for any other module."""
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        spec = next((s for s in (f.find_spec(fullname, path, target) for f in sys.meta_path) if s), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def execute(module: ModuleType) -> None:
                run(module)
                self.act()

            spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec
