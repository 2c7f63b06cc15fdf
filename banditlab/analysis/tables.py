"""A results folder as tidy tables, read by `banditlab.results.reading`."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pandas as pd
import pyarrow as pa

from banditlab.analysis.settings import with_settings
from banditlab.errors import UsageError
from banditlab.results.reading import (
    Failure,
    Skip,
    read_comparators,
    read_failures,
    read_plan,
    read_runs,
    read_spec,
)
from banditlab.results.schema import COUNTED

COMPARATOR_COLUMNS = {
    **dict.fromkeys(("stream_id", "environment"), "str"),
    **dict.fromkeys(("repetition", "round", "mistakes"), "int64"),
    **dict.fromkeys(("norm_bound", "loss_nats", "loss_bits", "gap", "seconds"), "float64"),
}


class NothingFinishedError(UsageError):
    """A results folder has no finished run of its current spec."""


T = TypeVar("T")


class Remembers(Protocol):
    """An object with a cache for `once`."""

    @property
    def made(self) -> dict[Any, Any]: ...


H = TypeVar("H", bound=Remembers)


def once(make: Callable[[H], T]) -> Callable[[H], T]:
    """Cache a function's result in its argument, a `Results` or an arena; callers must not modify the result."""

    @functools.wraps(make)
    def inside(of: H) -> T:
        if make not in of.made:
            of.made[make] = make(of)
        found: T = of.made[make]
        return found

    return inside


@dataclass(frozen=True)
class Results:
    """The results of a folder's current spec; runs of earlier specs are left out.

    Attributes
    ----------
    out
        The folder.
    spec
        The text of `spec.toml`.
    runs
        One row per run and checkpoint, as stored, with the additional columns `settings` (as text, the settings that
        differ between runs of the same label and environment), `gamma` and `norm_bound` (float, NaN if the player has
        none). `ranked`, by which players are ranked, is the expected mistake rate in the rounds in which a row of a
        table occurred for the first time (without a table, in all rounds). `ranked_counted` is the same for the actual
        mistakes. `repeated` is the expected mistake rate in the other rounds, NaN if there were none. `constant` is the
        mistake rate of always choosing the most frequent class, on the rounds of `ranked`. `cost` is the mean cost of
        the chosen actions on those rounds, NaN if no costs are known.
    data
        Facts about each data set, by environment: `rows`, `features`, `classes` and `largest` (the share of the largest
        class). If several actions may be right, also the mistakes `anchor.NAME` and costs `cost.NAME` of
        players that choose in hindsight, such as the best single action.
    comparators
        One row per stream, checkpoint and norm bound.
    planned, missing
        The number of runs in the spec, and the number of runs that have neither finished nor failed so far.
    unreadable
        Names of damaged files; runs that are only in these files count as missing.
    groups
        The kind of each player ("theory", "practice", "reference", ...), by label.
    skipped, failures
        Incompatible pairs of players and environments; runs and comparators that raised an error.
    made
        Cached results of functions decorated with `once`.
    """

    out: Path
    spec: dict[str, Any]
    runs: pd.DataFrame
    comparators: pd.DataFrame
    planned: int
    missing: int
    unreadable: list[str]
    skipped: list[Skip]
    failures: list[Failure]
    data: dict[str, dict[str, float]]
    groups: dict[str, str] = field(default_factory=dict)
    made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def environments(self) -> list[str]:
        """The environments, in the order of the spec."""
        return list(dict.fromkeys(self.runs["environment"]))

    @property
    def last_round(self) -> int:
        """The last checkpoint of all environments."""
        return int(self.runs["round"].max())

    @property
    def final(self) -> pd.DataFrame:
        """The rows of each environment's last checkpoint."""
        return self.runs[self.runs["round"] == self.runs.groupby("environment")["round"].transform("max")]

    def rounds_of(self, environment: str) -> int:
        """Return the last checkpoint of an environment."""
        return int(self.runs.loc[self.runs["environment"] == environment, "round"].max())

    def labels(self) -> list[str]:
        """Return the players' labels in the order of the spec, the same for every figure."""
        return list(dict.fromkeys(self.runs["label"]))

    def references(self) -> list[str]:
        """Return the labels of the references, players that observe the label."""
        return list(dict.fromkeys(self.runs.loc[self.runs["kind"] == "reference", "label"]))


def load(out: str | os.PathLike[str]) -> Results:
    """Return the results of the folder `out`: runs, comparators and failures as tables.

    Parameters
    ----------
    out
        The results folder of a sweep, as written by `Sweep.run` or `banditlab run`.

    Raises
    ------
    UsageError
        `out` is not a results folder, has another store format, or (`NothingFinishedError`) has no finished run of its
        current spec.
    """
    out = Path(out)
    spec, plan = read_spec(out), read_plan(out)
    wanted = list(plan["runs"])
    table, damaged = read_runs(out, wanted)
    if table is None:
        damage = f" ({', '.join(damaged)}: damaged)" if damaged else ""
        raise NothingFinishedError(
            f"{out}: no finished runs yet (0 of {len(wanted)} in its spec); run the sweep first{damage}"
        )
    runs = _as_objects(table.to_pandas(use_threads=False))
    order = {run_id: i for i, run_id in enumerate(wanted)}
    runs = runs.assign(_order=runs["run_id"].map(order)).sort_values(["_order", "round"], kind="stable")
    runs = _with_ranked(with_settings(runs.drop(columns="_order").reset_index(drop=True)))
    done = set(runs["run_id"])
    streams = set(plan["streams"])
    # comparators of an adaptive stream have the id of its finished run
    failures = [
        each for each in read_failures(out, set(wanted) | streams) if each.is_comparator or each.run_id not in done
    ]
    missing = len(set(wanted) - done - {failure.run_id for failure in failures})
    skipped = [Skip(str(s["environment"]), str(s["player"]), str(s["reason"])) for s in plan["skipped"]]
    found = read_comparators(out, streams)
    damaged += found.damaged
    comparators, data = _comparators(found.table), dict(plan["data"])
    groups = dict(plan["groups"])
    return Results(out, spec, runs, comparators, len(wanted), missing, damaged, skipped, failures, data, groups)


def _as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with Python strings, because Arrow's strings are slow for the many small groups of a report."""
    texts = {name: object for name, kind in frame.dtypes.items() if isinstance(kind, pd.StringDtype)}
    return frame.astype(texts).copy()  # in few blocks, because pandas warns about more than a hundred added columns


def _with_ranked(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the quantity used for ranking: the mistake rate in the rounds that show a data row for the first time."""
    numbers = {name: runs[name].astype(float) for name in ("round", "expected_mistakes", *COUNTED)}
    first, wrong = numbers["first_sight_rounds"], numbers["first_sight_expected_mistakes"]
    again = numbers["round"] - first
    return runs.assign(
        no_bound=runs["no_bound"].fillna("") if "no_bound" in runs else "",
        ranked=wrong / first,
        ranked_counted=numbers["first_sight_mistakes"] / first,
        repeated=(numbers["expected_mistakes"] - wrong) / again.where(again > 0),
        constant=numbers["first_sight_constant_mistakes"] / first,
        cost=runs["diagnostic.mean_cost"].astype(float) if "diagnostic.mean_cost" in runs else math.nan,
    )


def _comparators(table: pa.Table | None) -> pd.DataFrame:
    if table is None:
        return pd.DataFrame({n: pd.Series(dtype=t) for n, t in COMPARATOR_COLUMNS.items()})
    frame = _as_objects(table.to_pandas(use_threads=False)).drop_duplicates(["stream_id", "round", "norm_bound"])
    return frame.astype({"norm_bound": float}).reset_index(drop=True)


def runnable_spec(text: str) -> str:
    """Return a stored spec without the sections that were added when it was stored ([store] and [versions]), so it can
    be run again.
    """
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip() in ("[store]", "[versions]")
        if not inside:
            lines.append(line)
    return "\n".join(lines).strip()
