"""Bits flipped, files cut, emptied and swapped for a sibling's, in every file of a results folder."""

from __future__ import annotations

import json
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

from audits.attacks.lines import Line, line
from banditlab.analysis import load
from banditlab.engine import Sweep
from banditlab.errors import UsageError
from banditlab.results.files import Files
from banditlab.results.reading import (
    Failure,
    damaged_files,
    finished_runs,
    read_comparators,
    read_failures,
    read_plan,
    read_runs,
    read_spec,
    shards,
)
from banditlab.results.schema import SUMS
from banditlab.results.store import Store

TITLE = "Damaged files"
WORDS = """The attack damages one file of a results folder that contains every kind of file. It flips a bit (17 times in
20), replaces a byte, truncates the file, or replaces it by another file of the folder. Then `report`, `status` or `run`
reads the folder. In one case in twenty the sweep is also resumed. Only data that no undamaged file contains may be
lost."""
COUNT = 5500
RESUMED = 20  # one damage in so many is also resumed
SPEC: dict[str, Any] = {
    "name": "flips",
    "rounds": 12,
    "checkpoints": [6, 12],
    "norm_bounds": [1.0],
    "environment": [{"id": "banditlab/Logistic-v0", "n_features": 2, "n_classes": 2}],
    "agent": [{"id": "uniform"}, {"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}],
}


class Truth(NamedTuple):
    """What a folder holds: rows of runs and comparators, and the texts of failures."""

    runs: pd.DataFrame
    comparators: pd.DataFrame
    failures: dict[str, str]
    held: dict[str, set[str]]
    """The runs, or the stream, whose rows stand in a file alone, by its name."""
    tables: tuple[Any, ...] = ()
    """Runs and comparators as Arrow tables, the spec and the plan."""


class Read(NamedTuple):
    """What was read of a folder."""

    runs: pd.DataFrame
    comparators: pd.DataFrame
    failures: list[Failure]
    damaged: list[str]


def make(folder: Path) -> None:
    """Fill a folder: two repetitions compacted, a third in shards, and failures of a fourth."""
    Sweep(**SPEC, repetitions=2).run(folder)
    with mock.patch.object(Store, "compact"):
        Sweep(**SPEC, repetitions=3).run(folder)
    store, sweep = Store(folder), Sweep(**SPEC, repetitions=4)
    store.write_plan(resolved(sweep), sweep.plan.record())
    for run in sweep.plan.runs:
        if run.repetition == 3:
            record = {"environment": run.environment_label, "player": run.label, "repetition": 3, "settings": {}}
            store.write_failure(run.run_id, record | {"error": f"ValueError: {run.written}", "traceback": ""})


def resolved(sweep: Sweep) -> str:
    """Return the resolved spec's text."""
    from banditlab.engine.spec_text import spec_to_toml
    from banditlab.engine.work import facts

    return spec_to_toml(sweep.spec, facts())


def truth_of(folder: Path) -> Truth:
    """Return what an undamaged folder holds."""
    results = load(folder)
    held = {name: set(texts) for name, texts in shards(Files(folder)).items()}
    held["results.parquet"] = set(pd.read_parquet(folder / "results.parquet")["run_id"])
    held |= {f"comparators/{file.name}": {file.stem} for file in (folder / "comparators").glob("*.parquet")}
    failures = {failure.run_id: failure.error for failure in results.failures}
    plan = read_plan(folder)
    runs, comparators = read_runs(folder, plan["runs"]).table, read_comparators(folder, plan["streams"]).table
    assert runs is not None
    assert comparators is not None
    tables = (runs, comparators, read_spec(folder), plan)
    return Truth(runs.to_pandas(), comparators.to_pandas(), failures, held, tables)


def read_as_reports_do(folder: Path, truth: Truth) -> Read:
    """Read a folder; tables that are the truth's are its frames."""
    spec, plan = read_spec(folder), read_plan(folder)
    if (spec, plan) != truth.tables[2:]:
        raise AssertionError("another spec or plan")
    runs, comparators = read_runs(folder, plan["runs"]), read_comparators(folder, plan["streams"])
    frames = []
    for table, whole, frame in (
        (runs.table, truth.tables[0], truth.runs),
        (comparators.table, truth.tables[1], truth.comparators),
    ):
        if table is None:
            frames.append(frame[:0])
        else:
            frames.append(frame if table.equals(whole) else table.to_pandas())
    return Read(*frames, read_failures(folder, plan["runs"]), damaged_files(folder))


def kind_of(name: str) -> str:
    """Return what a file is called in the table."""
    parts = name.split("/")
    if len(parts) == 1:
        return name
    return f"{parts[0]}/*.{parts[-1].rsplit('.', 1)[-1]}"


# ------------------------------------------------------------------------------------------------------------- damage


def damaged(data: bytes, rng: np.random.Generator, sibling: bytes | None) -> tuple[str, bytes]:
    """Return (what was done, the damaged bytes)."""
    how = rng.integers(20)
    if how == 0:
        return "cut", data[: int(rng.integers(len(data)))]
    if how == 1 and sibling is not None and sibling != data:
        return "sibling", sibling
    at = int(rng.integers(len(data)))
    if how == 2:
        return "byte", data[:at] + bytes([(data[at] + int(rng.integers(1, 256))) % 256]) + data[at + 1 :]
    return "bit", data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]


@contextmanager
def standing(file: Path, data: bytes) -> Iterator[None]:
    """Have other bytes in a file for a while."""
    whole = file.read_bytes()
    file.write_bytes(data)
    try:
        yield
    finally:
        file.write_bytes(whole)


# ------------------------------------------------------------------------------------------------------------ verdicts


def judged(read: Any, truth: Truth, name: str) -> tuple[str, str]:
    """Return ("right", "named", "lost" or "wrong", why) for what was read of a damaged folder."""
    if set(read.damaged) - {name} and name != SUMS:
        return "lost", f"{read.damaged} named for {name}"
    for mine, whole, id_ in ((read.runs, truth.runs, "run_id"), (read.comparators, truth.comparators, "stream_id")):
        gone = set(whole[id_]) - set(mine[id_])
        if gone - held_by(read.damaged, truth):
            return "lost", f"{id_} {sorted(gone)} of {name}"
        if mine is not whole and (difference := unlike(mine, whole[~whole[id_].isin(gone)])):
            return "wrong", f"{id_} after {name}: {difference}"
    for failure in read.failures:
        if failure.run_id not in truth.failures:
            return "wrong", f"a failure of {failure.run_id}"
        if failure.error != truth.failures[failure.run_id] and "is damaged" not in failure.error:
            return "wrong", f"{failure.error}"
    if set(truth.failures) - {failure.run_id for failure in read.failures}:
        return "lost", "a failure without a word"
    return ("named" if read.damaged else "right"), ""


def held_by(names: list[str], truth: Truth) -> set[str]:
    """Return the runs and streams whose rows stand in one of these files alone."""
    return {id_ for name in names for id_ in truth.held.get(name, ())}


def is_named(name: str, said: str) -> bool:
    """Return whether a line names a damaged file; of the manifest's, the file whose line is lost."""
    return name in said or (name == SUMS and "does not match" in said)


def unlike(a: pd.DataFrame, b: pd.DataFrame, but: tuple[str, ...] = ()) -> str:
    """Return in what two tables differ, "" if they do not."""
    columns = [name for name in b.columns if name not in but]
    if set(a.columns) - set(but) != set(columns):
        return f"columns {set(a.columns) ^ set(columns)}"
    keys = [name for name in ("run_id", "stream_id", "round", "norm_bound") if name in columns]
    a, b = (frame[columns].sort_values(keys, ignore_index=True) for frame in (a, b))
    try:
        pd.testing.assert_frame_equal(a, b, check_exact=True, check_dtype=False)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def after_reading(folder: Path, truth: Truth, name: str) -> tuple[str, str]:
    """Read the folder as `report` does and judge it."""
    try:
        return judged(read_as_reports_do(folder, truth), truth, name)
    except AssertionError as error:
        return "wrong", f"{name}: {error}"
    except UsageError as error:
        return ("named", "") if is_named(name, str(error)) and "\n" not in str(error) else ("lost", str(error))
    except Exception as error:
        return "tracebacks", f"{name}: {error!r}"


def after_resuming(folder: Path, truth: Truth, name: str) -> tuple[str, str]:
    """Resume the sweep in the folder and judge what is there then."""
    before = set(truth.runs["run_id"])
    try:
        result = Sweep(**SPEC, repetitions=4).run(folder)
        read = load(folder)
    except UsageError as error:
        return ("named", "") if is_named(name, str(error)) and "\n" not in str(error) else ("lost", str(error))
    except Exception as error:
        return "tracebacks", f"{name}: {error!r}"
    redone = len(before) - result.present
    named = [notice.partition(" ")[0] for notice in result.notices]
    if redone > len(held_by(named, truth) & before) or result.failures or read.unreadable or read.missing:
        return "lost", f"{name}: {redone} runs redone, {len(result.failures)} failed, {read.missing} missing"
    if named not in ([], [name]) and name != SUMS:
        return "lost", f"{named} named for {name}"
    if before - finished_runs(folder):
        return "lost", f"{name}: runs are gone"
    mine = read.runs[read.runs["run_id"].isin(before)][list(truth.runs)]
    known = read.comparators[read.comparators["stream_id"].isin(truth.comparators["stream_id"])]
    difference = unlike(mine, truth.runs, ("seconds",)) or unlike(known, truth.comparators, ("seconds",))
    if difference:
        return "wrong", f"resumed after {name}: {difference}"
    return ("named" if named else "right"), ""


# -------------------------------------------------------------------------------------------------------------- attack


def attack(count: int, seed: int) -> list[Line]:
    """Damage a file `count` times and return a line for each kind of file."""
    with tempfile.TemporaryDirectory() as place:
        return _attack(Path(place), count, seed)


def _attack(place: Path, count: int, seed: int) -> list[Line]:
    folder, rng = place / "out", np.random.default_rng([seed, zlib.crc32(b"flips")])
    make(folder)
    truth = truth_of(folder)
    names = sorted(f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file() and f.stat().st_size)
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(kind_of(name), []).append(name)
    found: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for i in range(count):
        kind = list(kinds)[i % len(kinds)]
        name = str(rng.choice(kinds[kind]))
        siblings = [other for other in kinds[kind] if other != name]
        sibling = (folder / str(rng.choice(siblings))).read_bytes() if siblings else None
        how, data = damaged((folder / name).read_bytes(), rng, sibling)
        with standing(folder / name, data):
            verdicts = [after_reading(folder, truth, name)]
            if i // len(kinds) % RESUMED == 0:
                shutil.copytree(folder, place / "copy")
                verdicts.append(after_resuming(place / "copy", truth, name))
                shutil.rmtree(place / "copy")
        for verdict, why in verdicts:
            found[kind][verdict] += 1
            if verdict not in ("right", "named"):
                print(json.dumps([verdict, how, why]), flush=True)
    return [line(kind, verdicts) for kind, verdicts in found.items()]
