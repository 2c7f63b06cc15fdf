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
    verdict, lead, against, guessing, promise
        Sentences: who wins with how many mistakes; by how much and how sure; the most frequent class and the comparator
        beside it; who does no better than guessing, and why ("" where nobody does); which theorem says something here.
    bars
        The same in a picture, fewest mistakes first.
    """

    winner: str
    verdict: str
    lead: str
    against: str
    guessing: str
    promise: str
    bars: list[Bar]


def answer(arena: Arena, rows: Sequence[Standing]) -> Answer:
    """Return the answers of an arena from its ranked table."""
    winner, verdict, lead = _who(arena, rows)
    bounds = bounds_table(arena)
    guessing, promise = _guessing(arena, rows, bounds), _promise(arena, bounds)
    return Answer(winner, verdict, lead, _against(arena, rows), guessing, promise, _bars(arena, rows))


def _who(arena: Arena, rows: Sequence[Standing]) -> tuple[str, str, str]:
    first = [row for row in rows if row.position == rows[0].position]
    best = rows[0]
    where = "rounds that show a new row" if arena.repeats else count(arena.results.last_round, "round")
    wrong = f"wrong in {percent(best.mistakes.scaled(100))} of {where}"
    if len(rows) == 1:
        return (
            best.name,
            f"{best.name}, alone here, is {wrong}{_interval(best.mistakes)}.",
            "There is nobody to win against.",
        )
    if all(row.mistakes.n == 1 for row in rows):
        said = f"{best.name} is {wrong}, fewest in a single repetition."
        return "", said, "One repetition shows an order, and no evidence that it would come out again."
    if len(first) > 1:
        names = joined([row.name for row in first]) if len(first) <= 4 else f"{count(len(first), 'player')}"
        said = f"No single winner: {names} are tied first. Fewest mistakes: {best.name}, {wrong}{_interval(best.mistakes)}."
        after = [row for row in rows if row.position != best.position]
        if not after:
            return "", said, "Not sure: no difference between any two of the first and the rest is shown."
        return (
            "",
            said,
            f"Not sure which of them is best; ahead of {after[0].name} {_lead(after[0].behind_first, arena)}.",
        )
    said = f"{best.name} wins: {wrong}{_interval(best.mistakes)}."
    return best.name, said, f"That is ahead of the next, {rows[1].name}, {_lead(rows[1].behind_first, arena)}."


def _interval(interval: Interval) -> str:
    return f" (95 % interval {spread(interval.scaled(100))})" if math.isfinite(interval.low) else ""


def _lead(interval: Interval, arena: Arena) -> str:
    if interval.n == 0 or math.isnan(interval.mean):
        return "by an amount no stream shows yet"
    scaled = interval.scaled(100)
    said = f"by {percent(scaled).removesuffix(' %')} percentage points"
    if not math.isfinite(scaled.low):
        return f"{said}, without an interval"
    same = "on the same streams" if arena.paired else "on streams of their own"
    sure = "sure at 95 %" if interval.low > 0 else "not sure: it could be nothing"
    return f"{said}, {sure} ({spread(scaled)}, {same})"


def _against(arena: Arena, rows: Sequence[Standing]) -> str:
    said, constant, best = [], constant_share(arena).mean, rows[0].mistakes.mean
    if not math.isnan(constant):
        said.append(f"always saying the most frequent class is wrong in {share(constant)}")
    model = _model(arena)
    if model is not None:
        said.append(
            f"the best linear model in hindsight, told every label beforehand (B = {model[0]}), in {share(model[1])}"
        )
    if not said:
        return "Nothing to compare with: neither the most frequent class nor a comparator was computed."
    text = ", ".join(said) if len(said) < 2 else f"{said[0]}; {said[1]}"
    text = f"For scale: {text}."
    if not math.isnan(constant) and best >= constant:
        text += " Nobody here beats the most frequent class: nothing was learnt."
    return text


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
    said = f"Theory: of {count(len(bounds), 'setting')} with a bound, {len(telling) or 'none'} "
    said += f"{'is' if len(telling) <= 1 else 'are'} promised fewer mistakes than rounds"
    said += f", and {broken} {'is' if broken == 1 else 'are'} exceeded" if broken else ", and none is exceeded"
    if telling.empty:
        return f"{said}. More rounds, fewer classes or a smaller B make bounds that say something."
    best = telling.iloc[int((telling["loss"] + telling["bound"]).argmin())]
    most = best["loss"] + best["bound"]
    what = "a log loss" if arena.kind == "label" else "mistakes"
    return (
        f"{said}. The sharpest: {best['label']} {best['settings']}".rstrip()
        + f" is promised {what} of at most {amount(most)} (the model's loss {amount(best['loss'])} in {best['unit']} + "
        f"bound {amount(best['bound'])}) and has {amount(best['measured'])}."
    )


def _guessing(arena: Arena, rows: Sequence[Standing], bounds: pd.DataFrame) -> str:
    """Return who is no better than the most frequent class or explores in most rounds, and why; "" where nobody does."""
    constant, rounds = constant_share(arena).mean, arena.results.last_round
    final = arena.reported_final
    explored = (final.groupby("label")["explored"].mean() / rounds).to_dict()
    theorems = _by_theorem(arena, final)
    idle = [r for r in rows if r.mistakes.mean >= constant or explored.get(r.label, 0.0) >= MOSTLY]
    if not idle:
        return ""
    reasons, open_ended = [], []
    for row in idle:
        why = _why(row, explored.get(row.label, math.nan), bounds, rounds, by_theorem=row.label in theorems)
        if why:
            reasons.append(f"{row.label}: {why}")
        else:
            open_ended.append(row.label)
    said = f"{joined([row.label for row in idle])} {'guesses' if len(idle) == 1 else 'guess'} or nearly so."
    if reasons:
        said += f" Why: {'; '.join(reasons)}."
    if open_ended:
        said += f" {joined(open_ended)}: no better than the most frequent class after {count(rounds, 'round')}."
    return said


def _by_theorem(arena: Arena, final: pd.DataFrame) -> set[str]:
    """Return the theory agents whose γ nobody wrote as a number: their theorem sets it."""
    written = final.get("setting.gamma", pd.Series(None, index=final.index, dtype=object))
    free = written.isna() | written.eq("theory")
    return {str(label) for label in final.loc[free, "label"] if arena.results.groups.get(str(label)) == "theory"}


def _why(row: Standing, explored: float, bounds: pd.DataFrame, rounds: int, *, by_theorem: bool) -> str:
    parts = []
    if explored >= MOSTLY:
        parts.append(
            "learns nothing and plays at random in every round"
            if row.label == "uniform"
            else f"plays at random in {share(explored)} of the rounds"
            + (f", as its theorem sets γ for {rounds:,} rounds" if by_theorem else "")
        )
    mine = bounds[(bounds["label"] == row.label) & (bounds["settings"] == row.settings)] if len(bounds) else bounds
    if len(mine) and bool(mine["vacuous"].all()):
        least = float(mine["bound"].min())
        parts.append(
            f"its theorem allows {amount(least)} mistakes beyond the model's loss, more than the {rounds:,} rounds played "
            "(vacuous): it needs more rounds, fewer classes or a smaller B before it promises anything"
        )
    return ", and ".join(parts)


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
        bars.append(Bar("best linear model, told all labels", model[1], share(model[1]), "model"))
    return sorted(bars, key=lambda bar: bar.share)
