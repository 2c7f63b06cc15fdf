"""Where notebooks read results and write pictures and tables; environment variables change it.

`BANDITLAB_RESULTS` names the folder of results folders (`runs/results` where unset), `BANDITLAB_FIGURES` the folder whose
`images/` and `results/` take what a notebook makes (`docs`). A notebook server starts in the notebook's folder, so that a
folder which is not here is looked for in the folder above.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from banditlab.analysis.cells import write_csv
from banditlab.analysis.tables import Results, load


def place(variable: str, default: str) -> Path:
    """Return the folder that an environment variable names, or the default; of the folder above if it is there only."""
    folder = Path(os.environ.get(variable, default))
    above = Path("..") / folder
    return above if above.is_dir() and not folder.is_dir() else folder


def results_folder() -> Path:
    """Return the folder that holds one results folder per spec."""
    return place("BANDITLAB_RESULTS", "runs/results")


def stored(name: str) -> Results | None:
    """Return the results folder NAME and print how many of its runs have finished; None, with a line, if it was not
    run."""
    folder = results_folder() / name
    if not (folder / "spec.toml").is_file():
        print(f"left out, not run yet: {name}")
        return None
    results = load(folder)
    print(f"{name}: {results.planned - results.missing} of {results.planned} runs, {len(results.failures)} failures")
    return results


def kept(name: str) -> Path:
    """Return the path for a picture or table ("images/x.png", "results/x.csv"), and create its folder."""
    path = place("BANDITLAB_FIGURES", "docs") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def keep(table: pd.DataFrame, name: str, *, digits: int = 4) -> None:
    """Write a table to results/NAME.csv and print it, both with that many significant digits."""
    write_csv(table, kept(f"results/{name}.csv"), float_format=f"%.{digits}g")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.{digits}g}"))
