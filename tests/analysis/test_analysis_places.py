"""Notebooks find their folders from the lab's root and from the folder of the notebooks; variables change them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from banditlab.analysis.places import keep, kept, place, results_folder, stored


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("docs", "runs/results", "analysis"):
        (tmp_path / name).mkdir(parents=True)
    for variable in ("BANDITLAB_RESULTS", "BANDITLAB_FIGURES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_the_root_and_from_the_notebooks_folder(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert results_folder() == Path("runs/results")
    monkeypatch.chdir(lab / "analysis")
    assert results_folder() == Path("../runs/results")
    assert kept("images/a.png") == Path("../docs/images/a.png")
    assert (lab / "docs" / "images").is_dir()


def test_a_folder_that_is_nowhere_is_here(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab / "analysis")
    assert place("BANDITLAB_SPECS", "nowhere") == Path("nowhere")


def test_variables_name_other_folders(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_RESULTS", str(lab / "elsewhere"))
    monkeypatch.setenv("BANDITLAB_FIGURES", str(lab / "kept"))
    assert results_folder() == lab / "elsewhere"
    assert kept("results/a.csv") == lab / "kept" / "results" / "a.csv"
    assert (lab / "kept" / "results").is_dir()


def test_a_kept_table_has_significant_digits(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame({"who": ["a"], "value": [0.00123456]})
    for digits, options, shown in ((3, {"digits": 3}, "0.00123"), (4, {}, "0.001235")):
        keep(table, f"small{digits}", **options)
        file = lab / "docs" / "results" / f"small{digits}.csv"
        assert file.read_text(encoding="utf-8").split() == ["who,value", f"a,{shown}"]
        assert capsys.readouterr().out.split() == ["who", "value", "a", shown]


def test_what_is_stored_is_read_and_counted(
    new_folder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new_folder(repetitions=3)
    for repetition in range(2):
        folder.add_run("someone", repetition, 5.0)
    folder.write()
    monkeypatch.setenv("BANDITLAB_RESULTS", str(folder.out.parent))
    results = stored(folder.out.name)
    assert results is not None
    assert len(results.runs)
    assert capsys.readouterr().out == f"{folder.out.name}: 2 of {results.planned} runs, 0 failures\n"
    assert stored("nothing") is None
    assert capsys.readouterr().out == "left out, not run yet: nothing\n"
