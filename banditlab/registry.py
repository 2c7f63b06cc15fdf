"""The registry of classes by id: built-in, from plug-ins (entry points), and from a lab (a user's project folder).

Two classes with the same id are an error. The error for an unknown id suggests the nearest one. A plug-in that cannot
be imported is listed with the reason and does not affect other plug-ins; selecting it raises an error.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from banditlab.children import probe
from banditlab.errors import UsageError, nearest
from banditlab.numerics.private_folders import exposed, open_to_others
from banditlab.players.player import Player

MARK = "lab.toml"
"""The name of the file that marks a folder as a lab."""
LAB_FOLDERS = ("agents", "envs")
"""The folders of a lab whose Python files are imported."""
KINDS = ("agents", "forecasters", "boosters", "weak_learners", "envs")

_FOLDERS = ("banditlab.agents", "banditlab.forecasters", "banditlab.boosting", "banditlab.envs")
"""Packages whose `BUILT_IN` lists their players or environments."""


@dataclass(frozen=True)
class Entry:
    """One registered class, with its origin and, if it could not be loaded, the reason."""

    id: str
    """The id by which a spec selects it."""
    kind: str
    """One of KINDS."""
    target: Any
    """A class, "module:Class" to be imported on demand, or an installed EntryPoint."""
    origin: str
    """ "banditlab", the distribution's name, or the lab file's path."""
    source: str = ""
    """The hash of a lab file, so an edited file counts as another player; otherwise ""."""
    failure: str = ""
    """The reason why it cannot be loaded, or ""."""

    def load(self) -> Any:
        """Return the class, imported if needed.

        Raises
        ------
        UsageError
            The plug-in cannot be imported, is not of the kind under which it is registered, or has another id than its
            entry point.
        """
        if self.failure:
            raise UsageError(f"{self.kind[:-1]} {self.id!r} from {self.origin} cannot be loaded: {self.failure}")
        if isinstance(self.target, str):
            module, name = self.target.split(":")
            return getattr(importlib.import_module(module), name)
        if inspect.isclass(self.target):
            return self.target
        probe(self.target, f"{self.kind[:-1]} {self.id!r} from {self.origin}")
        try:
            found = self.target.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # any exception during the import becomes a one-line error
            shown = " ".join(_said(error, repr).split())
            raise UsageError(f"{self.kind[:-1]} {self.id!r} from {self.origin} cannot be loaded: {shown}") from error
        if getattr(found, "id", None) != self.id:
            carried = repr(getattr(found, "id", None))
            raise UsageError(f"{self.origin}: the entry point {self.id!r} names a class whose id is {carried}")
        if not inspect.isclass(found) or kind_of(found) != self.kind:
            raise UsageError(
                f"{self.origin}: the entry point {self.id!r} is listed under {self.kind} but is not of that kind"
            )
        return found


class Registry:
    """All classes known in this process: built-in, installed, and from opened lab folders."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self._labs: dict[Path, str] = {}
        self._refused: dict[str, list[Entry]] = {kind: [] for kind in KINDS}
        for folder in _FOLDERS:
            for kind, table in importlib.import_module(folder).BUILT_IN.items():
                for name, (id_, module) in table.items():
                    self._add(Entry(id_, kind, f"{module}:{name}", "banditlab"))
        for kind in KINDS:
            for point in entry_points(group=f"banditlab.{kind}"):
                self._add_plugin(Entry(point.name, kind, point, _distribution(point)))

    def _add(self, entry: Entry) -> None:
        table = self._entries[entry.kind]
        if entry.id in table:
            raise UsageError(
                f"two {entry.kind} are called {entry.id!r}: from {table[entry.id].origin} and from {entry.origin}"
            )
        table[entry.id] = entry

    def _add_plugin(self, entry: Entry) -> None:
        """Add a plug-in's entry.

        If the id is already used, the plug-in is listed as unusable, with this reason. The earlier class remains usable
        if it is built in; of two plug-ins with the same id, neither can be used.
        """
        table = self._entries[entry.kind]
        if entry.id not in table:
            table[entry.id] = entry
            return
        first = table[entry.id]
        taken = f"the id is taken by {first.origin}: uninstall one of them"
        self._refused[entry.kind].append(replace(entry, failure=taken))
        if first.origin != "banditlab":
            table[entry.id] = replace(first, failure=f"the id is also claimed by {entry.origin}: uninstall one of them")

    def entries(self, kind: str) -> list[Entry]:
        """Return all entries of a kind (one of `KINDS`), built-in ones first, then by id, including unusable ones."""
        every = [*self._entries[kind].values(), *self._refused[kind]]
        return sorted(every, key=lambda e: (e.origin != "banditlab", e.id))

    def find(self, kind: str, id_: str) -> Entry:
        """Return the entry with this id, or raise a UsageError that suggests the nearest id."""
        if id_ not in self._entries[kind]:
            raise UsageError(f"no {kind[:-1]} is called {id_!r}{nearest(str(id_), self._entries[kind])}")
        return self._entries[kind][id_]

    def load(self, kind: str, id_: str) -> Any:
        """Return the class with this id."""
        return self.find(kind, id_).load()

    # ------------------------------------------------------------------------------------------------------------- labs

    def open_lab(self, folder: str | Path) -> None:
        """Load every file of the lab's agents/ and envs/ folders; opening the same lab again has no effect.

        Files are loaded by path under a private module name, and sys.path does not change. A file that cannot be
        imported is listed by its name without extension, with the reason.

        Raises
        ------
        UsageError
            The folder does not exist, or an id is already used.
        """
        lab = Path(folder).resolve()
        if not lab.is_dir():
            raise UsageError(f"--lab {folder}: no such folder")
        if lab in self._labs:
            return
        found = []
        for kind in LAB_FOLDERS:
            for file in sorted((lab / kind).glob("*.py")):
                if not file.name.startswith("_"):
                    found += self._read(file, kind)
        before = {kind: dict(table) for kind, table in self._entries.items()}
        try:
            for entry in found:
                self._add(entry)
        except UsageError:
            self._entries = before  # a lab is opened completely or not at all
            raise
        self._labs[lab] = str(folder)

    def labs(self) -> list[str]:
        """Return the opened lab folders as absolute paths."""
        return [str(lab) for lab in self._labs]

    def _read(self, file: Path, kind: str) -> list[Entry]:
        """Return the entries of a lab file; a file that cannot be imported is listed with the reason."""
        source = ""
        try:
            code = file.read_bytes()  # read once, so the hash is that of the code which is run
            source = _hash_of(code)
            module = load_file(file, code)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a user's file may raise any exception; it is listed with the reason
            reason = " ".join(f"{type(error).__name__}: {_said(error, str)}".split())
            ids = _ids_written_in(file) or [file.stem if file.stem not in self._entries[kind] else file.name]
            return [Entry(id_, kind, None, str(file), source, reason) for id_ in ids]
        return [Entry(cls.id, kind, cls, str(file), source) for kind, cls in classes_of(module)]


def lab_around(folder: str | Path = ".") -> Path | None:
    """Return this folder or the nearest parent with a `lab.toml`, or None."""
    try:
        here = Path(folder).resolve()
    except OSError:  # the folder was removed
        return None
    return next((place for place in (here, *here.parents) if os.path.lexists(place / MARK)), None)


def refuse_exposed(lab: Path) -> None:
    """Raise a UsageError if users other than this one and root can write the files of a lab.

    The check covers `lab.toml`, the folder and its parents, agents/, envs/ and their contents. Links are rejected,
    because the owner of a folder on their path could change their target.
    """
    try:
        reason = exposed(lab) or next(filter(None, map(_exposed_entry, _entries(lab))), "")
    except OSError as error:
        reason = f"{error.filename} cannot be read ({error.strerror})"
    if reason:
        quoted = shlex.quote(printable(lab))
        raise UsageError(
            f"{reason}: the lab {printable(lab)} is not loaded automatically; if you trust it, use --lab {quoted}"
        )


def _entries(lab: Path) -> Iterator[Path]:
    """Yield a lab's `lab.toml`, its folders `agents` and `envs`, and everything in them."""
    yield from (lab / name for name in (MARK, *LAB_FOLDERS) if os.path.lexists(lab / name))
    for kind in LAB_FOLDERS:
        for folder, folders, files in os.walk(lab / kind, onerror=_raise):
            yield from (Path(folder, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _exposed_entry(path: Path) -> str:
    found = os.lstat(path)
    if not (stat.S_ISREG(found.st_mode) or (stat.S_ISDIR(found.st_mode) and path.name != MARK)):
        return f"{printable(path)} is not a regular file"
    reason = open_to_others(found, path)
    return f"{printable(path)} {reason}" if reason else ""


def printable(path: Path) -> str:
    """Return a path as text, escaped if it has characters that are not printable."""
    return str(path) if str(path).isprintable() else ascii(str(path))[1:-1]


def _distribution(point: Any) -> str:
    try:
        return str(point.dist.name) if point.dist else "an installed package"
    except Exception:  # broken metadata
        return "an installed package"


def _said(error: BaseException, show: Callable[[BaseException], str]) -> str:
    try:
        return show(error)
    except Exception:
        return f"{type(error).__name__}, whose message cannot be shown"


def _ids_written_in(file: Path) -> list[str]:
    """Return the `id` of every class in a file that cannot be imported, if the file can be parsed."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return []
    found = []
    for line in (line for node in tree.body if isinstance(node, ast.ClassDef) for line in node.body):
        match line:
            case ast.Assign([ast.Name("id")], ast.Constant(str(id_))):
                found.append(id_)
            case ast.AnnAssign(ast.Name("id"), _, ast.Constant(str(id_))):
                found.append(id_)
    return found


def source_hash(file: Path) -> str:
    """Return the hash that represents a lab file in a run's identity."""
    return _hash_of(file.read_bytes())


def _hash_of(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()[:16]


def load_file(file: str | Path, code: bytes | None = None) -> ModuleType:
    """Return the module of a Python file, imported by path under a private name.

    Parameters
    ----------
    file
        The path of the file.
    code
        The content of the file, if it has already been read.

    Raises
    ------
    UsageError
        The file is not a Python file. Errors that the file itself raises are passed on.
    """
    import banditlab.numerics.jit  # noqa: F401 -- set numba's cache before the file may compile something

    file = Path(file).resolve()
    name = f"_banditlab_lab_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    source = file.read_bytes() if code is None else code
    vars(module)["__source_hash__"] = _hash_of(source)
    sys.modules[name] = module  # numba's cache and pickles of its named tuples look the module up by name
    try:
        # Not spec.loader.exec_module, because Python's cache misses an edit within a second that preserves the file's
        # size.
        exec(compile(source, str(file), "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def classes_of(module: ModuleType) -> list[tuple[str, Any]]:
    """Return (kind, class) for every concrete player or environment with an `id` that a module defines."""
    found = []
    for cls in vars(module).values():
        own = inspect.isclass(cls) and cls.__module__ == module.__name__
        if own and vars(cls).get("id") and not inspect.isabstract(cls):
            found.append((kind_of(cls), cls))
    return found


def kind_of(cls: Any) -> str:
    """Return the kind of a class `cls`, by its attribute `kind`, or else by its base class and methods."""
    if getattr(cls, "kind", None) in KINDS:
        return str(cls.kind)
    if issubclass(cls, Player):
        return "forecasters" if cls.feedback == "label" and hasattr(cls, "predict") else "agents"
    return "envs"


@cache
def registry() -> Registry:
    """Return this process's registry."""
    return Registry()
