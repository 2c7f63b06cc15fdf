"""The page of attacks is made of its tables, its zeros are zeros, and its verdicts can be bad ones."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from audits.attacks import files, flips, plugins
from audits.attacks.lines import COUNTS, Line, line, read_csv, total, write_csv
from audits.commands import attacks
from banditlab.results.reading import Failure

RUNS = pd.DataFrame({"run_id": ["aa", "aa", "bb", "bb"], "round": [1, 2, 1, 2], "mistakes": [0, 1, 1, 1]})
COMPARATORS = pd.DataFrame({"stream_id": ["ss"], "round": [2], "norm_bound": [1.0], "loss_nats": [0.5]})
TRUTH = flips.Truth(RUNS, COMPARATORS, {"cc": "ValueError: no"}, {"shards/bb/bb.parquet": {"bb"}})


def read(**changes: Any) -> Any:
    failures = [Failure("cc", "e", "p", 0, "ValueError: no")]
    whole = {"runs": RUNS, "comparators": COMPARATORS, "failures": failures, "damaged": []}
    return SimpleNamespace(**whole | changes)


def test_the_page_is_made_of_the_tables() -> None:
    assert (attacks.RESULTS / "attacks.md").read_text("utf-8") == attacks.page()


def test_nothing_was_lost_wrong_or_run() -> None:
    tables = {name: read_csv(attacks._file(name)) for name in attacks.PARTS}
    assert all(tables.values())
    for name, lines in tables.items():
        assert [getattr(total(lines), column) for column in COUNTS] == [0, 0, 0, 0], name
    assert sum(line.tried for line in tables["kills"]) >= 200
    assert sum(line.tried for line in tables["flips"]) >= 5000


def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    lines = [Line("a, b", 5, 3, 2), Line('"c"', 1, 0, 0, 1)]
    write_csv(tmp_path / "x.csv", lines)
    assert read_csv(tmp_path / "x.csv") == lines
    assert total(lines) == Line("all", 6, 3, 2, 1)
    assert line("a", Counter(right=2, wrong=1)) == Line("a", 3, 2, 0, wrong=1)


@pytest.mark.parametrize(
    ("changes", "name", "verdict"),
    [
        ({}, "results.parquet", "right"),
        ({"damaged": ["results.parquet"]}, "results.parquet", "named"),
        ({"damaged": ["results.parquet"]}, "spec.toml", "lost"),
        ({"damaged": ["results.parquet"]}, "SHA256SUMS", "named"),
        ({"runs": RUNS.assign(mistakes=[0, 1, 1, 2])}, "results.parquet", "wrong"),
        ({"runs": RUNS[:3]}, "results.parquet", "wrong"),
        ({"runs": RUNS[:2], "damaged": ["results.parquet"]}, "results.parquet", "lost"),
        ({"runs": RUNS[:2], "damaged": ["shards/bb/bb.parquet"]}, "shards/bb/bb.parquet", "named"),
        ({"runs": RUNS[:2]}, "shards/bb/bb.parquet", "lost"),
        ({"comparators": COMPARATORS.assign(loss_nats=0.25)}, "comparators.parquet", "wrong"),
        ({"failures": []}, "failed/cc.json", "lost"),
        ({"failures": [Failure("cc", "e", "p", 0, "ValueError: yes")]}, "failed/cc.json", "wrong"),
    ],
)
def test_the_verdict_on_a_damaged_folder(changes: dict[str, Any], name: str, verdict: str) -> None:
    assert flips.judged(read(**changes), TRUTH, name)[0] == verdict


@pytest.mark.parametrize(
    ("code", "text", "verdict"),
    [
        (0, "done", "right"),
        (2, "banditlab: no such file", "named"),
        (1, "failed: uniform on a table: no", "named"),
        (1, "", "tracebacks"),
        (None, "ValueError: no", "tracebacks"),
        (1, "banditlab: x\nTraceback (most recent call last):", "tracebacks"),
    ],
)
def test_the_verdict_on_what_was_said(code: int | None, text: str, verdict: str) -> None:
    assert files.verdict(code, text) == verdict


def test_the_verdict_on_a_sweep_beside_plug_ins(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    frame = pd.DataFrame({"run_id": ["aa"], "round": [1], "player": ["uniform"], "mistakes": [3], "seconds": [0.1]})
    frame.to_parquet(tmp_path / "results.parquet")
    right = plugins.rows_of(tmp_path, "uniform")
    done = subprocess.CompletedProcess([], 1, "", "")
    assert plugins.verdicts(done, tmp_path, right, "") == Counter(right=1)
    assert plugins.verdicts(done, tmp_path, right.assign(mistakes=4), "")["wrong"] == 1
    told = subprocess.CompletedProcess([], 1, "", "Traceback (most recent call last):")
    assert plugins.verdicts(told, tmp_path, right, "")["tracebacks"] == 1


@pytest.mark.slow
def test_a_few_files_are_damaged() -> None:
    lines = flips.attack(66, 5)
    assert total(lines)[4:] == (0, 0, 0, 0)
    assert total(lines).tried > 66
