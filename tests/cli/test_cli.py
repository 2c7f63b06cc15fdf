"""The command line as a person meets it: what is printed, the exit codes, never a traceback for a user's mistake.

Most requests go through `main` in this process: importing numba and pandas anew takes longer than what is tested.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from banditlab import __version__
from banditlab.analysis import papers
from banditlab.cli import console
from banditlab.cli.progress_words import done_of, left_of
from banditlab.comparison import comparison, plain_name
from banditlab.engine import Estimate, Progress, Sweep
from banditlab.engine.annotations import shown_types
from banditlab.engine.progress import TABLES_SECONDS
from banditlab.engine.schedule import Kind
from banditlab.registry import registry
from tests.results.by_hand import put

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


@pytest.fixture
def here(banditlab, tmp_path):
    """The working folder of the requests, with a small spec; lab folders opened by earlier tests are forgotten."""
    (tmp_path / "tiny.toml").write_text(SPEC)
    registry.cache_clear()
    yield tmp_path
    registry.cache_clear()


@pytest.fixture
def refused(banditlab, here):
    """A function that runs a request that is wrong (exit 2 and one line, but for a corrected command) and returns it."""

    def call(*arguments):
        code, text = banditlab(*arguments)
        assert code == 2, text
        line, *more = text.splitlines(keepends=True)
        assert all(each.startswith("corrected: banditlab compare ") for each in more[:1]), text
        assert len(more) <= 1, text
        assert line.startswith("banditlab: ")
        return line

    return call


def in_a_process(*arguments, cwd):
    """Run the command line in a separate process; return (exit code, what it printed)."""
    command = [sys.executable, "-m", "banditlab", *map(str, arguments)]
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, env=environment)
    text = done.stdout + done.stderr
    assert "Traceback" not in text, text
    return done.returncode, text


# -------------------------------------------------------------------------------------------------------------- sweeps


def test_run_prints_the_ranking_and_where_the_report_is(banditlab, here, monkeypatch):
    code, text = banditlab("run", "tiny.toml", "-j", 1)
    assert code == 0
    assert "6 runs = 1 environment x 3 agent settings x 2 repetitions, 200 rounds each" in text
    assert "banditron" in text
    report = here / "results" / "tiny" / "report.html"
    assert str(Path("results/tiny/report.html")) in text
    assert report.stat().st_size > 10_000
    assert "comparators for each of 2 streams: the best logistic models in hindsight with norm bound 3\n" in text
    assert "6/6 runs, 2/2 streams with comparators, " in text
    assert "Table" not in text
    code, text = banditlab("run", "tiny.toml", "-j", 1)
    assert (code, "6 runs were already finished, 0 executed now" in text) == (0, True)
    code, text = banditlab("status", "results/tiny")
    assert (code, "6 of 6 runs done, 0 failed" in text, "0 pairs skipped, 0 runs" in text) == (0, True, True)
    report.unlink()
    code, text = banditlab("run", "tiny.toml", "-j", 1, "--no-report")
    assert (code, "6 runs were already finished" in text, "banditron" in text) == (0, True, False)
    assert text.splitlines()[-1].endswith(f"; results in {Path('results/tiny')}")
    assert not report.exists()
    code, text = banditlab("report", "results/tiny")
    assert (code, report.exists()) == (0, True)

    estimates = [Estimate("banditlab/Logistic-v0", *row) for row in (("banditron", 6, 30.0), ("uniform", 3, 0.5))]
    monkeypatch.setattr(Sweep, "estimate", lambda self: estimates)
    monkeypatch.setattr(Sweep, "estimate_comparators", lambda self: 40.0)
    code, text = banditlab("run", "tiny.toml", "--set", "repetitions=3", "--dry-run", "-j", 1)
    assert code == 0
    assert f"6 of 9 runs already finished in {Path('results/tiny')}" in text
    shown = "agent runs done s/run core-min banditron 6 4 30 1.00 uniform 3 2 0.5 <0.01 estimate: 60 s for runs and 40 s for"
    assert shown in " ".join(re.sub("[^ -~]", " ", text).split())

    shutil.copytree(here / "results" / "tiny", here / "old")
    plan = json.loads((here / "old" / "runs.json").read_text())
    plan["runs"].append("0" * 24)
    put(here / "old", "runs.json", plan)
    code, text = banditlab("status", "old")
    assert (code, "6 of 7 runs done" in text) == (1, True)


@pytest.mark.slow
def test_partial_results_are_said_in_the_terminal_too(banditlab, here):
    assert banditlab("run", "tiny.toml", "-j", 1)[0] == 0
    folder = here / "results" / "tiny"
    plan = json.loads((folder / "runs.json").read_text())
    put(folder, "runs.json", plan | {"runs": [*plan["runs"], "0" * 24]})
    code, text = banditlab("report", "results/tiny")
    assert code == 0
    assert "warning: Unfinished: 1 of 7 runs missing; the same command runs the rest.\n" in text


@pytest.mark.slow
def test_the_report_of_other_options_is_kept_and_that_is_said(banditlab, here):
    assert banditlab("run", "tiny.toml", "-j", 1)[0] == 0
    first = (here / "results" / "tiny" / "report.html").read_text("utf-8")
    code, text = banditlab("run", "tiny.toml", "-j", 1, "--set", "rounds=100")
    assert code == 0
    [line] = [line for line in text.splitlines() if line.startswith("notice: this folder held the report of another")]
    kept = here / line.rpartition(" was moved to ")[2]
    assert (kept / "report.html").read_text("utf-8") == first
    assert (here / "results" / "tiny" / "report.html").read_text("utf-8") != first


def test_nothing_is_said_of_time_left_before_anything_is_known():
    progress = Progress(runs=100, streams=2, stage="compiling fastcb (1 of 3)")
    one, other, compared = Kind("a", 1.0, 50), Kind("b", 2.0, 50), Kind("", 1.0, 2)
    progress.kinds = {"one": one, "other": other, "compared": compared}
    assert (done_of(progress), left_of(progress)) == ("", "")
    progress.playing_since = progress.began
    assert (done_of(progress, rate=False), left_of(progress)) == ("0/100 runs, 0/2 streams with comparators", "")
    # comparators that took no time say nothing about the runs
    progress.streams_done, compared.done, compared.seconds = 2, 2, 0.01
    assert left_of(progress) == ""
    # more than a twentieth is done: seven, and comparators, took 14.01 / 9 of their guess, and so may those not begun
    one.done, one.seconds = 7, 14.0
    ahead = 43 * 2.001 + 50 * 2 * 14.01 / 9 - 2.001 / 2 + 100 * TABLES_SECONDS
    assert progress.seconds_ahead == pytest.approx(ahead, abs=1e-6)
    # Of one kind ten are done, 20.01 core-seconds each with what is beside the rounds, and the others take 3 s.
    progress.runs_done, progress.jobs, compared.seconds = 11, 2, 40.0
    one.done, one.seconds, other.done, other.seconds = 10, 20.0, 1, 3.0
    ahead = 40 * 2.001 + 49 * 3.001
    assert left_of(progress) == f"about {math.ceil((ahead - 3.001) / 2 + 100 * TABLES_SECONDS)} s left"
    assert progress.seconds_ahead == pytest.approx((ahead - 3.001) / 2 + 100 * TABLES_SECONDS, abs=1e-6)
    progress.streams_done, compared.done, compared.seconds, progress.failed = 1, 1, 10.0, 3
    ahead += 10.001
    # since kernels were compiled 23 core-seconds took a minute: workers were lost, or the machine did something else
    progress.measured_since = time.perf_counter() - 60.0, 10.0
    share = 60 / (23.0 + 10.001)
    assert left_of(progress) == f"about {math.ceil(share * (ahead - 10.001) + 100 * TABLES_SECONDS)} s left"
    progress.runs_done, progress.rounds_done, progress.playing_since = 10, 5000, time.perf_counter()
    assert done_of(progress) == "10/100 runs, 1/2 streams with comparators, 3 failed, 5,000 rounds/s"
    progress.playing_since = time.perf_counter() - 100.0
    assert done_of(progress).endswith(", 50 rounds/s")
    assert (Progress(1, 0).rounds_per_second, Progress(1, 0).seconds) == (0.0, pytest.approx(0.0, abs=60.0))
    progress.runs_done, progress.streams_done = 100, 2
    assert left_of(progress) == ""


def test_what_a_run_is_asked_for(banditlab, here, monkeypatch):
    def run_sweep(self, sweep, folder, report, live, **given):
        return print(folder.name, report, live, given["jobs"], given["shard"]) or 0

    monkeypatch.setattr(console.Console, "run_sweep", run_sweep)
    for options, said in (
        ([], f"tiny True None {os.cpu_count()} None"),
        (["-j", 3, "--no-report", "--live", "-o", "out"], "out False 0 3 None"),
        (["-j", 3, "--live-port", 8123, "--shard", "1/1"], "tiny-1-of-1 False 8123 3 (1, 1)"),
    ):
        assert banditlab("run", "tiny.toml", *options) == (0, f"{said}\n")


def test_what_an_export_is_asked_for(banditlab, monkeypatch):
    monkeypatch.setattr(papers, "export", lambda out, to, formats, png: [f"{formats} {png}"])
    for words, said in (([], ["latex"]), (["--csv"], ["csv"]), (["--parquet", "--png"], ["parquet"])):
        assert banditlab("export", "out", *words) == (0, f"written: {said} {'--png' in words}\n")


def test_dry_run_estimates_and_stores_nothing(banditlab, here):
    code, text = banditlab("run", "tiny.toml", "--dry-run", "-j", 2)
    assert code == 0
    assert "estimate: " in text
    assert "<0.01" in text
    assert "done" not in text
    assert not (here / "results").exists()


def test_failures_exit_1_and_are_listed_on_one_line_each(banditlab, here):
    (here / "agents").mkdir()
    (here / "agents" / "raiser.py").write_text(
        "from banditlab.agents import Agent\n"
        "class Raiser(Agent):\n"
        "    id = 'raiser'\n"
        "    def act(self, context): raise RuntimeError('no\\nidea')\n"
        "    def learn(self, context, decision, correct): pass\n"
    )
    (here / "tiny.toml").write_text(SPEC + '\n[[agent]]\nid = "raiser"\n')
    code, text = banditlab("run", "tiny.toml", "-j", 1, "--lab", ".", "--no-report")
    assert (code, "Traceback" in text) == (1, False)
    lines = [line for line in text.splitlines() if line.startswith("failed: raiser on banditlab/Logistic-v0")]
    assert len(lines) == 2
    assert all(line.endswith("RuntimeError: no idea") for line in lines)
    assert "6 executed now" in text
    code, text = banditlab("status", "results/tiny")
    assert (code, text.count("RuntimeError: no idea")) == (1, 2)


def test_a_lab_file_that_fails_to_import_matters_only_when_selected(banditlab, refused, here):
    (here / "agents").mkdir()
    (here / "agents" / "broken.py").write_text("import a_module_that_is_not_there\n")
    code, _ = banditlab("run", "tiny.toml", "-j", 1, "--lab", ".", "--set", "repetitions=1")
    assert code == 0
    code, text = banditlab("list", "agents", "--lab", ".")
    lines = text.splitlines()
    assert code == 0
    assert "cannot be loaded, see below" in next(line for line in lines if line.startswith("broken"))
    assert lines[-1].startswith("agent 'broken' from ")
    assert lines[-1].endswith("No module named 'a_module_that_is_not_there'")
    (here / "tiny.toml").write_text(SPEC + '\n[[agent]]\nid = "broken"\n')
    line = refused("run", "tiny.toml", "--lab", ".")
    assert "broken.py cannot be loaded" in line
    assert "No module named 'a_module_that_is_not_there'" in line


def test_a_lab_entry_that_cannot_be_read_is_listed_with_its_reason(banditlab, here):
    (here / "agents" / "folder.py").mkdir(parents=True)
    code, text = banditlab("list", "agents", "--lab", ".")
    assert code == 0
    assert text.splitlines()[-1].startswith("agent 'folder' from ")
    assert "Is a directory" in text.splitlines()[-1]


def test_an_interrupt_says_how_to_go_on(banditlab, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "print_status", interrupted)
    code, text = banditlab("status", "results")
    assert (code, text) == (
        130,
        "banditlab: interrupted; finished runs are stored; the same command runs the rest\n",
    )


# -------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run"], "spec"),
        (["run", "tiny.toml", "-j", "0"], "'-j' / '--jobs'"),
        (["compare", "tiny.csv", "--rounds", "0"], "'--rounds'"),
        (["compare", "tiny.csv", "--missing", "nought"], "'--missing'"),
        (["compare", "tiny.csv", "--label", "y", "--role", "a"], "--role must be COLUMN=ROLE"),
        (["run", "tiny.toml", "--bogus"], "--bogus"),
        (["bogus"], "bogus"),
        (["run", "nowhere.toml"], "nowhere.toml: no such file"),
        (["run", "tiny.toml", "--set", "rounds=0"], "rounds = 0"),
        (["run", "tiny.toml", "--set", "rounds"], "must be key=value"),
        (["run", "tiny.toml", "--set", "agent.0.grid.gamma=[2]"], "gamma must lie in [0, 1], got 2"),
        (["run", "tiny.toml", "--lab", "nowhere"], "no such folder"),
        (["run", "tiny.toml", "--live-port", "0"], "--live-port"),
        (["run", "tiny.toml", "--live-port", "65536"], "65535"),
        (["run", "tiny.toml", "--shard", "3/2"], "--shard 3/2: must be i/n"),
        (["run", "tiny.toml", "--shard", "half"], "--shard half: must be i/n"),
        (["run", "tiny.toml", "--cluster", "tcp://127.0.0.1:1", "-j", "2"], "-j applies to this machine"),
        (["merge", "nowhere", "-o", "whole"], "nowhere: not a results folder"),
        (["run", "tiny.toml", "-o", "tiny.toml"], "cannot be written"),
        (["status", "nowhere"], "not a results folder"),
        (["report", "nowhere"], "not a results folder"),
        (["list", "agent"], "did you mean 'agents'"),
        (["list", "nonsense"], "there is no list of 'nonsense' (known: agents, boosters, bounds, envs, "),
        (["describe", "folklor"], "did you mean 'folklore'"),
        (["describe", "Sparse"], "did you mean 'banditlab/Sparse-v0'"),
        (["describe", "digits-v0"], "did you mean 'banditlab/Digits-v0'"),
        (["describe", "SynNonsep"], "did you mean 'banditlab/SynNonSep-v0'"),
        (["check", "Digit"], "did you mean 'banditlab/Digits-v0'"),
        (["run", "tiny.toml", "--set", "environment.0.id=logistic"], "did you mean 'banditlab/Logistic-v0'"),
        (["check", "nowhere.py"], "nowhere.py"),
        (["check", "tiny.toml"], "banditlab: tiny.toml: is not a Python file"),
        (["check", "fastbc"], "did you mean 'fastcb'"),
        (["compare", "nowhere.csv", "--label", "y"], "nowhere.csv"),
        (["new", "agent", "not a name"], "not a name"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(refused, arguments, expected):
    assert expected in refused(*arguments)


def test_a_wrong_request_in_a_process(here):
    code, text = in_a_process("run", "tiny.toml", "-j", "0", cwd=here)
    assert (code, len(text.splitlines())) == (2, 1)


def test_an_unknown_id_gets_every_known_one_once(refused):
    line = refused("describe", "zzz")
    known = line.partition("(known: ")[2].rstrip(")\n").split(", ")
    assert len(known) == len(set(known))
    assert {"exploration", "aioli", "banditlab/Table-v0"} <= set(known)
    assert "did you mean" not in line


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners and modes")
def test_an_unwritable_folder(refused, here):
    (here / "locked").mkdir(mode=0o500)
    locked = "locked" if os.geteuid() else "/proc/locked"  # even the superuser makes no folder in /proc
    assert "cannot be written" in refused("run", "tiny.toml", "-o", locked)


def test_a_folder_of_another_format(refused, here):
    spec = put(here / "old", "spec.toml", "[store]\nformat = 0\n")
    assert "format 0" in refused("run", "tiny.toml", "-o", "old")
    assert spec.read_text() == "[store]\nformat = 0\n"


# --------------------------------------------------------------------------------------------------------------- compare


@pytest.fixture
def iris(here):
    frame = load_iris(as_frame=True).frame
    frame.to_csv(here / "iris.csv", index=False)
    return frame


def test_compare_ranks_a_table(iris, banditlab, here):
    (here / "iris.csv").rename(here / "my iris.csv")
    quick = ["--rounds", 300, "--repetitions", 2, "-j", 1, "--agents", "banditron,uniform"]
    code, text = banditlab("compare", "my iris.csv", "--label", "target", *quick)
    assert code == 0
    facts = "150 rows, d = 5, K = 3, largest class 33.3 %; 2 passes; contexts are scaled with all rows of the table"
    assert f"path=my iris.csv): {facts} (scaling = none)\n" in text
    assert "repeats %: the other rounds" in text
    assert "banditron" in text
    assert (here / "results" / "my-iris" / "report.html").exists()
    runs = pd.read_parquet(here / "results" / "my-iris" / "results.parquet")
    assert set(runs.label) == {"banditron", "uniform"}


def test_compare_says_that_no_agent_reads_a_column_that_tells_the_labels(banditlab, here):
    x = np.arange(200) % 10
    pd.DataFrame({"x": x, "y": np.isin(x, (2, 7))}).to_csv(here / "hidden.csv", index=False)
    quick = ["--repetitions", 2, "-j", 1, "--agents", "linucb,uniform"]
    code, text = banditlab("compare", "hidden.csv", "--label", "y", *quick)
    assert code == 0
    said = "column 'x' alone predicts 100.0 % of labels, but no agent is better than the most frequent class"
    assert f"warning: {said}" in " ".join(text.split())
    pd.DataFrame({"x": x, "y": x > 4}).to_csv(here / "hidden.csv", index=False)
    code, text = banditlab("compare", "hidden.csv", "--label", "y", "-o", "other", *quick)
    assert code == 0
    assert "alone predicts 100.0 % of labels" in text
    assert "but no agent" not in text


def test_a_comparison_passes_the_rows_once_unless_asked_for_more(iris, refused):
    spec = comparison(Path("iris.csv"), "target")
    assert (spec.rounds, spec.repetitions) == (150, 10)
    assert comparison(Path("iris.csv"), "target", passes=3).rounds == 450
    assert comparison(Path("iris.csv"), "target", rounds=100).rounds == 100
    both = ["--passes", 2, "--rounds", 300]
    assert "--passes and --rounds both set the number of rounds; give one of them" in refused(
        "compare", "iris.csv", "--label", "target", *both
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my table.csv", "my-table"),
        ("täble ü.csv", "täble-ü"),
        ("ta\u0308ble.csv", "täble"),
        ("v1.2.csv.gz", "v1.2"),
        ("a.b", "a.b"),
        (".csv", "table"),
        ("(1).csv", "1"),
        ("?!.parquet", "table"),
    ],
)
def test_a_comparison_is_named_after_its_file(file, name):
    assert plain_name(Path("folder") / file) == name


def test_compare_takes_the_settings_its_messages_advise(iris, refused, banditlab, monkeypatch):
    iris.insert(0, "flower", [f"f{i}" for i in range(150)])
    iris.iloc[3, 2] = float("nan")
    iris.to_csv("iris.data", index=False)
    label = ["iris.dat", "--label", "target", "--rounds", 300, "--repetitions", 1, "--dry-run"]
    os.rename("iris.data", "iris.dat")
    assert "set format (--format)" in refused("compare", *label)
    label += ["--format", "csv"]
    code, text = banditlab("compare", *label)
    assert code == 2
    assert text.splitlines()[0] == "banditlab: iris.dat has 2 faults:"
    assert text.splitlines()[-1] == (
        "corrected: banditlab compare iris.dat --label target --drop-column flower --format csv --missing indicator "
        "--rounds 300 --repetitions 1 --dry-run"
    )
    *_, corrected = banditlab("compare", *label, "--patience", 1, "-j", 2)[1].splitlines()
    assert corrected.endswith(" --rounds 300 --repetitions 1 -j 2 --dry-run --patience 1.0")
    label += ["--drop-column", "flower"]
    assert "row 3, counted from 0); set missing (--missing)" in refused("compare", *label)
    monkeypatch.setattr(console, "print_dry_run", lambda sweep, jobs, folder: print(sweep.spec.environment[0]))
    code, text = banditlab("compare", *label, "--missing", "mean", "--scaling", "minmax", "--max-categories", 7)
    assert code == 0
    assert "missing='mean'" in text
    assert "scaling='minmax'" in text
    assert "max_categories=7" in text
    code, text = banditlab("compare", *label, "--drop-row", 3, "--drop-row", 5)
    assert (code, "drop_rows=[3, 5]" in text) == (0, True)


@pytest.mark.parametrize(
    ("edit", "label", "expected"),
    [
        (lambda f: f, "tarjet", "did you mean 'target'"),
        (lambda f: f.assign(target=1), "target", "one class"),
        (lambda f: f.iloc[:0], "target", "iris.csv"),
        (lambda f: f.assign(**{"petal width (cm)": float("nan")}), "target", "petal width (cm)"),
        (lambda f: f.assign(**{"petal width (cm)": float("inf")}), "target", "petal width (cm)"),
        (lambda f: f, "petal length (cm)", "it looks like a measurement"),
        (lambda f: f.set_axis(["a", "b", "c", "a", "target"], axis=1), "target", "two columns are called 'a'"),
    ],
)
def test_compare_refuses_a_bad_table(iris, refused, here, edit, label, expected):
    edit(iris).to_csv(here / "iris.csv", index=False)
    line = refused("compare", "iris.csv", "--label", label)
    assert expected in line
    assert "iris.csv" in line


def test_compare_without_a_label_lists_the_columns(iris, refused):
    columns = "sepal length (cm), sepal width (cm), petal length (cm), petal width (cm), target"
    line = refused("compare", "iris.csv")
    assert line.endswith(f"iris.csv: set label (--label) to the column to predict (known: {columns})\n")


def test_compare_refuses_an_empty_file_and_what_is_not_gzipped(refused, here):
    (here / "empty.csv").write_text("")
    assert "empty" in refused("compare", "empty.csv", "--label", "y")
    with gzip.open(here / "empty.csv.gz", "wt") as file:
        file.write("")
    assert "empty" in refused("compare", "empty.csv.gz", "--label", "y")
    (here / "plain.csv.gz").write_text("garbage")
    assert "plain.csv.gz: not a gzip file" in refused("compare", "plain.csv.gz", "--label", "y")


# ------------------------------------------------------------------------------------------------- list, describe, check


def test_list_describe_check(banditlab):
    code, text = banditlab("list", "agents")
    assert (code, all(name in text for name in ("fastcb", "newtron", "uniform"))) == (0, True)
    code, text = banditlab("describe", "banditron")
    assert (code, "gamma: float = 0.05 (or γ)\n" in text, "ICML 2008" in text) == (0, True, True)
    code, text = banditlab("check", "banditron")
    assert (code, "0 failed" in text) == (0, True)


def test_list_bounds_gives_each_two_lines(banditlab):
    code, text = banditlab("list", "bounds")
    lines = text.splitlines()
    assert code == 0
    assert any(line.startswith("folklore (nats): ") and line.endswith("; adaptive adversary") for line in lines)
    assert any(line.startswith("exploration (nats): ") and line.endswith("; oblivious adversary") for line in lines)
    assert [line.startswith("    ") for line in lines] == [False, True] * (len(lines) // 2)


@pytest.mark.parametrize("name", ["exploration", "folklore", "aioli", "ogd"])
def test_describe_prints_the_player_and_then_the_bound_of_one_name(banditlab, name):
    code, text = banditlab("describe", name)
    assert code == 0
    assert text.startswith(f"{name} ({'agent' if name == 'exploration' else 'forecaster'}, from banditlab")
    assert text.index("Settings and defaults") < text.index("The bound of this name") < text.index("Assumes: ")
    assert "(bound, in nats)" in text
    assert f"Adversary: {'oblivious' if name == 'exploration' else 'adaptive'}. " in text


def test_describe_spells_types_out(banditlab, here):
    code, text = banditlab("describe", "banditlab/Table-v0")
    assert code == 0
    assert (
        "  scaling: 'auto' | 'none' | 'minmax' | 'standard' | 'maxabs' | 'robust' | 'rowwise' | 'running' = 'auto'\n"
        in text
    )
    assert "  format: 'auto' | 'csv' | 'parquet' | 'libsvm' | 'arff' = 'auto'\n" in text
    assert "  drop_rows: list[int] | None = None\n" in text
    assert "  horizon: set by the rounds of a sweep\n" in text
    (here / "agents").mkdir()
    (here / "agents" / "plain.py").write_text(
        "from typing import Literal\n"
        "from banditlab.agents.uniform import Uniform\n"
        "class Plain(Uniform):\n"
        "    id = 'plain'\n"
        "    def __init__(self, problem, rng, *, step: float = 1.0, mode: float | Literal['theory'] = 2.0, odd=None):\n"
        "        super().__init__(problem, rng)\n"
    )
    code, text = banditlab("describe", "plain", "--lab", ".")
    assert code == 0
    assert "  step: float = 1.0\n  mode: float | 'theory' = 2.0\n  odd: anything = None\n" in text


def test_annotations_that_cannot_be_resolved_are_shown_as_they_are_written():
    class Odd:
        def __init__(self, *, size: OnlyForTypeCheckers = 1, step: float = 1.0):  # noqa: F821
            pass

    assert shown_types(Odd)["size"] == "OnlyForTypeCheckers"
    assert shown_types(Odd)["step"] == "float"


# ----------------------------------------------------------------------------------------------------- help and version


def test_help_is_quick_and_loads_nothing_heavy(here):
    code = "import sys, banditlab.cli.main; print([m for m in ('numpy', 'numba', 'pandas', 'gymnasium') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code, text = in_a_process("--help", cwd=here)
    assert (code, "compare" in text) == (0, True)


def test_version_and_help(banditlab):
    assert banditlab("--version") == (0, f"banditlab {__version__}\n")
    code, text = banditlab("compare", "--help")
    assert (code, "--drop-row" in text) == (0, True)
    for words in ((), ("new",), ("log",)):
        code, text = banditlab(*words)
        assert (code, "Commands" in text, "--install-completion" in text) == (2, True, not words)
