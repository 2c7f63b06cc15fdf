"""Does stackcb detect a change where contexts drift? docs/results/alarms.csv.

    python -m benchmarks alarms --tables FOLDER --streams 4 --keep

plays every *.csv.gz (label column `class`) of the folder that BANDITLAB_TABLES or --tables names, min(rows, rounds)
rounds of each. The orders of the rows are that of the file; classes that enter one by one; the same with the predictions of
a random forest as labels; clusters of contexts (k-means) that enter one by one; sorted by the first principal component; and
shuffled, with all labels moved to the next class at half time. If a forest predicts the labels, clusters enter or rows are
sorted, labels depend on contexts as before. If classes enter, this holds only where they do not overlap. Each line has the
runs in which a change was detected, the number of changes, and the mistakes in % of the second half with `changes` and
without. --keep replaces the lines of these tables in the csv.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier

from banditlab import make_agent
from banditlab.envs.table import Table
from banditlab.players.actor import Trace
from benchmarks.commands.changes import move

KEPT = Path(__file__).parents[2] / "docs" / "results" / "alarms.csv"
AS_IN_FILE, CLASSES, PREDICTED, CLUSTERS, SORTED, MOVED = ORDERS = (
    "as in the file",
    "classes enter one by one",
    "predicted classes enter one by one",
    "clusters of contexts enter one by one",
    "sorted by a principal component",
    "labels moved at half time",
)
N_CLUSTERS = 6
COLUMNS = ["table", "order", "runs", "runs_with_change", "changes", "second_half", "second_half_without"]
Rows = NDArray[np.int64]


def main(
    *,
    tables: str = os.environ.get("BANDITLAB_TABLES", ""),
    streams: int = 4,
    first: int = 0,
    rounds: int = 3000,
    keep: bool = False,
) -> None:
    """Play and print; streams are numbered from `first` on."""
    lines = []
    for path in sorted(Path(tables).glob("*.csv.gz")):
        for order in ORDERS:
            in_order = {"order": "file"} if order == AS_IN_FILE else {}
            env = Table(path=str(path), label="class", missing="indicator", horizon=1, **in_order)
            runs = np.array([play(env, order, seed, min(rounds, env.n_rows)) for seed in range(first, first + streams)])
            called, changes, *halves = (runs[:, 0] > 0).sum(), runs[:, 0].sum(), *runs[:, 1:].mean(axis=0).round(2)
            lines.append([path.name.removesuffix(".csv.gz"), order, streams, int(called), int(changes), *halves])
            print(*lines[-1], sep=",", flush=True)
    found = pd.DataFrame(lines, columns=COLUMNS)
    print(found.groupby("order", sort=False)[COLUMNS[2:5]].sum().to_string())
    if keep:
        kept = pd.read_csv(KEPT)
        pd.concat([kept[~kept["table"].isin(found["table"])], found]).to_csv(KEPT, index=False, lineterminator="\n")


def play(env: Table, order: str, seed: int, rounds: int) -> tuple[float, float, float]:
    """Return the changes called, and the mistakes in % of the second half with the detector and without it."""
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    X, y, K = np.asarray(X), np.asarray(y), env.problem.n_classes
    rng = np.random.default_rng(seed)
    if order == PREDICTED:  # a function of the context
        y = RandomForestClassifier(min_samples_leaf=5, random_state=seed).fit(X, y).predict(X)
    rows = arranged(X, y, order, rng, seed)
    labels = move(y[rows], K, rng) if order == MOVED else y[rows]
    shares, called = [], 0
    for changes in (True, False):
        agent: Any = make_agent("stackcb", env.problem, seed=seed, changes=changes)
        trace = Trace.empty(len(rows))
        agent.play_block(np.ascontiguousarray(X[rows]), labels, trace)
        shares.append(100.0 * float(np.mean(~trace.correct[len(rows) // 2 :])))
        called += agent.diagnostics()["changes"]
    return called, *shares


def arranged(X: NDArray[np.float64], y: Rows, order: str, rng: np.random.Generator, seed: int) -> Rows:
    """Return the numbers of the rows in an order of `ORDERS`."""
    if order in (CLASSES, PREDICTED):
        return entering(y, rng)
    if order == CLUSTERS:
        return entering(KMeans(N_CLUSTERS, n_init=1, random_state=seed).fit_predict(X), rng)
    if order == SORTED:
        centred = X - X.mean(axis=0)
        return np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0], kind="stable")
    return np.arange(len(y))


def entering(group: Rows, rng: np.random.Generator) -> Rows:
    """Return the numbers of the rows: groups enter at equal distances, and a row at a uniform time after its group."""
    names, group = np.unique(group, return_inverse=True)
    enters = rng.permutation(len(names))[group] / len(names)
    return np.argsort(enters + rng.random(len(group)) * (1.0 - enters), kind="stable")
