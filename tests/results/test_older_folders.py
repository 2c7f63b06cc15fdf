"""A folder written by commit 31b76b3, before files had seals: eight runs of a table, four of an adversary, half in shards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from banditlab.analysis import load
from banditlab.engine import Sweep, read_spec
from banditlab.results.reading import shards
from banditlab.results.seal import is_whole

OLD = Path(__file__).parent / "written_by_31b76b3"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the folder whose spec names the table where it is."""
    shutil.copytree(OLD, tmp_path / "out")
    spec = tmp_path / "out" / "spec.toml"
    spec.write_text(spec.read_text().replace('"flowers.csv"', json.dumps(str(tmp_path / "flowers.csv"))))
    shutil.copy(OLD.with_suffix(".csv"), tmp_path / "flowers.csv")
    return tmp_path / "out"


def test_it_is_read_and_resumed(folder: Path) -> None:
    before = load(folder)
    assert (before.planned, before.missing, before.unreadable, before.spared) == (12, 0, [], [])
    assert (len(before.comparators), len(shards(folder))) == (16, 2)
    result = Sweep(read_spec(folder / "spec.toml")).run(folder)
    assert (result.present, result.played, result.failures, result.notices) == (12, 0, [], [])
    after = load(folder)
    pd.testing.assert_frame_equal(after.runs, before.runs)
    assert len(after.comparators) == 16
    for name in ("results.parquet", "copies/results.parquet", "descriptions.parquet", "spec.toml", "runs.json"):
        assert is_whole((folder / name).read_bytes()), name


def test_its_damage_is_found_by_its_pages_checksums(folder: Path) -> None:
    file = folder / "results.parquet"
    data = bytearray(file.read_bytes())
    data[200] ^= 4
    file.write_bytes(data)
    results = load(folder)
    assert (results.missing, results.unreadable) == (6, ["results.parquet"])
    again = Sweep(read_spec(folder / "spec.toml")).run(folder)
    assert (again.present, again.played, len(again.notices)) == (6, 6, 1)
