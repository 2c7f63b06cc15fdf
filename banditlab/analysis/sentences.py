"""What was run and what came first, in words."""

from __future__ import annotations

import math

import pandas as pd

from banditlab.analysis.statistics import LEVEL, Interval
from banditlab.analysis.summary import Arena, Standing, comparator_table
from banditlab.analysis.tables import Results
from banditlab.analysis.words import amount, count, is_number, joined, percent, plain, short, sign, spread

KINDS = {"bit": "told one bit: right or wrong", "label": "told the label"}
ORDINALS = {1: "first", 2: "second", 3: "third"}


def what_was_run(results: Results) -> list[str]:
    """Return the sentences that open a report: how much was run, over which settings, and what is missing."""
    runs, spec = results.runs, results.spec
    variants = runs[["kind", "label", "settings"]].drop_duplicates()
    players = count(runs[["kind", "label"]].drop_duplicates().shape[0], "player")
    repetitions = int(spec.get("repetitions", runs["repetition"].nunique()))
    said = [
        f"{players} in {count(len(variants), 'setting')} met {joined(results.environments)}: "
        f"{count(repetitions, 'repetition')} of {count(results.last_round, 'round')} each, "
        f"{count(results.planned, 'run')} in all.",
        _axes(runs),
    ]
    return [*said, *state(results)]


def state(results: Results) -> list[str]:
    """Return one sentence for each thing that keeps the results from being complete; none if they are."""
    said = []
    if results.missing:
        said.append(
            f"Unfinished: {count(results.missing, 'run')} of {results.planned:,} "
            f"{'is' if results.missing == 1 else 'are'} missing; the same command continues."
        )
    if results.failures:
        said.append(f"{count(len(results.failures), 'run')} failed; they are listed below.")
    if results.unreadable:
        said.append(f"{count(results.unreadable, 'file')} could not be read, and what stood there counts as missing.")
    return said


def _axes(runs: pd.DataFrame) -> str:
    """Return "a and b over γ in {0.01, 0.1} and B in {1, 3}; c over B in {1, 3}; d as it is."."""
    groups: dict[str, list[str]] = {}
    for label, rows in runs.groupby("label", sort=False):
        axes = [_axis(rows, name) for name in ("gamma", "norm_bound")]
        text = joined([axis for axis in axes if axis])
        settings = rows["settings"].nunique()
        if not text:
            text = "as it is" if settings == 1 else f"in {settings} settings"
        groups.setdefault(text if text.startswith(("as", "in")) else f"over {text}", []).append(str(label))
    return "; ".join(f"{joined(labels)} {text}" for text, labels in groups.items()) + "."


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
    chooses, reports = arena.halves
    if not chooses:
        said = f"Nothing was chosen: each player has one setting, reported on {_repetitions(reports)}."
    elif set(chooses) & set(reports):
        said = "There is one repetition, so the best setting of each player was chosen on the very run that is reported"
        said += ": these numbers flatter players with many settings."
    else:
        said = f"The best setting of each player was chosen on {_repetitions(chooses)}; "
        said += f"every number here comes from {_repetitions(reports)}."
    loose = [row.name for row in listed if not row.held_out]
    if loose and not set(chooses) & set(reports):
        said += f" Runs are missing, so {joined(loose)} {'is' if len(loose) == 1 else 'are'} reported on repetitions"
        said += " the setting was chosen on."
    return f"{said} {_about_intervals(listed)}".strip()


def _about_intervals(listed: list[Standing]) -> str:
    method = listed[0].mistakes.method
    if method == "none":
        return "With one repetition reported there are no intervals, and ranks follow the means alone."
    kind = {"t": "Student's t", "BCa": "BCa bootstrap"}[method]
    pairs = len(listed) - 1
    said = f"Intervals: 95 %, {kind} over {count(listed[0].mistakes.n, 'repetition')}, each on its own."
    if pairs > 1:
        missed = (1 - LEVEL) * pairs
        said += f" Of the {pairs} differences behind the ranks, {missed:.2g} would miss the truth by chance on average:"
        said += " read a narrow lead as a hint, not as a proof."
    return said


def _repetitions(numbers: list[int]) -> str:
    if len(numbers) > 3 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"repetitions {numbers[0]} to {numbers[-1]}"
    return f"repetition{'s' if len(numbers) > 1 else ''} {joined([str(n) for n in numbers])}"


def about_comparator(arena: Arena) -> str:
    """Return what the best logistic model in hindsight reaches, or that no comparator was asked for or is there."""
    table = comparator_table(arena)
    if table.empty:
        asked = bool(arena.results.spec.get("norm_bounds"))
        missing = (
            "The comparators of these streams are not there yet"
            if asked
            else "No comparator was asked for (norm_bounds = [])"
        )
        return f"{missing}: no relative mistakes."
    best = table.iloc[int(table["loss_nats"].argmin())]
    rounds = arena.results.last_round
    return (
        f"The best logistic model in hindsight, rows of norm at most {short(best['norm_bound'])}, loses "
        f"{amount(best['loss_nats'])} nats and makes {amount(best['mistakes'])} mistakes "
        f"({plain(100 * best['mistakes'] / rounds, 1)} %) on these streams, each label known beforehand."
    )
