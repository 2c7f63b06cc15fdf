"""The command line as a person meets it: what is printed, the exit codes, never a traceback for a user's mistake."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_iris

ROOT = Path(__file__).parents[1]

SPEC = """
name = "tiny"
rounds = 200
repetitions = 2
norm_bounds = [3]

[[environment]]
id = "banditlab/Logistic-v0"

[[agent]]
id = "banditron"
grid = { gamma = [0.1, 0.3] }

[[agent]]
id = "uniform"
"""


def banditlab(*arguments, cwd):
    """Run the command line in a process of its own; return (exit code, what it printed)."""
    command = [sys.executable, "-m", "banditlab.cli", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=300, env=os.environ | {"COLUMNS": "200"}
    )
    text = done.stdout + done.stderr
    assert "Traceback" not in text, text
    return done.returncode, text


def refused(*arguments, cwd):
    """Run a request that is wrong: exit 2 and one line; return the line."""
    code, text = banditlab(*arguments, cwd=cwd)
    assert code == 2, text
    assert len(text.strip().splitlines()) == 1, text
    return text


@pytest.fixture
def spec(tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(SPEC)
    return file


def test_run_prints_the_ranking_and_where_the_report_is(spec, tmp_path):
    code, text = banditlab("run", spec, "-j", 1, cwd=tmp_path)
    assert code == 0
    assert "6 runs = 1 environments x 3 player settings x 2 repetitions" in text
    assert "banditron" in text
    report = tmp_path / "results" / "tiny" / "report.html"
    assert str(Path("results/tiny/report.html")) in text
    assert report.stat().st_size > 10_000
    code, text = banditlab("run", spec, "-j", 1, cwd=tmp_path)
    assert (code, "6 runs were there already, 0 played now" in text) == (0, True)
    code, text = banditlab("status", "results/tiny", cwd=tmp_path)
    assert (code, "6 of 6 runs done, 0 failed" in text) == (0, True)
    report.unlink()
    code, text = banditlab("report", "results/tiny", cwd=tmp_path)
    assert (code, report.exists()) == (0, True)


def test_an_interrupted_folder_says_what_is_missing(spec, tmp_path):
    banditlab("run", spec, "-j", 1, "-o", "out", cwd=tmp_path)
    plan = json.loads((tmp_path / "out" / "runs.json").read_text())
    plan["runs"].append("0" * 24)
    (tmp_path / "out" / "runs.json").write_text(json.dumps(plan))
    code, text = banditlab("status", "out", cwd=tmp_path)
    assert (code, "6 of 7 runs done" in text) == (1, True)


def test_dry_run_estimates_and_stores_nothing(spec, tmp_path):
    code, text = banditlab("run", spec, "--dry-run", cwd=tmp_path)
    assert code == 0
    assert "core-minutes" in text
    assert not (tmp_path / "results").exists()


def test_failures_exit_1_and_are_listed(spec, tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "raiser.py").write_text(
        "from banditlab.agents import Agent\n"
        "class Raiser(Agent):\n"
        "    id = 'raiser'\n"
        "    def act(self, context): raise RuntimeError('no idea')\n"
        "    def learn(self, context, decision, correct): pass\n"
    )
    spec.write_text(SPEC + '\n[[agent]]\nid = "raiser"\n')
    code, text = banditlab("run", spec, "-j", 2, "--lab", ".", cwd=tmp_path)
    assert code == 1
    assert text.count("failed: raiser on banditlab/Logistic-v0") == 2
    assert "RuntimeError: no idea" in text
    assert "6 played now" in text


def test_a_lab_file_that_fails_to_import_matters_only_when_selected(spec, tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "broken.py").write_text("import a_module_that_is_not_there\n")
    code, _ = banditlab("run", spec, "-j", 1, "--lab", ".", cwd=tmp_path)
    assert code == 0
    code, text = banditlab("list", "agents", "--lab", ".", cwd=tmp_path)
    assert (code, "broken" in text, "a_module_that_is_not_there" in text) == (0, True, True)
    spec.write_text(SPEC + '\n[[agent]]\nid = "broken"\n')
    line = refused("run", spec, "--lab", ".", cwd=tmp_path)
    assert "broken.py cannot be loaded" in line
    assert "No module named 'a_module_that_is_not_there'" in line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "nowhere.toml"], "nowhere.toml: no such file"),
        (["run", "tiny.toml", "--set", "rounds=0"], "rounds = 0"),
        (["run", "tiny.toml", "--set", "rounds"], "must be key=value"),
        (["run", "tiny.toml", "--set", "agent.0.grid.gamma=[2]"], "gamma must lie in [0, 1], got 2"),
        (["run", "tiny.toml", "--lab", "nowhere"], "no such folder"),
        (["run", "tiny.toml", "--backend", "dask"], "comes with a later version"),
        (["run", "tiny.toml", "--shard", "1/2"], "comes with a later version"),
        (["run", "tiny.toml", "-o", "tiny.toml"], "cannot be written"),
        (["status", "nowhere"], "not a results folder"),
        (["report", "nowhere"], "not a results folder"),
        (["list", "agent"], "did you mean 'agents'"),
        (["describe", "folklor"], "did you mean 'folklore'"),
        (["check", "nowhere.py"], "nowhere.py"),
        (["check", "fastbc"], "did you mean 'fastcb'"),
        (["compare", "nowhere.csv", "--label", "y"], "nowhere.csv"),
        (["new", "agent", "not a name"], "not a name"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(spec, tmp_path, arguments, expected):
    assert expected in refused(*arguments, cwd=tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser can write anywhere")
def test_an_unwritable_folder(spec, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "cannot be written" in refused("run", spec, "-o", "locked", cwd=tmp_path)


def test_a_folder_of_another_format(spec, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "spec.toml").write_text("[store]\nformat = 0\n")
    assert "format 0" in refused("run", spec, "-o", "old", cwd=tmp_path)
    assert (tmp_path / "old" / "spec.toml").read_text() == "[store]\nformat = 0\n"


@pytest.fixture
def iris(tmp_path):
    frame = load_iris(as_frame=True).frame
    frame.to_csv(tmp_path / "iris.csv", index=False)
    return frame


def test_compare_ranks_a_table(iris, tmp_path):
    quick = ["--rounds", 300, "--repetitions", 2]
    code, text = banditlab("compare", "iris.csv", "--label", "target", "-j", 1, *quick, cwd=tmp_path)
    assert code == 0
    assert "fastcb" in text
    assert (tmp_path / "results" / "iris" / "report.html").exists()
    runs = pd.read_parquet(tmp_path / "results" / "iris" / "results.parquet")
    assert {"fastcb", "squarecb", "gaptron", "banditron", "uniform"} <= set(runs.label)


@pytest.mark.parametrize(
    ("edit", "label", "expected"),
    [
        (lambda f: f, "tarjet", "did you mean 'target'"),
        (lambda f: f.assign(target=1), "target", "one class"),
        (lambda f: f.iloc[:0], "target", "iris.csv"),
        (lambda f: f.assign(**{"petal width (cm)": float("nan")}), "target", "petal width (cm)"),
        (lambda f: f.assign(**{"petal width (cm)": float("inf")}), "target", "petal width (cm)"),
    ],
)
def test_compare_refuses_a_bad_table(iris, tmp_path, edit, label, expected):
    edit(iris).to_csv(tmp_path / "iris.csv", index=False)
    line = refused("compare", "iris.csv", "--label", label, cwd=tmp_path)
    assert expected in line
    assert "iris.csv" in line


def test_compare_refuses_an_empty_file(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    assert "empty" in refused("compare", "empty.csv", "--label", "y", cwd=tmp_path)
    with gzip.open(tmp_path / "empty.csv.gz", "wt") as file:
        file.write("")
    assert "empty" in refused("compare", "empty.csv.gz", "--label", "y", cwd=tmp_path)


def test_list_describe_check(tmp_path):
    code, text = banditlab("list", "agents", cwd=tmp_path)
    assert (code, all(name in text for name in ("fastcb", "newtron", "uniform"))) == (0, True)
    code, text = banditlab("list", "bounds", cwd=tmp_path)
    assert code == 0
    assert "FOLKLORE" in text
    code, text = banditlab("describe", "banditron", cwd=tmp_path)
    assert (code, "gamma: float = 0.05" in text, "ICML 2008" in text) == (0, True, True)
    code, text = banditlab("describe", "folklore", cwd=tmp_path)  # a forecaster and a bound
    assert (code, "Update rule" in text, "Errata" in text, "lambda K B^2 + (1/(4c))" in text) == (0, True, True, True)
    code, text = banditlab("check", "banditron", cwd=tmp_path)
    assert (code, "0 failed" in text) == (0, True)


def test_help_is_quick_and_loads_nothing_heavy(tmp_path):
    code = (
        "import sys, banditlab.cli; print([m for m in ('numpy', 'numba', 'pandas', 'gymnasium') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "[]"
    code, text = banditlab("--help", cwd=tmp_path)
    assert (code, "compare" in text) == (0, True)
