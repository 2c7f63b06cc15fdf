"""Compiled kernels on disk, one file each, that any number of processes read and write at once.

numba keeps one index file per function, which names numbered data files. Two processes that save at once both read the
index, add their entry and write it back: one entry is lost, and the one that is left may name a file that holds the
other's code. Here an entry is one file that says itself what it holds and is put in place in one step, so there is
nothing to keep in step and nothing to lock, on any operating system.

Only what numba hands to its cache file object is replaced; what is cached, when it is stale, and the folder are numba's.
Imported by `banditlab.kernels` alone, once numba's folder is set.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps


class EntryFiles:
    """The compiled versions of one function, each in `NAME.HASH.SLOT.nbe`: the hash is that of its signature's text.

    Two signatures may share a text (named tuples of one name in two modules), hence the key in the file, and the slots.
    """

    def __init__(self, folder: str, name: str, stamp: Any) -> None:
        self.folder, self.name, self.stamp = Path(folder), name, stamp

    def load(self, key: Any) -> Any:
        """Return what was saved under the key by these sources and this numba, or None."""
        for file in self._slots(key):
            found = self._read(file)
            if found is None:
                return None
            if found[:2] == (self.stamp, key):
                return found[2]

    def save(self, key: Any, data: Any) -> None:
        """Write an entry: over the one of the same key, of other sources or of another numba, or into a free slot."""
        for file in self._slots(key):
            found = self._read(file)
            if found is None or found[0] != self.stamp or found[1] == key:
                break
        fresh = file.with_name(f"{uuid.uuid4().hex[:16]}.tmp")
        try:
            fresh.write_bytes(pickle.dumps(numba.__version__) + dumps((self.stamp, key, data)))
            os.replace(fresh, file)
        finally:
            fresh.unlink(missing_ok=True)

    def flush(self) -> None:
        """Forget every entry of the function."""
        for file in self.folder.iterdir():
            if file.name.startswith(f"{self.name}.") and file.suffix == ".nbe":
                file.unlink(missing_ok=True)

    def _slots(self, key: Any) -> Iterator[Path]:
        text = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return (self.folder / f"{self.name}.{text}.{slot}.nbe" for slot in count())

    def _read(self, file: Path) -> Any:
        """Return (stamp, key, data), or None where there is no file or it is another numba's."""
        try:
            with open(file, "rb") as opened:
                if pickle.load(opened) != numba.__version__:  # whose types may not even unpickle here
                    return None
                return pickle.load(opened)
        except FileNotFoundError:
            return None


class SharedCache(FunctionCache):
    """numba's cache of one function, its entries in `EntryFiles`."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file: Any = EntryFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )
