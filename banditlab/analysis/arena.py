"""The runs that are ranked together, and the settings used in the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from banditlab.analysis.formats import learner
from banditlab.analysis.joins import has_own_comparator, own_relative
from banditlab.analysis.matrices import groups_of, matrix
from banditlab.analysis.statistics import Floats, choose, first_half, moving_blocks
from banditlab.analysis.tables import Results, once

VARIANT = ["label", "settings"]
REFERENCE = "reference"
"""The stored kind of agents that observe the label and serve as references."""


@dataclass(frozen=True)
class Pick:
    """The chosen settings of a player.

    Attributes
    ----------
    settings
        The settings that tables show, chosen on all repetitions.
    reported
        The settings used for the result of each repetition, chosen on the other half of the repetitions (see
        `statistics.choose`).
    among
        The number of settings to choose from.
    held_out
        Whether the settings of every repetition were chosen on other repetitions only.
    agree
        Whether both halves chose the same settings.
    """

    settings: str
    reported: dict[int, str]
    among: int
    held_out: bool
    agree: bool


@dataclass(frozen=True)
class Arena:
    """One environment and one kind of feedback: the runs that may be ranked together."""

    results: Results
    environment: str
    kind: str

    @cached_property
    def made(self) -> dict[object, Any]:
        """Cached results of functions decorated with `tables.once`."""
        return {}

    @property
    def noun(self) -> str:
        """What a ranked player is called: "agent", "forecaster" or "learner"."""
        return learner([self.kind])

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All rows of this environment and kind."""
        return self._mine(self.results.runs)

    @cached_property
    def final(self) -> pd.DataFrame:
        """The rows of the last round."""
        return self.runs[self.runs["round"] == self.last_round]

    @cached_property
    def last_round(self) -> int:
        """The last checkpoint of this environment, which is that of every finished run."""
        return self.results.rounds_of(self.environment)

    @cached_property
    def repeats(self) -> bool:
        """Whether rows of a table were repeated; if so, the ranking uses the first pass only."""
        return bool(self.final["repeated"].notna().any())

    @cached_property
    def ranked_rounds(self) -> float:
        """The number of ranked rounds: those of the first pass."""
        return float(self.final["first_sight_rounds"].max())

    @cached_property
    def family(self) -> int:
        """The number of means that the ranking compares: one per player, or, on a single table, one per player and
        setting.

        All repetitions on one table have the same rows. A setting chosen on some repetitions therefore depends on the
        rows of all repetitions, so the best of k settings counts as k means.
        """
        shared = self.final["row_losses"].notna().any()
        return max(2, len(self.final[VARIANT if shared else VARIANT[:1]].drop_duplicates()))

    def row_deviations(self, rows: pd.DataFrame, repetitions: Sequence[int]) -> dict[str, Floats] | None:
        """Return each player's deviations (repetitions, rows of the table), from which intervals are computed, by the
        player's label. Return None if a run stores no losses per row of a table.

        `rows` contains one run for each player and repetition, at its last checkpoint. Deviations of a missing run are
        NaN.
        """
        if rows["row_losses"].isna().any() or rows.empty:
            return None
        found = {
            (str(label), int(r)): deviations(losses)
            for label, r, losses in zip(rows["label"], rows["repetition"], rows["row_losses"])
        }
        missing = np.full(max(len(each) for each in found.values()), np.nan)
        facts = self.results.data.get(self.environment, {})
        stacked = {
            str(label): np.stack([found.get((str(label), int(r)), missing) for r in repetitions])
            for label in dict.fromkeys(rows["label"])
        }
        if "follows_time" in facts:  # no interval, so no significant difference
            return {label: np.full_like(each, np.nan) for label, each in stacked.items()}
        return {label: moving_blocks(each) if "in_order" in facts else each for label, each in stacked.items()}

    @cached_property
    def relative(self) -> pd.DataFrame:
        """This arena's rows joined with the comparators (see `joins.relative`)."""
        return self._mine(own_relative(self.results))

    @cached_property
    def foreign(self) -> dict[str, list[float]]:
        """The norm bounds of each player without a comparator for its own ball, by the player's label.

        These players are compared with the comparators of all balls.
        """
        rows = self._mine(self.results.runs[~has_own_comparator(self.results)])
        rows = rows[rows["stream_id"].isin(set(self.results.comparators["stream_id"])) & rows["norm_bound"].notna()]
        return {str(label): sorted(set(group)) for label, group in rows.groupby("label", sort=False)["norm_bound"]}

    @cached_property
    def scale(self) -> Arena | None:
        """The arena of the references, which observe the label; they are shown next to bandit players but not
        ranked.
        """
        references = Arena(self.results, self.environment, REFERENCE)
        return references if self.kind == "bit" and len(references.final) else None

    def _mine(self, table: pd.DataFrame) -> pd.DataFrame:
        return table[(table["environment"] == self.environment) & (table["kind"] == self.kind)]

    @cached_property
    def repetitions(self) -> list[int]:
        """The repetitions with a finished run."""
        return sorted(int(r) for r in set(self.final["repetition"]))

    @cached_property
    def halves(self) -> tuple[list[int], list[int]]:
        """The two halves of the repetitions; the first is empty with one repetition."""
        first = first_half(self.repetitions)
        return first, [r for r in self.repetitions if r not in first]

    @cached_property
    def paired(self) -> bool:
        """Whether all runs of a repetition had the same stream."""
        return bool((self.final.groupby("repetition")["stream_id"].nunique() == 1).all())

    @cached_property
    def chosen(self) -> dict[str, Pick]:
        """The chosen settings of each label."""
        return self.best(self.final)

    @cached_property
    def reported_runs(self) -> pd.DataFrame:
        """The rows of every player and repetition at the reported settings."""
        return self.reported(self.runs, self.chosen)

    @cached_property
    def reported_final(self) -> pd.DataFrame:
        """The rows of the last round, of every player and repetition at the reported settings."""
        return self.reported(self.final, self.chosen)

    def best(self, final: pd.DataFrame) -> dict[str, Pick]:
        """Choose each player's settings by `final`, the rows of the last round; return the choices by label."""
        found = {}
        columns = {name: final[name].to_numpy() for name in ("settings", "repetition", "ranked")}
        for (label,), at in groups_of(final, VARIANT[:1]).items():
            settings, repetitions, values = (column[at] for column in columns.values())
            names = [str(name) for name in dict.fromkeys(settings)]
            number = {name: i for i, name in enumerate(names)}
            _, across, table = matrix([number[str(name)] for name in settings], repetitions, values)
            choice = choose(table, np.isin(across, self.halves[0]))
            reported = {int(r): names[i] for r, i in zip(across, choice.reported, strict=True)}
            found[label] = Pick(names[choice.index], reported, choice.among, choice.held_out, choice.agree)
        return found

    def reported(self, rows: pd.DataFrame, chosen: dict[str, Pick]) -> pd.DataFrame:
        """Return the rows of every player and repetition at its reported settings."""
        runs = zip(rows["label"].tolist(), rows["repetition"].tolist(), rows["settings"].tolist(), strict=True)
        reported = {label: pick.reported for label, pick in chosen.items()}
        mine = [label in reported and reported[label].get(r) == settings for label, r, settings in runs]
        return rows[np.array(mine, dtype=bool)]


def deviations(losses: bytes) -> Floats:
    """Return the deviations :math:`e_{ri}` (see `statistics`) of a run, computed from its stored losses per row.

    The deviation of a row (or group of rows) is the sum of its losses, minus its number of rounds times the mean loss,
    all divided by the number n of all rounds.
    """
    sums, counts = np.frombuffer(losses, "<f4").astype(np.float64).reshape(2, -1)
    n = counts.sum()
    return np.asarray((sums - counts * (sums.sum() / n)) / n)


@once
def arenas(results: Results) -> list[Arena]:
    """Return the arenas: for each environment, the "bit" players, then the "label" players.

    An arena is left out if no run in it has a number of mistakes. References have a separate arena only in an
    environment without "bit" players.
    """
    kinds = sorted(set(results.runs["kind"]))
    every = [Arena(results, environment, kind) for environment in results.environments for kind in kinds]
    every = [arena for arena in every if arena.final["ranked"].notna().any()]
    scaled = {arena.environment for arena in every if arena.scale is not None}
    return [arena for arena in every if arena.kind != REFERENCE or arena.environment not in scaled]
