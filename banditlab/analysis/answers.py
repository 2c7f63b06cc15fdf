"""The first screen of a report: per environment who wins, by how much, how sure, against what, and who only guesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from banditlab.analysis.arena import Arena
from banditlab.analysis.statistics import Interval
from banditlab.analysis.summary import Standing, bounds_table, comparator_table, constant_share
from banditlab.analysis.words import amount, count, joined, percent, share, short, spread

BARS = 6
"""Players whose bars are shown: the first ones, and the last of all."""
MOSTLY = 0.5
"""A player that explores in this share of the rounds or more mostly guesses."""


@dataclass(frozen=True)
class Bar:
    """A share of mistakes drawn as a bar: kind "player", "first", "constant" or "model"."""

    name: str
    share: float
    text: str
    kind: str


@dataclass(frozen=True)
class Answer:
    """What a newcomer asks of one environment and kind of feedback.

    Attributes
    ----------
    winner
        The names that come first, as text; "" where there is no evidence for any.
    verdict, lead, sure, against, guessing, promise
        Sentences: who wins with how many mistakes; by how much; how sure that is; the most frequent class and the comparator
        beside it; who does no better than guessing, and why ("" where nobody does); which theorem says something here.
    bars
        The same in a picture, fewest mistakes first.
    """

    winner: str
    verdict: str
    lead: str
    sure: str
    against: str
    guessing: str
    promise: str
    bars: list[Bar]


def answer(arena: Arena, rows: Sequence[Standing]) -> Answer:
    """Return the answers of an arena from its ranked table."""
    winner, verdict, lead, sure = _who(arena, rows)
    bounds = bounds_table(arena)
    guessing, promise = _guessing(arena, rows, bounds), _promise(arena, bounds)
    return Answer(winner, verdict, lead, sure, _against(arena, rows), guessing, promise, _bars(arena, rows))


def _who(arena: Arena, rows: Sequence[Standing]) -> tuple[str, str, str, str]:
    """Return who wins ("" where nobody is shown to), the verdict, by how much, and how sure."""
    first = [row for row in rows if row.position == rows[0].position]
    best, name = rows[0], called(rows[0])
    where = "rounds that show a new row" if arena.repeats else count(arena.results.last_round, "round")
    wrong = f"wrong in {percent(best.mistakes.scaled(100))} of {where}"
    if len(rows) == 1:
        return name, f"{name}, alone here, is {wrong}{_interval(best.mistakes)}.", "there is nobody to win against.", ""
    if all(row.mistakes.n == 1 for row in rows):
        said = f"{name} is {wrong}, fewest in a single repetition{_so_are(rows)}."
        return (
            "",
            said,
            _lead(best, rows[1]),
            "one repetition shows an order, and no evidence that it would come out again.",
        )
    if len(first) == 1:
        said = f"{name} wins: {wrong}{_interval(best.mistakes)}."
        return name, said, _lead(best, rows[1]), _sure(rows[1].behind_first, arena)
    names = joined([called(row) for row in first]) if len(first) <= 4 else count(len(first), "player")
    said = f"No single winner: {names} are tied first. Fewest mistakes: {name}, {wrong}{_interval(best.mistakes)}."
    apart = f"{count(len(arena.repetitions), 'repetition')} do not tell the tied ones apart."
    after = [row for row in rows if row.position != best.position]
    if not after:
        return "", said, "nobody is shown to be ahead of anybody.", apart
    behind = _sure(after[0].behind_first, arena)
    return "", said, _lead(best, after[0], behind_tie=True), f"{apart} The lead on {after[0].label}: {behind}"


def _so_are(rows: Sequence[Standing]) -> str:
    """Return who makes just as many mistakes as the first, "" where nobody does."""
    alike = [called(row) for row in rows[1:] if row.mistakes.mean == rows[0].mistakes.mean]
    if not alike:
        return ""
    others = joined(alike) if len(alike) <= 3 else count(len(alike), "other")
    return f"; so {'is' if len(alike) == 1 else 'are'} {others}"


def called(row: Standing) -> str:
    """Return a player with its settings as a sentence names it: "fastcb (B=3)"."""
    return f"{row.label} ({row.settings})" if row.settings else row.label


def _interval(interval: Interval) -> str:
    return f" (95 % interval {spread(interval.scaled(100))})" if math.isfinite(interval.low) else ""


def _lead(best: Standing, other: Standing, *, behind_tie: bool = False) -> str:
    gap = other.behind_first.scaled(100)
    if gap.n == 0 or math.isnan(gap.mean):
        return f"no stream has met both {best.label} and {called(other)} yet."
    points = f"{percent(gap).removesuffix(' %')} percentage points"
    if gap.mean == 0:
        return f"{best.label} makes as many mistakes as the next, {called(other)}."
    if behind_tie:
        return f"{best.label} makes {points} fewer mistakes than the first player behind the tie, {called(other)}."
    return f"{points} fewer mistakes than the next, {called(other)}."


def _sure(interval: Interval, arena: Arena) -> str:
    scaled = interval.scaled(100)
    if not math.isfinite(scaled.low):
        return "there is no interval, so nobody knows."
    same = "on the same streams" if arena.paired else "on streams of their own"
    if interval.low > 0:
        of = f" from {count(interval.n, 'repetition')}" if interval.n else ""
        return f"sure at 95 %{of}, the difference is {spread(scaled)} percentage points, {same}."
    return f"not sure, it could be nothing: {spread(scaled)} percentage points at 95 %, {same}."


def _against(arena: Arena, rows: Sequence[Standing]) -> str:
    said, constant, best = [], constant_share(arena).mean, rows[0].mistakes.mean
    if not math.isnan(constant):
        said.append(f"always naming the most frequent class is wrong in {share(constant)}, {_points(constant - best)}")
    model = _model(arena)
    if model is not None:
        said.append(
            "the best logistic model in hindsight, told every label beforehand "
            f"(the comparator, B = {model[0]}), in {share(model[1])}, {_points(model[1] - best)}"
        )
    if not said:
        return "nothing to compare with; neither the most frequent class nor a comparator was computed."
    text = ", ".join(said) if len(said) < 2 else f"{said[0]}; {said[1]}"
    text = f"{text}."
    if not math.isnan(constant) and best >= constant:
        text += " Nobody here beats the most frequent class: nothing was learnt."
    return text


def _points(difference: float) -> str:
    """Return how many percentage points another has more than the first of the ranking."""
    if math.isnan(difference):
        return "the first cannot be compared"
    if round(100 * abs(difference), 1) == 0:
        return "the same as the first here"
    points = share(abs(difference)).removesuffix(" %")
    return f"{points} points {'more' if difference > 0 else 'fewer'} than the first here"


def _model(arena: Arena) -> tuple[str, float] | None:
    """Return B and the share of mistakes of the comparator with the least loss."""
    table = comparator_table(arena)
    if table.empty:
        return None
    best = table.iloc[int(table["loss_nats"].argmin())]
    return short(best["norm_bound"]), float(best["mistakes"]) / arena.results.last_round


def _promise(arena: Arena, bounds: pd.DataFrame) -> str:
    """Return the sharpest theorem that is no mere number of rounds, with what was measured; "" where none has a bound."""
    if bounds.empty:
        return ""
    broken = int((~bounds["holds"]).sum())
    telling = bounds[~bounds["vacuous"] & (bounds["loss"] + bounds["bound"] < arena.results.last_round)]
    rounds = count(arena.results.last_round, "round")
    what = "log loss" if arena.kind == "label" else "mistakes"
    said = f"{count(len(bounds), 'setting')} {'has' if len(bounds) == 1 else 'have'} a proved bound on {what}; "
    said += f"{len(telling) or 'none'} of these bounds {'are' if len(telling) > 1 else 'is'} below the {rounds}, "
    said += f"{broken or 'none'} {'were' if broken > 1 else 'was'} exceeded"
    if telling.empty:
        return f"{said}. More rounds, fewer classes or a smaller B make bounds that say something."
    best = telling.iloc[int((telling["loss"] + telling["bound"]).argmin())]
    setting = f" ({best['settings']})" if best["settings"] else ""
    unit = best["unit"] if arena.kind == "label" else "mistakes"
    most, has = f"{amount(best['loss'] + best['bound'])} {unit}", amount(best["measured"])
    return f"{said}. The sharpest: {best['label']}{setting} is promised at most {most}; {has} were measured."


def _guessing(arena: Arena, rows: Sequence[Standing], bounds: pd.DataFrame) -> str:
    """Return who is no better than the most frequent class or explores in most rounds, and why; "" where nobody does."""
    constant, rounds = constant_share(arena).mean, arena.results.last_round
    final = arena.reported_final
    explored = (final.groupby("label")["explored"].mean() / rounds).to_dict()
    theorems = _by_theorem(arena, final)
    idle = [r for r in rows if r.mistakes.mean >= constant or explored.get(r.label, 0.0) >= MOSTLY]
    if not idle:
        return ""
    reasons, theory = [], False
    for row in idle:
        explores = explored.get(row.label, math.nan)
        beaten = row.mistakes.mean >= constant
        why, proved = _why(row, explores, bounds, rounds, beaten=beaten, by_theorem=row.label in theorems)
        theory |= proved
        reasons.append(f"{row.label} {why}")
    said = f"{'; '.join(reasons)}."
    if theory:
        said += " A theorem holds on the worst stream there is, and pays for that with random rounds; of more rounds they are"
        said += " a smaller share."
    return said


def _by_theorem(arena: Arena, final: pd.DataFrame) -> set[str]:
    """Return the theory agents whose γ nobody wrote as a number: their theorem sets it."""
    written = final.get("setting.gamma", pd.Series(None, index=final.index, dtype=object))
    free = written.isna() | written.eq("theory")
    return {str(label) for label in final.loc[free, "label"] if arena.results.groups.get(str(label)) == "theory"}


def _why(
    row: Standing, explored: float, bounds: pd.DataFrame, rounds: int, *, beaten: bool, by_theorem: bool
) -> tuple[str, bool]:
    """Return why a player guesses, as what is said after its name, and whether a theorem is the reason."""
    if row.label == "uniform":
        return "guesses by design, for scale", False
    parts, proved = [], False
    if explored >= MOSTLY:
        by = f", as its theorem asks for {rounds:,} rounds" if by_theorem else ""
        parts.append(f"plays at random in {share(explored)} of the rounds{by}")
        proved = by_theorem
    elif beaten:
        parts.append(f"is no better than the most frequent class after {count(rounds, 'round')}")
    mine = bounds[(bounds["label"] == row.label) & (bounds["settings"] == row.settings)] if len(bounds) else bounds
    if len(mine) and bool(mine["vacuous"].all()):
        least = amount(float(mine["bound"].min()))
        parts.append(f"is promised nothing: its bound, {least} mistakes, is more than the {rounds:,} rounds (vacuous)")
        proved = True
    return " and ".join(parts), proved


def _bars(arena: Arena, rows: Sequence[Standing]) -> list[Bar]:
    first = rows[0].position
    shown = list(rows) if len(rows) <= BARS else [*rows[: BARS - 1], rows[-1]]
    bars = [
        Bar(
            row.label,
            row.mistakes.mean,
            percent(row.mistakes.scaled(100)),
            "first" if row.position == first and row.rank != "?" else "player",
        )
        for row in shown
        if math.isfinite(row.mistakes.mean)
    ]
    constant, model = constant_share(arena).mean, _model(arena)
    if not math.isnan(constant):
        bars.append(Bar("most frequent class", constant, share(constant), "constant"))
    if model is not None:
        bars.append(Bar("best logistic model, told all labels", model[1], share(model[1]), "model"))
    return sorted(bars, key=lambda bar: bar.share)
