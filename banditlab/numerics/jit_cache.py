"""Compiled kernels on disk, one file each, which any number of processes may read and write concurrently.

numba stores one index file per function, which lists numbered data files. If two processes save at the same time, both
read the index, add their entry and write it back. One entry is lost, and the other may refer to the wrong file. Here an
entry is one file that contains its key and is written in one step, so no lock is needed on any operating system.

Entries are pickles, and a pickle can run code. Folders and files that other users own or may write are therefore not
used. New ones are readable and writable only by this user, for any umask.

This module replaces numba's cache file object and its check of stale entries. Only `banditlab.numerics.jit` imports it,
after setting numba's folder.
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
SLOTS = 8  # files per text of a key; a limit, because classes of a script are new in every process


class EntryFiles:
    """The compiled versions of one function, each in `NAME.HASH.SLOT.nbe`; HASH is a hash of the signature's text.

    Two signatures may have the same text (named tuples of the same name in two modules), so a file contains its key,
    and there are several slots per hash.
    """

    def __init__(self, folder: str, name: str, stamp: Any) -> None:
        self.folder, self.name, self.stamp = Path(folder), name, stamp

    def load(self, key: Any) -> Any:
        """Return the entry saved under the key with the same sources and numba version, or None."""
        for file in self._slots(key):
            found = self._read(file)
            if found is None:  # slots are filled in order
                return None
            if found[:2] == (self.stamp, key):
                return found[2]
        return None

    def save(self, key: Any, data: Any) -> None:
        """Write an entry to a free slot, or over a file with the same key from other sources or another numba version.

        If no slot is free, the last slot is overwritten. On a full or read-only disk nothing is stored, so later
        processes compile again.
        """
        for file in self._slots(key):
            found = self._read(file)
            if found is None or found[0] != self.stamp or found[1] == key:
                break
        entry = pickle.dumps(numba.__version__) + dumps((self.stamp, key, data))
        fresh = file.with_name(f"{uuid.uuid4().hex[:16]}.tmp")
        with contextlib.suppress(OSError):
            make_private(self.folder)  # removed in the meantime (see `banditlab.numerics.cache_folders`)
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
        """Return (stamp, key, data), or None if the file does not exist or cannot be read.

        The file may be from another numba version, truncated by a power failure, or refer to types of a lab that is not
        loaded here. A file that other users own or may write is not read.
        """
        try:
            with open(file, "rb") as opened:
                if not is_private_file(opened.fileno()):
                    return None
                if pickle.load(opened) != numba.__version__:  # whose types may not exist here
                    return None
                return pickle.load(opened)
        except Exception:  # unpickling may raise any exception; unreadable entries are compiled again
            return None


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Private:
    """A cache folder that is created for this user only, and is not used if other users may write it."""

    def ensure_cache_path(self) -> None:
        """Create the folder, or raise an OSError, so that numba tries the next folder."""
        folder = Path(self.get_cache_path())  # type: ignore[attr-defined]
        if reason := _exposed(folder):
            _report_once(reason)
            raise PermissionError(reason)
        make_private(folder)
        super().ensure_cache_path()  # type: ignore[misc]  # numba's own check of write access


@cache
def _exposed(folder: Path) -> str:
    return exposed(folder)


def _report_once(reason: str) -> None:
    """Print why a folder is not used, once for this process and its child processes."""
    if _REPORTED not in os.environ:
        os.environ[_REPORTED] = "1"
        line = f"banditlab: kernels are not saved in NUMBA_CACHE_DIR: {reason}; make it private, or use another folder"
        print(line, file=sys.stderr)


def _private(locator: Any) -> Any:
    return type(locator.__name__, (_Private, locator), {})


class PrivatePlaces(CompileResultCacheImpl):
    """numba's cache locators, limited to folders that no other user may write."""

    _locator_classes = [_private(locator) for locator in CompileResultCacheImpl._locator_classes]


class SharedCache(FunctionCache):
    """numba's cache of one function, with its entries in `EntryFiles`; disabled if no folder can be written.

    numba treats an entry as stale if the function's own file has changed. A kernel contains the code of other
    functions, so here an entry is stale if `sources`, the digest of all sources, differs. (A child process inherits the
    folder of its parent, which may belong to other sources.)
    """

    _impl_class = PrivatePlaces

    def __init__(self, function: Any, sources: str) -> None:
        try:
            super().__init__(function)
        except RuntimeError:  # "no locator available": the home folder is read-only or missing
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
