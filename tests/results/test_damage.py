"""A damaged file is named, gives no wrong number, and costs what it alone held, which is made anew."""

from __future__ import annotations

import dataclasses
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

from banditlab.engine import Sweep
from banditlab.errors import UsageError
from banditlab.results import reading
from banditlab.results.files import Files, NoRoomError, write_bytes
from banditlab.results.incoming import take
from banditlab.results.reading import Failure, Skip, check_format, read_failures, read_plan, read_runs
from banditlab.results.schema import FORMAT, SHARDS, SUMS, Finished
from banditlab.results.store import Store
from tests.results.by_hand import flipped, put

IDS = ["aa", "bb", "cc"]
SPEC = 'name = "small"\n\n[store]\nformat = 1\n'
PLAN: dict[str, Any] = {"runs": [*IDS, "dd", "ee"], "streams": ["ss"], "skipped": [], "data": {}, "groups": {}}
ROWS: dict[str, list[Any]] = {"stream_id": ["ss"], "round": [2], "norm_bound": [1.0], "loss_nats": [0.5]}


def finished(run_id: str) -> Finished:
    rows: dict[str, list[Any]] = {"run_id": [run_id] * 2, "round": [1, 2], "mistakes": [0, ord(run_id[0])]}
    return Finished(run_id, rows, {"of": run_id})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three runs compacted, one in a shard, a failure and a plan of them all."""
    store = Store(tmp_path / "out")
    store.write_plan(SPEC, PLAN)
    store.write_runs([finished(run_id) for run_id in IDS])
    store.write_comparators("ss", ROWS, {"W_2_1.0": np.eye(2)})
    store.compact()
    store.write_runs([finished("dd")])
    store.write_failure("ee", {"error": "ValueError: no", "environment": "e", "player": "p", "repetition": 1})
    return tmp_path / "out"


def mistakes(folder: Path) -> dict[str, int]:
    """Return the last count of every run that is read."""
    table = reading.read_runs(folder, [*IDS, "dd"]).table
    frame = pd.DataFrame({"run_id": [], "mistakes": []}) if table is None else table.to_pandas()
    return dict(zip(frame["run_id"], frame["mistakes"]))


WHOLE = {run_id: ord(run_id[0]) for run_id in [*IDS, "dd"]}
COSTS = {"results.parquet": {*IDS}, "shards/dd/dd.parquet": {"dd"}}
"""The runs that a file holds alone."""


def held(folder: Path) -> tuple[Any, ...]:
    """Return what a folder's files say of it, None for a spec or plan that is refused in one line."""
    found: list[Any] = [mistakes(folder)]
    table = reading.read_comparators(folder, ["ss"]).table
    found.append(None if table is None else table.to_pydict())
    found.append([failure.error for failure in reading.read_failures(folder, ["ee"])])
    found.append({name: W.tolist() for name, W in Store(folder).comparators("ss")[1].items()})
    for name, read in (("spec.toml", reading.read_spec), ("runs.json", reading.read_plan)):
        if name in reading.damaged_files(folder):
            with pytest.raises(UsageError, match=f"{name}: damaged"):
                read(folder)
            found.append(None)
        else:
            found.append(read(folder))
    return tuple(found)


def test_every_file_of_a_folder_is_in_its_manifest(folder: Path) -> None:
    assert reading.damaged_files(folder) == []
    outside = {SUMS, ".lock"}
    for name in Files(folder).names("*", "*/*", "*/*/*"):
        if (folder / name).is_file() and name not in outside:
            whole = (folder / name).read_bytes()
            (folder / name).write_bytes(whole + b"\0")
            assert reading.damaged_files(folder) == [name]
            (folder / name).write_bytes(whole)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("spec.toml", 4),
        ("runs.json", 5),
        ("results.parquet", 0),
        ("shards/dd/dd.parquet", 0),
        ("comparators/ss.npz", 3),
        ("comparators/ss.parquet", 1),
        ("failed/ee.json", 2),
    ],
)
@pytest.mark.few(3)
def test_a_flipped_bit_anywhere_is_named_and_changes_nothing_else(folder: Path, name: str, place: int) -> None:
    truth, file = held(folder), folder / name
    data = file.read_bytes()
    for at in range(0, len(data), 13):
        file.write_bytes(flipped(data, at, at % 8))
        assert reading.damaged_files(folder) == [name]
        found = held(folder)
        if name in COSTS:
            assert found[0] == {run_id: n for run_id, n in WHOLE.items() if run_id not in COSTS[name]}
            assert reading.finished_runs(folder) == set(WHOLE) - COSTS[name]
            assert reading.read_runs(folder, IDS).damaged == [name]
        elif place == 2:
            assert found[2] == [
                "failed/ee.json is damaged: the reason of the failure is lost, and the run is tried again"
            ]
        else:
            assert found[place] in (None, {})
        same = [i for i in range(6) if i != place and not (place == 1 and i == 3)]  # W counts beside its rows only
        assert [found[i] for i in same] == [truth[i] for i in same]
    for i in range(0, len(data), 97):  # cut, or another file's content
        file.write_bytes(data[:i])
        assert reading.damaged_files(folder) == [name]
    file.write_bytes((folder / ("runs.json" if name == "spec.toml" else "spec.toml")).read_bytes())
    assert reading.damaged_files(folder) == [name]


@pytest.mark.slow
def test_every_flipped_bit_of_the_manifest_names_what_is_not_believed(folder: Path) -> None:
    """It makes no file whole that is not; a file whose line is lost is made anew."""
    manifest, names = folder / SUMS, Files(folder).names(*reading.LISTED)
    data = manifest.read_bytes()
    for at in range(len(data)):
        manifest.write_bytes(flipped(data, at, at % 8))
        damaged = reading.damaged_files(folder)
        assert len(damaged) <= 2  # two where a line's end is lost
        assert set(damaged) <= set(names)
        gone = {run_id for name in damaged for run_id in COSTS.get(name, set())}
        assert mistakes(folder) == {run_id: n for run_id, n in WHOLE.items() if run_id not in gone}


def test_what_is_damaged_is_set_aside_and_done_again(folder: Path) -> None:
    broken = {"shards/dd/dd.parquet": ["dd"], "results.parquet": [], "descriptions.parquet": [], "runs.json": []}
    for name, firsts in broken.items():
        copy = folder.with_name("copy")
        shutil.copytree(folder, copy)
        spoilt = flipped((copy / name).read_bytes(), 60, 3)
        (copy / name).write_bytes(spoilt)
        store = Store(copy)
        assert store.done() == (set(WHOLE) - COSTS.get(name, set()), firsts)
        assert not (copy / name).exists()
        assert (copy / f"{name}.damaged").read_bytes() == spoilt
        said = f"{name} does not match SHA256SUMS and was renamed to {name}.damaged; "
        said += "content stored only there is computed again"
        assert store.notices == [said]
        assert reading.damaged_files(copy) == []
        store.write_runs([finished(run_id) for run_id in WHOLE])
        store.compact()
        assert mistakes(copy) == WHOLE
        shutil.rmtree(copy)


def test_what_is_found_damaged_while_compacting_is_named_and_kept(folder: Path) -> None:
    spoilt = (folder / "results.parquet").read_bytes()[:-9]
    (folder / "results.parquet").write_bytes(spoilt)
    store = Store(folder)
    store.compact()
    assert [notice.partition(" ")[0] for notice in store.notices] == ["results.parquet"]
    assert (folder / "results.parquet.damaged").read_bytes() == spoilt
    assert mistakes(folder) == {"dd": WHOLE["dd"]}


def test_a_run_in_two_files_survives_one_of_them(folder: Path) -> None:
    Store(folder).write_runs([finished("aa")])
    shard = folder / "shards" / "aa" / "aa.parquet"
    shard.write_bytes(shard.read_bytes()[:-9])
    assert mistakes(folder) == WHOLE
    assert Store(folder).done() == (set(WHOLE), [])


def test_a_stranger_among_the_shards_is_named(folder: Path) -> None:
    shutil.copy(folder / "shards" / "dd" / "dd.parquet", folder / "shards" / "dd" / "zz.parquet")
    assert reading.damaged_files(folder) == ["shards/dd/zz.parquet"]
    assert mistakes(folder) == WHOLE


def test_another_streams_comparators_are_not_this_ones(folder: Path) -> None:
    for kind in ("npz", "parquet"):
        shutil.copy(folder / "comparators" / f"ss.{kind}", folder / "comparators" / f"tt.{kind}")
    store = Store(folder)
    assert store.comparators("tt") == ({}, {})
    assert (store.comparators("ss")[0], list(store.comparators("ss")[1])) == (ROWS, ["W_2_1.0"])
    assert reading.read_comparators(folder, ["ss", "tt"]).damaged == ["comparators/tt.parquet"]


def test_a_spec_that_is_not_ours_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    for other in ("{}", "[]"):
        with pytest.raises(UsageError, match="choose another folder with -o"):
            Store(tmp_path)
        (tmp_path / "runs.json").write_text(other)  # nor is this
    assert (tmp_path / "spec.toml").read_text() == SPEC
    put(tmp_path, "runs.json", PLAN)
    Store(tmp_path).write_plan(SPEC, PLAN)
    assert reading.damaged_files(tmp_path) == []


def test_a_folder_whose_manifest_is_gone_is_refused_and_kept(folder: Path) -> None:
    (folder / SUMS).unlink()
    with pytest.raises(UsageError, match="do not match SHA256SUMS"):
        Store(folder)
    assert (folder / "results.parquet").exists()


def test_a_report_of_a_damaged_plan_is_moved(folder: Path) -> None:
    (folder / "report.html").write_text("of these runs")
    file = folder / "runs.json"
    data = file.read_bytes()
    file.write_bytes(flipped(data, 9, 2))
    store = Store(folder)
    store.done()
    kept = store.write_plan(SPEC, PLAN)
    assert kept is not None
    assert (kept / "report.html").read_text() == "of these runs"
    assert file.read_bytes() == data
    assert Store(folder).write_plan(SPEC, PLAN) is None
    (folder / "report.html").write_text("again of these")
    assert Store(folder).write_plan(SPEC, PLAN) is None


# ------------------------------------------------------------------------------------------------------- order of writing


def test_a_crash_at_any_step_of_compacting_loses_and_doubles_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step that another process could see: a line of the manifest, a rename, a shard that goes."""
    step, done = 0, False
    while not done:
        copy = folder.with_name(f"copy{step}")
        shutil.copytree(folder, copy)
        with monkeypatch.context() as patch:
            steps = [step]
            for owner, name in ((os, "replace"), (os, "fsync"), (Path, "unlink")):
                patch.setattr(owner, name, stopping(getattr(owner, name), steps))
            try:
                Store(copy).compact()
                done = True
            except KeyboardInterrupt:
                step += 1
        assert reading.damaged_files(copy) == []
        assert mistakes(copy) == WHOLE
        assert Store(copy).done() == (set(WHOLE), [])
        Store(copy).compact()
        assert list(pd.read_parquet(copy / "results.parquet")["run_id"]) == sorted([*WHOLE] * 2)
        assert list(pd.read_parquet(copy / "descriptions.parquet")["run_id"]) == sorted(WHOLE)
        assert Files(copy).names("shards/*/*") == []
    assert step > 10


def stopping(call: Any, left: list[int]) -> Any:
    """Return a function that is interrupted instead of called once it was called so many times."""

    def counted(*given: Any, **more: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return call(*given, **more)

    return counted


def test_a_line_that_was_cut_short_spoils_no_other(folder: Path) -> None:
    with open(folder / SUMS, "ab") as sums:
        sums.write(b"\n0123456789abcdef")
    Store(folder).write_runs([finished("ff")])
    assert reading.damaged_files(folder) == []
    assert reading.finished_runs(folder) == {*WHOLE, "ff"}


def test_the_manifest_lists_what_is_there_only(folder: Path) -> None:
    for _ in range(3):
        Store(folder).write_runs([finished("ff")])
        Store(folder).compact()
    names = [line[66:].decode() for line in (folder / SUMS).read_bytes().split(b"\n")[1:]]
    assert set(names) == set(Files(folder).names(*reading.LISTED))
    assert not any(name.startswith("shards/") for name in names)


def test_a_reader_that_looked_at_the_manifest_before_is_not_misled(folder: Path) -> None:
    files = Files(folder)
    assert files.data("results.parquet") is not None
    store = Store(folder)
    store.compact()
    store.write_runs([finished("ff")])
    assert files.data("results.parquet") is not None
    assert files.data("shards/ff/ff.parquet") is not None
    assert files.data("shards/dd/dd.parquet") is None  # compacted
    assert files.damaged == []


def test_a_file_that_goes_while_it_is_read_is_not_damaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compacting takes a shard and its line away after its bytes were read."""
    files, read, store = Files(folder), Path.read_bytes, Store(folder)

    def compacted_meanwhile(file: Path) -> bytes:
        data = read(file)
        if file.suffix == ".parquet":
            monkeypatch.undo()
            store.compact()
        return data

    monkeypatch.setattr(Path, "read_bytes", compacted_meanwhile)
    assert files.data("shards/dd/dd.parquet") is None
    assert files.damaged == []


# ------------------------------------------------------------------------------------------------------------------ system


def test_a_file_system_without_locks_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(UsageError, match=r"denies a lock \(No locks available\)"):
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
    Store(tmp_path / "out").write("spec.toml", b"x")
    assert kinds[2:] == ["file", "file", "folder"]  # the file, the manifest, the names of both


KEYS: dict[str, Any] = {
    "name": "small",
    "rounds": 30,
    "repetitions": 2,
    "checkpoints": [10, 30],
    "norm_bounds": [1.0],
    "environment": [{"id": "banditlab/Logistic-v0", "n_features": 2, "n_classes": 2}],
    "agent": [{"id": "banditron"}, {"id": "uniform"}],
}


def numbers(folder: Path) -> list[pd.DataFrame]:
    names = ("results.parquet", "comparators.parquet")
    return [pd.read_parquet(folder / name).drop(columns="seconds") for name in names]


def test_a_sweep_makes_what_was_damaged_anew(tmp_path: Path) -> None:
    """Whatever file it is: the folder is as it would have been, and the notice names the file."""
    Sweep(**KEYS).run(tmp_path / "whole")
    truth = numbers(tmp_path / "whole")
    for name in Files(tmp_path / "whole").names(*reading.LISTED):
        shutil.copytree(tmp_path / "whole", tmp_path / "copy")
        file = tmp_path / "copy" / name
        data = file.read_bytes()
        file.write_bytes(flipped(data, len(data) // 2, 4))
        result = Sweep(**KEYS).run(tmp_path / "copy")
        assert [notice.partition(" ")[0] for notice in result.notices] == [name]
        assert (result.played, result.failures) == (4 if name == "results.parquet" else 0, [])
        assert reading.damaged_files(tmp_path / "copy") == []
        for found, right in zip(numbers(tmp_path / "copy"), truth, strict=True):
            pd.testing.assert_frame_equal(found, right, check_exact=True)
        shutil.rmtree(tmp_path / "copy")


RECORD: dict[str, Any] = {"error": "no", "environment": "e", "player": "p", "repetition": 1, "settings": {"a": "1"}}


def spec_of(number: int) -> str:
    return f'name = "s"\n\n[store]\nformat = {number}\n'


@pytest.mark.parametrize(
    ("spec", "whole", "plan", "refused"),
    [
        ("", False, "none", ""),
        (spec_of(FORMAT), True, "none", ""),
        (spec_of(FORMAT), False, "whole", ""),
        (spec_of(FORMAT), False, "damaged", "do not match SHA256SUMS"),
        (spec_of(FORMAT), False, "none", "do not match SHA256SUMS"),
        (spec_of(FORMAT + 1), True, "whole", f"this version reads and writes format {FORMAT}"),
        ('name = "s"', True, "whole", f"format None, and this version reads and writes format {FORMAT}"),
        ("rounds = = 3", True, "whole", "not TOML"),
    ],
)
def test_a_folders_format(spec: str, whole: bool, plan: str, refused: str, tmp_path: Path) -> None:
    if spec:
        put(tmp_path, "spec.toml", spec if whole else "")
        (tmp_path / "spec.toml").write_text(spec)
    if plan != "none":
        put(tmp_path, "runs.json", PLAN if plan == "whole" else "")
        (tmp_path / "runs.json").write_text(json.dumps(PLAN))
    if refused:
        with pytest.raises(UsageError, match=refused):
            check_format(tmp_path)
    else:
        check_format(tmp_path)


def test_a_plan_is_a_table_that_is_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not a results folder \(it has no runs\.json"):
        read_plan(tmp_path)
    for other in ([["runs", 1]], PLAN | {"runs": "ab"}, PLAN | {"streams": [1]}, {"runs": []}):
        put(tmp_path, "runs.json", other)
        with pytest.raises(UsageError, match="not a valid plan of runs"):
            read_plan(tmp_path)
    (tmp_path / "runs.json").write_text(json.dumps(PLAN))
    with pytest.raises(UsageError, match=r"runs\.json: damaged"):
        read_plan(tmp_path)


def test_a_failure_is_read_or_said_to_be_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run_id, player in (("aa", "p"), ("bb", "comparator"), ("cc", "p")):
        store.write_failure(run_id, RECORD | {"player": player})
    failed = tmp_path / "failed"
    assert store.failures(["aa"]) == [RECORD | {"run_id": "aa"}]
    (failed / "dd.json").write_bytes((failed / "aa.json").read_bytes())  # another's
    (failed / "cc.json").write_bytes((failed / "cc.json").read_bytes().replace(b'"no"', b'"on"'))
    for run_id in ("cc", "dd"):
        [found] = store.failures([run_id])
        assert "is damaged: the reason of the failure is lost" in found["error"]
        assert (found["run_id"], found["player"], found["repetition"], found["settings"]) == (run_id, "?", -1, {})
    assert store.failures(["none"]) == []
    listed = read_failures(tmp_path, {"aa", "bb", "none"})
    assert listed == [Failure("aa", "e", "p", 1, "no"), Failure("bb", "e", "comparator", 1, "no")]
    assert [each.is_comparator for each in listed] == [False, True]
    for each, name in ((listed[0], "error"), (Skip("e", "p", "r"), "reason")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(each, name, "other")


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
    table = read_runs(tmp_path, ["aa", "bb", "dd"]).table
    assert table is not None
    assert set(table["run_id"].to_pylist()) == {"aa", "bb"}


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
