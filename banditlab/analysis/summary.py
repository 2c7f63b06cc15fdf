"""The data of a report's tables: rankings, differences, comparators, bounds and settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from banditlab.analysis.arena import VARIANT, Arena, arenas
from banditlab.analysis.matrices import groups_of, mean_of
from banditlab.analysis.statistics import Floats, Interval, Place, difference, mean_interval, rank
from banditlab.analysis.tables import Results, once

CONSTANT, SINGLE = "most frequent class", "best single action"
"""The name of the reference that always chooses one action: if one action is right in each round, and if several may
be."""
NONE = Interval(math.nan, math.nan, math.nan, 0, "none")


@dataclass(frozen=True)
class Standing:
    """One row of the ranked table: a player with the settings chosen for it.

    Attributes
    ----------
    rank
        "1", "2=", or "?" if there is no evidence for the position (see `statistics.Place`). Players with feedback "bit"
        and "label" are ranked separately. A reference row in the table of "bit" players has the rank "".
    settings, among
        The settings chosen on all repetitions, as text (without those that are equal in all runs of the player), and
        the number of settings to choose from.
    held_out
        Whether the result of each repetition is that of the settings chosen on the other half of the repetitions.
    agree
        Whether the settings chosen on the two halves of the repetitions are the same.
    mistakes, counted
        Expected mistakes (which are ranked) and actual mistakes, as fractions of the rounds, with intervals clipped to
        [0, 1]. If rows of a data set repeat, only the rounds in which a row occurs for the first time are counted.
    explored
        Share of the rounds in which the player explored; NaN if it does not report this.
    repeated
        Expected mistakes on rows seen before, as a fraction of those rounds; NaN if no rows repeat.
    constant
        Whether this row is a hindsight reference instead of a player: "most frequent class", "best single action", ...
    below_constant
        Whether the player made more mistakes than always choosing the action that is right most often.
    cost
        Mean cost of the chosen actions over the ranked rounds; NaN if costs are not known.
    conditional
        Whether the expectation is over the draws of actions only, conditional on the player's other random draws.
    relative
        Expected mistakes minus the loss of the best comparator (`comparator_bound`) in nats; None without comparators
        or if players had different streams.
    ratio
        Expected mistakes divided by the loss of the same comparator; NaN without a comparator.
    opens_rank
        Whether this is the first row of its rank.
    behind_first, behind_group
        Differences of `mistakes` from the first row and from the first row of the tie group (see `statistics.Place`),
        clipped to [-1, 1].
    """

    environment: str
    kind: str
    rank: str
    position: int
    label: str
    settings: str
    among: int
    held_out: bool
    agree: bool
    mistakes: Interval
    counted: Interval
    conditional: bool
    relative: Interval | None
    ratio: float
    comparator_bound: float
    behind_first: Interval
    behind_group: Interval
    opens_rank: bool
    seconds_per_round: float
    explored: float = math.nan
    repeated: float = math.nan
    constant: bool = False
    below_constant: bool = False
    cost: float = math.nan

    @property
    def name(self) -> str:
        """Label and settings, as legends write them."""
        return f"{self.label} {self.settings}".strip()


# -------------------------------------------------------------------------------------------------------------- ranking


@once
def standings(arena: Arena) -> list[Standing]:
    """Return the table of an arena, ranked by mean expected mistakes at the last round."""
    rows = arena.reported_final
    rounds = arena.last_round
    table, counted = _by_label(rows, "ranked"), _by_label(rows, "ranked_counted")
    best_bound, over, ratio = _against_best(arena, rows)
    each = arena.row_deviations(rows, [int(r) for r in table.columns])
    details = rows[["expected_kind", "seconds", "explored", "repeated", "constant", "cost"]]
    listed: list[Standing] = []
    players = groups_of(rows, ["label"])
    for place in _places(arena, table, each):
        label = str(table.index[place.index])
        own = None if each is None else each[label]
        pick = arena.chosen[label]
        mine = details.iloc[players[label,]]
        listed.append(
            Standing(
                environment=arena.environment,
                kind=arena.kind,
                rank=place.text,
                position=place.position,
                label=label,
                settings=pick.settings,
                among=pick.among,
                held_out=pick.held_out,
                agree=pick.agree,
                mistakes=mean_interval(table.loc[label], rows=own, rounds=arena.ranked_rounds).cut(0, 1),
                counted=mean_interval(counted.loc[label], rounds=arena.ranked_rounds).cut(0, 1),
                conditional=bool((mine["expected_kind"] == "conditional").any()),
                relative=over.get(label),
                ratio=ratio.get(label, math.nan),
                comparator_bound=best_bound,
                behind_first=place.behind_first.cut(-1, 1),
                behind_group=place.behind_group.cut(-1, 1),
                opens_rank=all(row.position != place.position for row in listed),
                seconds_per_round=float(mine["seconds"].mean()) / rounds,
                explored=float(mine["explored"].astype(float).mean()) / rounds,
                repeated=float(mine["repeated"].mean()),
                below_constant=float(np.nanmean(table.loc[label])) > float(mine["constant"].mean()),
                cost=float(mine["cost"].mean()),
            )
        )
    return listed


def _places(arena: Arena, table: pd.DataFrame, each: dict[str, Floats] | None) -> list[Place]:
    rows = None if each is None else np.stack([each[str(label)] for label in table.index])
    return rank(table.to_numpy(), rows=rows, paired=arena.paired, rounds=arena.ranked_rounds, family=arena.family)


@once
def constant_share(arena: Arena) -> Interval:
    """Return the mistake rate of the class that is most frequent in hindsight, on the streams of the ranked runs.

    The result is NaN if the runs do not store it. There is no interval if the streams come from one table or depend on
    the player, because they are then not independent samples.
    """
    streams = arena.reported_final.drop_duplicates("stream_id")
    share = mean_interval(streams["constant"], rounds=arena.ranked_rounds)
    if arena.final["row_losses"].notna().any() or not arena.paired:
        return Interval(share.mean, math.nan, math.nan, share.n, "none")
    return share.cut(0, 1)


def constant_name(arena: Arena) -> str:
    """Return the name of the constant reference in an arena."""
    return SINGLE if f"anchor.{SINGLE}" in arena.results.data.get(arena.environment, {}) else CONSTANT


def with_constant(arena: Arena, listed: list[Standing]) -> list[Standing]:
    """Return a ranked table with additional rows for hindsight references, in increasing order of mistakes.

    The reference is "most frequent class". If several actions may be right, the references are those of
    `engine.anchors`.
    """
    facts = arena.results.data.get(arena.environment, {})
    known = {name[7:]: replace(NONE, mean=value) for name, value in facts.items() if name.startswith("anchor.")}
    known |= {constant_name(arena): constant_share(arena)}
    for name, share in known.items():
        if not listed or math.isnan(share.mean):
            continue
        row = replace(
            listed[0],
            rank="", position=0, label=name, settings="", among=1, held_out=True, agree=True, mistakes=share, counted=share,
            conditional=False, relative=None, ratio=math.nan, behind_first=NONE, behind_group=NONE, seconds_per_round=math.nan,
            explored=math.nan, repeated=math.nan, constant=True, below_constant=False, cost=facts.get(f"cost.{name}", math.nan),
        )  # fmt: skip
        at = sum(each.mistakes.mean <= share.mean for each in listed)
        listed = [*listed[:at], row, *listed[at:]]
    return listed


def scale_rows(arena: Arena) -> list[Standing]:
    """Return the references of a ranked table, in increasing order of mistakes; ranks are empty and differences are
    NaN.
    """
    rows = standings(arena.scale) if arena.scale is not None else []
    return [replace(row, rank="", position=0, behind_first=NONE, behind_group=NONE) for row in rows]


def summary_rows(results: Results) -> list[Standing]:
    """Return the ranked tables of all environments, one after another, each followed by its references.

    Each table has rows of hindsight references, without a rank.
    """
    tables = [(arena, with_constant(arena, standings(arena))) for arena in arenas(results)]
    return [row for arena, listed in tables for row in (*listed, *scale_rows(arena))]


@once
def differences(arena: Arena) -> list[tuple[str, str, Interval]]:
    """Return (first, second, first - second as a fraction of the rounds) for every pair of players, each at its chosen
    settings, in the order of the ranking.

    The intervals hold for all differences simultaneously, like those of the ranks.
    """
    rows = arena.reported_final
    table = _by_label(rows, "ranked")
    each = arena.row_deviations(rows, [int(r) for r in table.columns])
    order = [str(table.index[place.index]) for place in _places(arena, table, each)]

    values = dict(zip(map(str, table.index), table.to_numpy(), strict=True))

    def gap(a: str, b: str) -> Interval:
        pair = None if each is None else (each[a], each[b])
        found = difference(
            values[a], values[b], rows=pair, paired=arena.paired, rounds=arena.ranked_rounds, family=arena.family
        )
        return found.cut(-1, 1)

    return [(_name(arena, a), _name(arena, b), gap(a, b)) for i, a in enumerate(order) for b in order[i + 1 :]]


def _name(arena: Arena, label: str) -> str:
    return f"{label} {arena.chosen[label].settings}".strip()


def _by_label(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    table = rows.pivot(index="label", columns="repetition", values=value).astype(float)
    return table.reindex(list(dict.fromkeys(rows["label"])))


def _against_best(arena: Arena, rows: pd.DataFrame) -> tuple[float, dict[str, Interval], dict[str, float]]:
    """Return the B whose comparator has the smallest mean loss (in nats), and two dictionaries by player label: its
    expected mistakes minus that loss, with an interval, and its expected mistakes divided by that loss.

    Both dictionaries are empty if the players of a repetition had different streams, because their losses cannot then
    be compared.
    """
    best, table = best_ball(arena), arena.results.comparators
    if not arena.paired:
        return best, {}, {}
    table = table[table["norm_bound"] == best][["stream_id", "round", "loss_nats"]]
    joined = rows[["label", "stream_id", "round", "expected_mistakes"]].merge(table, on=["stream_id", "round"])
    joined = joined.assign(over=joined["expected_mistakes"] - joined["loss_nats"])
    over = {str(label): mean_interval(group["over"]) for label, group in joined.groupby("label")}
    sums = joined.groupby("label")[["expected_mistakes", "loss_nats"]].sum()
    ratio = {str(k): float(e / loss) for k, e, loss in sums.itertuples(name=None) if loss > 0}
    return best, over, ratio


# --------------------------------------------------------------------------------------------------------------- tables


@once
def comparator_table(arena: Arena) -> pd.DataFrame:
    """Return the mean loss and mistakes of the best model for each B, with the largest optimality gap.

    If all players of a repetition ran on the same stream, there is one row for each B, with `player` "all". Otherwise
    there is one row for each B and player. It describes the streams of that player's runs in the ranking.
    """
    final = arena.final.assign(label="all") if arena.paired else arena.reported_final
    streams = final[["label", "stream_id"]].drop_duplicates().rename(columns={"label": "player"})
    table = arena.results.comparators
    table = table[(table["round"] == arena.last_round) & table["loss_nats"].notna()]
    columns = {
        "streams": ("stream_id", "nunique"),
        "loss_nats": ("loss_nats", "mean"),
        "loss_bits": ("loss_bits", "mean"),
        "gap": ("gap", "max"),
        "mistakes": ("mistakes", "mean"),
    }
    return streams.merge(table, on="stream_id").groupby(["norm_bound", "player"]).agg(**columns).reset_index()


def switching_table(arena: Arena) -> pd.DataFrame:
    """Return each player's mean expected mistakes and the losses of two comparators, in environments with label
    changes.

    The comparators are the best single model, and the best sequence of models with one switch per label change. Both
    have the norm bound of `best_ball`. Each player has the settings that the report shows. "beyond_one" and
    "beyond_switching" are its mistakes minus the loss, in nats, of the first and the second comparator.
    """
    columns = [
        "label",
        "switches",
        "mistakes",
        "loss",
        "switching_loss",
        "switching_gap",
        "beyond_one",
        "beyond_switching",
    ]
    table = arena.results.comparators
    if "switches" not in table:
        return pd.DataFrame(columns=columns)
    table = table[table["switches"].notna() & (table["norm_bound"] == best_ball(arena))]
    rows = arena.reported_final.merge(table, on=["stream_id", "round"], suffixes=("", "_comparator"))
    means = rows.groupby("label", sort=False).agg(
        switches=("switches", "max"),
        mistakes=("expected_mistakes", "mean"),
        loss=("loss_nats", "mean"),
        switching_loss=("switching_loss_nats", "mean"),
        switching_gap=("switching_gap", "max"),
    )
    beyond = {"beyond_one": means["mistakes"] - means["loss"]}
    beyond["beyond_switching"] = means["mistakes"] - means["switching_loss"]
    return means.assign(**beyond).reset_index().sort_values("mistakes", kind="stable")[columns]


def best_ball(arena: Arena) -> float:
    """Return the B whose best models have the smallest mean loss, or NaN without comparators."""
    losses = comparator_table(arena).groupby("norm_bound", as_index=False)["loss_nats"].mean()
    return float(losses["norm_bound"].iloc[int(losses["loss_nats"].argmin())]) if len(losses) else math.nan


@once
def bounds_table(arena: Arena) -> pd.DataFrame:
    r"""Return the measured mean and the `guarantee` (loss plus bound) of every setting whose theorem gives a number.

    Agents: :math:`\mathbb{E}[M] \le \text{loss} + \text{bound}`. Forecasters:
    :math:`\text{log loss} \le \text{loss} + \text{bound}`. Loss and bound are in the unit of the theorem (`unit`), and
    the comparator is that of the player's own ball. `verdict` is "exceeded" if the measured mean is above the
    guarantee, "vacuous" if the guarantee for an agent, or the bound for a forecaster, is at least the number of rounds,
    and "holds" otherwise. If a theorem does not cover the stream, the verdict says so, and bound and guarantee are NaN.
    The guarantee uses the comparator's loss, which is at most `gap` above the best loss in the ball.
    """
    table = arena.relative
    stated = table["bound"].notna() | table["no_bound"].ne("")
    table = table[(table["round"] == arena.last_round) & stated & table["own_ball"]]
    measured = "log_loss" if arena.kind == "label" else "expected_mistakes"
    table = table.assign(measured=table[measured], loss=table["unit_loss"])
    means = ["measured", "loss", "bound", "bound_shown", "certificate"]
    keys = [*VARIANT, "norm_bound", "unit", "no_bound"]
    settings = table.groupby(keys, sort=False)
    rows, streams = settings[means].mean().reset_index(), settings.size().to_numpy()
    rounds = arena.last_round
    rows = rows.assign(
        over=rows["measured"] - rows["loss"], guarantee=rows["loss"] + rows["bound"], repetitions=streams
    )
    exceeded = rows["measured"] > rows["guarantee"]
    vacuous = rows["bound" if arena.kind == "label" else "guarantee"] >= rounds
    no_bound = rows.pop("no_bound")
    verdict = np.select([no_bound.ne(""), exceeded, vacuous], [no_bound, "exceeded", "vacuous"], "holds")
    return rows.assign(verdict=verdict)


@once
def diagnostics_table(arena: Arena) -> pd.DataFrame:
    """Return the diagnostics of the players at the last round: label, settings, name, mean, minimum, maximum and number
    of repetitions.
    """
    stored = [str(name) for name in arena.final.columns if str(name).startswith("diagnostic.")]
    names = [name.removeprefix("diagnostic.") for name in stored]
    values = arena.final[stored].to_numpy(dtype=float, na_value=np.nan)
    rows = []
    for (label, settings), at in groups_of(arena.final, VARIANT).items():
        for name, column in zip(names, values[at].T, strict=True):
            there = column[~np.isnan(column)]
            if len(there):
                row = {"label": label, "settings": settings, "diagnostic": name}
                spread = {"mean": mean_of(there), "least": there.min(), "most": there.max()}
                rows.append(row | spread | {"repetitions": len(there)})
    return pd.DataFrame(rows)


@once
def settings_table(arena: Arena) -> pd.DataFrame:
    """Return every setting with its mistakes and interval over all repetitions (not held out), in increasing order."""
    rounds, rows = arena.last_round, []
    chosen = {(label, pick.settings) for label, pick in arena.chosen.items()}
    numbers = {
        name: arena.final[name].to_numpy(dtype=float, na_value=np.nan)
        for name in ("ranked", "ranked_counted", "explored", "log_loss", "seconds", "gamma", "norm_bound")
    }
    needed = arena.final[["label", "repetition", "row_losses"]]
    for (label, settings), at in groups_of(arena.final, VARIANT).items():
        group = {name: column[at] for name, column in numbers.items()}
        own = needed.iloc[at]
        each = arena.row_deviations(own, list(own["repetition"]))
        own_rows = None if each is None else each[label]
        interval = mean_interval(group["ranked"], rows=own_rows, rounds=arena.ranked_rounds).cut(0, 1)
        rows.append(
            {
                "label": label,
                "settings": settings,
                "chosen": (label, settings) in chosen,
                "gamma": group["gamma"][0],
                "norm_bound": group["norm_bound"][0],
                "mistakes": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "counted": mean_of(group["ranked_counted"]),
                "explored": mean_of(group["explored"]) / rounds,
                "log_loss": mean_of(group["log_loss"]),
                "repetitions": interval.n,
                "seconds_per_round": mean_of(group["seconds"]) / rounds,
            }
        )
    return pd.DataFrame(rows).sort_values("mistakes", kind="stable").reset_index(drop=True)
