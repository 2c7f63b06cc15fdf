"""Merge the parts of a sweep that `--shard i/n` wrote into separate folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from banditlab.errors import UsageError
from banditlab.results.files import Files, parsed
from banditlab.results.incoming import take_rows
from banditlab.results.reading import (
    damaged_files,
    failure_records,
    finished_runs,
    read_plan,
    read_runs,
    read_spec,
    shards,
)
from banditlab.results.store import Store


@dataclass
class Merged:
    """The result of a merge."""

    folder: Path
    runs: int
    """The number of runs of the plan that the merged folder has."""
    wanted: int
    missing_shards: list[int]
    """The numbers of the parts that were not given."""
    of: int
    unfinished: dict[str, int]
    """The number of missing runs, by the part's folder."""
    failed: int
    damaged: list[str]
    """Damaged files of the parts; runs stored only in these are missing."""


def merge(parts: Sequence[Path], out: Path) -> Merged:
    """Merge parts of the same sweep into a folder that contains each run, comparator and failure exactly once.

    The parts do not change. A later merge with further parts adds their runs.

    Raises
    ------
    UsageError
        A folder is not a part, parts belong to different plans or different numbers of parts, a part is given twice, or
        `out` is one of the parts or has another plan.
    """
    plans = {folder: _part(folder) for folder in parts}
    first = next(iter(plans))
    _refuse_strangers(plans, out)
    of = plans[first]["shard"]["of"]
    store = Store(out)
    store.done()  # rename damaged files in it
    whole = _whole(out, plans)
    store.write_plan((first / "spec.toml").read_text("utf-8"), whole)
    unfinished, damaged = {}, []
    for folder, plan in plans.items():
        damaged += [f"{folder}/{name}" for name in damaged_files(folder)]
        lacking = _bring(store, folder, plan)
        if lacking:
            unfinished[str(folder)] = lacking
    store.compact()
    there = finished_runs(store.folder)
    failed = store.failed() & {*whole["runs"], *whole["streams"]}
    missing = [] if "shard" not in whole else sorted(set(range(1, of + 1)) - set(whole["shard"]["merged"]))
    held = sum(run_id in there for run_id in whole["runs"])
    return Merged(out, held, len(whole["runs"]), missing, of, unfinished, len(failed), damaged)


def _part(folder: Path) -> dict[str, Any]:
    read_spec(folder)
    plan = read_plan(folder)
    shard: dict[str, Any] = plan.get("shard") or {}
    if not {"index", "of", "plan", "places"} <= shard.keys() or len(shard["places"]) != len(plan["runs"]):
        raise UsageError(f"{folder}: not a part of a sweep; create a part with `banditlab run SPEC --shard i/n -o DIR`")
    return plan


def _refuse_strangers(plans: dict[Path, dict[str, Any]], out: Path) -> None:
    first, seen = next(iter(plans)), dict[int, Path]()
    for folder, plan in plans.items():
        shard = plan["shard"]
        if folder.resolve() == out.resolve():
            raise UsageError(f"{out}: the output folder is a part itself; choose another folder with -o")
        for key, what in (("plan", "another sweep"), ("of", "another number of parts")):
            if shard[key] != plans[first]["shard"][key]:
                raise UsageError(f"{folder}: a part of {what} than {first}")
        if shard["index"] in seen:
            raise UsageError(
                f"{folder}: part {shard['index']}/{shard['of']} is given twice, also as {seen[shard['index']]}"
            )
        seen[shard["index"]] = folder
    if (out / "runs.json").exists():
        before = read_plan(out)
        shard = before.get("shard", {})
        if "index" in shard:
            raise UsageError(f"{out}: the output folder is a part itself; choose another folder with -o")
        if shard.get("plan", before.get("plan")) != plans[first]["shard"]["plan"]:
            raise UsageError(f"{out}: has the results of another sweep; choose another folder with -o")


def _whole(out: Path, plans: dict[Path, dict[str, Any]]) -> dict[str, Any]:
    """Return the content of `runs.json` for all parts merged so far, with the runs in the order of the whole sweep."""
    known: list[tuple[int, str]] = []
    merged, streams, groups = set[int](), set[str](), dict[str, str]()
    if (out / "runs.json").exists():
        before = read_plan(out)
        if "shard" not in before:  # no part was missing
            return {name: before[name] for name in ("runs", "streams", "skipped", "data", "tables", "plan", "groups")}
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
    record |= {name: one[name] for name in ("skipped", "data", "tables")}
    shard = one["shard"]
    if len(merged) < shard["of"]:
        places = [place for place, _ in ordered]
        record |= {"shard": {"merged": sorted(merged), "of": shard["of"], "plan": shard["plan"], "places": places}}
    else:
        record |= {"plan": shard["plan"]}
    return record | {"groups": dict(sorted(groups.items()))}


def _bring(store: Store, folder: Path, plan: dict[str, Any]) -> int:
    """Write a part's files that the store does not have; return the number of the part's runs that are still missing."""
    wanted = set(plan["runs"]) - finished_runs(store.folder)
    rows = read_runs(folder, wanted).table
    if rows is not None:
        wanted -= take_rows(store, rows, _descriptions(folder), set(rows["run_id"].unique().to_pylist()))
    _bring_comparators(store, folder, set(plan["streams"]))
    for record in failure_records(Files(folder), wanted | set(plan["streams"])):
        id_ = record["run_id"]
        if id_ in wanted or not store.comparators(id_)[0]:
            store.write_failure(id_, record)
    return len(wanted)


def _bring_comparators(store: Store, folder: Path, streams: set[str]) -> None:
    files = Files(folder)
    for id_ in sorted(streams):
        contents = [data for name in store.comparator_files(id_) if (data := files.data(name)) is not None]
        mine = store.comparators(id_)[0].get("round", [])
        if len(contents) == 2 and len(mine) < len(parsed(contents[1])):  # `run` computes missing comparators
            store.write_comparator_files(id_, contents)


def _descriptions(folder: Path) -> dict[str, str]:
    """Return the descriptions of a part's runs, by id."""
    files, found = Files(folder), dict[str, str]()
    for texts in shards(files).values():
        found |= texts
    table = files.table("descriptions.parquet")
    return found if table is None else found | dict(zip(*(table[n].to_pylist() for n in ("run_id", "description"))))
