"""Does a report say what is so? Intervals over simulated series, `compare` over noise and over tables of known truth.

`intervals`: how often Student's t over n repetitions covers the mean, 20,000 series each. `noise`: tables whose labels have
nothing to do with their features, compared at the defaults: how often some player is strictly ahead of uniform, or anything is
told apart. `known`: tables drawn from planted logistic models, compared at the defaults. A player's truth is its mean over the
other tables of the same model; counted are the tables where a later position, or an interval of a difference without 0, has
the wrong sign, and those where all pairs' intervals hold the truth at once. `over`: one comparison over many tables of noise:
how many pairs of agents are asserted apart over the tables. `--place FOLDER` keeps its runs, so that it can be resumed.

`--keep` writes the tables of `docs/results/intervals.md` and the csv files beside it.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.result_pages.intervals import MODELS, parts, shown_known, shown_noise, shown_over
from banditlab.analysis import load
from banditlab.analysis.across import across
from banditlab.analysis.arena import arenas
from banditlab.analysis.pages import fill_page
from banditlab.analysis.statistics import mean_intervals
from banditlab.analysis.summary import differences, standings
from banditlab.comparison import comparison, prepared_many
from banditlab.engine import Sweep

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
SHAPES = [(100, 3, 2), (200, 5, 3), (300, 5, 5), (600, 10, 5), (150, 10, 8), (400, 3, 3), (100, 8, 4), (250, 5, 10)]
"""(rows, features, classes) of the tables of noise, in turn."""
SERIES = 20_000
PLACE = Path("docs/results")


def main(
    *,
    noise: int = 100,
    known: int = 100,
    over: int = 200,
    agents: str = "",
    repetitions: int = 10,
    place: str = "",
    keep: bool = False,
) -> None:
    """Print the tables; so many tables of noise one by one, of known truth, and of noise in one comparison of `agents`."""
    made = {"coverage": coverage()}
    print(made["coverage"].to_string(index=False))
    with tempfile.TemporaryDirectory() as scratch:
        if noise:
            made["noise"] = over_noise(Path(scratch), noise, repetitions)
            print(shown_noise(made["noise"]))
        if known:
            made["known"] = over_known(Path(scratch), known, repetitions)
            print(shown_known(made["known"]))
        if over:
            made["over"] = over_many(Path(place or scratch), over, repetitions, agents or None)
            print(shown_over(made["over"]))
    if keep:
        for name, table in made.items():
            table.to_csv(PLACE / f"intervals-{name}.csv", index=False, float_format="%.4g")
        fill_page(PLACE / "intervals.md", parts(PLACE))


# --------------------------------------------------------------------------------------------------------------- intervals


def coverage(series: int = SERIES) -> pd.DataFrame:
    """Return how often the 95 % interval covers the mean, by distribution (mean 0) and number of repetitions."""
    rng, rows = np.random.default_rng(0), []
    drawn = {
        "normal": lambda size: rng.standard_normal(size),
        "skewed": lambda size: rng.lognormal(size=size) - np.exp(0.5),
        "0/1, p = .3": lambda size: (rng.random(size) < 0.3) - 0.3,
        "share of 100 rounds, p = .05": lambda size: rng.binomial(100, 0.05, size) / 100 - 0.05,
    }
    for (name, draw), n in itertools.product(drawn.items(), (3, 5, 10, 20, 40)):
        _, low, high = mean_intervals(draw((series, n)))
        rows.append({"data": name, "n": n, "below": float(np.mean(high < 0)), "above": float(np.mean(low > 0))})
    table = pd.DataFrame(rows)
    return table.assign(covered=1 - table["below"] - table["above"])


# ------------------------------------------------------------------------------------------------------------------ tables


def noise_table(index: int) -> tuple[Floats, Labels]:
    """Return a table of noise, X (n, d) and y (n,) independent, classes equally likely and each there at least once."""
    n, d, K = SHAPES[index % len(SHAPES)]
    rng = np.random.default_rng([7, index])
    X, y = rng.standard_normal((n, d)), rng.integers(K, size=n)
    y[:K] = np.arange(K)
    return X, y[rng.permutation(n)]


def known_table(index: int) -> tuple[Floats, Labels]:
    """Return a fresh table, X (n, d) and y (n,), of one of the planted models."""
    n, d, K, scale = MODELS[index % len(MODELS)]
    W = np.random.default_rng([9, index % len(MODELS)]).standard_normal((K, d)) * scale / np.sqrt(d)
    rng = np.random.default_rng([8, index])
    X = rng.standard_normal((n, d))
    return X, np.argmax(X @ W.T + rng.gumbel(size=(n, K)), axis=1)


def compared(place: Path, name: str, X: Floats, y: Labels, repetitions: int) -> Any:
    """Write a table as a CSV file, compare as `banditlab compare` does but for comparators (no rank knows of them)."""
    file = written(place / f"{name}.csv", X, y)
    spec = comparison(file, "label", repetitions=repetitions).model_copy(update={"norm_bounds": []})
    failures = Sweep(spec, where=str(file)).run(place / name).failures
    assert not failures, failures
    [arena] = arenas(load(place / name))
    return arena


def written(file: Path, X: Floats, y: Labels) -> Path:
    """Write a table as a CSV file and return its path."""
    header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "label"])
    lines = (",".join([*(f"{value:.6f}" for value in x), f"c{label}"]) for x, label in zip(X, y, strict=True))
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


def over_many(place: Path, tables: int, repetitions: int, agents: str | None = None) -> pd.DataFrame:
    """Return, per pair of agents, what one comparison over so many tables of noise counts and asserts."""
    folder = place / f"noise-{tables}"
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(tables):
        written(folder / f"noise-{i}.csv", *noise_table(i))
    made = prepared_many([folder], "label", repetitions=repetitions, agents=agents)
    assert not made.faults, made.faults
    out = place / f"noise-{tables}-{repetitions}"
    failures = Sweep(made.spec, where=str(folder)).run(out).failures
    assert not failures, failures
    found = across(load(out))
    assert found is not None
    assert len(found.arenas) == tables
    return found.pair_table().assign(tables=tables, repetitions=repetitions, critical=found.critical)


def over_noise(place: Path, tables: int, repetitions: int) -> pd.DataFrame:
    """Return, per table of noise, who is strictly ahead of uniform, and the pairs whose interval leaves 0 out."""
    rows = []
    for i in range(tables):
        X, y = noise_table(i)
        arena = compared(place, f"noise-{i}", X, y, repetitions)
        listed = standings(arena)
        [uniform] = [row for row in listed if row.label == "uniform"]
        apart = sum(not gap.contains(0.0) for _, _, gap in differences(arena) if gap.low != gap.high)
        ahead = [row.label for row in listed if row.position < uniform.position]
        rows.append({"rows": len(y), "features": X.shape[1], "classes": SHAPES[i % len(SHAPES)][2]})
        rows[-1] |= {"ahead_of_uniform": " ".join(ahead), "pairs_apart": apart}
        rows[-1] |= {"first": listed[0].label, "lead": uniform.mistakes.mean - listed[0].mistakes.mean}
        print(f"noise {i}: {rows[-1]}", flush=True)
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------------------------------------- known truth


def over_known(place: Path, tables: int, repetitions: int) -> pd.DataFrame:
    """Return, per table of known truth, how many leads are asserted, how many are wrong, and whether all intervals hold."""
    arena_of = {}
    for i in range(tables):
        arena_of[i] = compared(place, f"known-{i}", *known_table(i), repetitions)
        print(f"known {i}: {standings(arena_of[i])[0].label} first", flush=True)
    means = {i: {row.label: row.mistakes.mean for row in standings(arena)} for i, arena in arena_of.items()}
    return pd.DataFrame([_judged(i, arena, means) for i, arena in arena_of.items()])


def _judged(index: int, arena: Any, means: dict[int, dict[str, float]]) -> dict[str, Any]:
    others = [each for i, each in means.items() if i != index and i % len(MODELS) == index % len(MODELS)]
    truth = {label: float(np.mean([each[label] for each in others])) for label in means[index]}
    ranked = list(_asserted(standings(arena)))
    pairs = [(a.split()[0], b.split()[0], gap) for a, b, gap in differences(arena)]
    apart = [(a, b) if gap.mean < 0 else (b, a) for a, b, gap in pairs if not gap.contains(0.0)]
    held = [gap.contains(truth[a] - truth[b]) for a, b, gap in pairs]
    return {
        "model": index % len(MODELS),
        "ranked": len(ranked),
        "ranked_wrong": sum(truth[a] >= truth[b] for a, b in ranked),
        "apart": len(apart),
        "apart_wrong": sum(truth[a] >= truth[b] for a, b in apart),
        "pairs": len(pairs),
        "pairs_held": sum(held),
        "all_held": all(held),
    }


def _asserted(listed: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield what ranks assert: the first of a group is ahead of the first of the next, the first of all of all not tied."""
    heads = [row for i, row in enumerate(listed) if i == 0 or row.position != listed[i - 1].position]
    yield from ((a.label, b.label) for a, b in itertools.pairwise(heads))
    yield from ((listed[0].label, row.label) for row in listed if row.position > listed[0].position)
