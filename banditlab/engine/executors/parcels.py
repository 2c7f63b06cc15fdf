"""Parcels for workers: a task and the files that its runs read, named by the hash of their content."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from banditlab.engine.work import Task, facts

PACKAGE = Path(__file__).parents[2]

_unpacking = threading.Lock()


@dataclass(frozen=True)
class Parcel:
    """A task in the form in which it is sent to a worker."""

    task: Task
    places: tuple[dict[str, str], ...]
    """For each run, by setting, the paths of its environment's files in the worker's folder."""
    labs: tuple[str, ...]
    """The paths of the lab folders in the worker's folder."""
    comparators: dict[str, bytes]
    """The stored comparator files, by name; only missing comparators are computed."""

    def paths(self, home: Path) -> list[Path]:
        """Return the paths of the task's files in the worker's folder."""
        return [home / place for place in (*self.labs, *(place for each in self.places for place in each.values()))]


@cache
def package_digest() -> str:
    """Return a hash of this package's source files."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Return the versions that must be the same here and on a worker."""
    packages = facts()["packages"]
    python = "{}.{}".format(*sys.version_info)
    return packages | {"banditlab": f"{packages['banditlab']} (sources {package_digest()})", "python": python}


def packed(files: Iterable[Path], folder: Path) -> tuple[str, bytes]:
    """Pack files below a folder into one bytes object; return its hash and the object."""
    content = pickle.dumps({file.relative_to(folder).as_posix(): file.read_bytes() for file in files})
    return hashlib.sha256(content).hexdigest(), content


def unpack(home: Path, key: str, content: bytes) -> None:
    """Write packed files to the folder `key` below `home`, completely or not at all; if it exists, do nothing."""
    with _unpacking:
        if (home / key).is_dir():
            return
        home.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=home, prefix="part-"))
        for name, data in pickle.loads(content).items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(data)
        os.replace(fresh, home / key)
