"""What was run and what came first, in words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from banditlab.analysis.arena import Arena
from banditlab.analysis.statistics import Interval
from banditlab.analysis.summary import Standing, comparator_table
from banditlab.analysis.tables import Results
from banditlab.analysis.words import (
    amount,
    count,
    environment_title,
    facts_of_data,
    is_number,
    joined,
    percent,
    plain,
    share,
    short,
    sign,
    spread,
)

KINDS = {"bit": "told one bit: right or wrong", "label": "told the label", "reference": "told the label, for scale"}
ORDINALS = {1: "first", 2: "second", 3: "third"}
FAR_FEWER = 0.8
"""Below this share of the comparator's mistakes the first player's are "far fewer" (`_weak_comparator`)."""
STILL_FALLING = 0.98
"""A comparator's loss below this share of the next smaller ball's has not levelled off."""


def what_was_run(results: Results, *, warned: bool = True) -> list[str]:
    """Return how much was run, over which settings, and (with `warned`) what is missing."""
    runs, spec = results.runs, results.spec
    variants = runs[["kind", "label", "settings"]].drop_duplicates()
    players = count(runs[["kind", "label"]].drop_duplicates().shape[0], "player")
    repetitions = int(spec.get("repetitions", runs["repetition"].nunique()))
    said = [
        f"{players} in {count(len(variants), 'setting')} met "
        f"{joined([environment_title(name) for name in results.environments])}: "
        f"{count(repetitions, 'repetition')} of {count(results.last_round, 'round')} each, "
        f"{count(results.planned, 'run')} in all.",
        _axes(runs),
    ]
    said[0] = " ".join([said[0], *about_data(results)])
    return [*said, *(warnings(results) if warned else [])]


def the_game(kinds: Sequence[str]) -> str:
    """Return what a round is and what is counted, for somebody who has never seen a report."""
    told = "only whether that was right" if "bit" in kinds else "the right one afterwards"
    said = f"In every round a player sees a row of numbers, says which class it belongs to, and is told {told}."
    if "bit" in kinds and len(set(kinds)) > 1:
        said += " Where it says so, players are told the label, the right class."
    return f"{said} The share of rounds it is wrong in is what counts: the fewer mistakes, the better."


def about_data(results: Results) -> list[str]:
    """Return, of each data set, its rows, d, K, largest class, and how often a run was shown each row."""
    rounds = results.last_round
    return [f"{environment_title(name)}: {facts_of_data(facts, rounds)}." for name, facts in results.data.items()]


def warnings(results: Results) -> list[str]:
    """Return one sentence for each thing that keeps the numbers from being complete or sure; none if nothing does."""
    return [
        *state(results),
        *_off_expectation(results),
    ]


def _off_expectation(results: Results) -> list[str]:
    """Return the runs whose mistakes are further from those their probabilities promise than chance allows.

    By Freedman's inequality |mistakes - expected| passes 6 + 6 sqrt(1 + V), V their variance, once in 3e7 honest runs: beyond
    6 standard deviations, and 12 mistakes more where V is small. A forecaster's action is not drawn, so it has no such test.
    """
    last = results.runs[results.runs["round"] == results.last_round]
    last = last[last["kind"].isin(["bit", "reference"])]
    off = (last["mistakes"] - last["expected_mistakes"]).abs()
    runs = last[off > 6 + 6 * np.sqrt(1 + last["mistakes_variance"].astype(float))]
    return [
        f"Do not trust {label} on {environment_title(str(name))}: in {count(len(group), 'run')} its mistakes "
        f"({plain(group['mistakes'].mean(), 1)} in the mean) are over 6 standard deviations from what the probabilities it "
        f"reports promise ({plain(group['expected_mistakes'].mean(), 1)})."
        for (name, label), group in runs.groupby(["environment", "label"], sort=False)
    ]


def state(results: Results) -> list[str]:
    """Return one sentence for each thing that keeps the results from being complete; none if they are."""
    said = []
    if results.missing:
        said.append(
            f"Unfinished: {count(results.missing, 'run')} of {results.planned:,} "
            f"{'is' if results.missing == 1 else 'are'} missing; the same command continues."
        )
    comparators = sum(failure.is_comparator for failure in results.failures)
    runs = len(results.failures) - comparators
    failed = [count(runs, "run")] if runs else []
    failed += [f"the comparators of {count(comparators, 'stream')}"] if comparators else []
    if failed:
        said.append(f"Failed: {joined(failed)}, listed below.")
    if results.unreadable:
        n = count(len(results.unreadable), "file")
        names = joined(results.unreadable[:5] + ["others"] * (len(results.unreadable) > 5))
        said.append(f"{n} could not be read, and what stood there alone counts as missing: {names}.")
    return [*said, *_without_a_number(results)]


def _without_a_number(results: Results) -> list[str]:
    """Return whose runs have no number of mistakes, which no ranking can hold."""
    last = results.runs[results.runs["round"] == results.last_round]
    lost = last[last["ranked"].isna()]
    if lost.empty:
        return []
    names = [str(label) for label in dict.fromkeys(lost["label"])]
    some = joined(names[:5] + ["others"] * (len(names) > 5))
    return [
        f"{count(len(lost), 'run')} of {some} {'has' if len(lost) == 1 else 'have'} no number of mistakes (NaN), and no rank."
    ]


def _axes(runs: pd.DataFrame) -> str:
    """Return "a and b over γ in {0.01, 0.1} and B in {1, 3}; c in one setting; d at its default settings."."""
    groups: dict[str, list[str]] = {}
    for label, rows in runs.groupby("label", sort=False):
        axes = [_axis(rows, name) for name in ("gamma", "norm_bound")]
        text = joined([axis for axis in axes if axis])
        settings = rows["settings"].nunique()
        if text:
            text = f"over {text}"
        elif settings > 1:
            text = f"in {settings} settings"
        else:
            text = "at WHOSE default settings" if _by_default(str(label), rows) else "in one setting"
        groups.setdefault(text, []).append(str(label))
    whose = {text: "its" if len(labels) == 1 else "their" for text, labels in groups.items()}
    return "; ".join(f"{joined(who)} {text.replace('WHOSE', whose[text])}" for text, who in groups.items()) + "."


def _by_default(label: str, rows: pd.DataFrame) -> bool:
    """Return whether nobody wrote a setting of this player, but for the names in its label ("exploration(ogd)")."""
    written = [rows[name].dropna() for name in rows.columns if name.startswith("setting.")]
    named = set(re.split(r"[(), ]+", label)[1:])
    return all(str(value) in named for column in written for value in set(column))


def _axis(rows: pd.DataFrame, name: str) -> str:
    """Return "γ in {theory, 0.1, 0.3}": words as they were written, then numbers; nothing where there is one value."""
    written = rows.get(f"setting.{name}", pd.Series(None, index=rows.index, dtype=object))
    words = sorted({w for w in written.dropna() if not is_number(w)})
    numbers = sorted(set(rows.loc[~written.isin(words), name].dropna()))
    values = [*words, *map(short, numbers)]
    return f"{sign(name)} in {{{', '.join(values)}}}" if len(values) > 1 else ""


def headline(listed: list[Standing], paired: bool) -> str:
    """Return who came first, by how much, and who is tied."""
    groups: list[list[Standing]] = []
    for row in listed:
        if groups and groups[-1][0].position == row.position:
            groups[-1].append(row)
        else:
            groups.append([row])
    first = groups[0]
    if len(listed) > 1 and all(row.mistakes.n == 1 for row in listed):
        order = joined([f"{row.name} {percent(row.mistakes.scaled(100))}" for row in listed[:3]])
        more = f", then {count(len(listed) - 3, 'other')}" if len(listed) > 3 else ""
        return f"One repetition: an order only, no intervals and no evidence for ranks. Mistakes: {order}{more}."
    if len(first) > 1:
        shares = joined([percent(row.mistakes.scaled(100)) for row in first])
        said = f"{joined([row.name for row in first])} are tied first with {shares} mistakes"
        said += ": every interval of a difference to the first of them contains 0"
    else:
        said = f"{first[0].name} made {_with_interval(first[0].mistakes)}"
    if len(groups) > 1:
        rival = groups[1][0]
        said += f", ahead of {rival.name} {_lead(rival.behind_group, paired)}"
    elif len(listed) == 1:
        said += "; nobody else was run here"
    if len(groups) > 1 and len(groups[1]) > 1:  # further ties stand in the table
        said += f"; {joined([row.name for row in groups[1]])} are tied {_ordinal(groups[1][0].position)}"
    return said + "."


def _with_interval(interval: Interval) -> str:
    scaled = interval.scaled(100)
    if not math.isfinite(scaled.low):
        return f"{percent(scaled)} mistakes (one repetition, so no interval)"
    return f"{percent(scaled)} mistakes (95 % interval {spread(scaled)})"


def _lead(interval: Interval, paired: bool) -> str:
    if interval.n == 0:
        return "(no stream has met both yet)"
    scaled = interval.scaled(100)
    text = f"by {percent(scaled).removesuffix(' %')} points"
    text += f" ({spread(scaled)})" if math.isfinite(scaled.low) else ""
    return text + (" on the same streams" if paired else ", the streams not being the same")


def _ordinal(position: int) -> str:
    return ORDINALS.get(position, f"{position}th")


def how_chosen(arena: Arena, listed: list[Standing]) -> str:
    """Return on which repetitions settings were chosen, on which they are reported, and what the intervals are."""
    first, second = arena.halves
    several = [row for row in listed if row.among > 1]
    if not several:
        said = f"Nothing was chosen: each player has one setting, reported on {_repetitions(arena.repetitions)}."
    elif not first:
        said = "There is one repetition, so the best setting of each player was chosen on the very run that is reported"
        said += ": these numbers flatter players with many settings."
    else:
        said = f"Settings were chosen for each half of the repetitions on the other half: {_repetitions(first)} are"
        said = said if len(first) > 1 else said.removesuffix("are") + "is"
        said += f" reported at the best setting on {_repetitions(second)}, and the other way round, so no run helped to"
        said += f" choose the setting it is reported at. {_agreement([row for row in several if row.held_out])}"
    loose = [row.name for row in several if not row.held_out]
    if loose and first:
        said += f" Runs are missing, so {joined(loose)} {'is' if len(loose) == 1 else 'are'} reported on repetitions"
        said += " the setting was chosen on."
    return f"{said.strip()} {_about_intervals(arena, listed)}".strip()


def _agreement(several: list[Standing]) -> str:
    """Return for how many players the two halves chose alike, and for which they did not."""
    if not several:
        return ""
    differ = [row.label for row in several if not row.agree]
    said = "The setting named is the best on all repetitions; both halves chose the same one for "
    said += f"{len(several) - len(differ)} of {count(len(several), 'player')}"
    return f"{said}, not for {joined(differ)}." if differ else f"{said}."


def _about_intervals(arena: Arena, listed: list[Standing]) -> str:
    measured = [row.mistakes for row in listed if row.mistakes.method != "none"]
    if not measured:
        return (
            "With one repetition there are no intervals: the order is that of the means, and no rank is asserted (?)."
        )
    rows = measured[0].method == "t, rows"
    said = f"Intervals of mistakes: 95 %, Student's t over {count(measured[0].n, 'repetition')}"
    said += " and over the rows of the table, of which another sample would have others" if rows else ""
    said += ", each on its own, cut at 0 and 100 %."
    if arena.family > 2:
        of = f"{arena.family} settings" if rows and arena.family > len(listed) else f"{arena.family} players"
        said += (
            f" Those of differences, which the ranks go by, cover every pair of the {of} at once, so that in 95 of 100"
        )
        said += " comparisons no lead is asserted that is none."
    return said


def _repetitions(numbers: list[int]) -> str:
    if len(numbers) > 3 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"repetitions {numbers[0]} to {numbers[-1]}"
    return f"repetition{'s' if len(numbers) > 1 else ''} {joined([str(n) for n in numbers])}"


def about_comparator(arena: Arena, listed: list[Standing]) -> str:
    """Return what the best logistic model in hindsight reaches, or that no comparator was asked for or is there."""
    table = comparator_table(arena)
    if table.empty:
        return f"{_no_comparator(arena)}: no relative mistakes."
    best = table.iloc[int(table["loss_nats"].argmin())]
    rounds = arena.results.last_round
    said = (
        f"The best logistic model in hindsight, rows of norm at most {short(best['norm_bound'])}, loses "
        f"{amount(best['loss_nats'])} nats and makes {amount(best['mistakes'])} mistakes "
        f"({plain(100 * best['mistakes'] / rounds, 1)} %) on these streams, each label known beforehand."
    )
    return " ".join(part for part in (said, _weak_comparator(table, listed[0], rounds), _foreign(arena)) if part)


def _no_comparator(arena: Arena) -> str:
    if not arena.results.spec.get("norm_bounds"):
        return "No comparator was computed (norm_bounds = [] in spec.toml)"
    if any(failure.is_comparator and failure.environment == arena.environment for failure in arena.results.failures):
        return "The comparators of these streams failed (see below)"
    return "The comparators of these streams are not there yet"


def _weak_comparator(table: pd.DataFrame, first: Standing, rounds: int) -> str:
    """Return why the first player can make far fewer mistakes than the best model; nothing where it does not."""
    best = table.iloc[int(table["loss_nats"].argmin())]
    mistakes, bound = float(best["mistakes"]) / rounds, short(best["norm_bound"])
    if not first.mistakes.mean < FAR_FEWER * mistakes:
        return ""
    said = f"{first.label} makes far fewer mistakes ({share(first.mistakes.mean)} against {share(mistakes)}): linear "
    said += f"models with rows of norm at most {bound} are weak here"
    smaller = table[table["norm_bound"] < best["norm_bound"]]
    if smaller.empty:
        return f"{said}; larger balls hold stronger ones or the same, and were not computed."
    before = smaller.iloc[-1]
    fell = f"from B = {short(before['norm_bound'])} to B = {bound} the loss fell from {amount(before['loss_nats'])} to"
    fell += f" {amount(best['loss_nats'])} nats"
    if best["loss_nats"] < STILL_FALLING * before["loss_nats"]:
        return f"{said}; {fell}, so larger norm bounds should give a stronger comparator."
    return f"{said}; {fell} only, so a larger norm bound would add little."


def _foreign(arena: Arena) -> str:
    """Return which players have a norm bound that is no comparator's; nothing where there is none."""
    if not arena.foreign:
        return ""
    who = joined([f"{label} (B = {joined(list(map(short, b)))})" for label, b in arena.foreign.items()])
    met = "it is compared with every ball, and its bound is not checked"
    if len(arena.foreign) > 1:
        met = "they are compared with every ball, and their bounds are not checked"
    return f"No comparator was computed at the own norm bound of {who}: {met}."
