"""What the figures show, as plain data: quantities against rounds, and settings over gamma and B."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from banditlab.analysis.arena import Arena, Pick
from banditlab.analysis.matrices import groups_of, matrix
from banditlab.analysis.statistics import mean_interval, mean_intervals
from banditlab.analysis.tables import once
from banditlab.validation import loss_unit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A quantity against rounds with its interval; arrays of shape (checkpoints,).

    `bound` is min(bound, round), empty where no theorem gives a number in nats; `vacuous` says whether it is so at the
    end; `bound_in_bits` whether there is one, in another unit than the curve's.
    """

    label: str
    settings: str
    rounds: Floats
    mean: Floats
    low: Floats
    high: Floats
    bound: Floats
    vacuous: bool
    bound_in_bits: bool

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

    `mistakes` (fractions, as they are ranked) with `low` and `high`, of shape (gammas, norm_bounds); NaN where there is no
    run. A player without a B has `norm_bounds` = [nan].
    """

    label: str
    gammas: list[float]
    norm_bounds: list[float]
    mistakes: Floats
    low: Floats
    high: Floats


# --------------------------------------------------------------------------------------------------------------- curves


@once
def mistake_curves(arena: Arena) -> list[Curve]:
    """Return expected mistakes against rounds, each player at its chosen setting, least mistakes last in the list.

    References come before all others.
    """
    rows = arena.reported_runs.assign(loss=0.0, loss_low=0.0)
    references = [] if arena.scale is None else mistake_curves(arena.scale)
    return references + _curves(rows, arena.chosen, "expected_mistakes", "expected_mistakes")


@once
def relative_panels(arena: Arena) -> list[Panel]:
    """Return, per norm bound, relative expected mistakes against rounds.

    Players with a B stand in the panel of that B only, at the setting chosen among those with it; players without a B,
    or with one that no comparator has, stand in every panel. Every curve is in nats. The lower edge of the band takes
    the comparator's loss as it is, the upper edge takes loss - gap: the truth lies between.
    """
    table = arena.relative
    panels = []
    for _, group in table.groupby("norm_bound"):
        final = group[group["round"] == arena.results.last_round]
        chosen = arena.best(final)
        rows = arena.reported(group, chosen)
        if rows.empty:
            continue
        curves = _curves(rows, chosen, "relative_expected", "relative_expected_high")
        bound = float(final["norm_bound"].iloc[0])
        references = [] if arena.scale is None else relative_panels(arena.scale)
        curves = [c for panel in references if panel.norm_bound == bound for c in panel.curves] + curves
        panels.append(Panel(bound, float(final["loss_nats"].mean()), float(final["gap"].max()), curves))
    return panels


def _curves(rows: pd.DataFrame, chosen: dict[str, Pick], value: str, value_high: str) -> list[Curve]:
    """Return one curve per label; bands are cut where the mistakes would be fewer than 0 or more than the rounds."""
    curves = []
    names = [value, value_high, "loss", "loss_low", "bound_shown", "unit", "vacuous"]
    columns = {name: rows[name].to_numpy() for name in ["round", "repetition", *names] if name in rows}
    for (label,), at in groups_of(rows, ["label"]).items():
        group = {name: column[at] for name, column in columns.items()}
        rounds, _, table = matrix(group["round"], group["repetition"], group[value])
        whole = ~np.isnan(table).any(axis=0)
        mean, low, high, _ = mean_intervals(table[:, whole])
        if value_high != value:
            table_high = matrix(group["round"], group["repetition"], group[value_high])[2]
            high = mean_intervals(table_high[:, whole])[2]
        rounds = rounds.astype(float)
        losses = pd.DataFrame({name: group[name] for name in ("loss", "loss_low")})
        by_round = losses.groupby(group["round"]).mean().to_numpy(dtype=float)
        low, high = np.maximum(low, -by_round[:, 0]), np.minimum(high, rounds - by_round[:, 1])
        bound, vacuous, bits = _bound(group, rounds)
        settings = chosen[label].settings
        curves.append(Curve(label, settings, rounds, mean, low, high, bound, vacuous, bits))
    return sorted(curves, key=lambda curve: -curve.mean[-1])


def _bound(group: dict[str, Any], rounds: Floats) -> tuple[Floats, bool, bool]:
    """Return `bound`, `vacuous` and `bound_in_bits` of a `Curve` from the columns of its rows.

    In a unit of less than a nat ("0.5 bits") the bound holds of the loss in nats, too; in a larger one it need not.
    """
    if "bound_shown" not in group:
        return np.empty(0), False, False
    shown = group["bound_shown"].astype(float)
    there = ~np.isnan(shown)
    bits = any(loss_unit(unit) > 1.0 for unit in set(group["unit"][there]))
    if bits or not there.any():
        return np.empty(0), False, bits
    bound = pd.Series(shown).groupby(group["round"]).mean().to_numpy()
    return bound, bool(group["vacuous"][group["round"] == rounds[-1]].all()), False


# ---------------------------------------------------------------------------------------------------------------- grids


@once
def grids(arena: Arena) -> list[Grid]:
    """Return gamma x B at the last round for every player with at least two gammas, all repetitions."""
    needed = ["label", "gamma", "norm_bound", "settings", "ranked", "repetition", "row_losses"]
    final, found = arena.final[needed], []
    for label in dict.fromkeys(final["label"]):
        rows = final[(final["label"] == label) & final["gamma"].notna()]
        gammas = sorted(set(rows["gamma"]))
        if len(gammas) < 2:
            continue
        bounds = sorted(set(rows["norm_bound"].dropna())) or [math.nan]
        shape = (len(gammas), len(bounds))
        mistakes, low, high = (np.full(shape, np.nan) for _ in range(3))
        for i, gamma in enumerate(gammas):
            for j, bound in enumerate(bounds):
                cell = _cell(rows, gamma, bound)
                if cell.empty:
                    continue
                each = arena.row_deviations(cell, list(cell["repetition"]))
                here = mean_interval(cell["ranked"], rows=None if each is None else each[str(label)]).cut(0, 1)
                mistakes[i, j], low[i, j], high[i, j] = here.mean, here.low, here.high
        found.append(Grid(str(label), gammas, bounds, mistakes, low, high))
    return found


def _cell(rows: pd.DataFrame, gamma: float, bound: float) -> pd.DataFrame:
    """Return the rows at one gamma and B (any B for a player without); of several other settings, the best one."""
    rows = rows[rows["gamma"] == gamma]
    rows = rows if math.isnan(bound) else rows[rows["norm_bound"] == bound]
    if rows["settings"].nunique() > 1:
        rows = rows[rows["settings"] == rows.groupby("settings")["ranked"].mean().idxmin()]
    return rows
