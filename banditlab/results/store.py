"""The results folder: finished runs in Parquet files, compacted; nothing written is ever lost or trusted unread.

spec.toml                                    resolved, with versions and the store format number
runs.json                                    the current spec's run ids, stream ids and skipped pairs
shards/<first two of id>/<run_id>.parquet    a run, or <run_id>-<hash of all their ids>.parquet for it and others
comparators/<stream_id>.parquet, .npz
failed/<run_id>.json                         traceback; tried again on the next call
results.parquet, comparators.parquet, descriptions.parquet    compacted, under a lock

Every file is written under a temporary name, fsynced, and put in place by os.replace.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from banditlab.errors import UsageError
from banditlab.results.system import locked, make_readable

FORMAT = 1
Rows = dict[str, list[Any]]
RUNS = "banditlab.runs"  # the key of a shard's metadata that holds its runs' descriptions by id, as JSON

_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("run_id", "stream_id", "kind", "environment", "player", "label"), pa.string()),
    **dict.fromkeys(("repetition", "round", "mistakes"), pa.int64()),
    **dict.fromkeys(("expected_mistakes", "log_loss", "explored"), pa.float64()),
    **dict.fromkeys(("bound", "certificate", "seconds"), pa.float64()),
    **dict.fromkeys(("expected_kind", "bound_unit"), pa.string()),
    **dict.fromkeys(("loss_nats", "loss_bits", "gap", "norm_bound"), pa.float64()),
    "description": pa.string(),
}


class Finished(NamedTuple):
    """A finished run on its way to the store: its rows as columns, and its description."""

    run_id: str
    rows: Rows
    description: dict[str, Any]


class Store:
    """A results folder, opened for writing.

    Raises
    ------
    UsageError
        The folder cannot be written, is a file, or has another store format.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        check_format(self.folder)
        try:
            for name in ("shards", "comparators", "failed"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass  # the only question that counts: can a file be made here?
        except OSError as error:
            raise UsageError(f"{self.folder}: the results folder cannot be written ({error.strerror})") from None

    # -------------------------------------------------------------------------------------------------------------- writing

    def write_runs(self, runs: Sequence[Finished]) -> None:
        """Store finished runs in one shard, all or none; their earlier failures, if there were any, are forgotten."""
        texts = {run.run_id: json.dumps(run.description, sort_keys=True) for run in runs}
        table = _stacked([run.rows for run in runs]).replace_schema_metadata({RUNS: json.dumps(texts)})
        _write_parquet(self.shard(*texts), table)
        for run_id in self._failed() & set(texts):
            (self.folder / "failed" / f"{run_id}.json").unlink(missing_ok=True)

    def write_failure(self, run_id: str, record: dict[str, Any]) -> None:
        """Record why a run failed; it is tried again on the next call."""
        _write_bytes(self.folder / "failed" / f"{run_id}.json", json.dumps(record, indent=2).encode())

    def write_comparators(self, stream_id: str, rows: Rows, weights: dict[str, Any]) -> None:
        """Store a stream's comparators, W first: the rows are what says that they are there."""
        table, file = self.comparator_files(stream_id)
        buffer = io.BytesIO()
        np.savez(buffer, **weights)
        _write_bytes(file, buffer.getvalue())
        _write_parquet(table, _table(rows))
        (self.folder / "failed" / f"{stream_id}.json").unlink(missing_ok=True)

    def comparator_files(self, stream_id: str) -> tuple[Path, Path]:
        """Return where a stream's comparator rows and weights stand."""
        place = self.folder / "comparators"
        return place / f"{stream_id}.parquet", place / f"{stream_id}.npz"

    def write_plan(self, resolved_toml: str, plan: dict[str, Any]) -> None:
        """Store the resolved spec and the run ids, stream ids and skipped pairs that belong to it."""
        _write_bytes(self.folder / "spec.toml", resolved_toml.encode())
        _write_bytes(self.folder / "runs.json", json.dumps(plan, indent=1).encode())

    def shard(self, run_id: str, *others: str) -> Path:
        """Return where runs stand until they are compacted.

        The name says all of them: another process may store the first of them beside others, over this file else.
        """
        mark = f"-{hashlib.sha256(' '.join(others).encode()).hexdigest()[:16]}" if others else ""
        return self.folder / "shards" / run_id[:2] / f"{run_id}{mark}.parquet"

    # -------------------------------------------------------------------------------------------------------------- reading

    def done(self) -> tuple[set[str], list[str]]:
        """Return (ids of finished runs, first ids of shards found cut in half or spoilt, which are removed)."""
        held = shards(self.folder)  # before the compacted ones: a run may move, never vanish
        broken = {file for file, texts in held.items() if texts is None or read_if_whole(file) is None}
        for file in broken:
            file.unlink(missing_ok=True)
        whole = [texts or {} for file, texts in held.items() if file not in broken]
        finished = {run_id for texts in whole for run_id in texts} | compacted_ids(self.folder)
        return finished, [first for file in held if file in broken and (first := first_run(file)) not in finished]

    def failures(self, run_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Return the records of those of the given runs that failed."""
        failed = self._failed()
        files = [self.folder / "failed" / f"{run_id}.json" for run_id in run_ids if run_id in failed]
        return [json.loads(file.read_text("utf-8")) for file in files]

    def _failed(self) -> set[str]:
        return {name.removesuffix(".json") for name in os.listdir(self.folder / "failed")}

    # ----------------------------------------------------------------------------------------------------------- compacting

    def compact(self) -> None:
        """Gather all shards into results.parquet and descriptions.parquet; a run that is in them twice counts once."""
        with self.lock():
            whole = {file: texts for file, texts in shards(self.folder).items() if texts is not None}
            read = {file: table for file in sorted(whole) if (table := read_if_whole(file)) is not None}
            if read:
                texts = [whole[file] for file in read]  # a table each: one text array holds 2 GiB at most
                described = [_table({"run_id": list(t), "description": list(t.values())}) for t in texts]
                _merge(self.folder / "descriptions.parquet", described, ["run_id"])
                _merge(self.folder / "results.parquet", list(read.values()), ["run_id", "round"])
            for file in read:
                file.unlink(missing_ok=True)
            found = (read_if_whole(file) for file in sorted(self.folder.glob("comparators/*.parquet")))
            comparators = [table for table in found if table is not None]
            if comparators:
                _write_parquet(self.folder / "comparators.parquet", pa.concat_tables(comparators))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock; the operating system drops it if this process dies."""
        with locked(self.folder / ".lock"):
            yield


def finished_runs(folder: Path) -> set[str]:
    """Return the ids of finished runs, compacted or not, without changing anything."""
    return {run_id for texts in shards(folder).values() for run_id in texts or ()} | compacted_ids(folder)


def shards(folder: Path) -> dict[Path, dict[str, str] | None]:
    """Return the runs of each shard, their descriptions by id; None for a file that was cut in half."""
    return {file: _runs_of(file) for file in folder.glob("shards/*/*.parquet")}


def first_run(shard: Path) -> str:
    """Return the id of the first run of a shard, whole or not."""
    return shard.stem.partition("-")[0]


def _runs_of(file: Path) -> dict[str, str] | None:
    try:
        metadata = pq.read_metadata(file).metadata or {}
        if RUNS.encode() in metadata:
            return dict(json.loads(metadata[RUNS.encode()]))
    except (ValueError, OSError) as error:
        _refuse_unless_cut(file, error)
        return None
    return {file.stem: metadata.get(b"banditlab.run", b"{}").decode()}  # as shards were before they held several runs


def read_if_whole(file: Path, columns: list[str] | None = None) -> pa.Table | None:
    """Return a Parquet file's table, or None where there is no such file or it was cut in half or spoilt.

    Raises
    ------
    UsageError
        The file may not be read, or not now.
    """
    try:
        # not read_table, which imports pandas (see `_array`)
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            return opened.read(columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        _refuse_unless_cut(file, error)
        return None


def _refuse_unless_cut(file: Path, error: Exception) -> None:
    """Raise a UsageError where the operating system refused a file: it may be whole, and must not be made anew."""
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, FileNotFoundError):
        raise UsageError(f"{file}: cannot be read ({os.strerror(error.errno)})") from None


def compacted_ids(folder: Path) -> set[str]:
    """Return the ids of the runs in results.parquet; none if it was cut in half, so that they are done again."""
    table = read_if_whole(folder / "results.parquet", ["run_id"])
    return set() if table is None else set(table["run_id"].unique().to_pylist())


def check_format(folder: Path) -> None:
    """Raise a UsageError where a folder's spec.toml says another store format, or none."""
    file = folder / "spec.toml"
    if not file.exists():
        return
    try:
        found = tomllib.loads(file.read_text("utf-8")).get("store", {}).get("format")
    except tomllib.TOMLDecodeError:
        found = None
    if found != FORMAT:
        raise UsageError(
            f"{folder}: results of store format {found}, this version reads and writes format {FORMAT}; "
            "choose another folder with -o"
        )


# ------------------------------------------------------------------------------------------------------------- Parquet, safely


def _table(rows: Rows) -> pa.Table:
    return pa.table({name: _array(values, _type_of(name, values)) for name, values in rows.items()})


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return `pa.array(values, kind)` for numbers, text and None.

    Not pa.array itself: that imports pandas to see that a list is no Series, a third of a second and 50 MiB a worker.
    """
    there = np.array([value is not None for value in values], dtype=bool)
    bits = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    if kind == pa.string():
        texts = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
        return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)), bits)
    numbers = np.array([0 if value is None else value for value in values], dtype=kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(numbers)])


def _stacked(parts: Iterable[Rows]) -> pa.Table:
    """Return rows of many runs under one another; what has the same columns and types becomes a table at once."""
    alike: dict[tuple[Any, ...], Rows] = {}
    for rows in parts:
        layout = tuple((name, _type_of(name, values)) for name, values in rows.items())
        into = alike.setdefault(layout, {name: [] for name in rows})
        for name, values in rows.items():
            into[name] += values
    return concatenate([_table(rows) for rows in alike.values()])


def _type_of(name: str, values: list[Any]) -> pa.DataType:
    if name in _COLUMNS:
        return _COLUMNS[name]
    if name.startswith("diagnostic."):
        return pa.float64()
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values if v is not None)
    return pa.float64() if numbers and not name.startswith("setting.") else pa.string()


def _merge(file: Path, tables: list[pa.Table], key: list[str]) -> None:
    """Add the rows of runs that the Parquet file does not hold yet, each once, and sort it by `key`."""
    known: set[str] = set()
    kept = []
    for table in filter(None, [read_if_whole(file), *tables]):
        fresh = set(table["run_id"].unique().to_pylist()) - known
        known |= fresh
        kept.append(table.filter(pc.is_in(table["run_id"], _array(sorted(fresh), pa.string()))))
    _write_parquet(file, concatenate(kept).sort_by([(name, "ascending") for name in key]))


def concatenate(tables: list[pa.Table]) -> pa.Table:
    """Return the tables under one another, columns joined; a column that is text in one is text in all."""
    names = sorted({name for table in tables for name in table.schema.names if name not in _COLUMNS})
    texts = {n for n in names for t in tables if n in t.schema.names and t.schema.field(n).type == pa.string()}

    def unified(table: pa.Table) -> pa.Table:
        for i, column in enumerate(table.schema):
            if column.name in texts and column.type != pa.string():
                as_text = [None if v is None else repr(v).removesuffix(".0") for v in table[column.name].to_pylist()]
                table = table.set_column(i, column.name, _array(as_text, pa.string()))
        return table.replace_schema_metadata(None)

    joined = pa.concat_tables([unified(table) for table in tables], promote_options="default")
    fixed = [name for name in joined.schema.names if name not in names]
    return joined.select(fixed + names)


def _write_parquet(file: Path, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    _write_bytes(file, sink.getvalue().to_pybytes())


def _write_bytes(file: Path, data: bytes) -> None:
    """Write a file that is either whole or not there: temporary name, fsync, os.replace."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            make_readable(out.fileno())
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
