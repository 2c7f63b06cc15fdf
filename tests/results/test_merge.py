"""The parts of a sweep, put together, are the sweep: each run once, whatever happened to a part on the way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from banditlab.cli.console import print_merge
from banditlab.engine import Sweep
from banditlab.errors import UsageError
from banditlab.results.merge import merge
from banditlab.results.reading import finished_runs

KEYS: dict[str, Any] = {
    "name": "small",
    "rounds": 300,
    "repetitions": 4,
    "norm_bounds": [1, 3],
    "environment": [{"id": "banditlab/Logistic-v0", "n_features": 4, "n_classes": 3}, {"id": "banditlab/Adversary-v0"}],
    "agent": [{"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}, {"id": "uniform"}],
}


def tables(folder: Path) -> list[pd.DataFrame]:
    names = ("results.parquet", "comparators.parquet", "descriptions.parquet")
    keys = (["run_id", "round"], ["stream_id", "round", "norm_bound"], ["run_id"])
    read = [pd.read_parquet(folder / name).drop(columns="seconds", errors="ignore") for name in names]
    return [table.sort_values(key, ignore_index=True)[sorted(table)] for table, key in zip(read, keys, strict=True)]


def assert_same(one: Path, other: Path) -> None:
    for left, right in zip(tables(one), tables(other), strict=True):
        pd.testing.assert_frame_equal(left, right, check_exact=True)
    plans = [json.loads((folder / "runs.json").read_text()) for folder in (one, other)]
    assert plans[0] == plans[1]
    for stream in plans[0]["streams"]:
        assert (other / "comparators" / f"{stream}.npz").exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Return (a sweep's folder, the folders of its five parts)."""
    folder = tmp_path_factory.mktemp("sweep")
    parts = [folder / f"part{i}" for i in range(1, 6)]
    Sweep(**KEYS).run(folder / "whole")
    for i, part in enumerate(parts, start=1):
        Sweep(**KEYS).run(part, shard=(i, 5))
    return folder / "whole", parts


@pytest.mark.slow
def test_five_parts_are_the_whole(made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, parts = made
    assert sum(len(finished_runs(part)) for part in parts) == len(finished_runs(whole)) == 24
    streams = [set(json.loads((part / "runs.json").read_text())["streams"]) for part in parts]
    assert sum(map(len, streams)) == len(set.union(*streams))  # whole streams
    assert print_merge(parts, tmp_path / "out") == 0
    assert_same(whole, tmp_path / "out")
    assert print_merge(parts[:2], tmp_path / "out") == 0  # again: nothing changes
    assert_same(whole, tmp_path / "out")
    assert "all 5 parts are complete" in capsys.readouterr().out


@pytest.mark.slow
def test_missing_parts_are_named_and_may_come_later(
    made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, parts = made
    assert print_merge([parts[3], parts[0]], tmp_path / "out") == 1
    assert "missing parts: 2/5, 3/5, 5/5; run them, and merge again" in capsys.readouterr().out
    assert print_merge([parts[1]], tmp_path / "out") == 1
    assert "missing parts: 3/5, 5/5" in capsys.readouterr().out
    assert print_merge([parts[4], parts[2]], tmp_path / "out") == 0
    assert_same(whole, tmp_path / "out")


def test_the_whole_can_be_finished_without_the_parts(made: Any, tmp_path: Path) -> None:
    whole, parts = made
    merge(parts[:4], tmp_path / "out")
    result = Sweep(**KEYS).run(tmp_path / "out")
    assert result.present + result.played == 24
    assert result.present == len(set.union(*(finished_runs(part) for part in parts[:4])))
    assert_same(whole, tmp_path / "out")


def test_what_is_damaged_or_unfinished_is_said(made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    whole, parts = made
    mine = tmp_path / "part1"
    shutil.copytree(parts[0], mine)
    data = bytearray((mine / "results.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (mine / "results.parquet").write_bytes(data)
    assert print_merge([mine, *parts[1:]], tmp_path / "out") == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "part1/results.parquet" in told
    assert f"part1 lacks {len(finished_runs(parts[0]))} runs" in told
    Sweep(**KEYS).run(mine, shard=(1, 5))
    assert print_merge([mine], tmp_path / "out") == 0
    assert_same(whole, tmp_path / "out")


def test_strangers_are_refused(made: Any, tmp_path: Path) -> None:
    whole, parts = made
    Sweep(**KEYS | {"repetitions": 5}).run(tmp_path / "other", shard=(1, 5))
    Sweep(**KEYS).run(tmp_path / "thirds", shard=(2, 30))
    for folders, out, expected in (
        ([whole], "out", "not a part of a sweep"),
        ([parts[0], tmp_path / "other"], "out", "a part of another sweep than"),
        ([parts[0], tmp_path / "thirds"], "out", "a part of another number of parts than"),
        ([parts[0], parts[1]], str(parts[0]), "is a part itself"),
        ([parts[1]], str(parts[0]), "is a part itself"),
    ):
        with pytest.raises(UsageError, match=expected):
            merge(folders, tmp_path / out)
    with pytest.raises(UsageError, match="has the results of another sweep"):
        merge([tmp_path / "other"], whole)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match=r"shard 6/5"):
        Sweep(**KEYS).run(tmp_path / "out", shard=(6, 5))


SPEC = """
name = "tiny"
rounds = 20000
repetitions = 20
norm_bounds = []
[[environment]]
id = "banditlab/Logistic-v0"
[[agent]]
id = "banditron"
grid = { gamma = [0.05, 0.1, 0.2, 0.3] }
"""


@pytest.mark.slow
def test_a_part_that_was_killed_and_resumed(tmp_path: Path) -> None:
    """By SIGKILL, half-way; as a batch queue would start it again."""
    (tmp_path / "tiny.toml").write_text(SPEC)

    def part(i: int) -> list[str]:
        line = ["run", "tiny.toml", "--set", "rounds=100000", "-j", "1", "--shard", f"{i}/5", "-o", f"part{i}"]
        return [sys.executable, "-m", "banditlab", *line]

    process = subprocess.Popen(part(3), cwd=tmp_path, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list((tmp_path / "part3").glob("shards/*/*.parquet")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = finished_runs(tmp_path / "part3")
    assert 0 < len(before) < 16
    for i in range(1, 6):
        subprocess.run(part(i), cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    whole = [
        sys.executable,
        "-m",
        "banditlab",
        "run",
        "tiny.toml",
        "--set",
        "rounds=100000",
        "-j",
        "1",
        "--no-report",
        "-o",
        "whole",
    ]
    subprocess.run(whole, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    assert print_merge([tmp_path / f"part{i}" for i in range(1, 6)], tmp_path / "out") == 0
    ours, theirs = (
        pd.read_parquet(tmp_path / name / "results.parquet").drop(columns="seconds") for name in ("out", "whole")
    )
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
