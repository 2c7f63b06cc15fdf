"""The sentences of a report: fixed texts, each with a condition on the numbers in the tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from banditlab.analysis.arena import Arena
from banditlab.analysis.formats import percent, points, share, short, spread
from banditlab.analysis.statistics import LEAST, Interval, leads
from banditlab.analysis.summary import (
    Standing,
    best_ball,
    bounds_table,
    comparator_table,
    constant_name,
    constant_share,
    standings,
)
from banditlab.analysis.tables import once
from banditlab.results.schema import UNCOVERED


@dataclass(frozen=True)
class Model:
    """The mistake rate of the best logistic model in hindsight for one B: its mean over the players' streams, and the
    lowest and the highest player's value.
    """

    norm_bound: float
    mistakes: float
    least: float
    most: float


@dataclass(frozen=True)
class Facts:
    """The numbers that the conditions of sentences use.

    Attributes
    ----------
    rows
        The ranked table.
    noun
        The word for a ranked player: "agent", "forecaster" or "learner".
    repetitions, rounds, ranked_rounds
        The number of repetitions, of rounds, and of ranked rounds (see `Arena.ranked_rounds`).
    unit
        What occurs for the first time in a ranked round: a row, or a group of rows.
    paired
        Whether the players of a repetition had the same stream.
    constant
        Mistake rate of always choosing the action that is right most often; NaN if it is unknown.
    constant_name
        The name of the reference that always chooses this action.
    below_constant, below_model
        The number of players with fewer mistakes than the reference `constant_name`, and the number with fewer mistakes
        than the best model on their own streams.
    model
        The best model for the B with the smallest loss; None without comparators.
    bounds
        The table `summary.bounds_table`.
    """

    rows: list[Standing]
    noun: str
    repetitions: int
    rounds: int
    ranked_rounds: float
    unit: str
    paired: bool
    constant: float
    constant_name: str
    below_constant: int
    below_model: int
    model: Model | None
    bounds: pd.DataFrame

    @property
    def nouns(self) -> str:
        """The plural of `noun`, as the first word of a sentence."""
        return f"{self.noun.capitalize()}s"

    @property
    def others(self) -> list[Standing]:
        """All ranked rows except the first."""
        return self.rows[1:]

    @property
    def beaten(self) -> int:
        """The number of ranked rows that differ significantly from the first row."""
        return sum(leads(row.behind_first) for row in self.others)

    @property
    def widest(self) -> Standing | None:
        """Among rows with a shared rank, the row that differs most from the first row of its rank."""
        tied = [row for row in self.rows if "=" in row.rank and not row.opens_rank]
        return max(tied, key=lambda row: row.behind_group.mean, default=None)

    @property
    def loosely_chosen(self) -> int:
        """The number of players whose setting was chosen on the repetitions that are reported."""
        return sum(not row.held_out for row in self.rows)

    def counted(self, verdict: str) -> int:
        """Return the number of bounds with this verdict."""
        return int((self.bounds["verdict"] == verdict).sum()) if len(self.bounds) else 0


@dataclass(frozen=True)
class Sentence:
    """A text and the condition for showing it."""

    name: str
    holds: Callable[[Facts], bool]
    text: Callable[[Facts], str]


def _gap(interval: Interval) -> str:
    """Return a string such as "2.1 pp (95 % interval 1.0 to 3.2)"."""
    scaled = interval.scaled(100)
    return f"{points(scaled)} pp (95 % interval {spread(scaled)})"


def _first(facts: Facts) -> str:
    return f"{facts.rows[0].name} has the lowest mistake rate, {percent(facts.rows[0].mistakes.scaled(100))}"


def _shared(facts: Facts) -> str:
    row = facts.widest
    assert row is not None
    head = next(each for each in facts.rows if each.position == row.position)
    return (
        f"{facts.nouns} share a rank (=) if their difference from the first {facts.noun} of the rank is not significant. The "
        f"largest such difference is between {row.name} and {head.name}: {_gap(row.behind_group)}."
    )


def _model(facts: Facts) -> str:
    assert facts.model is not None
    mistakes = share(facts.model.mistakes)
    if facts.model.least < facts.model.most:
        mistakes = f"{share(facts.model.least)} to {share(facts.model.most)}"
    return (
        f"The best logistic model in hindsight, B = {short(facts.model.norm_bound)}, has a mistake rate of {mistakes} over "
        f"all {facts.rounds:,} rounds. "
        f"{facts.nouns} with a lower rate: {facts.below_model} of {len(facts.rows)}."
    )


SENTENCES = (
    Sentence(
        "few",
        lambda facts: facts.repetitions < LEAST and len(facts.rows) > 1,
        lambda _: (
            f"With fewer than {LEAST} repetitions no difference is called significant; ranks are the order of the means."
        ),
    ),
    Sentence(
        "wins",
        lambda facts: facts.repetitions >= LEAST and 0 < facts.beaten == len(facts.others),
        lambda facts: (
            f"{_first(facts)}, significantly lower than that of every other {facts.noun}. "
            f"The next, {facts.rows[1].name}, is higher by {_gap(facts.rows[1].behind_first)}."
        ),
    ),
    Sentence(
        "ahead",
        lambda facts: facts.repetitions >= LEAST and 0 < facts.beaten < len(facts.others),
        lambda facts: (
            f"{_first(facts)}, significantly lower than that of {facts.beaten} of {len(facts.others)} others. "
            f"The next, {facts.rows[1].name}, is higher by {_gap(facts.rows[1].behind_first)}."
        ),
    ),
    Sentence(
        "level",
        lambda facts: facts.repetitions >= LEAST and facts.beaten == 0 < len(facts.others),
        lambda facts: f"{_first(facts)}; no other {facts.noun} is significantly worse.",
    ),
    Sentence("shared", lambda facts: facts.widest is not None, _shared),
    Sentence(
        "constant",
        lambda facts: not math.isnan(facts.constant),
        lambda facts: (
            f"Always choosing the {facts.constant_name} has a mistake rate of {share(facts.constant)}. "
            f"{facts.nouns} with a lower rate: {facts.below_constant} of {len(facts.rows)}."
        ),
    ),
    Sentence("model", lambda facts: facts.model is not None, _model),
    Sentence(
        "theory",
        lambda facts: len(facts.bounds) > facts.counted(UNCOVERED),
        lambda facts: (
            f"Settings with a proved bound: {len(facts.bounds) - facts.counted(UNCOVERED)}. Vacuous (at least the "
            "number of rounds): "
            f"{facts.counted('vacuous')}. Exceeded: {facts.counted('exceeded')}."
        ),
    ),
    Sentence(
        "uncovered",
        lambda facts: facts.counted(UNCOVERED) > 0,
        lambda facts: (
            f"Settings whose theorem assumes a comparator that is fixed in advance: {facts.counted(UNCOVERED)}. This "
            f"environment depends on earlier actions, so {UNCOVERED}."
        ),
    ),
    Sentence(
        "chosen",
        lambda facts: max(row.among for row in facts.rows) > 1 and facts.loosely_chosen == 0,
        lambda _: (
            "Settings are chosen on one half of the repetitions and evaluated on the other half, and the other way round."
        ),
    ),
    Sentence(
        "in-sample",
        lambda facts: facts.loosely_chosen > 0,
        lambda facts: (
            f"{facts.nouns} whose setting was chosen on the reported repetitions, which makes their mistake rates too low: "
            f"{facts.loosely_chosen} of {len(facts.rows)}."
        ),
    ),
    Sentence(
        "first-pass",
        lambda facts: facts.ranked_rounds < facts.rounds,
        lambda facts: (
            f"Mistake rates refer to the {facts.ranked_rounds:,.0f} of {facts.rounds:,} rounds in which a "
            f"{facts.unit} occurs for the first time."
        ),
    ),
    Sentence(
        "streams",
        lambda facts: not facts.paired,
        lambda facts: (
            f"The {facts.noun}s had different streams. Each is compared with the best model of its own streams, "
            f"differences between {facts.noun}s are not paired, and mistakes relative to a model are not compared."
        ),
    ),
)
"""Every sentence that a report can contain; "significant" means at the level 95 % simultaneously for all pairs of
players."""


@once
def facts_of(arena: Arena) -> Facts:
    """Return the numbers of an arena's tables."""
    rows, constant = standings(arena), constant_share(arena).mean
    return Facts(
        rows=rows,
        noun=arena.noun,
        repetitions=len(arena.repetitions),
        rounds=arena.last_round,
        ranked_rounds=arena.ranked_rounds,
        unit="group of rows" if "groups" in arena.results.data.get(arena.environment, {}) else "row",
        paired=arena.paired,
        constant=constant,
        constant_name=constant_name(arena),
        below_constant=sum(row.mistakes.mean < own for row, own in zip(rows, _own_constants(arena, rows), strict=True)),
        below_model=sum(row.mistakes.mean < own for row, own in zip(rows, _own_models(arena, rows), strict=True)),
        model=best_model(arena),
        bounds=bounds_table(arena),
    )


def _own_constants(arena: Arena, rows: list[Standing]) -> list[float]:
    own = arena.reported_final.groupby("label")["constant"].mean()
    return [float(own[row.label]) for row in rows]


def _own_models(arena: Arena, rows: list[Standing]) -> list[float]:
    own = _models(arena)
    return [own.get(row.label, own.get("all", math.nan)) for row in rows]


def _models(arena: Arena) -> dict[str, float]:
    """Return the best model's mistake rate at the B of `best_ball`, by player, or for "all" if they share streams."""
    table = comparator_table(arena)
    table = table[table["norm_bound"] == best_ball(arena)]
    return dict(zip(table["player"], table["mistakes"] / arena.last_round, strict=True))


def best_model(arena: Arena) -> Model | None:
    """Return the best model for the B with the smallest loss; None without comparators."""
    shares = list(_models(arena).values())
    return Model(best_ball(arena), sum(shares) / len(shares), min(shares), max(shares)) if shares else None


def findings(arena: Arena) -> dict[str, str]:
    """Return the sentences whose condition holds, by name."""
    facts = facts_of(arena)
    return {each.name: each.text(facts) for each in SENTENCES if each.holds(facts)}
