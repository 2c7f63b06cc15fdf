"""Files on their way to workers without a disk in common: bytes, known by the hash of their name and content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from banditlab.engine.plan import Run
from banditlab.errors import UsageError
from banditlab.registry import registry

ROOMS = ("agents", "envs")
PACKAGE = Path(__file__).parents[2]

Parts = dict[str, tuple[str, bytes]]
"""(name, content) by `key_of` them."""
Layout = list[tuple[str, str]]
"""A lab: (path inside it, key) of every file."""


@cache
def package_digest() -> str:
    """Return a hash of this package's source files: a worker with other sources is another package."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def key_of(name: str, content: bytes) -> str:
    """Return the hash by which a file is known on its way."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape") + b"\0" + content).hexdigest()


class Freight:
    """What the workers of a sweep need of this machine's files: tables and the files of labs, each read once."""

    def __init__(self) -> None:
        self.parts: Parts = {}
        """What was loaded so far."""
        self._paths: dict[str, str] = {}
        self._labs: dict[str, Layout] = {}

    def of_run(self, run: Run) -> dict[str, str]:
        """Return the keys of the files a run's environment reads, by the setting that names them."""
        found = {}
        for setting in getattr(registry().load("envs", run.environment["id"]), "path_settings", ()):
            path = str(run.environment["settings"][setting])
            if path:
                if path not in self._paths:
                    self._paths[path] = self._load(Path(path))
                found[setting] = self._paths[path]
        return found

    def of_lab(self, lab: str) -> Layout:
        """Return the layout of a lab folder: its Python files."""
        if lab not in self._labs:
            files = [file for room in ROOMS for file in sorted((Path(lab) / room).glob("*.py"))]
            self._labs[lab] = [(file.relative_to(lab).as_posix(), self._load(file)) for file in files]
        return self._labs[lab]

    def _load(self, file: Path) -> str:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise UsageError(f"{file}: cannot be read ({error.strerror})") from None
        key = key_of(file.name, content)
        self.parts[key] = (file.name, content)
        return key


# ------------------------------------------------------------------------------------------------- on the worker's machine


def place(home: Path, key: str, name: str) -> Path:
    """Return where a file stands in a worker's folder."""
    return home / key / name


def has(home: Path, key: str) -> bool:
    """Return whether a worker has a file."""
    try:
        return any((home / key).iterdir())
    except OSError:
        return False


def put(home: Path, parts: Parts) -> None:
    """Put files into a worker's folder, each whole or not at all.

    Raises
    ------
    UsageError
        A file is not what its key says.
    """
    for key, (name, content) in parts.items():
        if key_of(name, content) != key or Path(name).name != name or name in ("", ".", ".."):
            raise UsageError(f"{name}: damaged on its way")
        if has(home, key):
            continue
        home.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=home, prefix="part-"))
        (fresh / name).write_bytes(content)
        try:
            os.replace(fresh, home / key)  # over an empty folder, too: somebody may have cleared old files away
        except OSError:  # another thread was quicker
            (fresh / name).unlink()
            fresh.rmdir()


def only_file(home: Path, key: str) -> Path:
    """Return the file with this key."""
    return next((home / key).iterdir())


def laid_out(home: Path, layout: Layout) -> str:
    """Return a lab folder made of a layout's files; the same layout is the same folder."""
    mark = hashlib.sha256(repr(layout).encode()).hexdigest()[:24]
    lab = home / f"lab-{mark}"
    if not lab.is_dir():
        fresh = Path(tempfile.mkdtemp(dir=home, prefix="part-"))
        for room in ROOMS:
            (fresh / room).mkdir()
        for inside, key in layout:
            room, _, name = inside.partition("/")
            if room not in ROOMS or Path(name).name != name:
                raise UsageError(f"{inside}: not a lab's file")
            (fresh / room / name).write_bytes(only_file(home, key).read_bytes())
        with contextlib.suppress(OSError):  # another thread was quicker
            os.replace(fresh, lab)
    return str(lab)


Parcel = dict[str, Any]
"""A task on its way, as plain data but for the pickled task, which only a worker with the same package opens."""
