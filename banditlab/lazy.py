"""Lazy imports (PEP 562): a package's public names are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing it takes as much time as importing the rest of this module
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec

Table = Mapping[str, Mapping[str, tuple[str, str]]]
"""For each kind ("agents", "envs", ...), the ids of its public classes and their modules."""


def modules_of(others: Mapping[str, Sequence[str]], built_in: Table | None = None) -> dict[str, str]:
    """Return the module of each public name; `others` lists names by module, and `built_in` is a table of classes."""
    modules = {name: module for module, names in others.items() for name in names}
    return modules | {name: module for kind in (built_in or {}).values() for name, (_, module) in kind.items()}


def lazy_names(
    package: str, others: Mapping[str, Sequence[str]], built_in: Table | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's `__getattr__`, `__dir__` and `__all__` for lazy imports of the names of `modules_of`.

    `dir` lists these names, the submodules imported so far, and Python's own names, but not the names that the package
    imports for its own use.
    """
    modules = modules_of(others, built_in)

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)  # the next access finds it directly
        return value

    def names() -> list[str]:
        inside = {
            name
            for name, value in vars(sys.modules[package]).items()
            if isinstance(value, ModuleType) or name.startswith("__")
        }
        return sorted({*inside, *modules})

    return load, names, sorted(modules)


def after_import(module: str, act: Callable[[], None]) -> None:
    """Call `act` after each import or reload of `module`, and now if it is already imported.

    A second call of `act` must have no effect. If `act` raises an error, the import raises it.
    """
    sys.meta_path.insert(0, _Watcher(module, act))
    if sys.modules.get(module) is not None:  # None prevents the import
        act()


class _Watcher:
    """A finder of one module that delegates to later finders, and returns a loader that calls `act` at the end.

    The finder is never removed, because an import may fail and be repeated, finders are also used without an import
    (`importlib.util.find_spec`), and another thread that iterates over `sys.meta_path` could skip a finder.
    """

    def __init__(self, module: str, act: Callable[[], None]) -> None:
        self.module, self.act = module, act

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module's own spec with a loader that calls `act` afterwards, or None for other modules."""
        finders = list(sys.meta_path)
        if fullname != self.module or self not in finders:
            return None
        later = finders[finders.index(self) + 1 :]  # earlier finders found nothing
        spec = next((s for s in (f.find_spec(fullname, path, target) for f in later) if s), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, self.act)  # type: ignore[assignment]
        return spec


class _ActingLoader:
    """A loader that delegates to the module's own loader, and calls `act` after the module has been executed."""

    def __init__(self, loader: Loader, act: Callable[[], None]) -> None:
        self.loader, self.act = loader, act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that its own loader creates."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with its own loader, then call the function."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.act()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)
