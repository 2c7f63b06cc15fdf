"""A self-contained page for many sweeps, with filters by sweep, environment, player, setting and date.

Runs are aggregated before they are embedded. A row of the board is one setting of a player in one environment of a
sweep, with the mean mistake rate over repetitions and its confidence interval. Curves are embedded for each player's
best setting, and for others up to a size limit (`MOST_NUMBERS`). The page for 100,000 runs takes a few megabytes.
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from banditlab.analysis import look
from banditlab.analysis.across import across
from banditlab.analysis.embedding import json_text, policy, render, script_of
from banditlab.analysis.explore import calls
from banditlab.analysis.formats import count, data_title, learner
from banditlab.analysis.statistics import critical
from banditlab.analysis.tables import NothingFinishedError, Results, load, runnable_spec
from banditlab.errors import UsageError

MOST_NUMBERS = 600_000
"""The largest total size of the curves on a board, in numbers; best settings come first."""
POINTS = 12
"""The largest number of checkpoints of an embedded curve: evenly spaced ones, and the last."""
KEYS = ["environment", "kind", "label", "settings"]


@dataclass
class Columns:
    """The rows of a board as columns; repeated strings are stored as indices into `names`."""

    names: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    data: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, name: str, value: Any) -> None:
        """Add a number to a column."""
        self.data.setdefault(name, []).append(value)

    def add_name(self, name: str, text: str) -> None:
        """Add a string to a column, as its index in `names`."""
        numbers, names = self.numbers.setdefault(name, {}), self.names.setdefault(name, [])
        if text not in numbers:
            numbers[text] = len(names)
            names.append(text)
        self.add(name, numbers[text])


def write_board(
    outs: Sequence[str | os.PathLike[str]], page: str | os.PathLike[str], notice: Callable[[str], None] = lambda _: None
) -> Path:
    """Write a board over several results folders, finished or not, and return its path.

    A folder without finished runs is left out, with a note on the page and a call of `notice`.

    Raises
    ------
    UsageError
        As for `load`; or no folder is given, one is given twice, there is no finished run, or the page cannot be
        written.
    """
    folders = [Path(out) for out in outs]
    if not folders:
        raise UsageError("a board needs at least one results folder")
    real = [folder.resolve() for folder in folders]
    for folder, where in zip(folders, real, strict=True):
        if real.count(where) > 1:
            raise UsageError(f"{folder}: given twice")
    sweeps, lacking = [], []
    for folder in folders:
        try:
            sweeps.append(load(folder))
        except NothingFinishedError as error:  # a sweep without finished runs
            lacking.append(error)
            notice(f"left out: {error}")
    if not sweeps:
        raise lacking[0]
    text = board_page(sweeps, [str(error) for error in lacking])
    page = Path(page)
    draft = page.with_name(f"{page.name}.part")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, page)
    except OSError as error:
        raise UsageError(f"{page}: the board cannot be written ({error.strerror})") from error
    return page


def board_page(sweeps: Sequence[Results], left_out: Sequence[str] = ()) -> str:
    """Return the page of a board; `left_out` lists a message for each folder that the board omits."""
    data, noun = board_data(sweeps), learner({kind for sweep in sweeps for kind in sweep.runs["kind"].unique()})
    script = script_of("charts.js", "board.js")
    return render(
        "board.html.j2",
        title="banditlab board" if len(sweeps) > 1 else f"{_name(sweeps[0])} · banditlab board",
        runs=count(sum(int(sweep.runs["run_id"].nunique()) for sweep in sweeps), "run"),
        sweeps=count(len(sweeps), "sweep"),
        settings=count(len(data["columns"]["mean"]), "setting"),
        noun=noun,
        policy=policy(script),
        script=script,
        unfinished=[f"Left out: {sentence}" for sentence in left_out]
        + [f"{_name(s)}: {count(s.missing, 'run')} of {s.planned:,} missing" for s in sweeps if s.missing],
        data=json_text(data | {"noun": noun}),
        many=[(_name(s), over) for s in sweeps if s.spec.get("passes") and (over := across(s)) is not None],
    )


def board_data(sweeps: Sequence[Results]) -> dict[str, Any]:
    """Return the data for the board's script: sweeps with their specs, names, and columns of aggregated rows."""
    columns, curves, places = Columns(), [], []
    for i, sweep in enumerate(sweeps):
        for row, rounds, mean in _aggregated(sweep):
            columns.add("sweep", i)
            for name in ("environment", "kind", "label", "settings", "call"):
                columns.add_name(name, row[name])
            for name in ("mean", "low", "high", "n", "seconds", "best"):
                columns.add(name, row[name])
            curves.append((row["best"], rounds, mean))
    order = sorted(range(len(curves)), key=lambda at: not curves[at][0])[: MOST_NUMBERS // POINTS]
    embedded = set(order)
    grids: list[list[float]] = []
    drawn: list[Any] = []
    for at, (_, rounds, mean) in enumerate(curves):
        if at not in embedded:
            places.append(-1)
            continue
        if rounds not in grids:
            grids.append(rounds)
        places.append(len(drawn))
        drawn.append(
            [grids.index(rounds), *(round(100 * value, 3) if math.isfinite(value) else None for value in mean)]
        )
    columns.data["curve"] = places
    labels = columns.names.get("label", [])
    references = {str(label) for sweep in sweeps for label in sweep.references()}
    looks = look.styles(labels, [label for label in labels if label in references])
    return {
        "sweeps": [_sweep(sweep, title) for sweep, title in zip(sweeps, _titles(sweeps), strict=True)],
        "titles": [data_title(name) for name in columns.names.get("environment", [])],
        "names": columns.names,
        "columns": columns.data,
        "rounds": grids,
        "curves": drawn,
        "looks": [[s.colour, look.DASHES.index(s.dash), s.marker] for s in (looks[label] for label in labels)],
        "groups": [next((s.groups[label] for s in sweeps if label in s.groups), "") for label in labels],
    }


def _name(sweep: Results) -> str:
    return str(sweep.spec.get("name", sweep.out.name))


def _titles(sweeps: Sequence[Results]) -> list[str]:
    """Return the names of the sweeps; equal names are followed by the folder's name, or by its path if still equal."""
    names = [_name(sweep) for sweep in sweeps]
    for folders in ([s.out.name for s in sweeps], [s.out for s in sweeps]):
        more = [f"{_name(s)} in {folder}" for s, folder in zip(sweeps, folders, strict=True)]
        names = [longer if names.count(name) > 1 else name for name, longer in zip(names, more, strict=True)]
    return names


def _sweep(sweep: Results, title: str) -> dict[str, Any]:
    stamp = (sweep.out / "runs.json").stat().st_mtime
    day = datetime.datetime.fromtimestamp(stamp, datetime.UTC).strftime("%Y-%m-%d")
    lines = runnable_spec((sweep.out / "spec.toml").read_text(encoding="utf-8")).splitlines()
    return {"name": title, "folder": str(sweep.out), "date": day, "spec": lines, "rounds": sweep.last_round}


def _aggregated(sweep: Results) -> list[tuple[dict[str, Any], list[float], list[float]]]:
    """Return, for each setting of a sweep, its row and its curve: checkpoints, and the mistake rates up to them."""
    runs, final = sweep.runs, sweep.final
    found = final.groupby(KEYS, sort=False)["ranked"].agg(["mean", "std", "count"])
    per_round = final["seconds"] / final["round"]
    found["seconds"] = per_round.groupby([final[key] for key in KEYS]).mean()
    factors = {n: critical(0.95, n - 1.0) / math.sqrt(n) for n in set(found["count"].tolist()) if n > 1}
    rounds_each = final.groupby(KEYS, sort=False)["first_sight_rounds"].max()
    draw = (found["mean"] * found["count"] * rounds_each + 1) / (found["count"] * rounds_each + 2)
    binomial = np.sqrt((draw * (1 - draw)).clip(0) / rounds_each)  # if numbers of mistakes are equal (see `statistics`)
    half = found["std"].mask(found["std"] * rounds_each < 1e-6, binomial) * found["count"].map(factors)
    rounds = sorted(set(runs["round"]))
    rounds = [
        rounds[i] for i in sorted({*np.linspace(0, len(rounds) - 1, min(POINTS, len(rounds))).round().astype(int)})
    ]
    curves = runs[runs["round"].isin(rounds)].assign(share=lambda t: t["expected_mistakes"] / t["round"])
    table = curves.pivot_table(index=KEYS, columns="round", values="share", aggfunc="mean").reindex(
        index=found.index, columns=rounds
    )
    best = set(found["mean"].dropna().groupby(level=KEYS[:3]).idxmin())
    firsts = final.drop_duplicates(KEYS).set_index(KEYS).reindex(found.index)
    made = calls(firsts)
    rows = []
    for i, (key, mean, n, width, seconds) in enumerate(
        zip(found.index, found["mean"], found["count"], half, found["seconds"], strict=True)
    ):
        low, high = np.clip([mean - width, mean + width], 0, 1).tolist()  # NaN stays: one repetition has no interval
        row: dict[str, Any] = dict(zip(KEYS, map(str, key), strict=True))
        row |= {
            "mean": mean,
            "low": low,
            "high": high,
            "n": int(n),
            "seconds": seconds,
            "best": int(key in best),
            "call": made[i],
        }
        rows.append((row, [float(r) for r in rounds], table.iloc[i].tolist()))
    return rows
