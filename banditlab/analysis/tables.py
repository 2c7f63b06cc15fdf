"""Read a results folder into tidy tables. Only Parquet, TOML and JSON files are read; no run is rebuilt."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from banditlab.analysis.settings import with_settings
from banditlab.errors import UsageError

STORE_FORMAT = 1
"""The store format this module reads ([store] format in spec.toml)."""
COMPARATOR_COLUMNS = {
    **dict.fromkeys(("stream_id", "environment"), "str"),
    **dict.fromkeys(("repetition", "round", "mistakes"), "int64"),
    **dict.fromkeys(("norm_bound", "loss_nats", "loss_bits", "gap", "seconds"), "float64"),
}


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


@dataclass(frozen=True)
class Results:
    """What a results folder holds of its current spec; runs of earlier specs are left out.

    Attributes
    ----------
    out
        The folder.
    spec
        spec.toml as it is.
    runs
        One row per run and checkpoint, as stored, and the columns `settings` (the settings that differ within the
        label and environment, as text), `gamma` and `norm_bound` (float, NaN where the player has none).
    comparators
        One row per stream, checkpoint and norm bound.
    planned, missing
        How many runs the spec asks for, and how many of them neither finished nor failed yet.
    unreadable
        How many files could not be read (cut in half by a crash); their runs count as missing.
    skipped, failures
        Pairs that cannot meet; runs that raised, and comparators.
    """

    out: Path
    spec: dict[str, Any]
    runs: pd.DataFrame
    comparators: pd.DataFrame
    planned: int
    missing: int
    unreadable: int
    skipped: list[Skip]
    failures: list[Failure]

    @property
    def environments(self) -> list[str]:
        """The environments, in the order of the spec."""
        return list(dict.fromkeys(self.runs["environment"]))

    @property
    def last_round(self) -> int:
        """The last checkpoint."""
        return int(self.runs["round"].max())

    def labels(self) -> list[str]:
        """Return the players' labels in the order of the spec, the same for every figure."""
        return list(dict.fromkeys(self.runs["label"]))

    def references(self) -> list[str]:
        """Return those of the labels that are told the label, for scale."""
        return list(dict.fromkeys(self.runs.loc[self.runs["kind"] == "reference", "label"]))


def load(out: str | os.PathLike[str]) -> Results:
    """Read the results folder `out`.

    Raises
    ------
    UsageError
        `out` is not a results folder, has another store format, or holds no finished run of its current spec.
    """
    out = Path(out)
    spec, plan = _read_spec(out), _read_plan(out)
    wanted = list(plan["runs"])
    frames, unreadable = _read_runs(out, wanted)
    if not frames:
        raise UsageError(f"{out}: no finished runs yet, of {len(wanted)} in its spec; run it first")
    runs = _combined(frames)
    seat = {run_id: i for i, run_id in enumerate(wanted)}
    runs = runs.assign(_seat=runs["run_id"].map(seat)).sort_values(["_seat", "round"], kind="stable")
    runs = with_settings(runs.drop(columns="_seat").reset_index(drop=True))
    done = set(runs["run_id"])
    streams = set(plan.get("streams", []))
    failures = [failure for failure in _read_failures(out, set(wanted) | streams) if failure.run_id not in done]
    missing = len(set(wanted) - done - {failure.run_id for failure in failures})
    skipped = [Skip(str(s["environment"]), str(s["player"]), str(s["reason"])) for s in plan.get("skipped", [])]
    comparators, broken = _read_comparators(out, streams)
    return Results(out, spec, runs, comparators, len(wanted), missing, unreadable + broken, skipped, failures)


# ------------------------------------------------------------------------------------------------------------- reading


def _read_spec(out: Path) -> dict[str, Any]:
    path = out / "spec.toml"
    if not path.is_file():
        raise UsageError(
            f"{out}: not a results folder (it has no spec.toml; `banditlab run SPEC.toml -o DIR` makes one)"
        )
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML ({error})") from error
    found = spec.get("store", {}).get("format") if isinstance(spec.get("store", {}), dict) else None
    if found != STORE_FORMAT:
        raise UsageError(f"{out}: store format {found}, this version reads format {STORE_FORMAT} only")
    return spec


def _read_plan(out: Path) -> dict[str, Any]:
    path = out / "runs.json"
    if not path.is_file():
        raise UsageError(f"{out}: not a results folder (it has no runs.json)")
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(plan["runs"], list):
            raise TypeError("runs is not a list")
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a plan of runs ({error})") from error
    return dict(plan)


def _parquet(path: Path) -> pd.DataFrame | None:
    """Return the table in a file, or None where the file was cut short."""
    try:
        return pd.read_parquet(path)
    except (pa.ArrowInvalid, OSError):
        return None


def _read_runs(out: Path, wanted: list[str]) -> tuple[list[pd.DataFrame], int]:
    """Return the rows of the wanted runs, compacted ones first, then shards of the others."""
    frames, unreadable, done = [], 0, set()
    compacted = out / "results.parquet"
    if compacted.is_file():
        table = _parquet(compacted)
        unreadable += table is None
        if table is not None:
            table = table[table["run_id"].isin(set(wanted))].drop_duplicates(["run_id", "round"])
            done = set(table["run_id"])
            frames += [table] if len(table) else []
    for shard in sorted(out.glob("shards/*/*.parquet")):
        table = _parquet(shard)
        if table is None:
            unreadable += (first := shard.stem.partition("-")[0]) in wanted and first not in done
            continue
        table = table[table["run_id"].isin(set(wanted) - done)]
        done |= set(table["run_id"])
        frames += [table] if len(table) else []
    return frames, unreadable


def _read_comparators(out: Path, streams: set[str]) -> tuple[pd.DataFrame, int]:
    frames, unreadable = [], 0
    compacted = out / "comparators.parquet"
    for path in ([compacted] if compacted.is_file() else []) + sorted((out / "comparators").glob("*.parquet")):
        table = _parquet(path)
        unreadable += table is None
        if table is not None:
            frames.append(table[table["stream_id"].isin(streams)])
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame({n: pd.Series(dtype=t) for n, t in COMPARATOR_COLUMNS.items()}), unreadable
    table = pd.concat(frames, ignore_index=True).drop_duplicates(["stream_id", "round", "norm_bound"])
    return table.astype({"norm_bound": float}).reset_index(drop=True), unreadable


def _read_failures(out: Path, wanted: set[str]) -> list[Failure]:
    failures = []
    for path in sorted((out / "failed").glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            record = {"error": f"{path.name} cannot be read"}
        run_id = str(record.get("run_id", path.stem))
        if run_id in wanted:
            environment, player, error = (str(record.get(key, "?")) for key in ("environment", "player", "error"))
            failures.append(Failure(run_id, environment, player, int(record.get("repetition", -1)), error))
    return failures


def _combined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Stack tables whose parameter columns differ: a column absent, or empty, in one of them is missing there."""
    columns = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    filled = [frame.dropna(axis=1, how="all") for frame in frames]
    return pd.concat(filled, ignore_index=True).reindex(columns=columns)
