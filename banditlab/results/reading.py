"""Reading a results folder: its plan, its runs, its comparators, its failures. Nothing is changed, no run is rebuilt.

The engine resumes by what is read here, and analysis shows it: both see the same rows, or the same damage.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from banditlab.errors import UsageError
from banditlab.results.files import array_of, bytes_of, concatenate, parsed, read_if_whole, refuse_unless_cut
from banditlab.results.schema import COMPARATOR, COPIES, FORMAT, RUNS
from banditlab.results.seal import is_whole


@dataclass(frozen=True)
class Skip:
    """A pair that cannot meet, with the reason."""

    environment: str
    player: str
    reason: str


@dataclass(frozen=True)
class Failure:
    """A run that raised, or (player "comparator", `run_id` its stream's) a comparator that did."""

    run_id: str
    environment: str
    player: str
    repetition: int
    error: str

    @property
    def is_comparator(self) -> bool:
        """Whether a stream's comparators failed, not a run."""
        return self.player == COMPARATOR


# ------------------------------------------------------------------------------------------------------- what was asked for


def check_format(folder: Path) -> bool:
    """Return whether a folder's spec.toml is whole, or not there; raise a UsageError where it says another store format.

    A damaged one is no reason to refuse a folder whose runs.json says the format.
    """
    file = folder / "spec.toml"
    data = bytes_of(file)
    if data is None:
        return True
    found = _format_of(data)
    if found == FORMAT:
        return True
    if not is_whole(data) and _format_in_plan(folder) == FORMAT:
        return False
    raise UsageError(
        f"{folder}: results of store format {found}, this version reads and writes format {FORMAT}; "
        "choose another folder with -o"
    )


def _format_of(data: bytes) -> Any:
    """Return the store format that a spec.toml says, None where it is damaged or says none."""
    if not is_whole(data):
        return None
    try:
        store = tomllib.loads(data.decode()).get("store", {})
    except ValueError:
        return None
    return store.get("format") if isinstance(store, dict) else None


def _format_in_plan(folder: Path) -> Any:
    try:
        return read_plan(folder).get("format")
    except UsageError:
        return None


def read_spec(folder: Path) -> dict[str, Any]:
    """Return spec.toml as it is.

    Raises
    ------
    UsageError
        `folder` is no results folder, or has another store format; or the file is damaged.
    """
    path = folder / "spec.toml"
    data = bytes_of(path)
    if data is None:
        raise UsageError(
            f"{folder}: not a results folder (it has no spec.toml; `banditlab run SPEC.toml -o DIR` makes one)"
        )
    if not is_whole(data):
        raise UsageError(f"{path}: {DAMAGED}")
    try:
        spec = tomllib.loads(data.decode())
    except ValueError as error:
        raise UsageError(f"{path}: not TOML ({error})") from error
    found = spec.get("store", {}).get("format") if isinstance(spec.get("store", {}), dict) else None
    if found is None:  # what is left of a file that was cut
        raise UsageError(f"{path}: {DAMAGED}")
    if found != FORMAT:
        raise UsageError(f"{folder}: store format {found}, this version reads format {FORMAT} only")
    return spec


def read_plan(folder: Path) -> dict[str, Any]:
    """Return runs.json: the run ids, stream ids and skipped pairs of the current spec.

    Raises
    ------
    UsageError
        `folder` is no results folder, or the file is damaged.
    """
    path = folder / "runs.json"
    data = bytes_of(path)
    if data is None:
        raise UsageError(f"{folder}: not a results folder (it has no runs.json)")
    if not is_whole(data):
        raise UsageError(f"{path}: {DAMAGED}")
    try:
        plan = dict(json.loads(data))
        for name in ("runs", "streams"):
            if not (isinstance(plan[name], list) and all(isinstance(id_, str) for id_ in plan[name])):
                raise TypeError(f"{name} is no list of ids")
        plan["skipped"] = [{k: str(s[k]) for k in ("environment", "player", "reason")} for s in plan["skipped"]]
        plan["data"] = {str(k): {n: float(v) for n, v in d.items()} for k, d in plan["data"].items()}
        plan["groups"] = {str(k): str(v) for k, v in plan["groups"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path}: not a plan of runs ({error})") from error
    return plan


DAMAGED = (
    "damaged (it does not match its own checksum); the command that made the folder writes it anew, no run is lost"
)


def read_failures(folder: Path, wanted: Collection[str]) -> list[Failure]:
    """Return the failures among the wanted runs and streams."""
    failures = []
    for path in sorted((folder / "failed").glob("*.json")):
        if path.stem in wanted:
            record = read_failure(path)
            names = (record[key] for key in ("run_id", "environment", "player", "repetition", "error"))
            failures.append(Failure(*names))
    return failures


def read_failure(path: Path) -> dict[str, Any]:
    """Return a failure's record, every key of it there; one that says so where the file is damaged or another run's."""
    known: dict[str, Any] = {"run_id": path.stem, "environment": "?", "player": "?", "repetition": -1, "settings": {}}
    damaged = known | {"error": f"failed/{path.name} is damaged: why the run failed is lost, it is tried again"}
    data = bytes_of(path)
    if data is None or not is_whole(data):
        return damaged
    try:
        found: dict[str, Any] = dict(json.loads(data))
        record = known | found
        texts = {key: str(record[key]) for key in ("run_id", "environment", "player", "error")}
        record |= texts | {"repetition": int(record["repetition"]), "settings": dict(record["settings"])}
    except (ValueError, KeyError, TypeError, RecursionError):
        return damaged
    return record if record["run_id"] == path.stem else damaged


# --------------------------------------------------------------------------------------------------------- what was played


def finished_runs(folder: Path) -> set[str]:
    """Return the ids of finished runs, compacted or not, without changing anything."""
    return {run_id for texts in shards(folder).values() for run_id in texts or ()} | compacted_ids(folder)


def shards(folder: Path) -> dict[Path, dict[str, str] | None]:
    """Return the runs of each shard, their descriptions by id; None for a file that is damaged."""
    found = {}
    for file in folder.glob("shards/*/*.parquet"):
        data = bytes_of(file)
        if data is not None:  # else compacted meanwhile
            found[file] = runs_of(file, data)
    return found


def damaged_files(folder: Path) -> list[str]:
    """Return the names of the damaged files among spec, runs and their descriptions, changing nothing."""
    names = [] if check_format(folder) else ["spec.toml"]
    for name in ("results.parquet", "descriptions.parquet"):
        names += compacted(folder, name, ["run_id"])[1]
    return names + [file.relative_to(folder).as_posix() for file, texts in shards(folder).items() if texts is None]


def first_run(shard: Path) -> str:
    """Return the id of the first run of a shard, whole or not."""
    return shard.stem.partition("-")[0]


def runs_of(file: Path, data: bytes) -> dict[str, str] | None:
    """Return the runs of a shard's bytes, their descriptions by id; None where they are damaged."""
    table = parsed(file, data, ["run_id"])
    if table is None:
        return None
    try:
        metadata = pq.read_metadata(pa.BufferReader(data)).metadata or {}
        texts = dict(json.loads(metadata[RUNS.encode()]))
    except (ValueError, KeyError, OSError) as error:
        refuse_unless_cut(file, error)
        return None
    return texts if set(table["run_id"].unique().to_pylist()) == set(texts) else None


def compacted(folder: Path, name: str, columns: list[str] | None = None) -> tuple[pa.Table | None, list[str]]:
    """Return the table of a compacted file, of its copy where it is damaged or gone; and the names of damaged files."""
    damaged: list[str] = []
    for file in (folder / name, folder / COPIES / name):
        data = bytes_of(file)
        if data is None:
            continue
        table = parsed(file, data, columns)
        if table is not None:
            return table, damaged
        damaged.append(file.relative_to(folder).as_posix())
    return None, damaged


def compacted_ids(folder: Path) -> set[str]:
    """Return the ids of the runs in results.parquet or its copy; none if both are damaged, so that they are done again."""
    table, _ = compacted(folder, "results.parquet", ["run_id"])
    return set() if table is None else set(table["run_id"].unique().to_pylist())


def _stand(folder: Path) -> tuple[int, int] | None:
    """Return what changes when results.parquet is written anew, None where there is none."""
    try:
        found = (folder / "results.parquet").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


class Found(NamedTuple):
    """Rows, None where there are none; damaged files whose rows are lost, and those whose rows were had elsewhere."""

    table: pa.Table | None
    lost: list[str]
    spared: list[str]


def read_runs(folder: Path, wanted: Collection[str]) -> Found:
    """Return the rows of the wanted runs.

    Compacted runs come first, then those in shards; a run that stands in both counts once.
    """
    tables, left = [], set(wanted)
    before = _stand(folder)

    def take(table: pa.Table) -> None:
        mine = set(table["run_id"].unique().to_pylist()) & left
        left.difference_update(mine)
        if mine:
            tables.append(table.filter(pc.is_in(table["run_id"], array_of(sorted(mine), pa.string()))))

    table, damaged = compacted(folder, "results.parquet")
    if table is not None:
        take(table)
    for shard in sorted(folder.glob("shards/*/*.parquet")):
        data = bytes_of(shard)
        if data is None:
            continue
        part = parsed(shard, data)
        if part is None:
            damaged.append(shard.relative_to(folder).as_posix())
        else:
            take(part)
    if left and _stand(folder) != before:  # compacted meanwhile: what was in shards is there now
        table, _ = compacted(folder, "results.parquet")
        if table is not None:
            take(table)
    lost = damaged if left else []
    return Found(concatenate(tables) if tables else None, lost, [] if left else damaged)


def read_comparators(folder: Path, streams: Collection[str]) -> Found:
    """Return the comparators' rows of these streams."""
    tables, left = [], set(streams)
    table, damaged = compacted(folder, "comparators.parquet")
    parts = [] if table is None else [table]
    for path in sorted((folder / "comparators").glob("*.parquet")):
        part = read_comparator(path)
        if part is None:
            damaged.append(path.relative_to(folder).as_posix())
        else:
            parts.append(part)
    for part in parts:
        mine = part.filter(pc.is_in(part["stream_id"], array_of(sorted(streams), pa.string())))
        left -= set(mine["stream_id"].unique().to_pylist())
        tables += [mine] if len(mine) else []
    found = pa.concat_tables(tables, promote_options="default") if tables else None
    return Found(found, damaged if left else [], [] if left else damaged)


def read_comparator(path: Path) -> pa.Table | None:
    """Return the rows of one stream's file; None where it is gone, damaged, or holds another stream's."""
    table = read_if_whole(path)
    if table is None or set(table["stream_id"].unique().to_pylist()) != {path.stem}:
        return None
    return table
