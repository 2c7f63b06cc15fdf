"""The results folder, opened for writing: finished runs, failures, comparators, compacting."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from banditlab.errors import UsageError
from banditlab.results.files import (
    bytes_of,
    merged,
    parquet_of,
    parsed,
    read_if_whole,
    stacked,
    table_of,
    write_bytes,
    write_parquet,
)
from banditlab.results.reading import (
    check_format,
    compacted,
    compacted_ids,
    first_run,
    read_comparator,
    read_failure,
    read_plan,
    shards,
)
from banditlab.results.schema import ASIDE, COMPARATOR, COPIES, FORMAT, RUNS, Finished, Rows
from banditlab.results.seal import BLANK, KEY, is_whole, sealed
from banditlab.results.system import locked

STREAM = "banditlab.stream:"
TWICE = ("results.parquet", "descriptions.parquet")
"""Compacted files that are kept twice. The third, of comparators, repeats the streams' own files."""


class Store:
    """A results folder, opened for writing.

    Raises
    ------
    UsageError
        The folder cannot be written, is a file, or has another store format.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(os.path.abspath(folder))  # a plug-in may change the working folder
        self.notices: list[str] = []
        whole = check_format(Path(folder))
        try:
            for name in ("shards", "comparators", "failed"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass  # the only question that counts: can a file be made here?
        except OSError as error:
            raise UsageError(f"{folder}: the results folder cannot be written ({error.strerror})") from None
        if not whole:
            self.set_aside(self.folder / "spec.toml", "it is written anew")

    # -------------------------------------------------------------------------------------------------------------- writing

    def write_runs(self, runs: Sequence[Finished]) -> None:
        """Store finished runs in one shard, all or none; their earlier failures, if there were any, are forgotten."""
        texts = {run.run_id: json.dumps(run.description, sort_keys=True) for run in runs}
        table = stacked([run.rows for run in runs]).replace_schema_metadata({RUNS: json.dumps(texts)})
        write_parquet(self.shard(*texts), table)
        self.forgive(texts)

    def forgive(self, run_ids: Iterable[str]) -> None:
        """Forget why runs failed that are stored now.

        What is said of the comparators of an adaptive stream, which bear their run's id, stays.
        """
        for run_id in self.failed() & set(run_ids):
            file = self.folder / "failed" / f"{run_id}.json"
            if read_failure(file)["player"] != COMPARATOR:
                file.unlink(missing_ok=True)

    def write_failure(self, run_id: str, record: dict[str, Any]) -> None:
        """Record why a run failed; it is tried again on the next call."""
        write_bytes(self.folder / "failed" / f"{run_id}.json", _sealed_json(record | {"run_id": run_id}, indent=2))

    def write_comparators(self, stream_id: str, rows: Rows, weights: dict[str, Any]) -> None:
        """Store a stream's comparators, W first: the rows are what says that they are there."""
        table, file = self.comparator_files(stream_id)
        write_bytes(file, weights_file(stream_id, weights))
        write_parquet(table, table_of(rows))
        (self.folder / "failed" / f"{stream_id}.json").unlink(missing_ok=True)

    def comparator_files(self, stream_id: str) -> tuple[Path, Path]:
        """Return where a stream's comparator rows and weights stand."""
        place = self.folder / "comparators"
        return place / f"{stream_id}.parquet", place / f"{stream_id}.npz"

    def write_plan(self, resolved_toml: str, plan: dict[str, Any]) -> Path | None:
        """Store the resolved spec and the run ids, stream ids and skipped pairs that belong to it.

        Where the folder holds the report of a spec that means other runs, that report moves into a folder of its own
        first, with its spec, plan and tables; return that folder, else None.
        """
        kept = self._keep_report(plan)
        write_bytes(self.folder / "spec.toml", sealed(f"{resolved_toml}\n# {KEY} = {BLANK}\n".encode()))
        write_bytes(self.folder / "runs.json", _sealed_json({"format": FORMAT} | plan, indent=1))
        return kept

    def _keep_report(self, plan: dict[str, Any]) -> Path | None:
        """Move the report of other runs than the plan's to `earlier/<hash of its runs>`, and return that folder."""
        file = self.folder / "runs.json"
        try:
            before = sorted(read_plan(self.folder)["runs"]) if file.exists() else None
        except UsageError:  # damaged: whose report this is cannot be known
            before = [self.set_aside(file, "it is written anew")]
        if before is None or before == sorted(plan["runs"]) or not (self.folder / "report.html").exists():
            return None
        aside = self.folder / "earlier" / hashlib.sha256(" ".join(before).encode()).hexdigest()[:12]
        shutil.rmtree(aside, ignore_errors=True)  # a report of the same runs, made before
        aside.mkdir(parents=True)
        for name in ("spec.toml", "runs.json"):
            if (self.folder / name).exists():
                shutil.copy2(self.folder / name, aside / name)
        for name in ("report.html", "tables", "figures"):
            if (self.folder / name).exists():
                os.replace(self.folder / name, aside / name)
        return aside

    def shard(self, run_id: str, *others: str) -> Path:
        """Return where runs stand until they are compacted.

        The name says all of them: another process may store the first of them beside others, over this file else.
        """
        mark = f"-{hashlib.sha256(' '.join(others).encode()).hexdigest()[:16]}" if others else ""
        return self.folder / "shards" / run_id[:2] / f"{run_id}{mark}.parquet"

    # -------------------------------------------------------------------------------------------------------------- reading

    def done(self) -> tuple[set[str], list[str]]:
        """Return (ids of finished runs, first ids of shards found damaged, which are set aside); copies are put in order."""
        held = shards(self.folder)  # before the compacted ones: a run may move, never vanish
        broken = {file for file, texts in held.items() if texts is None}
        for file in broken:
            self.set_aside(file, "what it alone held is done again")
        with self.lock():
            finished = {run_id for texts in held.values() for run_id in texts or ()} | self._mended()
        return finished, [first for file in held if file in broken and (first := first_run(file)) not in finished]

    def failures(self, run_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Return the records of those of the given runs that failed."""
        failed = self.failed()
        return [read_failure(self.folder / "failed" / f"{run_id}.json") for run_id in run_ids if run_id in failed]

    def failed(self) -> set[str]:
        """Return the ids of the runs and streams that have a record of failure; none where somebody took the folder away."""
        try:
            names = os.listdir(self.folder / "failed")
        except FileNotFoundError:
            return set()
        return {name.removesuffix(".json") for name in names if name.endswith(".json")}

    # -------------------------------------------------------------------------------------------------------------- damage

    def set_aside(self, file: Path, what_then: str) -> str:
        """Move a damaged file to `damaged`, note it, and return its name there."""
        name = file.relative_to(self.folder).as_posix()
        data = bytes_of(file)
        if data is None:
            return name
        aside = f"{name.replace('/', '-')}.{hashlib.sha256(data).hexdigest()[:12]}"
        (self.folder / ASIDE).mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            os.replace(file, self.folder / ASIDE / aside)
            self.notices.append(f"{name} is damaged and kept as {ASIDE}/{aside}; {what_then}")
        return aside

    def _mended(self) -> set[str]:
        """Set damaged compacted files aside, write them anew from their copies or these from them; return the runs' ids.

        To be called under the lock.
        """
        found = [self._mend(name) for name in TWICE]
        return set() if found[0] is None else set(found[0]["run_id"].unique().to_pylist())

    def _mend(self, name: str) -> pa.Table | None:
        main, copy = self.folder / name, self.folder / COPIES / name
        data = {file: bytes_of(file) for file in (main, copy)}
        tables = {file: parsed(file, each, ["run_id"]) for file, each in data.items() if each is not None}
        whole = [file for file in (main, copy) if tables.get(file) is not None]
        for file in (main, copy):
            if data[file] is not None and file not in whole:
                self.set_aside(file, "its copy is whole" if whole else "its copy is, too: what they alone held is lost")
        if not whole:
            return None
        best = whole[0]
        bytes_ = data[best]
        for file in (main, copy):
            if bytes_ is not None and bytes_ != data[file]:
                if file is main and data[main] is None:
                    self.notices.append(f"{name} was gone and is made anew from {COPIES}/{name}")
                write_bytes(file, bytes_)
        return tables[best]

    # ----------------------------------------------------------------------------------------------------------- compacting

    def compact(self) -> None:
        """Gather all shards into results.parquet and descriptions.parquet; a run that is in them twice counts once."""
        with self.lock():
            self._mended()
            whole = {file: texts for file, texts in shards(self.folder).items() if texts is not None}
            read = {file: table for file in sorted(whole) if (table := read_if_whole(file)) is not None}
            if read:
                texts = [whole[file] for file in read]  # a table each: one text array holds 2 GiB at most
                described = [table_of({"run_id": list(t), "description": list(t.values())}) for t in texts]
                self._add("descriptions.parquet", described, ["run_id"])
                self._add("results.parquet", list(read.values()), ["run_id", "round"])
            for file in read:
                file.unlink(missing_ok=True)
            if self.failed():  # a run may have been stored, and its process ended before it said so
                self.forgive(compacted_ids(self.folder))
            self._gather_comparators()

    def _add(self, name: str, tables: list[pa.Table], key: list[str]) -> None:
        """Add runs to a compacted file and its copy, the copy first, and see that both hold them."""
        before, _ = compacted(self.folder, name)
        data = parquet_of(merged(tables if before is None else [before, *tables], key))
        wanted = {run_id for table in tables for run_id in table["run_id"].unique().to_pylist()}
        for file in (self.folder / COPIES / name, self.folder / name):
            write_bytes(file, data)
            table = read_if_whole(file, ["run_id"])
            if table is None or not wanted <= set(table["run_id"].unique().to_pylist()):
                raise UsageError(
                    f"{file}: what was written is not what is read back; the runs stay in {file.parent}/shards"
                )

    def _gather_comparators(self) -> None:
        """Write comparators.parquet from the streams' files, and keep of it what none of these holds."""
        file, known = self.folder / "comparators.parquet", list[pa.Table]()
        for path in sorted(self.folder.glob("comparators/*.parquet")):
            table = read_comparator(path)
            if table is None:
                self.set_aside(path, "its rows in comparators.parquet stay, what the spec asks for is made anew")
            else:
                known.append(table.replace_schema_metadata(None))
        before = read_if_whole(file)
        if before is None and file.exists():
            self.set_aside(file, "it is made anew from the streams' own files")
        if known:
            others = [] if before is None else [_without(before, pa.concat_tables(known, promote_options="default"))]
            write_parquet(file, pa.concat_tables([*others, *known], promote_options="default"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock; the operating system drops it if this process dies."""
        with locked(self.folder / ".lock"):
            yield


def _sealed_json(data: dict[str, Any], indent: int) -> bytes:
    return sealed(json.dumps(data | {KEY: BLANK}, indent=indent).encode())


def weights_file(stream_id: str, weights: dict[str, Any]) -> bytes:
    """Return the npz file of a stream's comparators; the archive's comment says whose they are, and has the seal."""
    buffer = io.BytesIO()
    np.savez(buffer, **weights)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = f"{STREAM}{stream_id} {KEY} = {BLANK}".encode()
    return sealed(buffer.getvalue())


def read_weights(file: Path, stream_id: str) -> dict[str, Any]:
    """Return the arrays of a stream's npz file; none where it is gone, damaged, or another stream's."""
    data = bytes_of(file)
    if data is None or not is_whole(data) or f"{STREAM}{stream_id} ".encode() not in data:
        return {}
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        return {}


def _without(table: pa.Table, known: pa.Table) -> pa.Table:
    """Return the rows of comparators that `known` has not."""

    def keys(of: pa.Table) -> list[tuple[Any, ...]]:
        return list(zip(*(of[name].to_pylist() for name in ("stream_id", "round", "norm_bound"))))

    there = set(keys(known))
    return table.replace_schema_metadata(None).filter(
        pa.array(np.array([key not in there for key in keys(table)], bool))
    )
