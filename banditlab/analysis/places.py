"""The folders from which notebooks read results and to which they write figures and tables.

`BANDITLAB_RESULTS` names the folder of results folders (by default `runs/results`). `BANDITLAB_FIGURES` names the
folder whose `images/` and `results/` receive a notebook's files (by default `docs`). A folder that does not exist in
the working folder is sought in its parent, because a notebook server starts in the notebook's folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from banditlab.analysis.cells import write_csv
from banditlab.analysis.tables import Results, load


def place(variable: str, default: str) -> Path:
    """Return the folder that an environment variable names, or the default folder if the variable is not set.

    If the folder exists in the parent of the working folder only, return that one.
    """
    folder = Path(os.environ.get(variable, default))
    above = Path("..") / folder
    return above if above.is_dir() and not folder.is_dir() else folder


def results_folder() -> Path:
    """Return the folder with one results folder per spec."""
    return place("BANDITLAB_RESULTS", "runs/results")


def stored(name: str) -> Results | None:
    """Return the results folder `name` and print the number of its finished runs; if it is missing, print a line and
    return None.
    """
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
    """Write a table to results/NAME.csv and print it, with the given number of significant digits."""
    write_csv(table, kept(f"results/{name}.csv"), float_format=f"%.{digits}g")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.{digits}g}"))
