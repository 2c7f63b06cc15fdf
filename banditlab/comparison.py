"""Comparing agents on a user's own table, no setting needed: the sweep, and `compare`, which plays and reads it."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditlab.engine.describe import build_environment, describe_environment
from banditlab.engine.spec import Spec, make_spec
from banditlab.envs.files import SUFFIXES
from banditlab.errors import UsageError
from banditlab.numerics.sparse_rows import MOST_DENSE
from banditlab.validation import at_least

if TYPE_CHECKING:
    from banditlab.analysis import Results

TABLE = "banditlab/Table-v0"
GAMMAS = [0.01, 0.03, 0.1, 0.3]
DENSE_STATE = 200  # K d up to which agents with a Kd x Kd state are quick enough to take along unasked


def compare(
    data: str | os.PathLike[str],
    label: str = "",
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    passes: int | None = None,
    rounds: int | None = None,
    repetitions: int = 10,
    **table: Any,
) -> Results:
    """Rank agents and exploration rates on your own table, as `banditlab compare` does, and return the results.

    Parameters
    ----------
    data, label, passes, rounds, repetitions, table
        See `comparison`.
    out
        The results folder; by default what the command line takes, runs/results/NAME or results/NAME. What it holds
        already of the same comparison is not played again; the report of another one is kept in its `earlier` folder.
    jobs
        Worker processes; 1 plays in this one.

    Returns
    -------
    Results
        `banditlab.analysis.summary_rows` ranks them, `banditlab.write_report(results.out)` writes the report.

    Raises
    ------
    UsageError
        No such file, no such column, a table that cannot be read as features and labels, both passes and rounds, a folder
        that cannot be written.
    """
    from banditlab.analysis import load
    from banditlab.engine.sweep import Sweep

    spec = comparison(Path(data), label, passes=passes, rounds=rounds, repetitions=repetitions, **table)
    folder = default_folder(spec.name) if out is None else Path(out)
    Sweep(spec, where=str(data)).run(folder, jobs=jobs)
    return load(folder)


def default_folder(name: str) -> Path:
    """Return where results go if nobody says: runs/results/<name> in a lab, ./results/<name> elsewhere."""
    return Path("runs/results") / name if Path("runs").is_dir() else Path("results") / name


def comparison(
    data: Path, label: str, *, passes: int | None = None, rounds: int | None = None, repetitions: int = 10, **table: Any
) -> Spec:
    """Return the spec of a comparison; without comparators where rows are sparse and too long to be made dense.

    Parameters
    ----------
    data, label
        The file and the column to predict ("" for a LIBSVM file, which brings its own labels).
    passes
        How often each run is shown all n rows, in a new order each time; 1 by default. Agents may remember the rows of
        earlier passes, so what is ranked is the first one.
    rounds
        Rounds a run, in the place of n times `passes`: fewer than n leave rows out.
    repetitions
        Runs of each agent and setting, each over the rows in an order of its own.
    table
        Settings of the table environment; those that are None are left at their defaults.

    Raises
    ------
    UsageError
        No such file, no such column, a table that cannot be read as features and labels, both passes and rounds.
    """
    if passes is not None and rounds is not None:
        raise UsageError(f"{data}: --passes is --rounds in multiples of the rows; give one of them")
    passes = 1 if passes is None else at_least("passes", passes, 1)
    settings = {name: value for name, value in table.items() if value is not None}
    settings |= {"path": str(data.absolute())} | ({"label": label} if label else {})
    env = build_environment(describe_environment(TABLE, settings, str(data)), rounds=1)
    n = env.unwrapped.n_rows
    size = env.unwrapped.problem.n_classes * env.unwrapped.problem.n_features
    long = env.unwrapped.sparse and env.unwrapped.problem.n_features > MOST_DENSE  # the comparator needs dense rows
    return make_spec(
        {
            "name": plain_name(data),
            "rounds": passes * n if rounds is None else rounds,
            "repetitions": repetitions,
            "norm_bounds": [] if long else [10.0],
            "environment": [{"id": TABLE, **settings}],
            "agent": _agents(size),
        },
        str(data),
    )


def plain_name(data: Path) -> str:
    """Return a file's name without its endings, fit for a sweep and a folder: "my table.csv.gz" gives "my-table"."""
    name = unicodedata.normalize("NFC", data.name).removesuffix(".gz")
    stem, dot, ending = name.rpartition(".")
    if f"{dot}{ending}".lower() in SUFFIXES:
        name = stem
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.+") or "table"


def _agents(size: int) -> list[dict[str, Any]]:
    """Return the agents of a comparison: practice settings where there are any, every gamma where an agent takes one."""
    gammas = {"gamma": GAMMAS}
    agents: list[dict[str, Any]] = [
        {"id": "fastcb"},
        {"id": "squarecb"},
        {"id": "gaptron", "step": "adaptive", "norm_bound": 10.0, "grid": gammas},
        {"id": "banditron", "grid": gammas},
        {"id": "exploration", "forecaster": "ogd", "norm_bound": 10.0, "grid": gammas},
        {"id": "uniform"},
    ]
    if size <= DENSE_STATE:
        agents.insert(2, {"id": "exploration", "forecaster": "folklore", "norm_bound": 10.0, "grid": gammas})
        agents.insert(3, {"id": "obama-lite", "norm_bound": 10.0, "grid": gammas})
    return agents
