"""The default scaling beside others, on tables as they are and with numbers far from the others.

    python -m benchmarks scaling --tables FOLDER --keep

plays every FOLDER/*.csv.gz (label column `class`), `rounds` rows of it in an order that a seed draws, and fits the scaling to
these. `--keep` writes docs/results/scaling.csv after each table, and the page; tables that are there are not played again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.result_pages.scaling import AUTO, BEFORE, CLEAN, Line, clean, parts, ratios, read, write
from banditlab.analysis.pages import fill_page
from banditlab.envs.encoding import Encoder, columns_of, ranges_differ
from banditlab.errors import UsageError
from banditlab.validation import at_least
from benchmarks.measure.one_pass import one_pass

PLACE = Path(__file__).parents[2] / "docs" / "results"
AGENTS = ("fastcb", "squarecb", "linucb", "lints", "stackcb")
VALUES = (CLEAN, "three at 9999", "one at 1e9", "Student's t, 1.5 degrees", "lognormal, sigma 3")
SCALINGS = (BEFORE, "clipped", "ranks", AUTO)
MOST_CATEGORIES = 100
Floats = NDArray[np.float64]


def main(*, tables: str = "", seeds: int = 4, rounds: int = 1500, keep: bool = False) -> None:
    """Play and print both tables."""
    at_least("seeds", seeds, 2)
    at_least("rounds", rounds, 1)
    files = sorted(Path(tables).glob("*.csv.gz"))
    if len(files) < 2:
        raise UsageError(f"tables {tables!r}: give a folder of two .csv.gz files or more (--tables)")
    lines = read(PLACE / "scaling.csv") if keep else []
    for file in files:
        name = file.name.removesuffix(".csv.gz")
        if name not in {line.table for line in lines}:
            lines += measured(name, pd.read_csv(file), seeds, rounds)
            print(name, flush=True)
            if keep:
                write(PLACE / "scaling.csv", lines)
    print(f"{ratios(lines)}\n\n{clean(lines)}")
    if keep:
        fill_page(PLACE / "scaling.md", parts(PLACE))


def measured(name: str, frame: pd.DataFrame, seeds: int, rounds: int) -> list[Line]:
    """Return the lines of a table; columns of text with over a hundred values are left out."""
    text = frame.drop(columns="class").select_dtypes(exclude=["number", "bool"])
    frame = frame.drop(columns=[column for column in text if text[column].nunique() > MOST_CATEGORIES])
    y, names = pd.factorize(frame["class"], sort=True)
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(y))[:rounds]
        features = frame.drop(columns="class").iloc[rows].reset_index(drop=True)
        for values in VALUES:
            changed = features.apply(of_column, values=values, rng=rng)
            for scaling in SCALINGS:
                X, radius = contexts(changed, scaling)
                for agent in AGENTS:
                    _, trace = one_pass(agent, X, y[rows], len(names), radius, seed, {})
                    key = (name, values, scaling, agent)
                    found.setdefault(key, []).append(100.0 * float(1.0 - trace.correct.mean()))
    return [Line(*key, tuple(mistakes)) for key, mistakes in found.items()]


def of_column(column: pd.Series, values: str, rng: np.random.Generator) -> pd.Series:
    """Return a column with such values; one of text, or without any, as it is."""
    from scipy import stats

    if values == CLEAN or not pd.api.types.is_numeric_dtype(column.dtype) or column.isna().all():
        return column
    numbers = column.astype(np.float64)
    if values in VALUES[1:3]:
        count, value = (3, 9999.0) if values == VALUES[1] else (1, 1e9)
        numbers[rng.choice(len(numbers), count, replace=False)] = value
        return numbers
    shares = numbers.rank() / (numbers.notna().sum() + 1.0)
    return pd.Series(stats.t(1.5).ppf(shares) if values == VALUES[3] else np.exp(3.0 * stats.norm.ppf(shares)))


def contexts(frame: pd.DataFrame, scaling: str) -> tuple[Floats, float]:
    """Return a table's contexts (n, d) and the bound of their norms.

    "range": columns brought to [0, 1] where their ranges differ by more than ten times, as "auto" does without values far
    out; "clipped" at the quartiles less and plus five times their distance before that, where it is not 0; "ranks" before that.
    """
    frame = frame.dropna(axis=1, how="all")
    if scaling in SCALINGS[1:3]:
        frame = frame.apply(clipped if scaling == SCALINGS[1] else ranked)
    settings: dict[str, Any] = {"missing": "indicator", "max_categories": MOST_CATEGORIES}
    if scaling != AUTO:
        settings["scaling"] = "minmax" if ranges_differ(columns_of(frame, {}, MOST_CATEGORIES, "table")) else "none"
    encoder = Encoder.fit(frame, **settings)
    return encoder.transform(frame), encoder.radius


def clipped(column: pd.Series) -> pd.Series:
    """Return a column of numbers cut at its quartiles less and plus five times their distance, where it is not 0."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return column
    low, high = column.astype(np.float64).quantile([0.25, 0.75])
    return column.clip(low - 5.0 * (high - low), high + 5.0 * (high - low)) if high > low else column


def ranked(column: pd.Series) -> pd.Series:
    """Return the ranks of a column of numbers, between 0 and 1."""
    return column.rank(pct=True) if pd.api.types.is_numeric_dtype(column.dtype) else column
