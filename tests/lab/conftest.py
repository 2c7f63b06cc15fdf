"""Run the notebooks of `analysis/` on folders of one's own."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

ANALYSIS = Path(__file__).parents[2] / "analysis"


def _apart(script: str, cwd: Path, environment: dict[str, str]) -> str:
    command, places = [sys.executable, "-W", "error", str(ANALYSIS / script)], os.environ | environment
    done = subprocess.run(command, cwd=cwd, env=places, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _here(script: str, cwd: Path, environment: dict[str, str]) -> str:
    known = set(sys.modules)
    try:
        with pytest.MonkeyPatch.context() as patch, mpl.rc_context(), redirect_stdout(io.StringIO()) as said:
            patch.chdir(cwd)
            patch.setattr(sys, "argv", [str(ANALYSIS / script)])
            patch.syspath_prepend(str(ANALYSIS))
            for name, value in environment.items():
                patch.setenv(name, value)
            runpy.run_path(str(ANALYSIS / script), run_name="__main__")
    finally:
        plt.close("all")
        for name in set(sys.modules) - known:  # the notebooks' common pieces
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == ANALYSIS:
                del sys.modules[name]
    return said.getvalue()


@pytest.fixture(scope="session", params=[_here, pytest.param(_apart, marks=pytest.mark.slow)], ids=["here", "apart"])
def notebook(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Return what runs a script as `python analysis/SCRIPT` does, and returns what it printed.

    notebook(script, cwd, results=..., figures=...) sets BANDITLAB_RESULTS and so on. "here" is this process, which has
    imported what takes a script two seconds to import.
    """

    def run(script: str, cwd: Path, **places: str | Path) -> str:
        named = {f"BANDITLAB_{name.upper()}": str(value) for name, value in places.items()}
        said: str = request.param(script, cwd, named)
        return said

    return run
