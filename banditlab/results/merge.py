"""Putting the parts of a sweep together: `--shard i/n` wrote each into a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from banditlab.errors import UsageError
from banditlab.results.files import array_of, bytes_of, read_if_whole, write_parquet
from banditlab.results.incoming import DamagedError, take
from banditlab.results.reading import (
    compacted,
    compacted_ids,
    damaged_files,
    read_failure,
    read_plan,
    read_runs,
    read_spec,
    shards,
)
from banditlab.results.schema import RUNS
from banditlab.results.store import Store


@dataclass
class Merged:
    """What a merge came to."""

    folder: Path
    runs: int
    """Runs the merged folder holds of those its plan names."""
    wanted: int
    missing_shards: list[int]
    """Numbers of the parts that were not given."""
    of: int
    unfinished: dict[str, int]
    """Runs that are not there, by the part's folder."""
    failed: int
    damaged: list[str]
    """Damaged files of the parts: what they alone held is missing."""


def merge(parts: Sequence[Path], out: Path) -> Merged:
    """Write the runs, comparators and failures of the parts of one plan into a folder, each exactly once.

    The parts are left as they are. Merging again, with parts that have come since, adds what is new.

    Raises
    ------
    UsageError
        A folder is no part, parts are of different plans or different numbers of parts, a part is given twice, `out` is one of
        them or holds another plan.
    """
    plans = {folder: _part(folder) for folder in parts}
    first = next(iter(plans))
    _refuse_strangers(plans, out)
    of = plans[first]["shard"]["of"]
    store = Store(out)
    store.done()  # what is damaged in it is set aside
    spec = (first / "spec.toml").read_bytes()
    whole = _whole(out, plans)
    store.write_plan(_without_seal(spec), whole)
    unfinished, damaged = {}, []
    for folder, plan in plans.items():
        damaged += [f"{folder}/{name}" for name in damaged_files(folder)]
        lacking = _bring(store, folder, plan)
        if lacking:
            unfinished[str(folder)] = lacking
    store.compact()
    there = compacted_ids(store.folder)
    failed = store.failed() & {*whole["runs"], *whole["streams"]}
    missing = [] if "shard" not in whole else sorted(set(range(1, of + 1)) - set(whole["shard"]["merged"]))
    held = sum(run_id in there for run_id in whole["runs"])
    return Merged(out, held, len(whole["runs"]), missing, of, unfinished, len(failed), damaged)


def _part(folder: Path) -> dict[str, Any]:
    read_spec(folder)
    plan = read_plan(folder)
    shard: dict[str, Any] = plan.get("shard") or {}
    if not {"index", "of", "plan", "places"} <= shard.keys() or len(shard["places"]) != len(plan["runs"]):
        raise UsageError(f"{folder}: not a part of a sweep; `banditlab run SPEC --shard i/n -o DIR` makes one")
    return plan


def _refuse_strangers(plans: dict[Path, dict[str, Any]], out: Path) -> None:
    first, seen = next(iter(plans)), dict[int, Path]()
    for folder, plan in plans.items():
        shard = plan["shard"]
        if folder.resolve() == out.resolve():
            raise UsageError(f"{out}: is a part itself; name another folder with -o")
        for key, what in (("plan", "another sweep"), ("of", "another number of parts")):
            if shard[key] != plans[first]["shard"][key]:
                raise UsageError(f"{folder}: a part of {what} than {first}")
        if shard["index"] in seen:
            raise UsageError(
                f"{folder}: part {shard['index']}/{shard['of']} is given twice, {seen[shard['index']]} is it, too"
            )
        seen[shard["index"]] = folder
    if (out / "runs.json").exists():
        before = read_plan(out)
        shard = before.get("shard", {})
        if "index" in shard:
            raise UsageError(f"{out}: is a part itself; name another folder with -o")
        if shard.get("plan", before.get("plan")) != plans[first]["shard"]["plan"]:
            raise UsageError(f"{out}: holds another sweep; name another folder with -o")


def _whole(out: Path, plans: dict[Path, dict[str, Any]]) -> dict[str, Any]:
    """Return the record of all parts merged so far, in the whole plan's order; the whole plan's if none is missing."""
    known: list[tuple[int, str]] = []
    merged, streams, groups = set[int](), set[str](), dict[str, str]()
    if (out / "runs.json").exists():
        before = read_plan(out)
        if "shard" not in before:  # nothing was missing
            return {name: before[name] for name in ("runs", "streams", "skipped", "data", "plan", "groups")}
        if "merged" in before["shard"]:
            known += zip(before["shard"]["places"], before["runs"], strict=True)
            merged |= set(before["shard"]["merged"])
            streams |= set(before["streams"])
            groups |= before["groups"]
    one = next(iter(plans.values()))
    for plan in plans.values():
        known += zip(plan["shard"]["places"], plan["runs"], strict=True)
        merged.add(plan["shard"]["index"])
        streams |= set(plan["streams"])
        groups |= plan["groups"]
    ordered = sorted(set(known))
    record: dict[str, Any] = {"runs": [id_ for _, id_ in ordered], "streams": sorted(streams)}
    record |= {name: one[name] for name in ("skipped", "data")}
    shard = one["shard"]
    if len(merged) < shard["of"]:
        places = [place for place, _ in ordered]
        record |= {"shard": {"merged": sorted(merged), "of": shard["of"], "plan": shard["plan"], "places": places}}
    else:
        record |= {"plan": shard["plan"]}
    return record | {"groups": dict(sorted(groups.items()))}


def _bring(store: Store, folder: Path, plan: dict[str, Any]) -> int:
    """Write what a part holds and the store does not; return how many of its runs the store lacks then."""
    there = {run_id for texts in shards(store.folder).values() for run_id in texts or ()}
    there |= compacted_ids(store.folder)
    wanted = set(plan["runs"]) - there
    rows = read_runs(folder, wanted).table
    if rows is not None:
        texts = _descriptions(folder, wanted)
        mine = sorted(set(rows["run_id"].unique().to_pylist()) & texts.keys())
        rows = rows.filter(pc.is_in(rows["run_id"], array_of(mine, pa.string())))
        if mine:
            described = {RUNS: json.dumps({run_id: texts[run_id] for run_id in mine})}
            write_parquet(store.shard(*mine), rows.replace_schema_metadata(described))
            wanted -= set(mine)
            store.forgive(mine)
    _bring_comparators(store, folder, set(plan["streams"]))
    for file in folder.glob("failed/*.json"):
        if file.stem in wanted or (file.stem in plan["streams"] and not store.comparator_files(file.stem)[0].exists()):
            record = read_failure(file)
            store.write_failure(file.stem, record)
    return len(wanted)


def _bring_comparators(store: Store, folder: Path, streams: set[str]) -> None:
    for rows in sorted((folder / "comparators").glob("*.parquet")):
        data, weights = bytes_of(rows), bytes_of(rows.with_suffix(".npz"))
        mine = store.comparator_files(rows.stem)[0]
        if rows.stem not in streams or data is None or weights is None or bytes_of(mine) == data:
            continue
        before, now = read_if_whole(mine), read_if_whole(rows)
        if before is not None and now is not None and len(before) >= len(now):
            continue
        try:
            take(store, {f"comparators/{rows.name}": data, f"comparators/{rows.stem}.npz": weights}, {rows.stem})
        except DamagedError:  # `run` on the merged folder computes it anew
            continue


def _descriptions(folder: Path, wanted: set[str]) -> dict[str, str]:
    """Return what the wanted runs are, as the part's files say."""
    table, _ = compacted(folder, "descriptions.parquet")
    found = (
        {} if table is None else dict(zip(table["run_id"].to_pylist(), table["description"].to_pylist(), strict=True))
    )
    for texts in shards(folder).values():
        found |= texts or {}
    return {run_id: text for run_id, text in found.items() if run_id in wanted}


def _without_seal(spec: bytes) -> str:
    """Return a spec's text without the line that bears its seal: it gets another."""
    lines = spec.decode().rstrip().split("\n")
    return "\n".join(lines[:-1] if lines[-1].startswith("# banditlab.seal") else lines).rstrip()
