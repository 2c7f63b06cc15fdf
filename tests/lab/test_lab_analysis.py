"""The analysis notebook runs on a results folder, as a notebook and as a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jupytext
import nbclient
import pytest

from banditlab.cli.scaffold import _filled
from banditlab.engine import Sweep

LAB = Path(__file__).parents[2]
SCRIPT = LAB / "analysis" / "quickstart.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results") / "small"
    sweep = Sweep(
        name="small",
        rounds=100,
        repetitions=4,
        norm_bounds=[1.0],
        environment=[{"id": "banditlab/Logistic-v0"}],
        agent=[{"id": "banditron", "grid": {"gamma": [0.05, 0.3]}}, {"id": "uniform"}],
    )
    sweep.run(out)
    return out


def check_text(text: str) -> None:
    assert "12 of 12 runs, 100 rounds each" in text
    assert "banditlab/Logistic-v0, feedback: bit" in text
    assert " 1" in text
    for player in ("banditron", "uniform"):
        assert player in text
    assert "against " in text
    assert ", 4 streams" in text  # each half of the repetitions is reported at the setting the other half chose


@pytest.mark.slow
def test_it_runs_as_a_notebook(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_RESULTS", str(folder))
    notebook = jupytext.read(SCRIPT)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    check_text("".join(output.get("text", "") for output in outputs))
    pictures = [output["data"] for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) == 1
    assert pictures[0]["image/svg+xml"].lstrip().startswith("<?xml")
    assert sum(cell.cell_type == "markdown" for cell in notebook.cells) >= 4


@pytest.mark.slow
def test_it_runs_as_a_script(folder: Path, tmp_path: Path) -> None:
    env = os.environ | {"BANDITLAB_RESULTS": str(folder)}
    out = subprocess.run(
        [sys.executable, str(SCRIPT)], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    check_text(out.stdout)
    assert (folder / "figures" / "notebook-mistakes.svg").is_file()
    assert list(tmp_path.iterdir()) == []


def test_it_is_what_a_new_lab_gets() -> None:
    """One notebook, kept in one place: the repository's own is the scaffold's."""
    assert SCRIPT.read_text(encoding="utf-8") == _filled("analysis.py", {"name": "quickstart"})
