"""Run the notebooks of `analysis/` on folders of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ANALYSIS = Path(__file__).parents[2] / "analysis"


@pytest.fixture(scope="session", params=[pytest.param(None, marks=pytest.mark.slow)], ids=["script"])
def notebook() -> Callable[..., str]:
    """Return what runs `python analysis/SCRIPT` in a separate process, and returns what it printed.

    notebook(script, cwd, results=..., figures=...) sets BANDITLAB_RESULTS and so on. The sweeps it reads are played first, so
    tests that ask for it are slow; the quickstart's notebook is run by `test_lab_analysis.py` in any case.
    """

    def run(script: str, cwd: Path, **places: str | Path) -> str:
        named = {f"BANDITLAB_{name.upper()}": str(value) for name, value in places.items()}
        command = [sys.executable, "-W", "error", str(ANALYSIS / script)]
        done = subprocess.run(command, cwd=cwd, env=os.environ | named, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
