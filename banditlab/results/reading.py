"""Read a results folder (plan, runs, comparators and failures) without changing it.

Both the engine, to resume a sweep, and the analysis read folders with this module.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from banditlab.errors import UsageError
from banditlab.results.files import Files, concatenate, each_once
from banditlab.results.schema import COMPARATOR, FORMAT, LISTED, RUNS, SHARDS, SUMS


@dataclass(frozen=True)
class Skip:
    """An (environment, player) pair that cannot be run, with the reason."""

    environment: str
    player: str
    reason: str


@dataclass(frozen=True)
class Failure:
    """A failed run, or, if `player` is "comparator", a stream (id in `run_id`) whose comparators failed."""

    run_id: str
    environment: str
    player: str
    repetition: int
    error: str

    @property
    def is_comparator(self) -> bool:
        """Whether comparators failed, and not a run."""
        return self.player == COMPARATOR


# ------------------------------------------------------------------------------------------------------- the plan


def check_format(folder: Path) -> None:
    """Raise a UsageError if the store format is not `FORMAT`, or if `spec.toml` and `runs.json` are damaged."""
    files = Files(folder)
    if files.data("spec.toml") is not None:
        read_spec(folder)
    elif files.damaged and files.data("runs.json") is None:
        raise UsageError(
            f"{folder}: spec.toml and runs.json do not match {SUMS}, or the folder does not contain banditlab results; "
            "choose another folder with -o"
        )


def _whole(folder: Path, name: str) -> bytes:
    files = Files(folder)
    data = files.data(name)
    if files.damaged:
        raise UsageError(
            f"{folder / name}: damaged (it does not match {SUMS}); run the command that created the folder again to "
            "restore it; no run is lost"
        )
    if data is None:
        raise UsageError(
            f"{folder}: not a results folder (it has no {name}); create one with `banditlab run SPEC.toml -o DIR`"
        )
    return data


def read_spec(folder: Path) -> dict[str, Any]:
    """Return the content of `spec.toml` as a dictionary.

    Raises
    ------
    UsageError
        `folder` is not a results folder, its store format is not `FORMAT`, or the file is damaged.
    """
    data = _whole(folder, "spec.toml")
    try:
        spec = tomllib.loads(data.decode())
    except ValueError as error:
        raise UsageError(f"{folder / 'spec.toml'}: not TOML ({error})") from error
    found = dict(spec.get("store", {})).get("format")
    if found != FORMAT:
        raise UsageError(
            f"{folder}: the results have store format {found}, and this version reads and writes format {FORMAT}; "
            "choose another folder for a new sweep (-o)"
        )
    return spec


def read_plan(folder: Path) -> dict[str, Any]:
    """Return `runs.json`: the run ids, stream ids and skipped pairs of the current spec.

    Raises
    ------
    UsageError
        `folder` is not a results folder, or the file is damaged.
    """
    data = _whole(folder, "runs.json")
    try:
        plan = dict(json.loads(data))
        for name in ("runs", "streams"):
            if not (isinstance(plan[name], list) and all(isinstance(id_, str) for id_ in plan[name])):
                raise TypeError(f"{name} is not a list of ids")
        plan["skipped"] = [{k: str(s[k]) for k in ("environment", "player", "reason")} for s in plan["skipped"]]
        plan["data"] = {str(k): {n: float(v) for n, v in d.items()} for k, d in plan["data"].items()}
        plan["tables"] = dict(plan.get("tables", {}))
        plan["groups"] = {str(k): str(v) for k, v in plan["groups"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{folder / 'runs.json'}: not a valid plan of runs ({error})") from error
    return plan


def read_failures(folder: Path, wanted: Collection[str]) -> list[Failure]:
    """Return the failures among the wanted runs and streams."""
    return [Failure(*(each[key] for key in Failure.__annotations__)) for each in failure_records(Files(folder), wanted)]


def failure_records(files: Files, wanted: Collection[str]) -> list[dict[str, Any]]:
    """Return the records of failures among the wanted runs and streams; for a damaged file, the record says so."""
    records: list[dict[str, Any]] = []
    for name in files.names("failed/*.json"):
        if Path(name).stem not in wanted:
            continue
        data = files.data(name)
        if data is not None:
            records.append(json.loads(data))
        elif name in files.damaged:
            error = f"{name} is damaged: the reason of the failure is lost, and the run is tried again"
            unknown = {"environment": "?", "player": "?", "repetition": -1, "settings": {}}
            records.append({"run_id": Path(name).stem, **unknown, "error": error})
    return records


# --------------------------------------------------------------------------------------------------------- the runs


def finished_runs(folder: Path) -> set[str]:
    """Return the ids of finished runs, in `results.parquet` or still in shards, without changing the folder."""
    files = Files(folder)
    held = {id_ for texts in shards(files).values() for id_ in texts}  # first: a run may be compacted, never vanish
    table = files.table("results.parquet", ["run_id"])
    return held if table is None else held | set(table["run_id"].unique().to_pylist())


def shards(files: Files) -> dict[str, dict[str, str]]:
    """Return the runs of each complete shard, as descriptions by id."""
    return {name: runs_of(data) for name in files.names(SHARDS) if (data := files.data(name)) is not None}


def runs_of(shard: bytes) -> dict[str, str]:
    """Return the runs of a shard's bytes, as descriptions by id."""
    return dict(json.loads(pq.read_metadata(pa.BufferReader(shard)).metadata[RUNS.encode()]))


def damaged_files(folder: Path) -> list[str]:
    """Return the names of the files that do not match the manifest."""
    files = Files(folder)
    for name in files.names(*LISTED):
        files.data(name)
    return files.damaged


class Found(NamedTuple):
    """Rows, or None if there are none, and the names of damaged files."""

    table: pa.Table | None
    damaged: list[str]


def read_runs(folder: Path, wanted: Collection[str]) -> Found:
    """Return the rows of the wanted runs. If a run is both in `results.parquet` and in a shard, the former is used."""
    files = Files(folder)
    parts = [files.table(name) for name in files.names(SHARDS)]  # first: a run may be compacted, never vanish
    tables = [table for table in (files.table("results.parquet"), *parts) if table is not None]
    mine = each_once(tables, wanted)
    return Found(concatenate(mine) if mine else None, files.damaged)


def read_comparators(folder: Path, streams: Collection[str]) -> Found:
    """Return the comparators' rows of these streams."""
    files = Files(folder)
    names = [name for name in files.names("comparators/*.parquet") if Path(name).stem in streams]
    tables = [table for name in names if (table := files.table(name)) is not None]
    return Found(pa.concat_tables(tables, promote_options="default") if tables else None, files.damaged)
