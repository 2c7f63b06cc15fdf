"""What a results folder says of itself, file by file: what is whole, damaged, another's, or gone while it is looked at."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.results.merge import _bring, _descriptions, _refuse_strangers, _whole
from banditlab.results.reading import (
    Failure,
    Skip,
    check_format,
    read_failures,
    read_plan,
    read_runs,
)
from banditlab.results.schema import FORMAT, Finished
from banditlab.results.store import Store
from tests.results.by_hand import put

RECORD: dict[str, Any] = {"error": "no", "environment": "e", "player": "p", "repetition": 1, "settings": {"a": "1"}}


def finished(run_id: str, *rounds: int) -> Finished:
    rounds = rounds or (1, 2)
    rows = {"run_id": [run_id] * len(rounds), "round": list(rounds), "mistakes": [ord(run_id[0])] * len(rounds)}
    return Finished(run_id, rows, {"is": run_id})


def spec_of(number: int) -> str:
    return f'name = "s"\n\n[store]\nformat = {number}\n'


PLAN: dict[str, Any] = {"runs": [], "streams": [], "skipped": [], "data": {}, "groups": {}}


@pytest.mark.parametrize(
    ("spec", "whole", "plan", "refused"),
    [
        ("", False, "none", ""),
        (spec_of(FORMAT), True, "none", ""),
        (spec_of(FORMAT), False, "whole", ""),
        (spec_of(FORMAT), False, "damaged", "do not match SHA256SUMS"),
        (spec_of(FORMAT), False, "none", "do not match SHA256SUMS"),
        (spec_of(FORMAT + 1), True, "whole", f"this version reads and writes format {FORMAT}"),
        ('name = "s"', True, "whole", f"format None, this version reads and writes format {FORMAT}"),
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


@pytest.mark.parametrize(
    ("plan", "fine"),
    [
        (PLAN | {"runs": ["a"]}, True),
        (PLAN | {"streams": ["s"]}, True),
        (PLAN | {"runs": "ab"}, False),
        (PLAN | {"runs": [1]}, False),
        (PLAN | {"runs": ["a"], "streams": [None]}, False),
        *[({name: value for name, value in PLAN.items() if name != lacking}, False) for lacking in PLAN],
    ],
)
def test_a_plan_lists_ids(plan: Any, fine: bool, tmp_path: Path) -> None:
    put(tmp_path, "runs.json", plan)
    if fine:
        found = read_plan(tmp_path)
        assert (found["runs"], found["streams"]) == (plan["runs"], plan["streams"])
        assert (found["skipped"], found["data"], found["groups"]) == ([], {}, {})
    else:
        with pytest.raises(UsageError, match="not a plan of runs"):
            read_plan(tmp_path)


def test_a_plan_is_a_table_that_is_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not a results folder \(it has no runs\.json"):
        read_plan(tmp_path)
    put(tmp_path, "runs.json", [["runs", 1]])
    with pytest.raises(UsageError, match="not a plan of runs"):
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
        assert "is damaged: why the run failed is lost" in found["error"]
        assert (found["run_id"], found["player"], found["repetition"], found["settings"]) == (run_id, "?", -1, {})
    assert store.failures(["none"]) == []
    listed = read_failures(tmp_path, {"aa", "bb", "none"})
    assert listed == [Failure("aa", "e", "p", 1, "no"), Failure("bb", "e", "comparator", 1, "no")]
    assert [each.is_comparator for each in listed] == [False, True]
    for each, name in ((listed[0], "error"), (Skip("e", "p", "r"), "reason")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(each, name, "other")


def test_what_another_process_took_away_meanwhile_is_missed_by_nobody(tmp_path: Path, monkeypatch: Any) -> None:
    store = Store(tmp_path / "out")
    store.write_runs([finished("aa")])
    add = Store._add

    def added(self: Store, *given: Any) -> None:
        add(self, *given)
        for file in self.folder.glob("shards/*/*.parquet"):
            file.unlink()

    monkeypatch.setattr(Store, "_add", added)
    store.compact()
    assert store.done() == ({"aa"}, [])


def test_what_is_whole_is_not_written_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_runs([finished("aa")])
    store.compact()
    file = tmp_path / "results.parquet"
    before = file.stat().st_ino
    assert Store(tmp_path).done() == ({"aa"}, [])
    store.compact()
    assert file.stat().st_ino == before
    assert store.notices == []


def test_a_damaged_shard_is_named_unless_its_run_is_elsewhere(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_runs([finished("aa")])
    store.write_runs([finished("aa"), finished("bb")])
    store.write_runs([finished("cc")])
    for run_id in ("aa", "cc"):
        for shard in tmp_path.glob(f"shards/{run_id}/{run_id}*.parquet"):
            if shard.stem != "aa":
                shard.write_bytes(shard.read_bytes()[:-9])
    assert store.done() == ({"aa"}, ["cc"])
    assert len(store.notices) == 2
    assert store.done() == ({"aa"}, [])


def test_rows_are_each_runs_of_where_it_is_found_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_runs([finished("aa", 1), finished("bb", 1)])
    store.compact()
    store.write_runs([finished("aa", 1, 2, 3), finished("cc", 1, 2)])
    found = read_runs(tmp_path, ["aa", "cc"])
    assert found.table is not None
    assert found.table.select(["run_id", "round"]).to_pylist() == [
        {"run_id": "aa", "round": 1},
        {"run_id": "cc", "round": 1},
        {"run_id": "cc", "round": 2},
    ]
    assert read_runs(tmp_path, ["dd"]) == (None, [])


# ------------------------------------------------------------------------------------------------------------------- parts


def part(index: int, of: int, runs: dict[int, str], **more: Any) -> dict[str, Any]:
    shard = {"index": index, "of": of, "plan": "whole", "places": list(runs)}
    groups = {f"p{index}": "theory"}
    plan = {"runs": list(runs.values()), "streams": [f"s{index}"], "skipped": ["k"], "data": {}, "groups": groups}
    return plan | {"shard": shard} | more


def test_a_record_of_parts_is_in_the_whole_plans_order(tmp_path: Path) -> None:
    one, two, three = part(1, 3, {0: "d", 3: "a"}), part(2, 3, {1: "c"}), part(3, 3, {2: "b"})
    found = _whole(tmp_path, {Path("3"): three, Path("1"): one})
    shard = {"merged": [1, 3], "of": 3, "plan": "whole", "places": [0, 2, 3]}
    groups = {"p1": "theory", "p3": "theory"}
    kept = {"skipped": ["k"], "data": {}}
    assert found == {"runs": ["d", "b", "a"], "streams": ["s1", "s3"], "shard": shard, "groups": groups} | kept
    put(tmp_path, "runs.json", found | {"skipped": []})
    whole = _whole(tmp_path, {Path("2"): two})
    groups["p2"] = "theory"
    every = {"runs": ["d", "c", "b", "a"], "streams": ["s1", "s2", "s3"], "plan": "whole", "groups": groups}
    assert whole == every | kept
    put(tmp_path, "runs.json", whole | {"skipped": [], "more": 1})
    assert _whole(tmp_path, {Path("2"): two}) == every | kept | {"skipped": []}


def test_who_is_no_part_of_it_is_refused(tmp_path: Path) -> None:
    one, two = part(1, 2, {0: "a"}), part(2, 2, {1: "b"})
    for other, message in (
        (part(1, 2, {1: "b"}), "part 1/2 is given twice"),
        (part(2, 3, {1: "b"}), "another number of parts"),
        (part(2, 2, {1: "b"}) | {"shard": {"index": 2, "of": 2, "plan": "x", "places": [1]}}, "of another sweep"),
    ):
        with pytest.raises(UsageError, match=message):
            _refuse_strangers({tmp_path / "1": one, tmp_path / "2": other}, tmp_path / "out")
    plans = {tmp_path / "1": one, tmp_path / "2": two}
    with pytest.raises(UsageError, match="is a part itself"):
        _refuse_strangers(plans, tmp_path / "2")
    (tmp_path / "out").mkdir()
    for held, message in (
        ({}, "holds another sweep"),
        ({"plan": "whole"}, ""),
        ({"plan": "x"}, "holds another sweep"),
        ({"shard": {"merged": [1], "plan": "whole"}}, ""),
        ({"shard": {"merged": [1], "plan": "x"}}, "holds another sweep"),
        (two | {"skipped": []}, "is a part itself"),
    ):
        put(tmp_path / "out", "runs.json", PLAN | held)
        if message:
            with pytest.raises(UsageError, match=message):
                _refuse_strangers(plans, tmp_path / "out")
        else:
            _refuse_strangers(plans, tmp_path / "out")


def test_a_part_brings_what_the_whole_lacks(tmp_path: Path) -> None:
    out, made = Store(tmp_path / "out"), Store(tmp_path / "part")
    made.write_runs([finished("aa", 1), finished("bb", 1)])
    made.compact()
    made.write_runs([finished("cc", 1)])
    for run_id in ("dd", "ee", "ss", "tt", "uu"):
        made.write_failure(run_id, RECORD | {"error": f"of {run_id}"})
    out.write_runs([finished("aa", 1, 2)])
    for run_id in ("bb", "ff"):
        out.write_failure(run_id, RECORD)
    rows = {"stream_id": ["tt"], "round": [2], "norm_bound": [1.0]}
    out.write_comparators("tt", rows, {"W": np.eye(2)})
    assert _descriptions(made.folder) == {run_id: f'{{"is": "{run_id}"}}' for run_id in ("aa", "bb", "cc")}
    plan = {"runs": ["aa", "bb", "cc", "dd"], "streams": ["ss", "tt"]}
    assert _bring(out, made.folder, plan) == 1  # dd, which failed
    table = read_runs(out.folder, plan["runs"]).table
    assert table is not None
    counts = {run_id: table["run_id"].to_pylist().count(run_id) for run_id in plan["runs"]}
    assert counts == {"aa": 2, "bb": 1, "cc": 1, "dd": 0}
    assert out.failed() == {"dd", "ff", "ss"}
    assert {each["run_id"]: each["error"] for each in out.failures(["dd", "ss"])} == {"dd": "of dd", "ss": "of ss"}
    made.write_comparators("ss", rows | {"stream_id": ["ss"]}, {"W": np.eye(2)})
    assert _bring(out, made.folder, {"runs": [], "streams": ["ss"]}) == 0
    more = {"stream_id": ["ss"] * 2, "round": [2, 4], "norm_bound": [1.0] * 2}
    for written, held in ((more, 2), (rows | {"stream_id": ["ss"]}, 2), (more | {"round": [2, 8]}, 2)):
        made.write_comparators("ss", written, {"W": np.eye(2)})
        _bring(out, made.folder, {"runs": [], "streams": ["ss"]})
        rounds = out.comparators("ss")[0]["round"]
        assert (len(rounds), rounds) == (held, [2, 4])  # who has as many keeps his own
    _bring(out, made.folder, {"runs": [], "streams": []})
    made.write_comparators("vv", rows | {"stream_id": ["vv"]}, {"W": np.eye(2)})
    _bring(out, made.folder, {"runs": [], "streams": ["ss"]})
    assert out.comparators("vv") == ({}, {})
    (made.folder / "comparators" / "vv.npz").write_bytes(b"no")
    _bring(out, made.folder, {"runs": [], "streams": ["vv"]})  # its other file is damaged: `run` makes it anew
    assert out.comparators("vv") == ({}, {})
