"""What `compare` asserts over rows that are independent, repeated, grouped, autocorrelated, ordered, or of one frequent class.

Of noise it is counted in how many tables some player is strictly ahead of uniform, or its interval is below the mistakes of
the most frequent class; where one class is frequent by far, whoever learns that is rightly ahead of uniform, and only the other
lead is a false one. Labels of noise are independent of the features given the row's group, or given time. Of tables with a
signal it is counted in how many the player with the fewest mean mistakes over other seeds is first, or tied with the first, and
strictly ahead of uniform; the other seeds are played by the agents that `near` keeps. The tables are compared as
`banditlab compare` does but for comparators, which no rank depends on.

Each table is a line of FOLDER/tables.csv when it is done; the same command goes on where it was stopped. `--keep` writes
`docs/results/intervals-kinds.csv` and the table of `docs/results/intervals.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.result_pages.intervals import parts
from banditlab.analysis import load
from banditlab.analysis.arena import Arena, arenas
from banditlab.analysis.pages import fill_page
from banditlab.analysis.summary import Standing, constant_share, standings
from banditlab.comparison import comparison
from banditlab.engine import Sweep

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
PLACE = Path("docs/results")
FREQUENT = "one frequent class"


def main(
    *,
    noise: int = 1000,
    signal: int = 100,
    seeds: int = 100,
    repetitions: int = 5,
    place: str = "runs/kinds",
    keep: bool = False,
) -> None:
    """Compare so many tables of each kind that are not done yet, and print the counts."""
    file = Path(place) / "tables.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=["kind", "signal", "index"])
    there = set(zip(done["kind"], done["signal"].astype(bool), done["index"], strict=True))
    wanted = [
        (kind, s, i)
        for i in range(max(noise, signal))
        for kind in KINDS
        for s in (False, True)
        if i < (signal if s else noise)
    ]
    for kind, has_signal, index in (each for each in wanted if each not in there):
        row = judged(kind, index, has_signal, repetitions, seeds)
        pd.DataFrame([row]).to_csv(file, mode="a", header=not file.exists(), index=False, float_format="%.4g")
        print(row, flush=True)
    counts = counted(pd.read_csv(file))
    print(counts.to_string(index=False))
    if keep:
        counts.to_csv(PLACE / "intervals-kinds.csv", index=False)
        fill_page(PLACE / "intervals.md", parts(PLACE))


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line per kind: tables of noise and those with a lead, tables with a signal and those where it is found."""
    made = []
    for kind in KINDS:
        of_kind = rows[rows["kind"] == kind]
        noise, signal = of_kind[~of_kind["signal"].astype(bool)], of_kind[of_kind["signal"].astype(bool)]
        either = noise["ahead_of_frequent"].astype(bool)
        either |= noise["ahead_of_uniform"].astype(bool) & (kind != FREQUENT)
        line = {"kind": kind, "noise": len(noise), "ahead_of_uniform": int(noise["ahead_of_uniform"].sum())}
        line |= {"ahead_of_frequent": int(noise["ahead_of_frequent"].sum()), "false_leads": int(either.sum())}
        made.append(line | {"signal": len(signal), "found": int(signal["found"].sum())})
    return pd.DataFrame(made)


def judged(kind: str, index: int, has_signal: bool, repetitions: int, seeds: int) -> dict[str, Any]:
    """Return what a comparison asserts over one table; with a signal also whether it finds the best of other seeds."""
    begin = time.perf_counter()
    table = KINDS[kind](np.random.default_rng([11, list(KINDS).index(kind), index, has_signal]), has_signal)
    with TemporaryDirectory() as folder:
        arena = compared(Path(folder), "few", table, repetitions, 0)
        listed = standings(arena)
        [uniform] = [row for row in listed if row.label == "uniform"]
        constant = constant_share(arena).mean
        row: dict[str, Any] = {
            "kind": kind, "signal": has_signal, "index": index, "rows": len(table), "classes": table["label"].nunique(),
            "ahead_of_uniform": any(each.position < uniform.position and each.rank != "?" for each in listed),
            "ahead_of_frequent": any(each.mistakes.high < constant for each in listed),
            "first": listed[0].label, "rank": listed[0].rank, "mistakes": listed[0].mistakes.mean, "constant": constant,
            "best": "", "found": False,
        }  # fmt: skip
        if has_signal:
            best = standings(compared(Path(folder), "many", table, seeds, 1, near(listed)))[0].label
            [mine] = [each for each in listed if each.label == best]
            found = mine.rank != "?" and mine.position == 1 < uniform.position
            row |= {"best": best, "found": found}
    return row | {"seconds": time.perf_counter() - begin}


def near(listed: list[Standing]) -> set[str]:
    """Return the labels of players with at most 1.5 times the fewest mistakes and 3 % of the rounds."""
    most = 1.5 * min(each.mistakes.mean for each in listed) + 0.03
    return {each.label for each in listed if each.mistakes.mean <= most}


def compared(
    folder: Path, name: str, table: pd.DataFrame, repetitions: int, base_seed: int, labels: set[str] | None = None
) -> Arena:
    """Return the comparison of a table, whose column "who" names the groups, by the agents with one of the labels."""
    file = folder / "table.csv"
    table.to_csv(file, index=False, float_format="%.6f")
    group = {"group": "who"} if "who" in table else {}
    spec = comparison(file, "label", repetitions=repetitions, **group)
    agents = [block for block in spec.agent if labels is None or any(each.startswith(block.id) for each in labels)]
    spec = spec.model_copy(
        update={"agent": agents, "norm_bounds": [], "base_seed": base_seed, "checkpoints": [spec.rounds]}
    )
    failures = Sweep(spec, where=str(file)).run(folder / name).failures
    assert not failures, failures
    [arena] = arenas(load(folder / name))
    return arena


# -------------------------------------------------------------------------------------------------------------------- tables


def labels_of(rng: np.random.Generator, X: Floats, signal: bool, bias: float = 0.0) -> Labels:
    """Return labels (n,) of a planted logistic model, or drawn without it; the first class is the likelier by `bias`."""
    K = int(rng.integers(2, 4))
    scores = rng.gumbel(size=(len(X), K)) + bias * (np.arange(K) == 0)
    if signal:
        scores += X @ rng.standard_normal((X.shape[1], K)) * 5.0 / np.sqrt(X.shape[1])
    scores[np.arange(K), np.arange(K)] = np.inf  # each class is there
    return np.argmax(scores, axis=1)


def table_of(X: Floats, y: Labels, who: Labels | None = None) -> pd.DataFrame:
    """Return a table of columns x0, x1, ..., label, and who if there are groups to be named."""
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(label=y)
    return table if who is None else table.assign(who=who)


def shape(rng: np.random.Generator) -> tuple[int, int]:
    """Return rows and columns of a table."""
    return int(rng.integers(250, 451)), int(rng.integers(3, 9))


def independent(rng: np.random.Generator, signal: bool) -> pd.DataFrame:
    """Independent rows of normal numbers."""
    X = rng.standard_normal(shape(rng))
    return table_of(X, labels_of(rng, X, signal))


def frequent(rng: np.random.Generator, signal: bool) -> pd.DataFrame:
    """The same, one class the most frequent by far."""
    X = rng.standard_normal(shape(rng))
    return table_of(X, labels_of(rng, X, signal, bias=3.0))


def repeated(rng: np.random.Generator, signal: bool) -> pd.DataFrame:
    """Each row 2 to 5 times, exactly or, in every other table, with 2 % of noise."""
    (n, d), copies = shape(rng), int(rng.integers(2, 6))
    X = rng.standard_normal((n // copies, d))
    order = rng.permutation(np.repeat(np.arange(len(X)), copies))
    y = labels_of(rng, X, signal)
    return table_of(X[order] + 0.02 * rng.integers(2) * rng.standard_normal((len(order), d)), y[order])


def grouped(rng: np.random.Generator, signal: bool) -> pd.DataFrame:
    """Groups of 3 to 9 rows of one label around a centre; half of the tables name them, rows of the others are closer to it."""
    n, d = shape(rng)
    sizes = rng.integers(3, 10, size=n // 6)
    order = (
        rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        if rng.integers(2)
        else np.repeat(np.arange(len(sizes)), sizes)
    )
    centres, named = rng.standard_normal((len(sizes), d)), bool(rng.integers(2))
    spread = rng.uniform(0.1, 0.5) if named else rng.uniform(0.02, 0.1)
    y = labels_of(rng, centres, signal)
    X = centres[order] + spread * rng.standard_normal((len(order), d))
    return table_of(X, y[order], order if named else None)


def slow(rng: np.random.Generator, n: int, d: int, phi: float) -> Floats:
    """Return autoregressive columns (n, d) of variance 1."""
    Z = rng.standard_normal((n, d))
    Z[1:] *= np.sqrt(1.0 - phi**2)
    for t in range(1, n):
        Z[t] += phi * Z[t - 1]
    return Z


def autocorrelated(rng: np.random.Generator, signal: bool) -> pd.DataFrame:
    """Autoregressive columns; labels of noise are those of the largest of some columns more, which are not in the table."""
    (n, d), phi = shape(rng), rng.uniform(0.8, 0.95)
    X = slow(rng, n, d, phi)
    if signal:
        return table_of(X, labels_of(rng, X, True))
    return table_of(X, np.argmax(slow(rng, n, int(rng.integers(2, 5)), phi), axis=1))


def ordered(rng: np.random.Generator, signal: bool) -> pd.DataFrame:
    """Sorted by label, or columns that drift in time, and in noise the labels' frequencies, too."""
    n, d = shape(rng)
    X = rng.standard_normal((n, d))
    if rng.integers(2):
        y = np.sort(labels_of(rng, X, False))
        if signal:
            y = labels_of(rng, X, True)
            order = np.argsort(y, kind="stable")
            X, y = X[order], y[order]
        return table_of(X, y)
    t = np.linspace(-1.0, 1.0, n)[:, None]
    X += t * rng.standard_normal(d)
    y = labels_of(rng, X if signal else 2.0 * t, True)
    return table_of(X, y)


KINDS: dict[str, Callable[[np.random.Generator, bool], pd.DataFrame]] = {
    "independent": independent,
    "repeated": repeated,
    "grouped": grouped,
    "autocorrelated": autocorrelated,
    "ordered": ordered,
    FREQUENT: frequent,
}
