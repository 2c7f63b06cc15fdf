"""One damaged file costs no run that stands elsewhere, is never taken for whole, never written over, and is named."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.errors import UsageError
from banditlab.results import reading
from banditlab.results.files import parquet_of, table_of, write_bytes
from banditlab.results.schema import Finished
from banditlab.results.seal import BLANK, KEY, is_whole, sealed
from banditlab.results.store import Store, read_weights, weights_file
from tests.results.by_hand import sealed_json

IDS = ["aa", "bb", "cc"]
SPEC = 'name = "small"\n\n[store]\nformat = 1\n'
PLAN: dict[str, Any] = {"runs": [*IDS, "dd", "ee"], "streams": ["ss"], "skipped": [], "data": {}, "groups": {}}


def finished(run_id: str) -> Finished:
    rows: dict[str, list[Any]] = {"run_id": [run_id] * 2, "round": [1, 2], "mistakes": [0, ord(run_id[0])]}
    return Finished(run_id, rows, {"of": run_id})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three runs compacted, one in a shard, a failure and a plan of them all."""
    store = Store(tmp_path / "out")
    store.write_plan(SPEC, PLAN)
    store.write_runs([finished(run_id) for run_id in IDS])
    store.compact()
    store.write_runs([finished("dd")])
    store.write_failure("ee", {"error": "ValueError: no", "environment": "e", "player": "p", "repetition": 1})
    rows: dict[str, list[Any]] = {"stream_id": ["ss"], "round": [2], "norm_bound": [1.0], "loss_nats": [0.5]}
    store.write_comparators("ss", rows, {"W_2_1.0": np.eye(2)})
    return tmp_path / "out"


def mistakes(folder: Path) -> dict[str, int]:
    """Return the last count of every run that is read."""
    table = reading.read_runs(folder, [*IDS, "dd"]).table
    frame = pd.DataFrame() if table is None else table.to_pandas()
    return dict(zip(frame["run_id"], frame["mistakes"]))


WHOLE = {run_id: ord(run_id[0]) for run_id in [*IDS, "dd"]}


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def test_every_flipped_bit_breaks_a_seal() -> None:
    data = sealed(json.dumps({"a": 1, KEY: BLANK}).encode())
    assert is_whole(data) is True
    assert not any(is_whole(flipped(data, at, bit)) for at in range(len(data)) for bit in range(8))
    assert is_whole(b'{"a": 1}') is False
    assert is_whole(data.replace(KEY.encode(), b"k")) is False


@pytest.mark.parametrize("name", ["results.parquet", "copies/results.parquet"])
def test_a_flipped_bit_anywhere_changes_no_number(folder: Path, name: str) -> None:
    file = folder / name
    data = file.read_bytes()
    for at in range(0, len(data), 29):
        file.write_bytes(flipped(data, at, at % 8))
        assert mistakes(folder) == WHOLE
        assert reading.finished_runs(folder) == {*IDS, "dd"}
    found = reading.read_runs(folder, [*IDS, "dd"])
    assert (found.lost, found.spared) == ([], ["results.parquet"] if name == "results.parquet" else [])


@pytest.mark.parametrize("name", ["results.parquet", "descriptions.parquet"])
def test_a_damaged_file_is_set_aside_and_made_anew_from_its_copy(folder: Path, name: str) -> None:
    file, copy = folder / name, folder / "copies" / name
    whole = file.read_bytes()
    for broken in (file, copy):
        broken.write_bytes(whole[:-9])
        store = Store(folder)
        assert store.done() == ({*IDS, "dd"}, [])
        assert [path.read_bytes() for path in (folder / "damaged").iterdir()] == [whole[:-9]]
        assert len(store.notices) == 1
        assert f"{broken.relative_to(folder)} is damaged and kept as damaged/" in store.notices[0]
        assert file.read_bytes() == copy.read_bytes() == whole
        shutil.rmtree(folder / "damaged")
    file.unlink()
    store = Store(folder)
    store.done()
    assert store.notices == [f"{name} was gone and is made anew from copies/{name}"]


def test_what_is_damaged_twice_is_lost_by_name_and_not_written_over(folder: Path) -> None:
    for file in (folder / "results.parquet", folder / "copies" / "results.parquet"):
        file.write_bytes(file.read_bytes()[:-1] + b"\0")
    found = reading.read_runs(folder, [*IDS, "dd"])
    assert found.lost == ["results.parquet", "copies/results.parquet"]
    assert mistakes(folder) == {"dd": WHOLE["dd"]}
    store = Store(folder)
    store.compact()
    assert mistakes(folder) == {"dd": WHOLE["dd"]}
    assert len(list((folder / "damaged").iterdir())) == 2
    assert "what they alone held is lost" in store.notices[0]


def test_a_damaged_shard_is_set_aside(folder: Path) -> None:
    [shard] = folder.glob("shards/*/*.parquet")
    shard.write_bytes(flipped(shard.read_bytes(), 60, 3))
    assert reading.read_runs(folder, [*IDS, "dd"]).lost == [shard.relative_to(folder).as_posix()]
    store = Store(folder)
    assert store.done() == (set(IDS), ["dd"])
    assert not shard.exists()
    assert len(store.notices) == 1


@pytest.mark.parametrize("place", [5, -300, -20])
def test_a_damaged_comparator_is_read_elsewhere_or_made_anew(folder: Path, place: int) -> None:
    Store(folder).compact()
    file = folder / "comparators" / "ss.parquet"
    whole = file.read_bytes()
    file.write_bytes(flipped(whole, place % len(whole), 2))
    found = reading.read_comparators(folder, ["ss"])
    assert found.table is not None
    assert (found.table["loss_nats"].unique().to_pylist(), found.spared) == ([0.5], ["comparators/ss.parquet"])
    store = Store(folder)
    store.compact()
    assert "comparators/ss.parquet is damaged" in store.notices[0]
    assert reading.read_comparators(folder, ["ss"]).table is not None  # what compacting gathered before stays


def test_another_streams_comparators_are_not_this_ones(folder: Path) -> None:
    file = folder / "comparators" / "tt.npz"
    file.write_bytes((folder / "comparators" / "ss.npz").read_bytes())
    shutil.copy(folder / "comparators" / "ss.parquet", folder / "comparators" / "tt.parquet")
    assert list(read_weights(folder / "comparators" / "ss.npz", "ss")) == ["W_2_1.0"]
    assert read_weights(file, "tt") == {}
    assert reading.read_comparator(file.with_suffix(".parquet")) is None
    data = weights_file("ss", {"W_2_1.0": np.eye(2)})
    for at in range(0, len(data), 7):
        file.with_name("ss.npz").write_bytes(flipped(data, at, 1))
        assert read_weights(file.with_name("ss.npz"), "ss") == {}


def test_compacting_drops_no_comparator_that_a_streams_file_lacks(folder: Path) -> None:
    store = Store(folder)
    store.compact()
    rows: dict[str, list[Any]] = {"stream_id": ["ss"], "round": [1], "norm_bound": [1.0], "loss_nats": [0.1]}
    store.write_comparators("ss", rows, {"W_1_1.0": np.eye(2)})
    store.compact()
    table = reading.read_comparators(folder, ["ss"]).table
    assert table is not None
    assert set(zip(table["round"].to_pylist(), table["loss_nats"].to_pylist())) == {(1, 0.1), (2, 0.5)}


def test_a_damaged_failure_says_so(folder: Path) -> None:
    file = folder / "failed" / "ee.json"
    data = file.read_bytes()
    assert [f.error for f in reading.read_failures(folder, ["ee"])] == ["ValueError: no"]
    unsealed = json.dumps({name: value for name, value in json.loads(data).items() if name != KEY}).encode()
    spoilt = (flipped(data, 20, 0), b"", unsealed)
    odd = [sealed(json.dumps([BLANK]).encode()), sealed(b"\xff" + BLANK.encode())]
    odd += [sealed_json(record) for record in ({"run_id": "other"}, {"run_id": "ee", "error": "x", "repetition": []})]
    for broken in (*spoilt, *odd):
        file.write_bytes(broken)
        [failure] = reading.read_failures(folder, ["ee"])
        assert (failure.run_id, failure.repetition) == ("ee", -1)
        assert "failed/ee.json is damaged" in failure.error
        assert Store(folder).failures(["ee"])[0]["settings"] == {}


@pytest.mark.parametrize("name", ["spec.toml", "runs.json"])
def test_a_damaged_plan_or_spec_is_refused_in_one_line_and_written_anew(folder: Path, name: str) -> None:
    file, read = folder / name, {"spec.toml": reading.read_spec, "runs.json": reading.read_plan}[name]
    data = file.read_bytes()
    (folder / "report.html").write_text("of these runs")
    for at in range(0, len(data), 11):
        file.write_bytes(flipped(data, at, at % 8))
        with pytest.raises(UsageError, match=rf"{name}: damaged"):
            read(folder)
    store = Store(folder)
    store.write_plan(SPEC, PLAN)
    assert [notice.split(" is")[0] for notice in store.notices] == [name]
    assert file.read_bytes() == data
    assert reading.finished_runs(folder) == {*IDS, "dd"}
    assert len(list(folder.rglob("report.html"))) == 1


def test_a_file_system_without_locks_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(UsageError, match=r"gives no lock \(No locks available\)"):
        Store(folder).done()


@pytest.mark.skipif(os.name != "posix", reason="folders are opened there only")
def test_a_new_files_entry_is_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds, fsync = [], os.fsync

    def noted(number: int) -> None:
        kinds.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    write_bytes(tmp_path / "new", b"there")
    assert kinds == ["file", "folder"]


def test_what_is_not_read_back_keeps_its_shards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that lies: what was written is not there."""
    monkeypatch.setattr("banditlab.results.store.write_bytes", lambda file, data: write_bytes(file, data[:-4]))
    with pytest.raises(UsageError, match="not what is read back"):
        Store(folder).compact()
    assert len(list(folder.glob("shards/*/*.parquet"))) == 1


def test_a_sealed_file_is_plain_parquet(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(parquet_of(table_of({"run_id": ["aa"], "round": [1]})))
    assert pd.read_parquet(tmp_path / "table.parquet").to_dict("list") == {"run_id": ["aa"], "round": [1]}
