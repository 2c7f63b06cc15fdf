"""The data of a report's interactive figures: curves, every setting over gamma and B, differences of pairs.

Displayed numbers are strings, formatted as in the tables of the page; plotted numbers are arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from banditlab.analysis.arena import VARIANT, Arena
from banditlab.analysis.curves import Curve, Floats, mistake_curves, relative_panels
from banditlab.analysis.formats import amount, duration, is_number, percent, points, share, short, spread
from banditlab.analysis.look import DASHES, Style
from banditlab.analysis.matrices import complete, groups_of, matrix
from banditlab.analysis.settings import axes, is_absent
from banditlab.analysis.statistics import Interval, mean_intervals
from banditlab.analysis.summary import Standing, bounds_table

MOST_POINTS = 200_000
"""The largest number of values embedded for the settings of one environment; checkpoints except the last are thinned to
stay below it."""


def explorable(
    arena: Arena,
    rows: list[Standing],
    settings: pd.DataFrame,
    differences: list[tuple[str, str, Interval]],
    looks: dict[str, Style],
    groups: dict[str, str],
) -> dict[str, Any]:
    """Return the data of one section. `rows` and `settings` are its tables; `groups` gives the kind of each player."""
    return {
        "rounds": arena.last_round,
        "noun": arena.noun,
        "looks": {label: _look(looks[label]) for label in _labels(arena)},
        "groups": {label: groups.get(label, "") for label in _labels(arena)},
        "panels": _panels(arena),
        "settings": _settings(arena, settings),
        "gaps": _gaps(rows, differences),
    }


def _labels(arena: Arena) -> list[str]:
    own = list(dict.fromkeys(arena.final["label"]))
    return own if arena.scale is None else [*own, *dict.fromkeys(arena.scale.final["label"])]


def _look(style: Style) -> list[Any]:
    return [style.colour, DASHES.index(style.dash), style.marker]


# --------------------------------------------------------------------------------------------------------------- curves


def _panels(arena: Arena) -> list[dict[str, Any]]:
    """Return the panels: the share of mistakes, then for each B the mistakes minus the loss of the best model. Every curve
    also has its running time in seconds at each checkpoint.
    """
    seconds = _seconds(arena)
    shares = [_curve(curve, seconds, per=curve.rounds) for curve in mistake_curves(arena)]
    panels = [{"title": "Share of mistakes so far", "share": True, "curves": shares}]
    for panel in relative_panels(arena):
        title = f"Mistakes minus loss of the best model, B = {short(panel.norm_bound)}"
        panels.append({"title": title, "share": False, "curves": [_curve(c, seconds) for c in panel.curves]})
    return panels


def _curve(curve: Curve, seconds: dict[str, list[float]], per: Floats | float = 1.0) -> dict[str, Any]:
    """Return a curve for the interactive figure. If `per` is an array, values are divided by it and in percent."""
    scale = 100.0 if isinstance(per, np.ndarray) else 1.0
    made = {
        "label": curve.label,
        "name": curve.name,
        "x": curve.rounds,
        "s": seconds.get(curve.label, []),
        "y": scale * curve.mean / per,
        "low": scale * curve.low / per,
        "high": scale * curve.high / per,
    }
    return made | ({"bound": curve.bound} if len(curve.bound) else {})


def _seconds(arena: Arena) -> dict[str, list[float]]:
    """Return each player's mean running time in seconds at each checkpoint, at its reported settings."""
    found = {} if arena.scale is None else _seconds(arena.scale)
    rows = arena.reported_runs[["label", "round", "seconds"]]
    for label, group in rows.groupby("label", sort=False):
        found[str(label)] = group.groupby("round")["seconds"].mean().to_list()
    return found


# ------------------------------------------------------------------------------------------------------------- settings


def _settings(arena: Arena, table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return every setting, in increasing order of mistakes, with its curve, its bound and its entries in the tables."""
    every_arena = [arena] if arena.scale is None else [arena, arena.scale]
    bounds = {key: bound for each in every_arena for key, bound in _bounds(each).items()}
    models = {key: model for each in every_arena for key, model in _models(each).items()}
    rounds = sorted(set(arena.runs["round"]))
    every = _thinned(len(rounds), len(table))
    by_setting = {key: found for each in every_arena for key, found in _curves_and_calls(each, every).items()}
    made = []
    for row in _rows(table):
        key = row["label"], row["settings"]
        x, values, (gamma, ball, other), call = by_setting[key]
        mean, low, high = mean_intervals(values)
        interval = Interval(row["mistakes"], row["low"], row["high"], row["repetitions"], "t").scaled(100)
        made.append(
            {
                "p": row["label"],
                "text": row["settings"],
                "call": call,
                "gamma": gamma,
                "B": ball,
                "other": other,
                "chosen": bool(row["chosen"]),
                "v": row["mistakes"],
                "mistakes": percent(interval),
                "interval": spread(interval),
                "counted": share(row["counted"]),
                "explored": share(row["explored"]),
                "time": duration(row["seconds_per_round"]),
                "n": row["repetitions"],
                "x": x,
                "y": 100 * mean / x,
                "low": 100 * np.maximum(low, 0) / x,
                "high": 100 * np.minimum(high, x) / x,
            }
            | bounds.get(key, {})
            | models.get(key, {})
        )
    return made


def _curves_and_calls(
    arena: Arena, every: list[int]
) -> dict[tuple[str, ...], tuple[Floats, Floats, tuple[str, str, str], str]]:
    """Return, for each setting, its rounds, expected mistakes (rounds, repetitions), axes (see `axes`) and constructor
    call.
    """
    columns = [arena.runs[name].to_numpy() for name in ("round", "repetition", "expected_mistakes")]
    groups = groups_of(arena.runs, VARIANT)
    firsts = arena.runs.iloc[[at[0] for at in groups.values()]]
    made = {}
    for i, ((key, at), call) in enumerate(zip(groups.items(), calls(firsts), strict=True)):
        rounds, _, values = matrix(*(column[at] for column in columns))
        made[key] = (rounds[every].astype(float), complete(values[every]), axes(firsts.iloc[i]), call)
    return made


def _thinned(n: int, settings: int) -> list[int]:
    """Return which of n checkpoints to embed for this number of settings: all, or evenly spaced ones and the last."""
    room = max(6, MOST_POINTS // max(1, 4 * settings))
    return sorted(set(np.linspace(0, n - 1, min(n, room)).round().astype(int).tolist()))


def calls(runs: pd.DataFrame) -> list[str]:
    """Return each row's setting as the constructor's arguments in the spec, such as 'fastcb(norm_bound=3)'."""
    names = sorted(str(name) for name in runs.columns if str(name).startswith("setting."))
    columns = [[_argument(name.removeprefix("setting."), value) for value in runs[name]] for name in names]
    rows: Iterable[tuple[str, ...]] = zip(*columns, strict=True) if columns else [()] * len(runs)
    return [f"{player}({', '.join(filter(None, row))})" for player, row in zip(runs["player"], rows, strict=True)]


def _argument(name: str, value: Any) -> str:
    """Return an argument such as "gamma=0.1", with strings in quotes, or "" for a setting that is not in the spec."""
    if is_absent(value):
        return ""
    text = str(value)
    return f"{name}={text if is_number(text) or text in ('True', 'False', 'None') else json.dumps(text, ensure_ascii=False)}"


def _bounds(arena: Arena) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the theorem's guarantee for each setting at the last round, as text and as a number."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _rows(bounds_table(arena)):
        promise = f"{amount(row['measured'])} measured, {amount(row['loss'])} {row['unit']} + {amount(row['bound'])} "
        promise += f"guaranteed at B = {short(row['norm_bound'])}: {row['verdict']}"
        promise = row["verdict"] if np.isnan(row["bound"]) else promise
        found[row["label"], row["settings"]] = {"bound": row["bound"], "promise": promise}
    return found


def _models(arena: Arena) -> dict[tuple[str, str], dict[str, Any]]:
    """Return, for each setting, the best model on its streams.

    It is the comparator for the setting's own B. A setting without a B gets the comparator with the least loss, at the
    smallest B with this loss.
    """
    table = arena.relative[arena.relative["round"] == arena.last_round]
    keys = [*VARIANT, "norm_bound"]
    columns = ["loss_nats", "comparator_mistakes", "relative_expected"]
    table = table[[*keys, *columns]].groupby(keys).mean().reset_index()
    table = table.sort_values("loss_nats", kind="stable").drop_duplicates(VARIANT)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _rows(table):
        mistakes = row["comparator_mistakes"] / arena.last_round
        text = f"{amount(row['loss_nats'])} nats and {amount(row['comparator_mistakes'])} mistakes ({share(mistakes)})"
        found[row["label"], row["settings"]] = {
            "model": f"{text} at B = {short(row['norm_bound'])}",
            "level": 100 * mistakes,
            "relative": f"{amount(row['relative_expected'])} over all {arena.last_round:,} rounds",
        }
    return found


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _gaps(rows: list[Standing], differences: list[tuple[str, str, Interval]]) -> dict[str, dict[str, list[str]]]:
    """Return {first: {second: [difference, interval]}} in percentage points, for all pairs of labels in both orders."""
    label = {row.name: row.label for row in rows}
    found: dict[str, dict[str, list[str]]] = {}
    for first, second, gap in differences:
        for a, b, interval in ((first, second, gap), (second, first, -gap)):
            scaled = interval.scaled(100)
            found.setdefault(label[a], {})[label[b]] = [points(scaled), spread(scaled)]
    return found
