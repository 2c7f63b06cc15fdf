"""Run the notebooks of `analysis/` on folders of one's own."""

from __future__ import annotations

import io
import runpy
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

ANALYSIS = Path(__file__).parents[2] / "analysis"


def _run(script: str, cwd: Path, **environment: str | Path) -> str:
    known = set(sys.modules)
    try:
        with pytest.MonkeyPatch.context() as patch, mpl.rc_context(), redirect_stdout(io.StringIO()) as said:
            patch.chdir(cwd)
            patch.syspath_prepend(str(ANALYSIS))
            for name, value in environment.items():
                patch.setenv(f"BANDITLAB_{name.upper()}", str(value))
            runpy.run_path(str(ANALYSIS / script), run_name="__main__")
    finally:
        plt.close("all")
        for name in set(sys.modules) - known:  # the notebooks' common pieces
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == ANALYSIS:
                del sys.modules[name]
    return said.getvalue()


@pytest.fixture(scope="session")
def notebook() -> Callable[..., str]:
    """Return what runs a script as `python analysis/SCRIPT` would, and returns what it printed.

    notebook(script, cwd, results=..., figures=...) sets BANDITLAB_RESULTS and so on. It runs in this process, which has
    imported what takes a script two seconds to import; `test_lab_analysis` runs one in a process of its own.
    """
    return _run
