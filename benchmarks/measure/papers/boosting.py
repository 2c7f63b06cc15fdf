"""Bounds of online boosting that hold with a probability, beside the exact law of what they bound: settings, then climbs.

A setting's ratio is the smallest number that the law exceeds with probability at most delta, over the bound: above 1 the bound
is false. AdaBoost.OLM++'s bound holds on every run, and a setting is a run. Of a lower bound the ratio is it over the truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.hedge import weights_of
from banditlab.boosting.lea import ExpertAdvice
from banditlab.boosting.olm_plus import AdaBoostOLMPlus
from banditlab.bounds.boosting import hedge_mistakes_with_confidence, olm_plus_weak_learners
from banditlab.bounds.boosting_mbbm import least_error_rate
from banditlab.bounds.weak_learning import expert_advice, link_excess, online_agnostic
from banditlab.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BEYOND = 1.0 + 1e-9
GRID = 32
"""Costs are rounded up to multiples of 1/GRID before their law is computed."""


class Setting(NamedTuple):
    """Rounds by experts, the costs or mistakes of each, and the numbers of the bound."""

    table: NDArray[Any]
    numbers: dict[str, float]


@dataclass
class Line:
    """A bound: how settings are drawn and changed, and a setting's ratio."""

    name: str
    source: str
    draw: Callable[[np.random.Generator], Setting]
    change: Callable[[np.random.Generator, Setting], Setting]
    ratio: Callable[[Setting], float]


@dataclass
class Found:
    """Of one line: settings at random and searched, ratios above 1, the largest ratio and where it was."""

    name: str
    source: str
    random: int = 0
    searched: int = 0
    above: int = 0
    ratio: float = 0.0
    at: str = "-"


def quantile(laws: list[Floats], delta: float) -> int:
    """Return the smallest number that a sum of independent counts exceeds with probability at most delta.

    Each law holds the probabilities of 0, 1, 2, ...
    """
    total = np.ones(1)
    for law in laws:
        total = np.convolve(total, law)
    above = 1.0 - np.cumsum(total)  # exact enough for delta from 1e-3 on
    return int(np.argmax(above <= delta + 1e-12))


def drawn_delta(rng: np.random.Generator) -> float:
    """Return a probability between 0.001 and 0.9, evenly on a logarithmic scale."""
    return float(np.exp(rng.uniform(math.log(1e-3), math.log(0.9))))


def moved(rng: np.random.Generator, table: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return a table with one to three entries replaced by one of the values."""
    table = table.copy()
    for _ in range(int(rng.integers(1, 4))):
        table[rng.integers(table.shape[0]), rng.integers(table.shape[1])] = rng.choice(values)
    return table


# ------------------------------------------------------------------------------------------- hedge with confidence


def draw_mistakes(rng: np.random.Generator) -> Setting:
    """Return which of up to 12 experts err in up to 60 rounds: each at its own rate, one of them never in half of the draws."""
    T, N = int(rng.integers(5, 61)), int(rng.integers(2, 13))
    wrong = rng.random((T, N)) < rng.random(N)
    wrong[:, 0] &= rng.random() < 0.5
    return Setting(wrong, {"delta": drawn_delta(rng)})


def change_mistakes(rng: np.random.Generator, s: Setting) -> Setting:
    """Change a few mistakes, and delta now and then."""
    delta = drawn_delta(rng) if rng.random() < 0.3 else s.numbers["delta"]
    return Setting(moved(rng, s.table, np.array([False, True])), {"delta": delta})


def hedge_ratio(s: Setting) -> float:
    """Return the quantile of hedge's mistakes over `hedge_mistakes_with_confidence`."""
    before = np.cumsum(s.table, axis=0) - s.table
    chances = [weights_of(m.astype(float)) @ wrong for m, wrong in zip(before, s.table, strict=True)]
    delta, best = s.numbers["delta"], float(s.table.sum(axis=0).min())
    laws = [np.array([1.0 - p, p]) for p in chances]
    return quantile(laws, delta) / hedge_mistakes_with_confidence(best, s.table.shape[1], delta)


# ---------------------------------------------------------------------------------------- learning with expert advice


def draw_costs(rng: np.random.Generator) -> Setting:
    """Return the costs of up to 12 experts in up to 60 rounds: whole multiples of 1/GRID, in half of the draws 0 or 1."""
    T, N = int(rng.integers(5, 61)), int(rng.integers(2, 13))
    costs = rng.integers(0, GRID + 1, (T, N))
    if rng.random() < 0.5:
        costs = GRID * (rng.random((T, N)) < rng.random(N)).astype(np.int64)
    return Setting(costs, {"delta": drawn_delta(rng)})


def change_costs(rng: np.random.Generator, s: Setting) -> Setting:
    """Change a few costs, and delta now and then."""
    delta = drawn_delta(rng) if rng.random() < 0.3 else s.numbers["delta"]
    return Setting(moved(rng, s.table, np.array([0, GRID])), {"delta": delta})


def cost_quantile(costs: Floats, delta: float) -> float:
    """Return the quantile of the cost of Algorithm 3 over the experts' costs (T, N), which are rounded up to the grid."""
    player, laws = ExpertAdvice(*costs.shape), []
    for row in costs:
        counts = np.ceil(GRID * row - 1e-9).astype(np.int64)
        laws.append(np.bincount(counts, weights=player.weights(), minlength=GRID + 1))
        player.update(row)
    return quantile(laws, delta) / GRID


def advice_ratio(s: Setting) -> float:
    """Return the quantile of Algorithm 3's cost less the best expert's, over `expert_advice`."""
    costs, delta = s.table / GRID, s.numbers["delta"]
    excess = cost_quantile(costs, delta) - float(costs.sum(axis=0).min())
    return excess / expert_advice(*costs.shape, delta)


def draw_hypotheses(rng: np.random.Generator) -> Setting:
    """Return the costs of a class of Littlestone dimension 1: class 0 everywhere, or another class at one point.

    There are at most T points, so that at most :math:`T (k - 1) + 1 \\le T k` hypotheses differ.
    """
    k, T = int(rng.integers(2, 4)), int(rng.integers(5, 31))
    points = rng.integers(0, int(rng.integers(1, T + 1)), T)
    labels = np.where(rng.random(T) < rng.random(), 0, rng.integers(0, k, T))
    hypotheses = [(-1, 0), *itertools.product(np.unique(points).tolist(), range(1, k))]
    said = np.array([[l if point == x else 0 for point, l in hypotheses] for x in points])
    weights = rng.integers(1, GRID + 1, (T, k))
    costs = np.where(said == labels[:, None], 0, weights[np.arange(T)[:, None], said])
    return Setting(costs, {"k": k, "delta": drawn_delta(rng)})


def change_hypotheses(rng: np.random.Generator, s: Setting) -> Setting:
    """Repeat one round in another's place: the hypotheses stay as they are."""
    table = s.table.copy()
    table[rng.integers(len(table))] = table[rng.integers(len(table))]
    delta = drawn_delta(rng) if rng.random() < 0.3 else s.numbers["delta"]
    return Setting(table, s.numbers | {"delta": delta})


def agnostic_ratio(s: Setting) -> float:
    """Return the quantile of Algorithm 3's cost less the best hypothesis's, over `online_agnostic`."""
    costs, delta = s.table / GRID, s.numbers["delta"]
    excess = cost_quantile(costs, delta) - float(costs.sum(axis=0).min())
    return excess / online_agnostic(len(costs), int(s.numbers["k"]), 1, delta)


# ----------------------------------------------------------------------------- Theorem 8: experts as a weak learner


def draw_pool(rng: np.random.Generator) -> Setting:
    """Return weighted costs of up to 12 experts of which the first is rich with twice the edge, k of 2 to 4.

    Rows of costs are those of `rich`; the other experts pay for a random class.
    """
    k, T, N = int(rng.integers(2, 5)), int(rng.integers(8, 61)), int(rng.integers(2, 9))
    edge, least = float(rng.uniform(0.02, 0.45)), float(rng.uniform(0.1, 1.0))
    weights = rng.uniform(least, 1.0, T)
    rows = np.zeros((T, k))  # class 0 stands for the label
    rows[:, 1:] = weights[:, None] * rng.dirichlet(np.full(k - 1, 0.5), T)
    table = rows[np.arange(T)[:, None], rng.integers(0, k, (T, N))]
    table[:, 0] = rich(rows, weights, 2.0 * edge)
    numbers = {"k": k, "edge": edge, "least": least, "total": float(weights.sum()), "delta": drawn_delta(rng)}
    return Setting(table, numbers)


def rich(rows: Floats, weights: Floats, edge: float) -> Floats:
    """Return the costs (T,) of an expert that takes the costliest class as often as (12) allows it with this edge."""
    k, paid, allowed, costs = rows.shape[1], 0.0, 0.0, np.zeros(len(rows))
    for t, (row, weight) in enumerate(zip(rows, weights, strict=True)):
        allowed += (1.0 - edge) / k * weight
        costs[t] = row.max() if paid + row.max() <= allowed else 0.0
        paid += costs[t]
    return costs


def change_pool(rng: np.random.Generator, s: Setting) -> Setting:
    """Give an expert other than the first a cost that another expert has in that round."""
    table = s.table.copy()
    for _ in range(int(rng.integers(1, 6))):
        t = int(rng.integers(len(table)))
        table[t, rng.integers(1, table.shape[1])] = rng.choice(table[t])
    delta = drawn_delta(rng) if rng.random() < 0.3 else s.numbers["delta"]
    return Setting(table, s.numbers | {"delta": delta})


def link_ratio(s: Setting) -> float:
    """Return the quantile of the cost beyond (1 - edge)/k times the weights, over `link_excess` at dimension 1.

    N is at most T k, the number of experts in the proof of Lemma 7 at dimension 1.
    """
    n = s.numbers
    excess = cost_quantile(s.table, n["delta"]) - (1.0 - n["edge"]) / n["k"] * n["total"]
    return excess / link_excess(int(n["k"]), n["edge"], n["least"], 1, n["delta"])


# -------------------------------------------------------------------------------- AdaBoost.OLM++ under Definition 10


def draw_run(rng: np.random.Generator) -> Setting:
    """Return the numbers of a run whose learners exhaust the excess of Definition 10; its table holds the seed.

    The rounds are as many as it takes for the bound to be below them.
    """
    k, N, S = int(rng.integers(2, 4)), int(rng.integers(6, 13)), float(rng.uniform(1.0, 3.0))
    numbers = {"k": k, "N": N, "edge": float(rng.uniform(0.85, 1.0)), "S": S, "T": int(rng.integers(1000, 1601))}
    return Setting(rng.integers(0, 2**31, (1, 1)), numbers)


def change_run(rng: np.random.Generator, s: Setting) -> Setting:
    """Change the edge, the learners and the rounds a little, and the seed."""
    edge = float(np.clip(s.numbers["edge"] + 0.03 * rng.standard_normal(), 0.6, 1.0))
    N, T = max(1, int(s.numbers["N"] + rng.integers(-1, 2))), int(s.numbers["T"] * rng.uniform(0.85, 1.1))
    return Setting(rng.integers(0, 2**31, (1, 1)), s.numbers | {"edge": edge, "N": N, "T": min(T, 1600)})


def run_ratio(s: Setting) -> float:
    """Return the mistakes of AdaBoost.OLM++'s best expert over `olm_plus_weak_learners`, 0 where that is all rounds."""
    n, x = s.numbers, np.ones(1)
    k, N, T = int(n["k"]), int(n["N"]), int(n["T"])
    rng = np.random.default_rng(int(s.table[0, 0]))
    weak = {"weak_learner": "simulated", "behaviour": "adversarial", "excess": n["S"], "n_learners": N}
    weak |= {"weak_learner.edge": n["edge"], "regression_bound": math.sqrt(2.0) * (1.0 + 1e-12)}
    player = AdaBoostOLMPlus(Problem(1, k, 1.0, T), rng, **weak)
    regret = player._regressions.bound(T)
    assert regret is not None
    bound = olm_plus_weak_learners(T, k, N, n["edge"], n["S"], regret)
    if bound >= T:
        return 0.0
    for label in rng.integers(0, k, T).tolist():
        player.peek(label)
        player.learn(x, player.act(x), label)
    return float(player.mistakes.min()) / bound


# ------------------------------------------------------------------------------- Theorem 4: no booster is better


def bayes_error(k: int, N: int, edge: float) -> float:
    """Return the least probability of an error from N votes drawn from u_edge, labels uniform, by enumeration."""
    p, q = (1.0 - edge) / k + edge, (1.0 - edge) / k
    right = 0.0
    for counts in itertools.product(range(N + 1), repeat=k):
        if sum(counts) == N:
            ways = math.factorial(N) / math.prod(map(math.factorial, counts))
            right += ways / k * max(p**c * q ** (N - c) for c in counts)
    return 1.0 - right


def draw_votes(rng: np.random.Generator) -> Setting:
    """Return three or four classes, up to 12 or 8 learners, and an edge up to 0.45."""
    k = int(rng.integers(3, 5))
    numbers = {"k": k, "N": int(rng.integers(1, 13 if k == 3 else 9)), "edge": float(rng.uniform(0.0, 0.45))}
    return Setting(np.zeros((1, 1)), numbers)


def change_votes(rng: np.random.Generator, s: Setting) -> Setting:
    """Change the number of learners by one and the edge a little."""
    N = int(np.clip(s.numbers["N"] + rng.integers(-1, 2), 1, 12))
    edge = float(np.clip(s.numbers["edge"] + rng.normal(0.0, 0.03), 0.0, 0.45))
    return Setting(s.table, s.numbers | {"N": N, "edge": edge})


def votes_ratio(s: Setting) -> float:
    """Return `least_error_rate` over the least error of a booster that knows the learners' law."""
    k, N, edge = int(s.numbers["k"]), int(s.numbers["N"]), s.numbers["edge"]
    return least_error_rate(k, N, edge) / bayes_error(k, N, 2.0 * edge)


# -------------------------------------------------------------------------------------------------------- the search

LINES = (
    Line("hedge_mistakes_with_confidence", "000, Lemma 17", draw_mistakes, change_mistakes, hedge_ratio),
    Line("expert_advice", "002, Lemma 7, its proof", draw_costs, change_costs, advice_ratio),
    Line("online_agnostic", "002, Lemma 7", draw_hypotheses, change_hypotheses, agnostic_ratio),
    Line("link_excess", "002, Theorem 8 with Lemma 7", draw_pool, change_pool, link_ratio),
    Line("olm_plus_weak_learners", "000, Proposition 12, second part", draw_run, change_run, run_ratio),
    Line("least_error_rate", "002, Theorem 4", draw_votes, change_votes, votes_ratio),
)


def searched(line: Line, random: int, steps: int) -> Found:
    """Draw settings at random, then climb from the worst: a change stays where it raises the ratio."""
    rng = np.random.default_rng([1, *line.name.encode()])
    found, worst = Found(line.name, line.source), None
    for i in range(random + steps):
        s = line.draw(rng) if worst is None or i < random else line.change(rng, worst)
        ratio = line.ratio(s)
        found.random, found.searched = found.random + (i < random), found.searched + (i >= random)
        found.above += ratio > BEYOND
        if worst is None or ratio > found.ratio:
            found.ratio, worst = ratio, s
    assert worst is not None
    shape = {"T": len(worst.table), "N": worst.table.shape[1]} if worst.table.size > 1 else {}
    shown = shape | worst.numbers
    found.at = ", ".join(f"{name} = {value:.3g}" for name, value in shown.items())
    return found
