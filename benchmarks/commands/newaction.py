"""A new action of a policy: how soon it is found where it is better, and what it costs where it is not.

    python -m benchmarks newaction --keep

plays policies of three actions, adds a fourth, and plays on with and without it. --keep writes docs/results/new-actions.csv
and the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.result_pages.late_answers import write
from analysis.result_pages.new_actions import AFTER, KINDS, Line, found_table, parts, price_table
from banditlab import Problem, make_agent
from banditlab.analysis.pages import fill_page
from banditlab.policy.core import Core
from banditlab.validation import at_least

PLACE = Path(__file__).parents[2] / "docs" / "results"
AGENTS = (
    *("fastcb", "squarecb", "stackcb", "linucb", "lints", "confidit", "epsilon-greedy-direct", "epsilon-greedy"),
    *("banditron", "soba", "soba-diag"),
)
SETTINGS: dict[str, dict[str, Any]] = {"banditron": {"gamma": 0.05}}
"""Of agents whose default needs to know how many decisions there will be."""
LEVELS = (0.5, 0.7)
FEATURES, OLD = 8, 3
WORSE = 0.3
"""How much less often an old action is right where another is better."""
WINDOW = 25
"""A new action is found when most of so many decisions in which it is best, one after the other, chose it."""
Floats = NDArray[np.float64]


class World(NamedTuple):
    """Contexts (n, d) and the probability (n, 4) with which each action is right; the last is the new one."""

    X: Floats
    right: Floats


def main(*, seeds: int = 5, before: int = 2000, agents: str = ",".join(AGENTS), keep: bool = False) -> None:
    """Play and print both tables."""
    at_least("seeds", seeds, 1)
    lines = [line for id_ in agents.split(",") for level in LEVELS for line in measured(id_, level, before, seeds)]
    print(found_table(lines))
    print(price_table(lines))
    if keep:
        write(PLACE / "new-actions.csv", Line, lines)
        fill_page(PLACE / "new-actions.md", parts(PLACE))


def measured(id_: str, level: float, before: int, seeds: int) -> Iterator[Line]:
    """Yield a line for each kind of new action."""
    learnt = [taught(id_, level, before, seed) for seed in range(seeds)]
    for kind in KINDS:
        runs = [after(core, world(kind, level, AFTER, seed + 1000), seed) for seed, core in enumerate(learnt)]
        yield Line(id_, level, kind, *zip(*runs, strict=True))


def world(kind: str, level: float, n: int, seed: int) -> World:
    """Return n decisions about clients of as many groups as there are old actions, each the best for one group."""
    rng = np.random.default_rng(seed)
    group, side = rng.integers(OLD, size=n), rng.choice([-1.0, 1.0], n)
    X = np.column_stack([np.eye(OLD)[group], side, np.ones(n), rng.normal(size=(n, FEATURES - OLD - 2))])
    X *= 0.999 / np.linalg.norm(X, axis=1, keepdims=True)
    better, elsewhere = KINDS[kind]
    new = level + np.where(side > 0.0, better, elsewhere)
    old = np.where(np.eye(OLD)[group] == 1.0, level, level - WORSE)
    return World(X, np.column_stack([old, new]).clip(0.0, 1.0))


def taught(id_: str, level: float, rounds: int, seed: int) -> Core:
    """Return a policy of three actions after so many decisions."""
    agent = make_agent(id_, Problem(FEATURES, OLD, 1.0), seed=seed, **SETTINGS.get(id_, {}))
    core = Core(agent, [f"old {k}" for k in range(OLD)], np.random.default_rng(seed))
    played(core, world("equal", level, rounds, seed), seed)
    return core


def played(core: Core, made: World, seed: int) -> NDArray[np.int64]:
    """Return the actions (n,) of a policy that learns from every decision."""
    hits = np.random.default_rng([seed, 1]).random(made.right.shape) < made.right
    actions = np.empty(len(hits), np.int64)
    for t, x in enumerate(made.X):
        record = core.choose(x, None)
        actions[t] = record.action
        core.learn_own(record, bool(hits[t, record.action]))
    return actions


def after(core: Core, made: World, seed: int) -> tuple[float, float, float]:
    """Return when the new action was found, the same without its least probability, and its price.

    The price is the expected mistakes more than those of the same policy without the new action.
    """
    forced, alone, without = core.copy(), core.copy(), core.copy()
    forced.add("new")
    alone.add("new")
    alone.added.clear()
    one, two, three = (played(each, made, seed) for each in (forced, alone, without))
    rows = np.arange(len(one))
    return found(one, made), found(two, made), float((made.right[rows, three] - made.right[rows, one]).sum())


def found(actions: NDArray[np.int64], made: World) -> float:
    """Return how many decisions after it came the new action was found, infinity for never."""
    best = np.flatnonzero(made.right[:, OLD] > made.right[:, :OLD].max(axis=1))
    chosen = np.cumsum(actions[best] == OLD)
    most = np.flatnonzero(chosen[WINDOW:] - chosen[:-WINDOW] > WINDOW / 2) if len(best) > WINDOW else np.empty(0, int)
    return float(best[most[0] + WINDOW] + 1) if len(most) else np.inf
