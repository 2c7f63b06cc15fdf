"""Reading a results folder: what is joined, what is left out, how settings are named, and each error line."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pandas as pd
import pytest

from banditlab.analysis import formats, load, relative
from banditlab.analysis.across import Across, Pair
from banditlab.analysis.arena import Arena, Pick, arenas
from banditlab.analysis.curves import Curve, Grid, Panel
from banditlab.analysis.settings import is_absent
from banditlab.analysis.summary import Standing
from banditlab.analysis.tables import COMPARATOR_COLUMNS
from banditlab.errors import UsageError
from banditlab.results.store import Store
from tests.analysis.conftest import put_frame
from tests.results.by_hand import put


def test_compacted_rows_and_shards_are_one_table(new_folder):
    folder = new_folder()
    for repetition in range(4):
        folder.add_run("fair", repetition, 10.0, written={"gamma": 0.1})
        folder.add_run("plain", repetition, 20.0)
    compacted = load(folder.write())
    frame = compacted.runs
    for file in folder.out.glob("results.parquet"):
        file.unlink()
    mixed = load(folder.write(shards=3))
    assert compacted.planned == mixed.planned == 8
    assert mixed.missing == 0
    assert "index" not in mixed.runs
    assert arenas(mixed)
    again = replace(mixed)
    assert (again == mixed, again.made, "made" in repr(mixed)) == (True, {}, False)  # what is cached is no part of it
    pd.testing.assert_frame_equal(mixed.runs[frame.columns], frame, check_dtype=False)


def test_shards_that_hold_several_runs(new_folder):
    folder = new_folder()
    for repetition in range(4):
        folder.add_run("fair", repetition, 10.0 + repetition)
    out = folder.write(shards=4)
    single = load(out).runs
    files = sorted(out.glob("shards/*/*.parquet"))
    put_frame(out, files[0].relative_to(out).as_posix(), pd.concat([pd.read_parquet(file) for file in files]))
    for file in files[1:3]:  # the fourth run's own file stays: it counts once
        file.unlink()
    pd.testing.assert_frame_equal(load(out).runs, single)


def test_a_run_in_both_places_counts_once(new_folder):
    folder = new_folder()
    run_id = folder.add_run("fair", 0, 10.0)
    out = folder.write()
    folder.write(shards=1)
    assert (out / "results.parquet").is_file()
    assert (out / "shards" / run_id[:2] / f"{run_id}.parquet").is_file()
    assert len(load(out).runs) == len(folder.checkpoints)


def test_runs_of_an_older_spec_are_left_out(new_folder):
    folder = new_folder()
    new, old = folder.add_run("fair", 0, 10.0), folder.add_run("fair", 0, 5.0, written={"edited": 1})
    results = load(folder.write(plan=[new]))
    assert set(results.runs["run_id"]) == {new}
    assert old not in set(load(folder.write(shards=1, plan=[new])).runs["run_id"])


def test_missing_failed_and_broken_runs_are_counted(new_folder):
    folder = new_folder()
    ids = [folder.add_run("fair", repetition, 10.0) for repetition in range(4)]
    out = folder.write(shards=3)
    shard = out / "shards" / ids[1][:2] / f"{ids[1]}.parquet"
    shard.write_bytes(shard.read_bytes()[:100])
    (out / "shards" / ids[2][:2] / f"{ids[2]}.parquet").unlink()
    record = {"environment": "Toy-v0", "player": "fair", "repetition": 2, "error": "ValueError: no"}
    for run_id in (ids[2], "gone"):
        Store(out).write_failure(run_id, record)
    results = load(out)
    assert (results.planned, results.missing) == (4, 1)
    assert results.unreadable == [f"shards/{ids[1][:2]}/{ids[1]}.parquet"]
    assert [(f.run_id, f.error) for f in results.failures] == [(ids[2], "ValueError: no")]


def test_a_failure_that_later_finished_is_no_failure(new_folder):
    folder = new_folder()
    run_id = folder.add_run("fair", 0, 10.0)
    out = folder.write()
    record = {"environment": "Toy-v0", "player": "fair", "repetition": 0, "error": "ValueError: no"}
    Store(out).write_failure(run_id, record)
    assert load(out).failures == []


# ------------------------------------------------------------------------------------------------------------ settings


def settings_of(folder, label: str) -> list[str]:
    runs = load(folder.write()).runs
    return list(dict.fromkeys(runs.loc[runs["label"] == label, "settings"]))


def test_only_settings_that_differ_are_named(new_folder):
    folder = new_folder()
    for gamma in (0.03, 0.1):
        for bound in (1.0, 10.0):
            written = {"gamma": gamma, "norm_bound": bound, "forecaster": "folklore"}
            folder.add_run("exploration(folklore)", 0, 10.0, written=written)
    folder.add_run("banditron", 0, 10.0, written={"gamma": 0.05})
    assert settings_of(folder, "exploration(folklore)") == ["γ=0.03 B=1", "γ=0.03 B=10", "γ=0.1 B=1", "γ=0.1 B=10"]
    assert settings_of(folder, "banditron") == [""]


def test_values_that_follow_from_others_are_not_named(new_folder):
    folder = new_folder()
    for bound in (1.0, 10.0):
        folder.add_run("newtron", 0, 10.0, written={"norm_bound": bound}, resolved={"beta": 1 / bound})
    assert settings_of(folder, "newtron") == ["B=1", "B=10"]
    assert [is_absent(value) for value in (None, pd.NA, math.nan, 0.0, "")] == [True, True, True, False, False]


def test_a_word_that_was_written_is_the_setting(new_folder):
    folder = new_folder()
    for repetition in range(2):
        folder.add_run("gaptron", repetition, 1.0, written={"gamma": "theory"}, resolved={"gamma": 0.2 + repetition})
        folder.add_run("gaptron", repetition, 1.0, written={"gamma": 0.05})
    for run_id, rows in folder.rows.items():  # the resolved value stands in the column, as the store writes it
        for row in rows:
            row["param.gamma"] = float(row["param.gamma"]) if row["param.gamma"] != "theory" else 0.25
        assert run_id
    assert settings_of(folder, "gaptron") == ["γ=theory", "γ=0.05"]


def test_runs_that_written_settings_do_not_tell_apart_show_what_differs(new_folder):
    folder = new_folder()
    folder.add_run("own", 0, 1.0, resolved={"rate": 1.0})
    folder.add_run("own", 0, 1.0, resolved={"rate": 2.0}, written={"note": "x"})
    for rows in folder.rows.values():
        for row in rows:
            row.pop("setting.note", None)
            row.pop("param.note", None)
    assert settings_of(folder, "own") == ["rate=1", "rate=2"]


# ------------------------------------------------------------------------------------------------------------ relative


def relative_folder(new_folder):
    folder = new_folder(repetitions=2)
    for repetition in range(2):
        folder.add_comparator(repetition, 1.0, 50.0 + repetition, gap=0.5)
        folder.add_comparator(repetition, 3.0, 40.0 + repetition, gap=0.5)
        folder.add_run(
            "nats", repetition, 60.0, mistakes=62.0, written={"norm_bound": 3.0}, bound=30.0, bound_unit="nats"
        )
        folder.add_run("bits", repetition, 60.0, written={"norm_bound": 1.0}, bound=100.0, bound_unit="bits")
        folder.add_run("free", repetition, 70.0)
    return folder


def test_relative_joins_the_same_stream_round_and_ball(new_folder):
    table = relative(load(relative_folder(new_folder).write()))
    last = table[(table["round"] == 100) & (table["repetition"] == 1)].set_index(["label", "norm_bound"])
    assert set(last.index) == {("nats", 3.0), ("bits", 1.0), ("free", 1.0), ("free", 3.0)}
    assert table.index.equals(pd.RangeIndex(len(table)))
    assert table["ratio"].notna().all()
    own = last.loc[("nats", 3.0)]
    assert own["relative_mistakes"] == pytest.approx(62 - 41)
    assert own["relative_mistakes_high"] == pytest.approx(62 - 41 + 0.5)
    assert own["relative_expected"] == pytest.approx(60 - 41)
    assert own["ratio"] == pytest.approx(62 / 41)
    assert (own["bound_shown"], own["vacuous"]) == (30.0, False)
    bits = last.loc[("bits", 1.0)]
    assert bits["unit"] == "bits"
    assert bits["unit_loss"] == pytest.approx(51 / math.log(2))
    assert bits["relative_expected"] == pytest.approx(60 - 51)  # nats, as for every player
    assert bits["relative_expected_high"] - bits["relative_expected"] == pytest.approx(0.5)
    assert (bits["bound_shown"], bits["vacuous"]) == (100.0, True)
    assert last.loc[("free", 1.0), "relative_expected"] == pytest.approx(70 - 51)
    assert math.isnan(last.loc[("free", 1.0), "bound_shown"])
    assert not last.loc[("free", 1.0), "vacuous"]


def test_a_bound_is_vacuous_in_early_rounds_and_not_later(new_folder):
    table = relative(load(relative_folder(new_folder).write()), 3.0)
    rows = table[(table["label"] == "nats") & (table["repetition"] == 0)].set_index("round")
    assert rows.loc[20, "vacuous"]
    assert rows.loc[20, "bound_shown"] == 20.0
    assert not rows.loc[50, "vacuous"]


@pytest.mark.parametrize("cls", [Pick, Arena, Pair, Across, Curve, Panel, Grid, Standing])
def test_what_is_read_cannot_be_set(cls: type):
    with pytest.raises(FrozenInstanceError):
        setattr(object.__new__(cls), fields(cls)[0].name, None)


def test_relative_at_one_norm_bound(new_folder):
    table = relative(load(relative_folder(new_folder).write()), 3.0)
    assert set(table["label"]) == {"nats", "free"}
    assert set(table["norm_bound"]) == {3.0}
    assert "index" not in table


def test_a_ball_without_a_comparator_meets_every_one_and_checks_no_bound(new_folder):
    folder = relative_folder(new_folder)
    folder.add_run("lost", 0, 20.0, resolved={"norm_bound": 0.5}, bound=5.0, bound_unit="nats")
    results = load(folder.write())
    table = relative(results)
    rows = table[(table["label"] == "lost") & (table["round"] == 100)]
    assert rows["norm_bound"].tolist() == [1.0, 3.0]
    assert rows["relative_expected"].tolist() == [20.0 - 50, 20.0 - 40]
    assert rows["bound_shown"].isna().all()
    assert not (rows["vacuous"] | rows["own_ball"]).any()
    assert set(relative(results, 3.0)["label"]) == {"nats", "free", "lost"}
    assert table.loc[table["label"] != "lost", "own_ball"].all()


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("banditlab/Digits-v0", "banditlab/Digits-v0"),
        ("b/Table-v0(decimal=., label=y, path=wine.csv)", "wine.csv · b/Table-v0(decimal=., label=y)"),
        ("b/Table-v0(path=wine.csv)", "wine.csv · b/Table-v0"),
        ("b/Table-v0(path=a, b.csv, label=y)", "a, b.csv · b/Table-v0(label=y)"),
        ("b/Table-v0(label=y, path=data/wine.csv)", "wine.csv · b/Table-v0(label=y, path=data/wine.csv)"),
        ("b/Table-v0(subpath=x)", "b/Table-v0(subpath=x)"),
    ],
)
def test_titles_begin_with_the_file(label: str, title: str):
    assert formats.environment_title(label) == title


def test_infinite_numbers_are_no_dashes():
    assert (formats.plain(math.inf), formats.plain(-math.inf), formats.plain(math.nan)) == ("∞", "−∞", "–")


def test_comparators_of_other_streams_are_left_out(new_folder):
    folder = relative_folder(new_folder)
    folder.add_comparator(7, 3.0, 1.0)
    comparators = load(folder.write()).comparators
    assert set(comparators["repetition"]) == {0, 1}
    assert set(comparators) == set(COMPARATOR_COLUMNS)


def test_no_comparators_give_an_empty_join(new_folder):
    folder = new_folder()
    folder.add_run("fair", 0, 10.0, written={"norm_bound": 1.0})
    assert relative(load(folder.write())).empty


# -------------------------------------------------------------------------------------------------------------- errors


def test_not_a_results_folder(tmp_path: Path):
    with pytest.raises(UsageError, match=r"nowhere: not a results folder \(it has no spec.toml"):
        load(tmp_path / "nowhere")


def test_no_plan(new_folder):
    folder = new_folder()
    folder.add_run("fair", 0, 1.0)
    (folder.write() / "runs.json").unlink()
    with pytest.raises(UsageError, match=r"not a results folder \(it has no runs.json"):
        load(folder.out)


def test_a_plan_that_is_none(new_folder):
    folder = new_folder()
    folder.add_run("fair", 0, 1.0)
    put(folder.write(), "runs.json", {"runs": 3})
    with pytest.raises(UsageError, match=r"runs.json: not a valid plan of runs"):
        load(folder.out)


def test_spec_is_not_toml(new_folder):
    folder = new_folder()
    folder.add_run("fair", 0, 1.0)
    put(folder.write(), "spec.toml", "rounds = = 3")
    with pytest.raises(UsageError, match=r"spec.toml: not TOML"):
        load(folder.out)


def test_another_store_format(new_folder):
    folder = new_folder()
    folder.add_run("fair", 0, 1.0)
    with pytest.raises(UsageError, match="store format 2, and this version reads and writes format 1"):
        load(folder.write(format=2))


def test_no_finished_runs(new_folder):
    folder = new_folder()
    folder.add_run("fair", 0, 1.0)
    with pytest.raises(UsageError, match=r"no finished runs yet \(0 of 1 in its spec\)"):
        load(folder.write(plan=["f" * 32]))


def test_errors_are_one_line(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)
