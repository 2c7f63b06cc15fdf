"""Name the settings of a player by the values that differ within the spec."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from banditlab.analysis.formats import is_number, short, sign


def with_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """Add `settings`, `gamma` and `norm_bound` to the runs.

    The name contains the settings that are given in the spec and differ, in at least one environment, among the runs
    with the player's label. Values that follow from other settings, such as a step size that follows from B, are not
    included. If two runs of one repetition would then have the same name, every parameter that differs is included.
    """
    runs = runs.copy()
    for name in ("gamma", "norm_bound"):
        column = runs.get(f"param.{name}")
        runs[name] = np.nan if column is None else pd.to_numeric(column, errors="coerce").astype(float)
    runs["settings"] = ""
    for _, group in runs.groupby("label"):
        one = group.drop_duplicates("run_id")
        values = _values(one)
        every = [str(name) for name in values.columns]
        written = [n for n in every if f"setting.{n}" in one and one[f"setting.{n}"].notna().any()]
        names = _differing(one, values, written)
        if pd.concat([one[["environment", "repetition"]], values[names]], axis=1).duplicated().any():
            names = _differing(one, values, every)
        names.sort(key=lambda n: (n not in ("gamma", "norm_bound"), n))
        texts = {
            run_id: " ".join(f"{sign(n)}={short(v)}" for n, v in zip(names, row) if not is_absent(v))
            for run_id, row in zip(one["run_id"], values[names].to_numpy(dtype=object))
        }
        runs.loc[group.index, "settings"] = group["run_id"].map(texts)
    return runs


def _values(one: pd.DataFrame) -> pd.DataFrame:
    """Return the settings of each run: the string in the spec (such as "theory") or the resolved value."""
    found = one[[c for c in one.columns if c.startswith(("param.", "setting."))]]
    there = found.columns[found.notna().any()]  # the others are settings of other players
    absent = pd.Series(None, index=one.index, dtype=object)
    columns = {}
    for name in dict.fromkeys(c.partition(".")[2] for c in there):
        resolved, written = (one.get(f"{kind}.{name}", absent).astype(object) for kind in ("param", "setting"))
        pairs = [(w if isinstance(w, str) and not is_number(w) else r) for w, r in zip(written, resolved)]
        columns[name] = pd.Series(
            [w if is_absent(v) else v for v, w in zip(pairs, written)], index=one.index, dtype=object
        )
    return pd.DataFrame(columns, index=one.index)


def _differing(one: pd.DataFrame, values: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return the names whose values differ within an environment."""
    keys = {n: values[n].map(lambda v: "" if is_absent(v) else str(v)) for n in names}
    return [n for n, key in keys.items() if (key.groupby(one["environment"]).nunique() > 1).any()]


def axes(run: pd.Series) -> tuple[str, str, str]:
    """Return a run's γ, its B and its other settings as text.

    γ and B are as in the spec ("theory", "0.1"), "default" if they are not given, and "" if the player does not have
    the setting.
    """
    found, rest = [], str(run["settings"])
    for symbol, name in (("γ", "gamma"), ("B", "norm_bound")):
        if rest.startswith(f"{symbol}="):  # these two come first
            token, _, rest = rest.partition(" ")
            found.append(token.removeprefix(f"{symbol}="))
        elif math.isnan(run[name]):
            found.append("")
        else:
            found.append("default" if is_absent(run.get(f"setting.{name}")) else short(float(run[name])))
    return found[0], found[1], rest


def varied(runs: pd.DataFrame) -> str:
    """Return the varied settings of one player, as in the spec: "γ: theory, 0.1; B: 1, 3"; "" if there are none."""
    found = []
    for column in [str(name) for name in runs.columns if str(name).startswith("setting.")]:
        values = list(dict.fromkeys(runs[column].dropna().astype(str)))
        if len(values) > 1:
            found.append(f"{sign(column.removeprefix('setting.'))}: {', '.join(values)}")
    return "; ".join(found)


def is_absent(value: object) -> bool:
    """Return whether a stored setting is missing: None, NA or NaN."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
