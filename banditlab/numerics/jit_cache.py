"""Compiled kernels on disk, one file each, which any number of processes may read and write at once.

numba stores one index file per function, which lists numbered data files. Two processes that save at the same time both
read the index, add their entry and write it back. One entry is lost, and the other may name the wrong file. Here an
entry is one file that contains its key, and the file is put in place in one step. No lock is needed on any operating
system.

Entries are pickles, and a pickle can run code. Folders and files that other users own or may write are therefore not
used. New ones are readable and writable by this user only, whatever the umask.

Only numba's cache file object is replaced. numba still decides what is cached and when it is stale, and chooses the
folder. Only `banditlab.numerics.jit` imports this module, after it has set numba's folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

from banditlab.numerics.private_folders import exposed, is_private_file, make_private

_REPORTED = "BANDITLAB_CACHE_REFUSED"
SLOTS = 8  # entries whose keys have the same text; a script's own classes are new in every process, and would pile up


class EntryFiles:
    """The compiled versions of one function, each in `NAME.HASH.SLOT.nbe`; HASH is a hash of the signature's text.

    Two signatures may share a text (named tuples of one name in two modules), so a file contains the key and a
    hash has several slots.
    """

    def __init__(self, folder: str, name: str, stamp: Any) -> None:
        self.folder, self.name, self.stamp = Path(folder), name, stamp

    def load(self, key: Any) -> Any:
        """Return the entry that these sources and this numba saved under the key, or None."""
        for file in self._slots(key):
            found = self._read(file)
            if found is None:  # slots fill from the first on
                return None
            if found[:2] == (self.stamp, key):
                return found[2]
        return None

    def save(self, key: Any, data: Any) -> None:
        """Write an entry to a free slot, or over a file with the same key that other sources or another numba version
        wrote.

        If no slot is free, the last slot is overwritten. On a full or read-only disk nothing is stored, which only
        costs time.
        """
        for file in self._slots(key):
            found = self._read(file)
            if found is None or found[0] != self.stamp or found[1] == key:
                break
        entry = pickle.dumps(numba.__version__) + dumps((self.stamp, key, data))
        fresh = file.with_name(f"{uuid.uuid4().hex[:16]}.tmp")
        with contextlib.suppress(OSError):
            make_private(self.folder)  # cleared away since, see `banditlab.numerics.cache_folders`
            try:
                with open(fresh, "xb", opener=_for_this_user) as opened:
                    opened.write(entry)
                os.replace(fresh, file)
            finally:
                fresh.unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove every entry of the function."""
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            if file.name.startswith(f"{self.name}.") and file.suffix == ".nbe":
                file.unlink(missing_ok=True)

    def _slots(self, key: Any) -> Iterator[Path]:
        text = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return (self.folder / f"{self.name}.{text}.{slot}.nbe" for slot in range(SLOTS))

    def _read(self, file: Path) -> Any:
        """Return (stamp, key, data), or None where the file does not exist or cannot be read.

        The file may come from another numba version, be truncated by a power failure, or name types of a lab that is
        not loaded here. A file that other users own or may write is not read.
        """
        try:
            with open(file, "rb") as opened:
                if not is_private_file(opened.fileno()):
                    return None
                if pickle.load(opened) != numba.__version__:  # whose types may not even unpickle here
                    return None
                return pickle.load(opened)
        except Exception:  # unpickling may raise anything; what cannot be read is compiled again
            return None


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Private:
    """A cache folder that is created for this user, and is not used if others may write it."""

    def ensure_cache_path(self) -> None:
        """Create the folder, or raise an OSError, so that numba tries the next folder."""
        folder = Path(self.get_cache_path())  # type: ignore[attr-defined]
        if reason := _exposed(folder):
            _report_once(reason)
            raise PermissionError(reason)
        make_private(folder)
        super().ensure_cache_path()  # type: ignore[misc]  # numba's own, which looks whether it may be written


@cache
def _exposed(folder: Path) -> str:
    return exposed(folder)


def _report_once(reason: str) -> None:
    """Print once why a folder is not used, in this process and those that it starts."""
    if _REPORTED not in os.environ:
        os.environ[_REPORTED] = "1"
        line = f"banditlab: kernels are not saved in NUMBA_CACHE_DIR, since {reason}: make it your own, or name another"
        print(line, file=sys.stderr)


def _private(locator: Any) -> Any:
    return type(locator.__name__, (_Private, locator), {})


class PrivatePlaces(CompileResultCacheImpl):
    """numba's cache locators, limited to folders that no other user may write."""

    _locator_classes = [_private(locator) for locator in CompileResultCacheImpl._locator_classes]


class SharedCache(FunctionCache):
    """numba's cache of one function, with its entries in `EntryFiles`; disabled if no folder can be written.

    numba treats an entry as stale when the function's own file has changed. A kernel contains the code of other
    functions, so here an entry is stale when `sources`, the digest of all sources, differs. A child process
    inherits the folder of its parent, which may belong to other sources.
    """

    _impl_class = PrivatePlaces

    def __init__(self, function: Any, sources: str) -> None:
        try:
            super().__init__(function)
        except RuntimeError:  # "no locator available": a home that is read-only or none at all
            self._off = True
            return
        stamp = (sources, self._impl.locator.get_source_stamp())
        self._cache_file: Any = EntryFiles(self._cache_path, self._impl.filename_base, stamp)

    _off = False

    @property
    def cache_path(self) -> Any:
        """The folder, or None if there is none."""
        return None if self._off else super().cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled version for a signature, or None."""
        return None if self._off else super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled version if there is a folder that can be written."""
        with contextlib.suppress(OSError):
            if not self._off:
                super().save_overload(sig, data)

    def flush(self) -> None:
        """Remove every entry of the function."""
        if not self._off:
            super().flush()
