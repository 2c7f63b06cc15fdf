"""Bounds of label-efficient prediction beside the exact mean over all coins: settings, then climbs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.label_efficient import label_efficient, label_efficient_experts
from banditlab.problem import Problem
from benchmarks.measure.papers.boosting import Line, Setting
from benchmarks.measure.papers.minimax import PLAYERS, contexts, least_loss, steepest

Floats = NDArray[np.float64]


def coins(rounds: int, rate: float) -> Iterator[tuple[tuple[bool, ...], float]]:
    """Yield which rounds are queried, and the probability of it, for all 2^T outcomes."""
    for queried in itertools.product((False, True), repeat=rounds):
        yield queried, rate ** sum(queried) * (1.0 - rate) ** (rounds - sum(queried))


def drawn_rate(rng: np.random.Generator) -> float:
    """Return a query rate between 0.05 and 1, evenly on a logarithmic scale."""
    return float(np.exp(rng.uniform(math.log(0.05), 0.0)))


# ------------------------------------------------------------------------------------------------------- forecasters


def draw_labels(rng: np.random.Generator) -> Setting:
    """Return the labels of up to 6 rounds, one or two axes, a norm bound from 0.01 to 10 and a query rate."""
    labels = (rng.random((int(rng.integers(2, 7)), 1)) < rng.random()).astype(np.int64)
    B = float(10.0 ** rng.uniform(-2.0, 1.0))
    return Setting(labels, {"d": int(rng.integers(1, 3)), "B": B, "rate": drawn_rate(rng)})


def change_labels(rng: np.random.Generator, s: Setting) -> Setting:
    """Flip a label now and then, and change the norm bound and the rate a little."""
    labels = s.table.copy()
    labels[rng.integers(len(labels))] ^= rng.random() < 0.5
    B = float(np.clip(s.numbers["B"] * 10.0 ** rng.normal(0.0, 0.2), 1e-2, 1e1))
    rate = float(np.clip(s.numbers["rate"] * math.exp(rng.normal(0.0, 0.2)), 0.05, 1.0))
    return Setting(labels, s.numbers | {"B": B, "rate": rate})


def loss_of(player: Any, X: Floats, y: list[int], queried: tuple[bool, ...]) -> float:
    """Return the loss over all rounds of a forecaster that is updated in queried rounds."""
    total = 0.0
    for x, label, update in zip(X, y, queried, strict=True):
        z = player.predict(x)
        total += float(np.logaddexp.reduce(z) - z[label])
        if update:
            player.update(x, label)
    return total


def forecaster_ratio(name: str, s: Setting) -> float:
    """Return a forecaster's exact mean regret over `label_efficient`."""
    d, B, rate = int(s.numbers["d"]), s.numbers["B"], s.numbers["rate"]
    y, X = s.table[:, 0], contexts(len(s.table), d)

    def made() -> Any:
        return PLAYERS[name](Problem(d, 2, 1.0, len(y)), B)

    mean = sum(p * loss_of(made(), X, y.tolist(), queried) for queried, p in coins(len(y), rate) if p > 0.0)
    return (mean - least_loss(X, y, steepest(B, d))) / label_efficient(made().bound(rate * len(y)), rate)


# ----------------------------------------------------------------------------------------------------------- experts


def draw_costs(rng: np.random.Generator) -> Setting:
    """Return costs 0 or 1 of up to 6 experts in up to 8 rounds, and a query rate."""
    shape = (int(rng.integers(2, 9)), int(rng.integers(2, 7)))
    return Setting((rng.random(shape) < rng.random(shape[1])).astype(float), {"rate": drawn_rate(rng)})


def change_costs(rng: np.random.Generator, s: Setting) -> Setting:
    """Flip a cost, and change the rate a little."""
    table = s.table.copy()
    at = rng.integers(table.shape[0]), rng.integers(table.shape[1])
    table[at] = 1.0 - table[at]
    return Setting(table, {"rate": float(np.clip(s.numbers["rate"] * math.exp(rng.normal(0.0, 0.2)), 0.05, 1.0))})


def experts_ratio(s: Setting) -> float:
    """Return the exact mean cost of the label-efficient exponential weights beyond the best expert's, over its bound."""
    (T, N), rate = s.table.shape, s.numbers["rate"]
    eta, mean = math.sqrt(2.0 * rate * T * math.log(N)) / T, 0.0
    for queried, p in coins(T, rate):
        weighted = np.array(queried)[:, None] * s.table / rate
        before = np.cumsum(weighted, axis=0) - weighted
        weights = np.exp(-eta * (before - before.min(axis=1, keepdims=True)))
        mean += p * float((weights / weights.sum(axis=1, keepdims=True) * s.table).sum())
    return (mean - float(s.table.sum(axis=0).min())) / label_efficient_experts(T, N, rate * T)


def _line(name: str) -> Line:
    ratio: Callable[[Setting], float] = lambda s: forecaster_ratio(name, s)  # noqa: E731
    return Line(f"label_efficient, {name}", "derived here", draw_labels, change_labels, ratio)


LINES = (
    *map(_line, ("ogd", "folklore", "aioli")),
    Line("label_efficient_experts", "Cesa-Bianchi, Lugosi and Stoltz 2005", draw_costs, change_costs, experts_ratio),
)
