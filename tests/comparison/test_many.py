"""A comparison over many tables: which files it takes, faults of all in one list, exceptions, and what stops and resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import load
from banditlab.analysis.across import across
from banditlab.cli.table_view import many_lines
from banditlab.comparison import compare, is_many, name_of_many, prepared, prepared_many
from banditlab.comparison._many import _common, _Prepared, tables_of
from banditlab.engine import Sweep
from banditlab.engine.plan import make_plan
from banditlab.errors import UsageError
from banditlab.results.reading import finished_runs

COLUMNS = ["run_id", "round", "mistakes", "expected_mistakes", "log_loss"]


def write(path: Path, n: int = 40, seed: int = 0, d: int = 2, K: int = 2) -> Path:
    """Write a table whose label is the sign of its first column, or the tercile for K = 3."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    y = np.digitize(X[:, 0], [0.0] if K == 2 else [-0.4, 0.4])
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(label=[f"c{k}" for k in y])
    path.parent.mkdir(exist_ok=True)
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three sound tables of 40, 50 and 60 rows, three broken ones, and a file that is no table."""
    for i in range(3):
        write(tmp_path / "sets" / f"t{i}.csv", 40 + 10 * i, seed=i, K=2 + (i == 2))
    where = tmp_path / "sets"
    (where / "gaps.csv").write_text("a,label\n1,x\n,y\n2,x\n")
    (where / "nolabel.csv").write_text("a,b\n1,2\n2,3\n")
    (where / "copy.csv").write_bytes((where / "t1.csv").read_bytes())
    (where / "notes.md").write_text("no table")
    return where


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_that_leads_nowhere_is_a_table_with_a_fault(folder: Path) -> None:
    (folder / "moved.csv").symlink_to("nowhere.csv")
    (folder / "round.csv").symlink_to("round.csv")
    (folder / "more.csv").mkdir()
    made = prepared_many([folder], "label", agents="uniform", repetitions=1)
    assert made.n_faulty == 5
    assert sum("there is no file" in fault and "moved.csv" in fault for fault in made.faults) == 1
    assert sum("symbolic links" in fault and "round.csv" in fault for fault in made.faults) == 1
    assert "more.csv" not in str(made)


def test_folders_patterns_and_several_files_are_many(folder: Path) -> None:
    names = ["copy.csv", "gaps.csv", "nolabel.csv", "t0.csv", "t1.csv", "t2.csv"]
    assert [Path(path).name for path in tables_of([folder])] == names
    assert [Path(path).name for path in tables_of([folder / "t*.csv", folder / "t1.csv"])] == names[3:]
    assert tables_of([folder / "**" / "t1.csv", "nowhere.csv"]) == [str(folder / "t1.csv"), "nowhere.csv"]
    assert tables_of(["openml:21,54"]) == ["openml:21", "openml:54"]
    assert is_many([folder])
    assert is_many([folder / "t*.csv"])
    assert is_many(["openml:21"])
    assert is_many(["a.csv", "b.csv"])
    assert not is_many([folder / "t0.csv"])
    assert not is_many(["nowhere.csv"])
    assert name_of_many([folder]) == name_of_many([folder / "t*.csv"]) == "sets"
    assert name_of_many(["openml:1"]) == name_of_many(["a.csv", "b.csv"]) == "tables"


@pytest.mark.parametrize(("data", "message"), [("openml:x", "ids of openml.org"), ("*.parquet", "no table found")])
def test_what_is_no_list_of_tables_is_one_line(folder: Path, data: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tables_of([data if data.startswith("openml") else str(folder / data)])


def test_broken_tables_are_named_in_one_list_and_the_others_play(folder: Path) -> None:
    made = prepared_many([folder], "label", agents="uniform", repetitions=1)
    assert made.n_faulty == 3
    lacking = [fault.partition(": ")[0].rpartition("/")[2] for fault in made.faults]
    assert lacking == ["gaps.csv", "nolabel.csv", "t1.csv"]
    assert "missing" in made.faults[0]
    assert "no column 'label'" in made.faults[1]
    assert made.faults[2].endswith(f"the same table as {folder / 'copy.csv'}")
    assert [block.path.rpartition("/")[2] for block in made.spec.environment] == ["copy.csv", "t0.csv", "t2.csv"]
    assert [run.rounds for run in make_plan(made.spec).runs] == [50, 40, 60]
    printed = "\n".join(many_lines(made, whole=False))
    assert printed.count("fault in") == 3


def test_compare_warns_of_tables_that_are_left_out(folder: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="^left out: ") as said:
        results = compare(folder, "label", out=tmp_path / "out", agents="uniform", repetitions=1)
    assert [warning.filename for warning in said] == [__file__] * 3
    assert (results.out, len(results.environments)) == (tmp_path / "out", 3)


def test_runs_are_those_of_each_table_alone(folder: Path) -> None:
    many = make_plan(prepared_many([folder / "t0.csv", folder / "t2.csv"], "label", repetitions=2).spec).runs
    alone = [
        run
        for name in ("t0.csv", "t2.csv")
        for run in make_plan(prepared(folder / name, "label", repetitions=2).spec).runs
    ]
    assert {run.run_id for run in many} == {run.run_id for run in alone}


@pytest.mark.slow  # a table of 1,100 columns is read
def test_agents_that_one_table_lacks_are_left_out_but_those_for_two_classes_play_where_they_can(folder: Path) -> None:
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 1100))).assign(label=["a", "b", "c", "d"] * 15)
    wide.to_csv(folder / "wide.csv", index=False)
    made = prepared_many([folder / "t0.csv", folder / "wide.csv"], "label", repetitions=1)
    assert "soba-diag" not in [block.id for block in made.spec.agent]
    assert "soba-diag: not selected on 1 of 2 tables (too large, or not needed)" in made.left_out
    assert [pair["player"].partition("(")[0] for pair in make_plan(made.spec).skipped] == ["exploration"] * 3


def test_agents_that_every_table_lacks_are_left_out_with_their_reason() -> None:
    found = [_Prepared({}, [], reasons, [], 9) for reasons in (["a: too large", "b: too slow"], ["b: too slow"])]
    assert _common(found) == ([], ["b: too slow"])


def test_rounds_are_the_most_of_a_run(folder: Path) -> None:
    made = prepared_many(
        [folder / "t0.csv", folder / "t2.csv"], "label", agents="uniform", repetitions=1, passes=2, rounds=100
    )
    assert [run.rounds for run in make_plan(made.spec).runs] == [80, 100]
    spec = prepared_many([folder / "t0.csv"], "label", agents="uniform", rounds=1).spec
    assert (spec.rounds, spec.repetitions) == (1, 10)


def test_exceptions_correct_single_tables_skip_others_and_name_families(folder: Path) -> None:
    file = folder.parent / "exceptions.toml"
    file.write_text(
        '[families]\ntwins = ["t0.csv", "copy.csv"]\n\n[table."gaps.csv"]\nmissing = "mean"\n\n'
        '[table."nolabel.csv"]\nlabel = "b"\nroles = { a = "nominal" }\n\n[table."t1*"]\nskip = true\n'
    )
    made = prepared_many([folder], "label", agents="uniform", repetitions=1, exceptions=file)
    assert made.faults == []
    played = [block.path.rpartition("/")[2] for block in made.spec.environment]
    assert played == ["copy.csv", "gaps.csv", "nolabel.csv", "t0.csv", "t2.csv"]
    assert made.spec.families == {"twins": ["t0.csv", "copy.csv"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tabel]\n", r"unknown key 'tabel'; did you mean 'table'"),
        ("[table]\n'other.csv' = { skip = true }\n", "no table matches 'other.csv'"),
        ("[families]\nx = 'a'\n", "families.x must be a list of file names or patterns, got 'a'"),
        ("families = 3\n", r"families must be a table, such as \[families\], got 3"),
        ("[table]\n't0.csv' = 3\n", "table.t0.csv must be settings, such as { skip = true }, got 3"),
        ("[table]\n't0.csv' = { rounds = 3 }\n", "table.t0.csv: rounds cannot be set per table; use --rounds"),
        ("[families\n", "not TOML"),
        (None, "No such file"),
    ],
)
def test_a_wrong_file_of_exceptions_is_one_line(folder: Path, text: str | None, message: str) -> None:
    file = folder.parent / "exceptions.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=message):
        prepared_many([folder], "label", exceptions=file)


def test_without_a_sound_table_there_is_no_comparison(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^2 faults: .*no column 'label'.*missing"):
        prepared_many([folder / "nolabel.csv", folder / "gaps.csv"], "label")
    with pytest.raises(UsageError, match=r"^no agent is called 'bandtron'; did you mean 'banditron'"):
        prepared_many([folder], "label", agents="bandtron")


# --------------------------------------------------------------------------------------------------------------- many tables


def command(where: Path, out: Path) -> list[str]:
    options = ["--label", "label", "-o", str(out), "-j", "1", "--repetitions", "3", "--agents", "banditron,uniform"]
    return [sys.executable, "-m", "banditlab", "compare", str(where), *options]


def killed(where: Path, out: Path, more: int) -> int:
    """Start the command, kill it once it has stored `more` runs than before, and return how many are stored."""
    before = len(finished_runs(out)) if out.exists() else 0
    process = subprocess.Popen(command(where, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not out.exists() or len(finished_runs(out)) < before + more):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return len(finished_runs(out))


def rows_of(out: Path) -> pd.DataFrame:
    return load(out).runs[COLUMNS].sort_values(COLUMNS[:2]).reset_index(drop=True)


@pytest.mark.slow
def test_twenty_tables_killed_twice_and_resumed_equal_undisturbed(tmp_path: Path) -> None:
    where = tmp_path / "tables"
    for i in range(20):
        write(where / f"t{i}.csv", 2_000 + 10 * i, seed=i, K=2 + i % 2)
    (where / "gaps.csv").write_text("a,label\n1,x\n,y\n2,x\n")
    once, thrice = tmp_path / "once", tmp_path / "thrice"
    spec = prepared_many([where], "label", agents="banditron,uniform", repetitions=3).spec
    runs = len(make_plan(spec).runs)
    first = killed(where, thrice, 20)
    second = killed(where, thrice, 20)
    assert 20 <= first < second < runs
    done = subprocess.run(command(where, thrice), capture_output=True, text=True, check=False)
    assert (done.returncode, "1 table was left out" in done.stderr) == (1, True)
    assert f"{second:,} runs were already finished" in done.stdout
    Sweep(spec).run(once)
    pd.testing.assert_frame_equal(rows_of(once), rows_of(thrice))
    assert across(load(once)).table().equals(across(load(thrice)).table())  # type: ignore[union-attr]
    assert "over 20 data sets" in done.stdout
