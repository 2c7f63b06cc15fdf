"""The results folder, opened for writing: store finished runs, failures and comparators, and compact them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from banditlab.errors import UsageError
from banditlab.results.files import Files, bytes_of, listing, merged, parquet_of, parsed, stacked, table_of, write_bytes
from banditlab.results.reading import check_format, damaged_files, failure_records, finished_runs, read_plan, runs_of
from banditlab.results.schema import COMPARATOR, LISTED, RUNS, SHARDS, SUMS, Finished, Rows
from banditlab.results.system import locked


class Store:
    """A results folder, opened for writing.

    Raises
    ------
    UsageError
        The folder cannot be written, is a file, or has another store format.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(os.path.abspath(folder))  # a plug-in may change the working folder
        self.files = Files(self.folder)
        self.notices: list[str] = []
        check_format(Path(folder))
        try:
            for name in ("shards", "comparators", "failed"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass  # create a file to test whether the folder can be written
        except OSError as error:
            raise UsageError(f"{folder}: the results folder cannot be written ({error.strerror})") from None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock; the operating system releases it if this process dies."""
        with locked(self.folder / ".lock"):
            yield

    # -------------------------------------------------------------------------------------------------------------- writing

    def write(self, name: str, data: bytes, *, has_lock: bool = False) -> None:
        """Write a file, completely or not at all; under the lock, list it in the manifest and then give it its final
        name.
        """

        def put(fresh: str, file: Path) -> None:
            with contextlib.nullcontext() if has_lock else self.lock():
                with open(self.folder / SUMS, "ab") as sums:
                    sums.write(b"\n" + listing(name, data))  # start a new line even if the last one is incomplete
                    sums.flush()
                    os.fsync(sums.fileno())
                os.replace(fresh, file)

        write_bytes(self.folder / name, data, put)

    def write_runs(self, runs: Sequence[Finished]) -> None:
        """Store finished runs in one shard, all or none, and remove the records of their earlier failures."""
        texts = {run.run_id: json.dumps(run.description, sort_keys=True) for run in runs}
        self.write_shard(stacked([run.rows for run in runs]), texts)

    def write_shard(self, rows: pa.Table, texts: dict[str, str]) -> None:
        """Store the rows of finished runs, whose descriptions are given by id."""
        self.write(shard_name(*texts), parquet_of(rows.replace_schema_metadata({RUNS: json.dumps(texts)})))
        self.forgive(texts)

    def forgive(self, run_ids: Collection[str]) -> None:
        """Remove the failure records of runs that are now stored.

        The failure records of an adaptive stream's comparators remain, although they have the id of the stream's run.
        """
        for record in failure_records(self.files, run_ids):
            if record["player"] != COMPARATOR:
                (self.folder / "failed" / f"{record['run_id']}.json").unlink(missing_ok=True)

    def write_failure(self, run_id: str, record: dict[str, Any]) -> None:
        """Record why a run failed; the next call for the same sweep repeats the run."""
        self.write(f"failed/{run_id}.json", json.dumps(record | {"run_id": run_id}, indent=2).encode())

    def write_comparators(self, stream_id: str, rows: Rows, weights: dict[str, Any]) -> None:
        """Store a stream's comparators."""
        buffer = io.BytesIO()
        np.savez(buffer, **weights)
        self.write_comparator_files(stream_id, [buffer.getvalue(), parquet_of(table_of(rows))])

    def write_comparator_files(self, stream_id: str, contents: Sequence[bytes]) -> None:
        """Write a stream's `comparator_files`, the weights first, because the file of rows marks both as complete."""
        for name, data in zip(self.comparator_files(stream_id), contents, strict=True):
            self.write(name, data)
        (self.folder / "failed" / f"{stream_id}.json").unlink(missing_ok=True)

    def write_plan(self, resolved_toml: str, plan: dict[str, Any]) -> Path | None:
        """Store the resolved spec and its run ids, stream ids and skipped pairs.

        If the folder has a report on runs outside this plan, that report is first moved to a separate folder with its
        spec, plan and tables. Returns the separate folder, or None.
        """
        kept = self._keep_report(plan)
        self.write("spec.toml", f"{resolved_toml.rstrip()}\n".encode())
        self.write("runs.json", json.dumps(plan, indent=1).encode())
        return kept

    def _keep_report(self, plan: dict[str, Any]) -> Path | None:
        """Move the report of runs outside the plan to `earlier/<hash of its runs>`, and return that folder."""
        try:
            before = sorted(read_plan(self.folder)["runs"])
        except UsageError:  # missing or damaged, so the spec of the report is unknown
            before = []
        if (before and set(before) <= set(plan["runs"])) or not (self.folder / "report.html").exists():
            return None
        aside = self.folder / "earlier" / hashlib.sha256(" ".join(before).encode()).hexdigest()[:12]
        shutil.rmtree(aside, ignore_errors=True)  # an earlier report of the same runs
        aside.mkdir(parents=True)
        for name in ("spec.toml", "runs.json"):
            if (self.folder / name).exists():
                shutil.copy2(self.folder / name, aside / name)
        for name in ("report.html", "tables", "figures"):
            if (self.folder / name).exists():
                os.replace(self.folder / name, aside / name)
        return aside

    # -------------------------------------------------------------------------------------------------------------- reading

    def done(self) -> tuple[set[str], list[str]]:
        """Return the ids of finished runs, and the id of the first run in each damaged shard, if that run is not
        finished.

        Damaged files are renamed and reported.
        """
        with self.lock():
            damaged = damaged_files(self.folder)
            for name in damaged:
                self._set_aside(name)
            finished = finished_runs(self.folder)
        firsts = [Path(name).stem.partition("-")[0] for name in damaged if name.startswith("shards/")]
        return finished, [first for first in firsts if first not in finished]

    def _set_aside(self, name: str) -> None:
        """Rename a damaged file and record it; the lock must be held."""
        os.replace(self.folder / name, self.folder / f"{name}.damaged")
        self.notices.append(
            f"{name} does not match {SUMS} and was renamed to {name}.damaged; content stored only there is computed "
            "again"
        )

    def failures(self, run_ids: Collection[str]) -> list[dict[str, Any]]:
        """Return the records of the given runs that failed."""
        return failure_records(self.files, run_ids)

    def failed(self) -> set[str]:
        """Return the ids of the runs and streams that have a record of failure."""
        return {Path(name).stem for name in self.files.names("failed/*.json")}

    def comparator_files(self, stream_id: str) -> tuple[str, str]:
        """Return the names of two files: that of a stream's comparator weights, and that of its comparator rows."""
        return f"comparators/{stream_id}.npz", f"comparators/{stream_id}.parquet"

    def comparators(self, stream_id: str) -> tuple[Rows, dict[str, Any]]:
        """Return a stream's comparator rows and weights, both empty unless both files exist and are complete."""
        weights, rows = map(self.files.data, self.comparator_files(stream_id))
        if weights is None or rows is None:
            return {}, {}
        with np.load(io.BytesIO(weights), allow_pickle=False) as arrays:
            return parsed(rows).to_pydict(), dict(arrays)

    # ----------------------------------------------------------------------------------------------------------- compacting

    def compact(self) -> None:
        """Collect all shards in `results.parquet` and `descriptions.parquet`, with each run once."""
        with self.lock():
            shards = {name: data for name in self.files.names(SHARDS) if (data := self.files.data(name)) is not None}
            if shards:
                texts = map(runs_of, shards.values())  # separate tables, because a text array has at most 2 GiB
                described = [table_of({"run_id": list(t), "description": list(t.values())}) for t in texts]
                self._add("descriptions.parquet", described, ["run_id"])
                self._add("results.parquet", [parsed(data) for data in shards.values()], ["run_id", "round"])
            for name in shards:
                (self.folder / name).unlink(missing_ok=True)
            if self.failed():  # a run may have been stored by a process that ended before it reported this
                self.forgive(finished_runs(self.folder))
            names = self.files.names("comparators/*.parquet")
            tables = [table for name in names if (table := self.files.table(name)) is not None]
            if tables:
                table = pa.concat_tables(tables, promote_options="default")
                self.write("comparators.parquet", parquet_of(table), has_lock=True)
            there = {name.encode() for name in self.files.names(*LISTED)}
            lines = (bytes_of(self.folder / SUMS) or b"").split(b"\n")
            kept = dict.fromkeys(line for line in lines if line.partition(b"  ")[2] in there)
            write_bytes(self.folder / SUMS, b"".join(b"\n" + line for line in kept))

    def _add(self, name: str, tables: list[pa.Table], key: list[str]) -> None:
        """Add runs to a compacted file."""
        before = self.files.table(name)
        if before is None and (self.folder / name).exists():
            self._set_aside(name)
        table = merged(tables if before is None else [before, *tables], key)
        self.write(name, parquet_of(table), has_lock=True)


def shard_name(run_id: str, *others: str) -> str:
    """Return the file name of runs until they are compacted.

    The name depends on all runs, because another process may store the first run together with other runs.
    """
    mark = f"-{hashlib.sha256(' '.join(others).encode()).hexdigest()[:16]}" if others else ""
    return f"shards/{run_id[:2]}/{run_id}{mark}.parquet"
