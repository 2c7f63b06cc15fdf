"""The data of the figures: quantities against rounds, and results of settings over γ and B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from banditlab.analysis.arena import VARIANT, Arena, Pick
from banditlab.analysis.formats import is_number
from banditlab.analysis.matrices import groups_of, matrix
from banditlab.analysis.settings import axes
from banditlab.analysis.statistics import mean_intervals
from banditlab.analysis.summary import settings_table
from banditlab.analysis.tables import once
from banditlab.validation import loss_unit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A quantity against rounds with its interval; arrays of shape (checkpoints,).

    `bound` is a theorem's mistake bound, at most the number of rounds, or empty if no theorem bounds the mistakes in
    excess of a loss in nats. `vacuous` says whether the bound is vacuous at the last round. `bound_in_bits` says
    whether a theorem's bound is left out because it bounds the mistakes in excess of the loss in bits, which is larger
    than the loss in nats.
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
        """The label and the settings, as in legends."""
        return f"{self.label} {self.settings}".strip()


@dataclass(frozen=True)
class Panel:
    """The curves at one norm bound, each minus the loss of the best model with that bound (nats)."""

    norm_bound: float
    curves: list[Curve]


@dataclass(frozen=True)
class Grid:
    """A player's mistake rates at the last round on the grid of its γ and B; `other` describes its other settings.

    `gammas` and `norm_bounds` are those in the spec. `mistakes` contains mean mistake rates over all repetitions of a
    setting, `low` and `high` the ends of their intervals, and `at` the numeric values of γ. These arrays have the shape
    (gammas, `norm_bounds`), with NaN for missing runs.
    """

    label: str
    other: str
    gammas: list[str]
    norm_bounds: list[str]
    at: Floats
    mistakes: Floats
    low: Floats
    high: Floats

    @property
    def title(self) -> str:
        """The label and the other settings."""
        return f"{self.label} {self.other}".strip()


# --------------------------------------------------------------------------------------------------------------- curves


@once
def mistake_curves(arena: Arena) -> list[Curve]:
    """Return expected mistakes against rounds for each player at its chosen setting, in decreasing order of mistakes.

    References are listed before all other players.
    """
    rows = arena.reported_runs.assign(loss=0.0, loss_low=0.0)
    references = [] if arena.scale is None else mistake_curves(arena.scale)
    return references + _curves(rows, arena.chosen, "expected_mistakes", "expected_mistakes")


@once
def relative_panels(arena: Arena) -> list[Panel]:
    """Return, per norm bound, expected mistakes minus the comparator's loss; an empty list if players' streams differ.

    Players with a B are in the panel of that B only, at the best setting with this B. Players without a B, or whose B
    has no comparator, are in every panel. Curves are in nats. The lower edge of the band uses the comparator's loss,
    and the upper edge uses loss - gap, because the best loss lies between them.
    """
    if not arena.paired:
        return []
    panels = []
    for _, group in arena.relative.groupby("norm_bound"):
        final = group[group["round"] == arena.last_round]
        chosen = arena.best(final)
        rows = arena.reported(group, chosen)
        if rows.empty:
            continue
        curves = _curves(rows, chosen, "relative_expected", "relative_expected_high")
        bound = float(group["norm_bound"].iloc[0])
        references = [] if arena.scale is None else relative_panels(arena.scale)
        curves = [c for panel in references if panel.norm_bound == bound for c in panel.curves] + curves
        panels.append(Panel(bound, curves))
    return panels


def _curves(rows: pd.DataFrame, chosen: dict[str, Pick], value: str, value_high: str) -> list[Curve]:
    """Return one curve per label; bands are clipped to [0, number of rounds]."""
    curves = []
    names = [value, value_high, "loss", "loss_low", "bound_shown", "unit", "vacuous"]
    columns = {name: rows[name].to_numpy() for name in ["round", "repetition", *names] if name in rows}
    for (label,), at in groups_of(rows, ["label"]).items():
        group = {name: column[at] for name, column in columns.items()}
        rounds, _, table = matrix(group["round"], group["repetition"], group[value])
        whole = ~np.isnan(table).any(axis=0)
        mean, low, high = mean_intervals(table[:, whole])
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
    r"""Return `bound`, `vacuous` and `bound_in_bits` of a `Curve` from the columns of its rows.

    Curves show bounds on the mistakes in excess of the comparator's loss L in nats. A theorem may bound the mistakes in
    excess of f L, with f given by `loss_unit`. For :math:`f \le 1`, as with "0.5 bits", this implies a bound in excess
    of L. For :math:`f > 1`, as with "bits", it need not.
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
    """Return a grid for each player and combination of its settings other than γ and B, if it has at least two γ."""
    variants = arena.final.drop_duplicates(VARIANT)
    table = settings_table(arena).set_index(VARIANT)
    cells: dict[tuple[str, str], dict[tuple[str, str], tuple[float, pd.Series]]] = {}
    for _, run in variants.iterrows():
        gamma, ball, other = axes(run)
        of_player = cells.setdefault((run["label"], other), {})
        of_player[gamma, ball] = run["gamma"], table.loc[(run["label"], run["settings"])]
    return [_grid(*key, of_player) for key, of_player in cells.items() if len({gamma for gamma, _ in of_player}) > 1]


def _grid(label: str, other: str, cells: dict[tuple[str, str], tuple[float, pd.Series]]) -> Grid:
    gammas, balls = (_in_order({key[axis] for key in cells}) for axis in (0, 1))
    at, mistakes, low, high = (np.full((len(gammas), len(balls)), np.nan) for _ in range(4))
    for (gamma, ball), (value, row) in cells.items():
        place = gammas.index(gamma), balls.index(ball)
        at[place], mistakes[place], low[place], high[place] = value, row["mistakes"], row["low"], row["high"]
    return Grid(label, other, gammas, balls, at, mistakes, low, high)


def _in_order(texts: set[str]) -> list[str]:
    """Return strings in order: words, then numbers by their value."""
    numbers = sorted(
        (text for text in texts if is_number(text.replace(",", ""))), key=lambda t: float(t.replace(",", ""))
    )
    return [*sorted(texts - set(numbers)), *numbers]
