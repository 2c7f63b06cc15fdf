"""What boosters of 100 trees cost apart from their trees: `docs/results/boosting-speed.md`.

A booster plays once while the weights of its learners' updates are recorded. A kernel then takes equal trees through the same
estimates and updates, without a booster, and must leave them equal to the last bit. The rest of the booster's time is its own.
Processor time, booster and trees in turn, medians. The sets are those of `runs/boosting-tables-SET.toml` (from openml.org).
"""

from __future__ import annotations

import gc
import statistics
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.analysis.pages import fill_page, markdown_table
from banditlab.boosting.compiled_rounds import NONE, ROUND, TREE
from banditlab.boosting.trees.forest import Forest, prepare, update_trees
from banditlab.boosting.weak.weak_learner import Floats
from banditlab.envs.openml import OpenML
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import borrow, njit
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/results/boosting-speed.md"
SETS = {"balance-scale": 625, "nursery": 2_000}
"""Rounds that are played of each set."""
BOOSTERS = ("adaboost-olm", "adaboost-olm++")
STRETCH = 125
"""Rounds that are played, or replayed, at a time."""


class Set(NamedTuple):
    """A stream of a data set, and the settings of its booster and trees in the tables."""

    problem: Problem
    X: Floats
    y: NDArray[np.int64]
    settings: dict[str, Any]


class Row(NamedTuple):
    """Microseconds for each learner and round: of the trees, and of the whole booster."""

    data: str
    booster: str
    weights: str
    trees: float
    whole: float

    @property
    def own(self) -> float:
        """The share of the time that is the booster's own."""
        return 1.0 - self.trees / self.whole


def read_set(name: str, rounds: int) -> Set:
    """Return the first rounds of a set's first order."""
    spec = tomllib.loads((ROOT / f"runs/boosting-tables-{name}.toml").read_text())
    [given] = spec["environment"]
    env = OpenML(**{key: value for key, value in given.items() if key != "id"}, horizon=spec["rounds"])
    env.reset(seed=0)
    [(X, y)] = env.blocks(rounds, rounds)
    [settings] = [b for b in spec["booster"] if b["id"] == "adaboost-olm" and "derivative" not in b]
    return Set(env.problem, as_contexts(X), y, {key: value for key, value in settings.items() if key != "id"})


def build(data: Set, id_: str, settings: dict[str, Any]) -> Any:
    """Return a booster of 100 trees."""
    return registry().load("boosters", id_)(data.problem, np.random.default_rng(1), **settings)


@njit(cache=False)
def trees_alone(forest, scratch, V, y, weights, cursor):  # type: ignore[no-untyped-def]
    """Take the trees through estimates and updates, round by round, as a block does; return whether it ended."""
    forest, scratch, V, y, weights = borrow(forest), borrow(scratch), borrow(V), borrow(y), borrow(weights)
    for t in range(cursor[ROUND], y.shape[0]):
        if cursor[TREE] == NONE:
            cursor[ROUND], cursor[TREE] = t, 0
            prepare(forest, V[t], scratch.estimates, scratch.uniforms)
        cursor[TREE] = update_trees(forest, cursor[TREE], V[t], y[t], weights[t])
        if cursor[TREE] < forest.trees.shape[0]:
            return False
        cursor[ROUND], cursor[TREE] = t + 1, NONE
    return True


def weights_of(booster: Any, data: Set) -> Floats:
    """Play the rounds one by one and return the weights (T, N) of the learners' updates."""
    weights = np.zeros((len(data.y), booster.n_learners))
    for t, (x, label) in enumerate(zip(data.X, data.y.tolist(), strict=True)):
        booster.learn(x, booster.act(x), label)
        weights[t] = booster._grove.scratch.weights
    return weights


def replayed(booster: Any, data: Set, weights: Floats) -> Callable[[slice], None]:
    """Return what takes a booster's fresh trees through some rounds."""
    forest: Forest = booster._forest()
    V, scratch = booster._grove.views(data.X), booster._played().scratch

    def rounds(part: slice) -> None:
        cursor = np.array([0, NONE])
        while not trees_alone(forest, scratch, V[part], data.y[part], weights[part], cursor):
            booster._grove.grow(int(cursor[TREE]))

    return rounds


def played(booster: Any, data: Set) -> Callable[[slice], None]:
    """Return what plays some rounds of a booster as a block."""
    trace = Trace.empty(len(data.y))
    return lambda part: booster.play_block(data.X[part], data.y[part], trace.part(part))


def in_turn(rounds: int, ways: list[Callable[[slice], None]]) -> list[float]:
    """Return the processor seconds of each way through the rounds, a stretch of rounds of each in turn."""
    times = [0.0] * len(ways)
    gc.collect()
    gc.disable()  # which of the ways would meet a collection is chance
    for start in range(0, rounds, STRETCH):
        for i, way in enumerate(ways):
            begin = time.process_time()
            way(slice(start, min(start + STRETCH, rounds)))
            times[i] += time.process_time() - begin
    gc.enable()
    return times


def same_trees(one: Any, other: Any) -> bool:
    """Whether two boosters' trees are equal to the last bit."""
    pairs = zip(one.learners, other.learners, strict=True)
    return all(np.array_equal(a, b) for one, other in pairs for a, b in zip(one.state, other.state, strict=True))


def compiled(data: Set, id_: str, settings: dict[str, Any], weights: Floats) -> list[float]:
    """Return the processor seconds of compiled trees alone, and of a booster over equal ones."""
    trees, whole = (build(data, id_, settings) for _ in range(2))
    times = in_turn(len(data.y), [replayed(trees, data, weights), played(whole, data)])
    if not same_trees(trees, whole):
        raise AssertionError(f"{id_}: the trees alone are not the booster's")
    return times


def measured(repeats: int) -> list[Row]:
    """Return the rows of the page."""
    rows = []
    for name, rounds in SETS.items():
        data = read_set(name, rounds)
        for id_ in BOOSTERS:
            for scale in ("random", 1.0):
                settings = data.settings | {"weight_scale": scale}
                weights = weights_of(build(data, id_, settings), data)
                compiled(data, id_, settings, weights)  # the first compiles
                times = [compiled(data, id_, settings, weights) for _ in range(repeats)]
                unit = 1e6 / (len(data.y) * build(data, id_, settings).n_learners)
                alone, whole = (unit * statistics.median(column) for column in zip(*times, strict=True))
                rows.append(Row(name, f"`{id_}`", str(scale).removesuffix(".0"), alone, whole))
                print(*rows[-1], f"{rows[-1].own:.0%}", flush=True)
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as Markdown."""
    head = ["set", "booster", "weights", "trees, us", "all, us", "the booster's own share"]
    lines = [[*row[:3], f"{row.trees:.3g}", f"{row.whole:.3g}", f"{100.0 * row.own:.0f} %"] for row in rows]
    return markdown_table(head, lines, "lllr")


def span(rows: list[Row]) -> str:
    """Return the least and the largest own share."""
    shares = [100.0 * row.own for row in rows]
    return f"{min(shares):.0f} to {max(shares):.0f} %"


def main(*, repeats: int = 9) -> None:
    """Measure and write the table of the page."""
    rows = measured(repeats)
    fill_page(PAGE, {"compiled-share": span(rows), "compiled": table(rows), "repeats": f"{repeats}"})
