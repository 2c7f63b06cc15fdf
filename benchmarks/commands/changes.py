"""stackcb and fastcb where the labels change half-way, and changes called where none came: docs/results/changes.md.

    python -m benchmarks changes --tables FOLDER --keep

plays four tables of FOLDER (label column `class`), three sets of openml.org from the cache that BANDITLAB_DATA_HOME names and
a planted stream, five streams each, `rounds` rounds: rows in an order that a seed draws, over again where there are fewer.
--stationary is the number of streams on which `stackcb` meets labels that stay, of each table. --keep writes
docs/results/changes.csv and the page.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.result_pages.changes import PLAYERS, STATIONARY, Line, alarms, means, parts, write
from banditlab.analysis.pages import fill_page
from banditlab.envs.logistic import Logistic
from banditlab.errors import UsageError
from banditlab.validation import at_least
from benchmarks.measure.names import picked
from benchmarks.measure.one_pass import one_pass
from benchmarks.measure.rivals.tables import Source, sources

PLACE = Path(__file__).parents[2] / "docs" / "results"
TABLES = ("dry-bean", "covtype", "avila", "magic", "nursery", "segment", "mushroom")
PLANTED = "planted"
"""Logistic-v0, four classes of ten features, norm bound 20."""
Labels = NDArray[np.int64]


def main(
    *, tables: str = "", streams: int = 5, stationary: int = 20, rounds: int = 4000, only: str = "", keep: bool = False
) -> None:
    """Play and print the means; `only`: names with commas."""
    at_least("streams", streams, 1)
    at_least("rounds", rounds, 8)
    names = picked("only", only, (*TABLES, PLANTED))
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="banditlab-changes-") as folder:
        known = {source.name: source for source in sources(tables, "", Path(folder))}
        known[PLANTED] = Source(PLANTED, lambda _: Logistic(n_features=10, n_classes=4, norm_bound=20.0))
        if missing := [name for name in names if name not in known]:
            raise UsageError(f"--tables {tables or '(none)'}: {missing[0]}.csv.gz is not there")
        for name in names:
            lines += measured(name, known[name].environment("norm"), streams, stationary, rounds)
            print(means(lines), flush=True)
    print(f"\nchanges called where there was none: {alarms(lines)}")
    if keep:
        write(PLACE / "changes.csv", lines)
        fill_page(PLACE / "changes.md", parts(PLACE))


def measured(name: str, env: Any, streams: int, stationary: int, rounds: int) -> Iterator[Line]:
    """Yield a line for every way of changing and every player."""
    for labels, change in CHANGES.items():
        for player in PLAYERS:
            alone = labels == STATIONARY and player == PLAYERS[0]
            runs = [play(player, env, change, seed, rounds) for seed in range(max(streams, stationary * alone))]
            mistakes, called = zip(*runs, strict=True)
            yield Line(name, labels, player, rounds, mistakes, called)


def play(
    player: str, env: Any, change: Callable[[Labels, int, Any], Labels], seed: int, rounds: int
) -> tuple[float, int]:
    """Return one run's mistakes in % of the second half, and how often a change was called."""
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    p = env.problem
    y = change(np.array(y), p.n_classes, np.random.default_rng([seed, 2]))
    settings: dict[str, Any] = {"changes": False} if player == PLAYERS[1] else {}
    id_ = "fastcb" if player == "fastcb" else "stackcb"
    agent, trace = one_pass(id_, X, y, p.n_classes, p.radius, seed, settings)
    return float(100.0 * (1.0 - trace.correct[rounds // 2 :].mean())), int(agent.diagnostics().get("changes", 0))


# ----------------------------------------------------------------------------------------------------- how labels change


def stay(y: Labels, n_classes: int, rng: np.random.Generator) -> Labels:
    """Return the labels as they are."""
    return y


def move(y: Labels, n_classes: int, rng: np.random.Generator) -> Labels:
    """Return them with every class called the next one from half time on."""
    return moved_where(y, n_classes, np.arange(len(y)) >= len(y) // 2)


def swap(y: Labels, n_classes: int, rng: np.random.Generator) -> Labels:
    """Return them with the two most frequent classes of the first half swapped from half time on."""
    half = len(y) // 2
    a, b = np.argsort(-np.bincount(y[:half], minlength=n_classes), kind="stable")[:2]
    names = np.arange(n_classes)
    names[[a, b]] = b, a
    return np.concatenate([y[:half], names[y[half:]]])


def drift(y: Labels, n_classes: int, rng: np.random.Generator) -> Labels:
    """Return them moved by one ever more often, from never at half time to always a quarter of the rounds later."""
    T = len(y)
    often = (np.arange(T) - T // 2) / (T / 4)
    return moved_where(y, n_classes, rng.random(T) < often)


def recur(y: Labels, n_classes: int, rng: np.random.Generator) -> Labels:
    """Return them moved by one in the second and in the fourth quarter."""
    return moved_where(y, n_classes, np.arange(len(y)) * 4 // len(y) % 2 == 1)


def moved_where(y: Labels, n_classes: int, there: NDArray[np.bool_]) -> Labels:
    """Return the labels, the next class for those that are meant."""
    return np.where(there, (y + 1) % n_classes, y)


CHANGES: dict[str, Callable[[Labels, int, Any], Labels]] = {
    STATIONARY: stay,
    "all moved by one at half time": move,
    "the two most frequent swapped at half time": swap,
    "moved by one ever more often, over a quarter": drift,
    "moved by one and back, every quarter": recur,
}
