"""Apple tasting: the bound beside the exact mean over all coins and labels, and mistakes on one kind of stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from banditlab import make_agent
from banditlab.agents.apple_tasting import ACCEPT, AppleTasting
from banditlab.bounds.apple_tasting import apple_tasting
from banditlab.problem import Decision, Problem
from benchmarks.measure.papers.boosting import Line, Setting
from benchmarks.measure.papers.minimax import contexts, steepest

Floats = NDArray[np.float64]
FORECASTERS = ("ogd", "folklore", "aioli")
FEATURES, NORM_BOUND = 10, 5.0
PLAYED: tuple[tuple[str, dict[str, object], bool], ...] = (
    ("apple-tasting", {"norm_bound": NORM_BOUND}, False),
    ("apple-tasting", {"norm_bound": NORM_BOUND, "sharpness": 100.0}, False),
    ("fastcb", {}, False),
    ("linucb", {}, False),
    ("lints", {}, False),
    ("exploration", {"norm_bound": NORM_BOUND, "gamma": 0.1}, False),
    ("fastcb", {}, True),
    ("linucb", {}, True),
)
"""Agents, their settings, and whether a rejected item shows its bit, too."""


def draw_items(rng: np.random.Generator) -> Setting:
    """Return log-odds of up to 5 items, one or two axes, a norm bound from 0.01 to 10 and a sharpness from 0.1 to 100."""
    T, d, B = int(rng.integers(1, 6)), int(rng.integers(1, 3)), float(10.0 ** rng.uniform(-2.0, 1.0))
    return Setting(rng.uniform(-1.0, 1.0, (d, 1)), {"T": T, "B": B, "sharpness": float(10.0 ** rng.uniform(-1.0, 2.0))})


def change_items(rng: np.random.Generator, s: Setting) -> Setting:
    """Change the log-odds, the norm bound and the sharpness a little, and the number of items by one at most."""
    T = int(np.clip(s.numbers["T"] + rng.integers(-1, 2), 1, 5))
    B = float(np.clip(s.numbers["B"] * 10.0 ** rng.normal(0.0, 0.2), 1e-2, 1e1))
    sharpness = s.numbers["sharpness"] * 10.0 ** rng.normal(0.0, 0.2)
    table = np.clip(s.table + rng.normal(0.0, 0.2, s.table.shape), -1.0, 1.0)
    return Setting(table, {"T": T, "B": B, "sharpness": sharpness})


def excess(make: Callable[[], AppleTasting], X: Floats, good: Floats, seen: tuple[tuple[int, int], ...] = ()) -> float:
    """Return the mean of the mistakes beyond the best action's from round `len(seen)` on, after the (action, label) seen."""
    t = len(seen)
    if t == len(X):
        return 0.0
    agent = make()
    for x, (action, label) in zip(X, seen, strict=False):
        agent.learn(x, Decision(action, np.array([0.5, 0.5])), action == label)
    accept = float(agent.act(X[t]).probabilities[ACCEPT])
    now = accept * (1.0 - good[t]) + (1.0 - accept) * good[t] - min(good[t], 1.0 - good[t])
    after = partial(excess, make, X, good)
    rejected = (1.0 - accept) * after((*seen, (0, 1))) if accept < 1.0 else 0.0  # nothing is learnt, whatever the label
    accepted = [p * after((*seen, (ACCEPT, label))) for label, p in ((0, 1.0 - good[t]), (1, good[t])) if p > 0.0]
    return float(now + rejected + accept * sum(accepted))


def ratio(forecaster: str, s: Setting) -> float:
    """Return the exact mean of the mistakes beyond the best action's over the bound."""
    T, B, sharpness = int(s.numbers["T"]), s.numbers["B"], s.numbers["sharpness"]
    d = len(s.table)
    problem, X = Problem(d, 2, 1.0, T), contexts(T, d)
    good = expit(steepest(B, d) * X @ s.table[:, 0])
    make = partial(AppleTasting, forecaster=forecaster, sharpness=sharpness, norm_bound=B)
    regret = make(problem, np.random.default_rng(0)).inner.bound(T)
    mean = excess(lambda: make(problem, np.random.default_rng(0)), X, good)
    return mean / apple_tasting(T, sharpness, regret or math.nan)


LINES = tuple(
    Line(f"apple_tasting, {name}", "derived here", draw_items, change_items, partial(ratio, name))
    for name in FORECASTERS
)


def stream(seed: int, rounds: int) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return contexts (T, d) of norm 1, labels (T,), and the probabilities (T,) of a good item: about a third are good."""
    rng = np.random.default_rng([4, seed])
    X = rng.standard_normal((rounds, FEATURES))
    X[:, 0] = 1.0  # the constant
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    u = rng.standard_normal(FEATURES)
    u[0] = -abs(u[0]) - 1.0
    good = expit(2.0 * NORM_BOUND * X @ (u / np.linalg.norm(u)))
    return X, (rng.random(rounds) < good).astype(np.int64), good


def mistakes(id_: str, settings: dict[str, object], every_bit: bool, rounds: int, seeds: int) -> dict[str, Any]:
    """Return a row: means over seeds of the mistakes beyond the best action's and of the share accepted, and the guarantee."""
    found = []
    for seed in range(seeds):
        X, y, good = stream(seed, rounds)
        agent = make_agent(id_, Problem(FEATURES, 2, 1.0, rounds), seed=seed, **settings)
        actions = np.empty(rounds, np.int64)
        for t, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            decision = agent.act(x)
            actions[t] = decision.action
            if every_bit or decision.action == ACCEPT:
                agent.learn(x, decision, decision.action == label)
        best = float(np.minimum(good, 1.0 - good).sum())
        bound = agent.well_specified_bound(rounds) if isinstance(agent, AppleTasting) else None
        expected = np.where(actions == ACCEPT, 1.0 - good, good).sum() - best
        found.append([expected, actions.mean(), math.nan if bound is None else bound])
    means, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)[0] / math.sqrt(seeds)
    row = {"agent": id_, "settings": ", ".join(f"{name} = {value:g}" for name, value in settings.items())}
    row["bits"] = "all" if every_bit else "accepted"
    return row | {"excess": means[0], "standard_error": error, "accepted": means[1], "guaranteed": means[2]}
