"""Atomic files: written in one step, checked against the manifest when read."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from banditlab.disk import write_whole
from banditlab.errors import UsageError
from banditlab.results.schema import COLUMNS, SUMS, Rows, type_of

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)


class NoRoomError(OSError):
    """The disk of a results folder is full or read-only, which is not a failure of a run and ends the sweep."""


def listing(name: str, data: bytes) -> bytes:
    """Return the line of the manifest for a file."""
    return f"{hashlib.sha256(data).hexdigest()}  {name}".encode()


class Files:
    """The files of a results folder, each checked against the manifest whenever it is read.

    Attributes
    ----------
    damaged
        Names of the files that were read and do not match the manifest.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: frozenset[bytes] = frozenset()
        self.damaged: list[str] = []

    def names(self, *patterns: str) -> list[str]:
        """Return the names of the files that match each pattern in turn, sorted within each pattern."""
        return [f.relative_to(self.folder).as_posix() for each in patterns for f in sorted(self.folder.glob(each))]

    def data(self, name: str) -> bytes | None:
        """Return a file's bytes, or None if the file does not exist or does not match the manifest.

        Raises
        ------
        UsageError
            The file cannot be read, perhaps only temporarily.
        """
        data = bytes_of(self.folder / name)
        if data is None or listing(name, data) in self.lines:
            return data
        self.lines = frozenset((bytes_of(self.folder / SUMS) or b"").split(b"\n"))  # lines may have been added since
        if listing(name, data) in self.lines:
            return data
        if name not in self.damaged and (self.folder / name).exists():  # otherwise it was compacted in the meantime
            self.damaged.append(name)
        return None

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table | None:
        """Return a Parquet file's table, or None as `data` does."""
        data = self.data(name)
        return None if data is None else parsed(data, columns)


def bytes_of(file: Path) -> bytes | None:
    """Return a file's bytes, or None if the file does not exist.

    Raises
    ------
    UsageError
        The operating system denies access; the file may be complete, so it must not be replaced.
    """
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror})") from None


def parsed(data: bytes, columns: list[str] | None = None) -> pa.Table:
    """Return the table of a Parquet file's bytes."""
    # Not read_table, which imports pandas (see `array_of`). Only in this thread, because Arrow's threads sometimes
    # abort a process that ends soon after (apache/arrow#34314).
    with pq.ParquetFile(pa.BufferReader(data)) as opened:
        return opened.read(columns=columns, use_threads=False)


def parquet_of(table: pa.Table) -> bytes:
    """Return the bytes of a Parquet file with the table."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def write_bytes(file: Path, data: bytes, put: Callable[[str, Path], None] | None = None) -> None:
    """Write a file atomically: with a temporary name, fsync, rename, and fsync of the folder.

    Parameters
    ----------
    put
        Function that renames the temporary file. Default: `os.replace`.

    Raises
    ------
    NoRoomError
        The disk is full or read-only.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, data, put or os.replace)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise NoRoomError(error.errno, error.strerror) from error
        raise


def table_of(rows: Rows) -> pa.Table:
    return pa.table({name: array_of(values, type_of(name, values)) for name, values in rows.items()})


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return `pa.array(values, kind)` for numbers, text, bytes and None.

    pa.array itself would import pandas, which takes a third of a second and 50 MiB per worker.
    """
    there = np.array([value is not None for value in values], dtype=bool)
    bits = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    if kind in (pa.string(), pa.binary()):
        texts = [b"" if value is None else value.encode() if kind == pa.string() else value for value in values]
        ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
        buffers = [bits, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(kind, len(values), buffers)
    numbers = np.array([0 if value is None else value for value in values], dtype=kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(numbers)])


def stacked(parts: Iterable[Rows]) -> pa.Table:
    """Return the concatenated rows of many runs; parts with the same columns and types become one table."""
    alike: dict[tuple[Any, ...], Rows] = {}
    for rows in parts:
        layout = tuple((name, type_of(name, values)) for name, values in rows.items())
        into = alike.setdefault(layout, {name: [] for name in rows})
        for name, values in rows.items():
            into[name] += values
    return concatenate([table_of(rows) for rows in alike.values()])


def merged(tables: Iterable[pa.Table], key: list[str]) -> pa.Table:
    """Return the rows of all runs, sorted by `key`; the rows of a run come from the first table that has it."""
    return concatenate(each_once(tables)).sort_by([(name, "ascending") for name in key])


def each_once(tables: Iterable[pa.Table], wanted: Collection[str] | None = None) -> list[pa.Table]:
    """Return tables with the rows of all runs, or of those whose ids are in `wanted`; the rows of a run come from the
    first table that contains it.
    """
    known: set[str] = set()
    kept = []
    for table in tables:
        fresh = set(table["run_id"].unique().to_pylist()) - known
        fresh &= fresh if wanted is None else set(wanted)
        known |= fresh
        if fresh:
            kept.append(table.filter(pc.is_in(table["run_id"], array_of(sorted(fresh), pa.string()))))
    return kept


def concatenate(tables: list[pa.Table]) -> pa.Table:
    """Return the concatenated tables, with the union of columns; a column that is text in one table becomes text in all."""
    names = sorted({name for table in tables for name in table.schema.names if name not in COLUMNS})
    texts = {n for n in names for t in tables if n in t.schema.names and t.schema.field(n).type == pa.string()}

    def unified(table: pa.Table) -> pa.Table:
        for i, column in enumerate(table.schema):
            if column.name in texts and column.type != pa.string():
                as_text = [None if v is None else repr(v).removesuffix(".0") for v in table[column.name].to_pylist()]
                table = table.set_column(i, column.name, array_of(as_text, pa.string()))
        return table.replace_schema_metadata(None)

    joined = pa.concat_tables([unified(table) for table in tables], promote_options="default")
    fixed = [name for name in joined.schema.names if name not in names]
    return joined.select(fixed + names)
