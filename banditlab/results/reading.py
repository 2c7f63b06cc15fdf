"""Reading a results folder: its plan, its runs, its comparators, its failures. Nothing is changed, no run is rebuilt.

The engine resumes by what is read here, and analysis shows it: both see the same rows, or the same damage.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from banditlab.errors import UsageError
from banditlab.results.files import array_of, concatenate, read_if_whole, refuse_unless_cut
from banditlab.results.schema import FORMAT, RUNS


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
        return self.player == "comparator"


# ------------------------------------------------------------------------------------------------------- what was asked for


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


def read_spec(folder: Path) -> dict[str, Any]:
    """Return spec.toml as it is.

    Raises
    ------
    UsageError
        `folder` is no results folder, or has another store format.
    """
    path = folder / "spec.toml"
    if not path.is_file():
        raise UsageError(
            f"{folder}: not a results folder (it has no spec.toml; `banditlab run SPEC.toml -o DIR` makes one)"
        )
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML ({error})") from error
    found = spec.get("store", {}).get("format") if isinstance(spec.get("store", {}), dict) else None
    if found != FORMAT:
        raise UsageError(f"{folder}: store format {found}, this version reads format {FORMAT} only")
    return spec


def read_plan(folder: Path) -> dict[str, Any]:
    """Return runs.json: the run ids, stream ids and skipped pairs of the current spec."""
    path = folder / "runs.json"
    if not path.is_file():
        raise UsageError(f"{folder}: not a results folder (it has no runs.json)")
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(plan["runs"], list):
            raise TypeError("runs is not a list")
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a plan of runs ({error})") from error
    return dict(plan)


def read_failures(folder: Path, wanted: Collection[str]) -> list[Failure]:
    """Return the failures among the wanted runs and streams."""
    failures = []
    for path in sorted((folder / "failed").glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            record = {"error": f"{path.name} cannot be read"}
        run_id = str(record.get("run_id", path.stem))
        if run_id in wanted:
            environment, player, error = (str(record.get(key, "?")) for key in ("environment", "player", "error"))
            failures.append(Failure(run_id, environment, player, int(record.get("repetition", -1)), error))
    return failures


# --------------------------------------------------------------------------------------------------------- what was played


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
        refuse_unless_cut(file, error)
        return None
    return {file.stem: metadata.get(b"banditlab.run", b"{}").decode()}  # as shards were before they held several runs


def compacted_ids(folder: Path) -> set[str]:
    """Return the ids of the runs in results.parquet; none if it was cut in half, so that they are done again."""
    table = read_if_whole(folder / "results.parquet", ["run_id"])
    return set() if table is None else set(table["run_id"].unique().to_pylist())


def read_runs(folder: Path, wanted: Collection[str]) -> tuple[pa.Table | None, int]:
    """Return the rows of the wanted runs, None where there are none, and how many files could not be read.

    Compacted runs come first, then those in shards; a run that stands in both counts once.
    """
    tables, unreadable, left = [], 0, set(wanted)

    def take(table: pa.Table) -> None:
        mine = set(table["run_id"].unique().to_pylist()) & left
        left.difference_update(mine)
        if mine:
            tables.append(table.filter(pc.is_in(table["run_id"], array_of(sorted(mine), pa.string()))))

    compacted = folder / "results.parquet"
    if compacted.is_file():
        table = read_if_whole(compacted)
        unreadable += table is None
        if table is not None:
            take(table)
    for shard in sorted(folder.glob("shards/*/*.parquet")):
        table = read_if_whole(shard)
        if table is None:
            unreadable += first_run(shard) in left
        else:
            take(table)
    return (concatenate(tables) if tables else None), unreadable


def read_comparators(folder: Path, streams: Collection[str]) -> tuple[pa.Table | None, int]:
    """Return the comparators' rows of these streams, None where there are none, and how many files could not be read."""
    tables, unreadable = [], 0
    compacted = folder / "comparators.parquet"
    for path in ([compacted] if compacted.is_file() else []) + sorted((folder / "comparators").glob("*.parquet")):
        table = read_if_whole(path)
        unreadable += table is None
        if table is not None:
            mine = table.filter(pc.is_in(table["stream_id"], array_of(sorted(streams), pa.string())))
            tables += [mine] if len(mine) else []
    return (pa.concat_tables(tables, promote_options="default") if tables else None), unreadable
