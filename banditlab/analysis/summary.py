"""What a report shows, as plain data: rankings, curves, grids, bounds. Tables in, statistics out; nothing is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from banditlab.analysis.statistics import (
    Choice,
    Interval,
    Place,
    choose,
    difference,
    mean_interval,
    mean_intervals,
    rank,
    split,
)
from banditlab.analysis.tables import Results, relative

Floats = NDArray[np.float64]
VARIANT = ["label", "settings"]


@dataclass(frozen=True)
class Standing:
    """One row of the ranked table: a player at its chosen setting.

    Attributes
    ----------
    rank
        "1", "2="; players with feedback "bit" and "label" are ranked apart.
    settings, among
        The settings that differ, as text, and of how many settings it was chosen.
    held_out
        Whether the repetitions reported are others than those the setting was chosen on.
    mistakes, counted
        Expected mistakes (what is ranked) and mistakes made, as fractions of the rounds.
    conditional
        Whether the expectation is only conditional on the player's internal draws.
    relative
        Expected mistakes - loss of the best comparator (`comparator_bound`, nats), None without comparators.
    ratio
        Expected mistakes / loss of the same comparator; NaN without.
    behind_first, behind_group
        Differences of `mistakes` to the first row and to the first row of the tie group (see `statistics.Place`).
    """

    environment: str
    kind: str
    rank: str
    position: int
    label: str
    settings: str
    among: int
    held_out: bool
    mistakes: Interval
    counted: Interval
    conditional: bool
    relative: Interval | None
    ratio: float
    comparator_bound: float
    behind_first: Interval
    behind_group: Interval
    seconds_per_round: float

    @property
    def name(self) -> str:
        """Label and settings, as legends write them."""
        return f"{self.label} {self.settings}".strip()


@dataclass(frozen=True)
class Curve:
    """A quantity against rounds with its interval; arrays of shape (checkpoints,).

    `bound` is min(bound, round), empty where no theorem gives a number; `vacuous` says whether it is so at the end.
    """

    label: str
    settings: str
    rounds: Floats
    mean: Floats
    low: Floats
    high: Floats
    bound: Floats
    vacuous: bool
    unit: str

    @property
    def name(self) -> str:
        """Label and settings, as legends write them."""
        return f"{self.label} {self.settings}".strip()


@dataclass(frozen=True)
class Panel:
    """The curves at one norm bound, with the comparator's mean loss and its largest gap at the last round (nats)."""

    norm_bound: float
    loss: float
    gap: float
    curves: list[Curve]


@dataclass(frozen=True)
class Grid:
    """A player's settings over gamma and B at the last round.

    `mistakes` (fractions) with `low` and `high`, and `relative` (expected mistakes - loss at the own B), of shape
    (gammas, norm_bounds); NaN where there is no run. A player without a B has `norm_bounds` = [nan].
    """

    label: str
    gammas: list[float]
    norm_bounds: list[float]
    mistakes: Floats
    low: Floats
    high: Floats
    relative: Floats
    unit: str


@dataclass(frozen=True)
class Arena:
    """One environment and one kind of feedback: the runs that may be ranked together."""

    results: Results
    environment: str
    kind: str

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All rows of this environment and kind."""
        runs = self.results.runs
        return runs[(runs["environment"] == self.environment) & (runs["kind"] == self.kind)]

    @cached_property
    def final(self) -> pd.DataFrame:
        """The rows of the last round."""
        return self.runs[self.runs["round"] == self.results.last_round]

    @cached_property
    def relative(self) -> pd.DataFrame:
        """This arena's rows joined with the comparators (see `tables.relative`)."""
        table = relative(self.results)
        return table[(table["environment"] == self.environment) & (table["kind"] == self.kind)]

    @cached_property
    def halves(self) -> tuple[list[int], list[int]]:
        """The repetitions settings are chosen on, and those reported: all of them where there is nothing to choose."""
        repetitions = sorted(int(r) for r in set(self.final["repetition"]))
        several = self.final.groupby("label")["settings"].nunique().max() > 1
        return split(repetitions) if several else ([], repetitions)

    @cached_property
    def paired(self) -> bool:
        """Whether all runs of a repetition met the same stream."""
        return bool((self.final.groupby("repetition")["stream_id"].nunique() == 1).all())

    @cached_property
    def chosen(self) -> dict[str, tuple[str, Choice]]:
        """The chosen settings of each label, with how they were chosen."""
        return self.best(self.final)

    def best(self, final: pd.DataFrame) -> dict[str, tuple[str, Choice]]:
        """Return the chosen settings of each label among the rows given, which are of the last round."""
        chooses, reports = self.halves
        found = {}
        for label, group in final.groupby("label", sort=False):
            table = group.pivot(index="settings", columns="repetition", values="expected_mistakes")
            table = table.reindex(list(dict.fromkeys(group["settings"])))
            choice = choose(table.to_numpy(), table.columns.isin(chooses), table.columns.isin(reports))
            found[str(label)] = (str(table.index[choice.index]), choice)
        return found

    def reported(self, rows: pd.DataFrame, chosen: dict[str, tuple[str, Choice]]) -> pd.DataFrame:
        """Return the rows of the chosen settings on the repetitions that are reported.

        A player without a finished run there keeps those it has.
        """
        key = rows["label"].map({label: settings for label, (settings, _) in chosen.items()})
        rows = rows[rows["settings"] == key]
        held = rows["repetition"].isin(self.halves[1])
        lacking = ~rows["label"].isin(set(rows.loc[held, "label"]))
        return rows[held | lacking]


def arenas(results: Results) -> list[Arena]:
    """Return what may be ranked together: each environment's "bit" players, then its "label" players."""
    kinds = sorted(set(results.runs["kind"]))
    every = [Arena(results, environment, kind) for environment in results.environments for kind in kinds]
    return [arena for arena in every if len(arena.final)]


# -------------------------------------------------------------------------------------------------------------- ranking


def standings(arena: Arena) -> list[Standing]:
    """Return the ranked table of an arena, by mean expected mistakes at the last round."""
    rows = arena.reported(arena.final, arena.chosen)
    rounds = arena.results.last_round
    table = _by_label(rows, "expected_mistakes") / rounds
    counted = _by_label(rows, "mistakes") / rounds
    best_bound, over, ratio = _against_best(arena, rows)
    listed = []
    for place in rank(table.to_numpy(), paired=arena.paired):
        label = str(table.index[place.index])
        settings, choice = arena.chosen[label]
        mine = rows[rows["label"] == label]
        listed.append(
            Standing(
                environment=arena.environment,
                kind=arena.kind,
                rank=place.text,
                position=place.position,
                label=label,
                settings=settings,
                among=choice.among,
                held_out=choice.held_out,
                mistakes=mean_interval(table.loc[label]),
                counted=mean_interval(counted.loc[label]),
                conditional=bool((mine["expected_kind"] == "conditional").any()),
                relative=over.get(label),
                ratio=ratio.get(label, math.nan),
                comparator_bound=best_bound,
                behind_first=place.behind_first,
                behind_group=place.behind_group,
                seconds_per_round=float(mine["seconds"].mean()) / rounds,
            )
        )
    return listed


def summary_rows(results: Results) -> list[Standing]:
    """Return the ranked tables of all environments, one after another."""
    return [row for arena in arenas(results) for row in standings(arena)]


def differences(arena: Arena) -> list[tuple[str, str, Interval]]:
    """Return (first, second, first - second as a fraction of the rounds) for every pair of chosen settings, ranked."""
    rows = arena.reported(arena.final, arena.chosen)
    table = _by_label(rows, "expected_mistakes") / arena.results.last_round
    order = [str(table.index[place.index]) for place in rank(table.to_numpy(), paired=arena.paired)]
    return [
        (_name(arena, a), _name(arena, b), difference(table.loc[a], table.loc[b], paired=arena.paired))
        for i, a in enumerate(order)
        for b in order[i + 1 :]
    ]


def _name(arena: Arena, label: str) -> str:
    return f"{label} {arena.chosen[label][0]}".strip()


def _by_label(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    table = rows.pivot(index="label", columns="repetition", values=value).astype(float)
    return table.reindex(list(dict.fromkeys(rows["label"])))


def _against_best(arena: Arena, rows: pd.DataFrame) -> tuple[float, dict[str, Interval], dict[str, float]]:
    """Return the B of the least mean loss, and each label's expected mistakes - and / that loss (nats)."""
    table = comparator_table(arena)
    if table.empty:
        return math.nan, {}, {}
    best = float(table["norm_bound"].iloc[int(table["loss_nats"].argmin())])
    comparators = arena.results.comparators
    comparators = comparators[comparators["norm_bound"] == best][["stream_id", "round", "loss_nats"]]
    joined = rows.merge(comparators, on=["stream_id", "round"])
    joined = joined.assign(over=joined["expected_mistakes"] - joined["loss_nats"])
    over = {str(label): mean_interval(group["over"]) for label, group in joined.groupby("label")}
    sums = joined.groupby("label")[["expected_mistakes", "loss_nats"]].sum()
    ratio = {str(k): float(e / loss) for k, e, loss in sums.itertuples(name=None) if loss > 0}
    return best, over, ratio


# --------------------------------------------------------------------------------------------------------------- curves


def mistake_curves(arena: Arena) -> list[Curve]:
    """Return expected mistakes against rounds, each player at its chosen setting, least mistakes last in the list."""
    return _curves(arena.reported(arena.runs, arena.chosen), "expected_mistakes", "expected_mistakes")


def relative_panels(arena: Arena) -> list[Panel]:
    """Return, per norm bound, relative expected mistakes against rounds.

    Players with a B stand in the panel of that B only, at the setting chosen among those with it; players without a B
    stand in every panel. The lower edge of the band takes the comparator's loss as it is, the upper edge takes
    loss - gap: the truth lies between.
    """
    table = arena.relative
    panels = []
    for _, group in table.groupby("norm_bound"):
        final = group[group["round"] == arena.results.last_round]
        rows = arena.reported(group, arena.best(final))
        if rows.empty:
            continue
        curves = _curves(rows, "relative_expected", "relative_expected_high")
        panels.append(
            Panel(
                float(final["norm_bound"].iloc[0]), float(final["loss_nats"].mean()), float(final["gap"].max()), curves
            )
        )
    return panels


def _curves(rows: pd.DataFrame, value: str, value_high: str) -> list[Curve]:
    curves = []
    for (label, settings), group in rows.groupby(VARIANT, sort=False):
        table = group.pivot(index="round", columns="repetition", values=value).dropna(axis=1)
        table_high = group.pivot(index="round", columns="repetition", values=value_high)[table.columns]
        mean, low, high, _ = mean_intervals(table.to_numpy(dtype=float))
        if value_high != value:
            high = mean_intervals(table_high.to_numpy(dtype=float))[2]
        bound, vacuous = np.empty(0), False
        if "bound_shown" in group and group["bound_shown"].notna().any():
            bound = group.groupby("round")["bound_shown"].mean().reindex(table.index).to_numpy()
            vacuous = bool(group.loc[group["round"] == table.index[-1], "vacuous"].all())
        unit = str(group["unit"].iloc[0]) if "unit" in group else ""
        rounds = table.index.to_numpy(dtype=float)
        curves.append(Curve(str(label), str(settings), rounds, mean, low, high, bound, vacuous, unit))
    return sorted(curves, key=lambda curve: -curve.mean[-1])


# ---------------------------------------------------------------------------------------------------------------- grids


def grids(arena: Arena) -> list[Grid]:
    """Return gamma x B at the last round for every player with at least two gammas, all repetitions."""
    final, found = arena.final, []
    joined = arena.relative
    joined = joined[joined["round"] == arena.results.last_round]
    for label in dict.fromkeys(final["label"]):
        rows = final[(final["label"] == label) & final["gamma"].notna()]
        gammas = sorted(set(rows["gamma"]))
        if len(gammas) < 2:
            continue
        bounds = sorted(set(rows["norm_bound"].dropna())) or [math.nan]
        shape = (len(gammas), len(bounds))
        mistakes, low, high, over = (np.full(shape, np.nan) for _ in range(4))
        rows = rows[["settings", "gamma", "norm_bound", "expected_mistakes"]]
        mine = joined[joined["label"] == label][[*rows.columns, "relative_expected", "unit"]]
        for i, gamma in enumerate(gammas):
            for j, bound in enumerate(bounds):
                cell = _cell(rows, gamma, bound)
                if cell.empty:
                    continue
                here = mean_interval(cell["expected_mistakes"] / arena.results.last_round)
                mistakes[i, j], low[i, j], high[i, j] = here.mean, here.low, here.high
                met = _cell(mine, gamma, bound)
                if not math.isnan(bound) and len(met):
                    over[i, j] = met["relative_expected"].mean()
        unit = str(mine["unit"].iloc[0]) if len(mine) else ""
        found.append(Grid(str(label), gammas, bounds, mistakes, low, high, over, unit))
    return found


def _cell(rows: pd.DataFrame, gamma: float, bound: float) -> pd.DataFrame:
    """Return the rows at one gamma and B (any B for a player without); of several other settings, the best one."""
    rows = rows[rows["gamma"] == gamma]
    rows = rows if math.isnan(bound) else rows[rows["norm_bound"] == bound]
    if rows["settings"].nunique() > 1:
        rows = rows[rows["settings"] == rows.groupby("settings")["expected_mistakes"].mean().idxmin()]
    return rows


# --------------------------------------------------------------------------------------------------------------- tables


def comparator_table(arena: Arena) -> pd.DataFrame:
    """Return, per B, the comparator's mean loss, its interval's width, its mistakes, over the streams of this arena."""
    table = arena.results.comparators
    table = table[table["stream_id"].isin(set(arena.final["stream_id"]))]
    table = table[table["round"] == arena.results.last_round]
    columns = {
        "streams": ("stream_id", "nunique"),
        "loss_nats": ("loss_nats", "mean"),
        "loss_bits": ("loss_bits", "mean"),
        "gap": ("gap", "max"),
        "mistakes": ("mistakes", "mean"),
    }
    return table.groupby("norm_bound").agg(**columns).reset_index()


def bounds_table(arena: Arena) -> pd.DataFrame:
    """Return, for every setting whose theorem gives a number, what was measured beside what is promised, in means.

    Agents: E[M] <= loss + bound. Forecasters: log loss <= loss + bound. `holds` takes the comparator's loss as it is;
    the best loss in the ball is at most `gap` below.
    """
    table = arena.relative
    table = table[(table["round"] == arena.results.last_round) & table["bound"].notna()]
    measured = "expected_mistakes" if arena.kind == "bit" else "log_loss"
    table = table.assign(measured=table[measured])
    means = ["measured", "loss", "bound", "bound_shown", "certificate"]
    keys = [*VARIANT, "norm_bound", "unit"]
    rows = table.groupby(keys, sort=False)[means].mean().reset_index()
    streams = table.groupby(keys, sort=False).size().to_numpy()
    rounds = arena.results.last_round
    return rows.assign(
        over=rows["measured"] - rows["loss"],
        vacuous=rows["bound"] >= rounds,
        holds=rows["measured"] <= rows["loss"] + rows["bound"],
        repetitions=streams,
    )


def settings_table(arena: Arena) -> pd.DataFrame:
    """Return every setting with its mistakes and interval over all repetitions (not held out), least first."""
    rounds, rows = arena.results.last_round, []
    chosen = {(label, settings) for label, (settings, _) in arena.chosen.items()}
    for (label, settings), group in arena.final.groupby(VARIANT, sort=False):
        interval = mean_interval(group["expected_mistakes"] / rounds)
        rows.append(
            {
                "label": label,
                "settings": settings,
                "chosen": (label, settings) in chosen,
                "gamma": group["gamma"].iloc[0],
                "norm_bound": group["norm_bound"].iloc[0],
                "mistakes": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "counted": group["mistakes"].mean() / rounds,
                "explored": group["explored"].mean() / rounds,
                "log_loss": group["log_loss"].mean(),
                "repetitions": interval.n,
                "seconds_per_round": group["seconds"].mean() / rounds,
            }
        )
    return pd.DataFrame(rows).sort_values("mistakes", kind="stable").reset_index(drop=True)


__all__ = ["Arena", "Curve", "Grid", "Panel", "Place", "Standing", "arenas", "standings", "summary_rows"]
