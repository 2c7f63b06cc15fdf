"""The results folder, opened for writing: finished runs, failures, comparators, compacting."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from banditlab.errors import UsageError
from banditlab.results.files import merge, read_if_whole, stacked, table_of, write_bytes, write_parquet
from banditlab.results.reading import check_format, compacted_ids, first_run, shards
from banditlab.results.schema import RUNS, Finished, Rows
from banditlab.results.system import locked


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
        table = stacked([run.rows for run in runs]).replace_schema_metadata({RUNS: json.dumps(texts)})
        write_parquet(self.shard(*texts), table)
        for run_id in self._failed() & set(texts):
            (self.folder / "failed" / f"{run_id}.json").unlink(missing_ok=True)

    def write_failure(self, run_id: str, record: dict[str, Any]) -> None:
        """Record why a run failed; it is tried again on the next call."""
        write_bytes(self.folder / "failed" / f"{run_id}.json", json.dumps(record, indent=2).encode())

    def write_comparators(self, stream_id: str, rows: Rows, weights: dict[str, Any]) -> None:
        """Store a stream's comparators, W first: the rows are what says that they are there."""
        table, file = self.comparator_files(stream_id)
        buffer = io.BytesIO()
        np.savez(buffer, **weights)
        write_bytes(file, buffer.getvalue())
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
        kept = self._set_aside(plan)
        write_bytes(self.folder / "spec.toml", resolved_toml.encode())
        write_bytes(self.folder / "runs.json", json.dumps(plan, indent=1).encode())
        return kept

    def _set_aside(self, plan: dict[str, Any]) -> Path | None:
        """Move the report of other runs than the plan's to `earlier/<hash of its runs>`, and return that folder."""
        try:
            before = sorted(json.loads((self.folder / "runs.json").read_text("utf-8"))["runs"])
        except (OSError, ValueError, KeyError, TypeError):  # there is none yet, or it was cut in half
            return None
        if before == sorted(plan["runs"]) or not (self.folder / "report.html").exists():
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
                described = [table_of({"run_id": list(t), "description": list(t.values())}) for t in texts]
                merge(self.folder / "descriptions.parquet", described, ["run_id"])
                merge(self.folder / "results.parquet", list(read.values()), ["run_id", "round"])
            for file in read:
                file.unlink(missing_ok=True)
            found = (read_if_whole(file) for file in sorted(self.folder.glob("comparators/*.parquet")))
            comparators = [table for table in found if table is not None]
            if comparators:
                write_parquet(self.folder / "comparators.parquet", pa.concat_tables(comparators))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock; the operating system drops it if this process dies."""
        with locked(self.folder / ".lock"):
            yield
