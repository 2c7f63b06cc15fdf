"""Columns, and tables of the store by hand: what a value becomes, what belongs to whom, what is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from banditlab.errors import UsageError
from banditlab.results.files import (
    NoRoomError,
    array_of,
    bytes_of,
    concatenate,
    each_once,
    listing,
    merged,
    parquet_of,
    parsed,
    stacked,
    table_of,
    write_bytes,
)
from banditlab.results.incoming import take
from banditlab.results.reading import read_runs
from banditlab.results.schema import SHARDS, Finished, type_of
from banditlab.results.store import Store, shard_name

# ----------------------------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("run_id", ["a"], pa.string()),
        ("mistakes", [1], pa.int64()),
        ("constant_mistakes", [None], pa.int64()),
        ("first_sight_rounds", [1], pa.int64()),
        ("first_sight_mistakes", [1], pa.int64()),
        ("first_sight_constant_mistakes", [1], pa.int64()),
        ("first_sight_expected_mistakes", [1.0], pa.float64()),
        ("mistakes_variance", [1.0], pa.float64()),
        ("row_losses", [b"a"], pa.binary()),
        ("diagnostic.x", ["a"], pa.float64()),
        ("param.a", [1, 2.5, None], pa.float64()),
        ("param.a", [None], pa.float64()),
        ("param.a", [True], pa.string()),
        ("param.a", [1.0, "auto"], pa.string()),
        ("setting.a", [1.0], pa.string()),
    ],
)
def test_the_type_of_a_column(name: str, values: list[Any], kind: pa.DataType) -> None:
    assert type_of(name, values) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "", None, "ä"], pa.string()),
        ([None] * 9 + ["b"], pa.string()),
        ([b"a", None, b"\0\xff"], pa.binary()),
        ([1, None, -3], pa.int64()),
        ([1.5, None, 2.0] * 5, pa.float64()),
        ([], pa.string()),
        ([1, 2], pa.int64()),
    ],
)
def test_an_array_is_what_arrow_makes_of_it(values: list[Any], kind: pa.DataType) -> None:
    assert array_of(values, kind).equals(pa.array(values, kind))


def test_runs_are_stacked_and_text_in_one_is_text_in_all() -> None:
    table = stacked(
        [
            {"run_id": ["a", "a"], "round": [1, 2], "param.x": [1.0, 2.5], "diagnostic.d": [0.5, 1.5]},
            {"run_id": ["b"], "round": [1], "param.x": ["auto"]},
            {"run_id": ["c"], "round": [1], "param.x": [None], "diagnostic.d": [2.0]},
        ]
    )
    assert table.schema.names == ["run_id", "round", "diagnostic.d", "param.x"]
    assert table.sort_by("run_id").to_pydict() == {
        "run_id": ["a", "a", "b", "c"],
        "round": [1, 2, 1, 1],
        "diagnostic.d": [0.5, 1.5, None, 2.0],
        "param.x": ["1", "2.5", "auto", None],
    }


def test_a_run_is_its_first_tables_and_all_are_sorted() -> None:
    one = table_of({"run_id": ["b", "b"], "round": [2, 1], "mistakes": [1, 2]})
    two = table_of({"run_id": ["b", "a", "c"], "round": [1, 1, 1], "mistakes": [9, 3, 4]})
    three = table_of({"run_id": ["c", "b"], "round": [1, 3], "mistakes": [8, 8]})
    assert merged([one, two, three], ["run_id", "round"]).to_pydict() == {
        "run_id": ["a", "b", "b", "c"],
        "round": [1, 1, 2, 1],
        "mistakes": [3, 2, 1, 4],
    }
    assert concatenate([one]).to_pydict() == one.to_pydict()
    assert [table["run_id"].to_pylist() for table in each_once([one, two, three], {"a", "b", "z"})] == [
        ["b", "b"],
        ["a"],
    ]
    assert each_once([one, two], {"z"}) == []


# ------------------------------------------------------------------------------------------------------------------- files


TABLE = table_of({"run_id": [f"r{i}" for i in range(50)], "round": list(range(50))})


def test_a_table_is_read_from_its_bytes() -> None:
    data = parquet_of(TABLE)
    assert parsed(data).to_pydict() == TABLE.to_pydict()
    assert parsed(data, ["round"]).to_pydict() == {"round": list(range(50))}
    assert listing("a/b", b"abc").decode() == f"{hashlib.sha256(b'abc').hexdigest()}  a/b"  # as sha256sum writes it


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (PermissionError(errno.EACCES, "no"), True),
        (OSError(errno.EIO, "no"), True),
        (FileNotFoundError(errno.ENOENT, "no"), False),
        (NotADirectoryError(errno.ENOTDIR, "no"), False),
    ],
)
def test_what_the_system_refuses_may_be_whole(error: Exception, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(_: Path) -> bytes:
        raise error

    monkeypatch.setattr(Path, "read_bytes", raises)
    if refused:
        with pytest.raises(UsageError, match=r"f: cannot be read \(no\)"):
            bytes_of(Path("f"))
    else:
        assert bytes_of(Path("f")) is None


def test_a_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deep" / "er" / "f"
    for data in (b"one", b"two"):
        write_bytes(file, data)
        assert file.read_bytes() == data

    def refused(name: str, _: Path) -> None:
        os.unlink(name)
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        write_bytes(file, b"three", refused)
    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(OSError, match="no room"):
        write_bytes(file, b"three")
    assert [each.name for each in file.parent.iterdir()] == ["f"]
    assert file.read_bytes() == b"two"


# ------------------------------------------------------------------------------------------------------------------- store


def finished(run_id: str) -> Finished:
    rows: dict[str, list[Any]] = {"run_id": [run_id] * 2, "round": [1, 2], "mistakes": [0, ord(run_id[0])]}
    return Finished(run_id, rows, {"z": run_id, "a": 1})


def test_where_and_how_runs_are_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "out")
    assert shard_name("abcdef") == "shards/ab/abcdef.parquet"
    assert shard_name("abcdef", "g").startswith("shards/ab/abcdef-")
    assert shard_name("abcdef", "g") != shard_name("abcdef", "h")
    store.write_runs([finished("aa"), finished("bb")])
    [shard] = store.folder.glob("shards/*/*.parquet")
    held = json.loads(pq.read_metadata(shard).metadata[b"banditlab.runs"])
    assert held == {name: f'{{"a": 1, "z": "{name}"}}' for name in ("aa", "bb")}
    rows: dict[str, list[Any]] = {"stream_id": ["s"], "round": [2], "norm_bound": [1.0]}
    store.write_comparators("s", rows, {"W": np.eye(2)})
    found, weights = store.comparators("s")
    assert (found, weights["W"].tolist()) == (rows, np.eye(2).tolist())
    with np.load(store.folder / "comparators" / "s.npz") as arrays:  # as notebooks do
        assert arrays["W"].tolist() == np.eye(2).tolist()
    (store.folder / "comparators" / "s.parquet").unlink()
    assert store.comparators("s") == ({}, {})


def test_what_has_come_is_no_failure_any_more(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run_id in ("aa", "bb", "ss"):
        store.write_failure(run_id, {"error": "no", "environment": "e", "player": "p", "repetition": 1, "settings": {}})
    store.write_runs([finished("aa"), finished("cc")])
    assert store.failed() == {"bb", "ss"}
    store.write_comparators("ss", {"stream_id": ["ss"], "round": [2], "norm_bound": [1.0]}, {"W": np.eye(2)})
    store.write_comparators("tt", {"stream_id": ["tt"], "round": [2], "norm_bound": [1.0]}, {"W": np.eye(2)})
    assert store.failed() == {"bb"}


def test_who_is_stored_is_forgiven_and_comparators_are_not(tmp_path: Path) -> None:
    """An adaptive stream's comparators bear its run's id."""
    store = Store(tmp_path)
    record = {"error": "no", "environment": "e", "repetition": 1, "settings": {}}
    store.write_failure("cc", record | {"player": "comparator"})
    store.write_runs([finished("aa"), finished("cc")])
    assert store.failed() == {"cc"}
    for run_id in ("aa", "bb", "dd"):
        store.write_failure(run_id, record | {"player": "p"})
    (tmp_path / "failed" / "aa.json").write_bytes(b"half of it")
    store.compact()
    assert store.failed() == {"bb", "cc", "dd"}
    store.write_runs([finished("bb")])
    store.write_failure("bb", record | {"player": "p"})
    store.compact()
    assert store.failed() == {"cc", "dd"}
    table = read_runs(tmp_path, ["aa", "bb", "cc", "dd"]).table
    assert table is not None
    assert set(table["run_id"].to_pylist()) == {"aa", "bb", "cc"}


def test_a_folder_that_was_taken_away_costs_no_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    assert store.failed() == set()
    store.write_runs([finished("aa")])
    table = read_runs(tmp_path / "out", ["aa"]).table
    assert table is not None
    assert len(table) == 2


@pytest.mark.parametrize(("number", "full"), [(errno.ENOSPC, True), (errno.EROFS, True), (errno.EACCES, False)])
def test_a_file_there_is_no_room_for(number: int, full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", refuses)
    with pytest.raises(OSError, match="no") as caught:
        write_bytes(tmp_path / "file", b"x")
    assert (caught.value.errno, isinstance(caught.value, NoRoomError)) == (number, full)
    assert list(tmp_path.iterdir()) == []


def test_what_is_compacted_while_it_is_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, glob = Store(tmp_path), Path.glob
    store.write_runs([finished("aa")])

    def compacted_meanwhile(folder: Path, pattern: str) -> Any:
        found = list(glob(folder, pattern))
        monkeypatch.undo()
        store.compact()
        return found

    monkeypatch.setattr(Path, "glob", compacted_meanwhile)
    found = read_runs(tmp_path, ["aa", "bb"])
    assert found.table is not None
    assert (found.table["run_id"].to_pylist(), found.damaged) == (["aa", "aa"], [])


def test_what_another_machine_made_is_written_and_earlier_failures_are_forgotten(tmp_path: Path) -> None:
    made, out = Store(tmp_path / "made"), Store(tmp_path / "out")
    made.write_runs([finished("aa"), finished("bb")])
    rows = {"stream_id": ["ss"], "round": [2], "norm_bound": [1.0]}
    made.write_comparators("ss", rows, {"W": np.eye(2)})
    record = {"error": "no", "environment": "e", "player": "p", "repetition": 1, "settings": {}}
    made.write_failure("ff", record)
    for run_id in ("aa", "hh", "ss"):
        out.write_failure(run_id, record)
    names = made.files.names(SHARDS, "comparators/*", "failed/*")
    take(out, {name: (made.folder / name).read_bytes() for name in names})
    assert out.failed() == {"ff", "hh"}
    assert out.done() == ({"aa", "bb"}, [])
    assert list(out.comparators("ss")[1]) == ["W"]


def test_what_is_finished_is_what_has_results(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_runs([finished("aa"), finished("bb")])
    store.compact()
    (tmp_path / "descriptions.parquet").unlink()
    assert Store(tmp_path).done() == ({"aa", "bb"}, [])
