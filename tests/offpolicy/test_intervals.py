"""Both bounds against plain loops; how often the intervals hold the value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from banditlab.offpolicy import FixedBound, Log, RunningBound, evaluate

Floats = NDArray[np.float64]
ALPHA = 0.025


def terms(seed: int, depth: float) -> Floats:
    """Return terms that are no less than -depth, some of them large."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(200) < 0.9, rng.uniform(0.4, 0.9, 200), rng.choice([-depth, 2.0, 5.0], 200))


def fixed_wealth(x: Floats, m: float, depth: float) -> float:
    """Return the wealth against m, one bet after the other."""
    wealth, squares, total = 1.0, 0.0, 0.0
    for i, term in enumerate(x):
        bet = math.sqrt(2.0 * math.log(1.0 / ALPHA) / (len(x) * (10.0 + squares) / (10.0 + i)))
        wealth *= 1.0 + min(bet, 0.5 / (m + depth)) * (term - m)
        squares += (term - (0.5 + total) / (i + 1)) ** 2
        total += term
    return wealth


def running_wealth(x: Floats, m: float, depth: float) -> float:
    """Return the mean wealth of twelve players against m."""
    players = [1.0] * 12
    for j in range(12):
        bet, total = 0.5 / 2.5**j / (1.0 + depth), 0.0
        for i, term in enumerate(x):
            guess = min(max((0.5 + total) / (i + 1), 0.0), 1.0)
            players[j] *= (1.0 + bet * (term - guess)) * math.exp(-bet * (m - guess))
            total += term
    return sum(players) / 12


@pytest.mark.parametrize("depth", [0.0, 2.0])
@pytest.mark.parametrize(("kind", "wealth"), [(FixedBound, fixed_wealth), (RunningBound, running_wealth)])
def test_the_bound_is_where_the_wealth_reaches_its_limit(kind, wealth, depth: float) -> None:
    for seed in range(5):
        x = terms(seed, depth)
        bound = kind(depth) if depth else kind()
        for part in np.split(x, [1, 1, 70]):
            bound.add(part)
        found = bound.bound(ALPHA)
        assert 0.0 < found < 1.0
        assert wealth(x, found, depth) == pytest.approx(1.0 / ALPHA, rel=1e-6)
        assert wealth(x, found + 0.01, depth) < 1.0 / ALPHA < wealth(x, found - 0.01, depth)


@pytest.mark.parametrize("kind", [FixedBound, RunningBound])
def test_bounds_at_the_ends(kind) -> None:
    bound = kind()
    assert bound.bound(ALPHA) == 0.0
    bound.add(np.zeros(1000))
    assert bound.bound(ALPHA) == 0.0
    bound = kind()
    bound.add(np.ones(5000))
    assert 0.98 < bound.bound(ALPHA) < 1.0
    bound.add(np.full(5000, 1.5))  # no mean of at most 1 is left
    assert bound.bound(ALPHA) == 1.0


def test_the_wealth_does_not_grow_against_the_mean() -> None:
    """Its expectation is at most 1: here over all sequences of three terms."""
    values, chances = np.array([-2.0, 0.0, 9.0]), np.array([0.3, 0.6, 0.1])
    mean = float(values @ chances)
    for kind, wealth in ((FixedBound, fixed_wealth), (RunningBound, running_wealth)):
        grid = [np.array([i, j, k]) for i in range(3) for j in range(3) for k in range(3)]
        expected = sum(chances[g].prod() * wealth(values[g], mean, 2.0) for g in grid)
        assert expected <= 1.0 + 1e-12, kind


# ------------------------------------------------------------------------------------------------------------ coverage

Q = np.array([[0.2, 0.7, 0.4], [0.6, 0.1, 0.9]])
"""Chances of reward 1 by context and action; each context has probability 1/2."""


def drawn(p: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    return (p.cumsum(axis=-1) < rng.random((*p.shape[:-1], 1))).sum(axis=-1).clip(max=p.shape[-1] - 1)


def most_misses(n: int, chance: float) -> int:
    """Return a number that at most one in 10^6 counts of n independent misses exceeds."""
    return int(binom.ppf(1.0 - 1e-6, n, chance))


@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize(("logger", "kind"), [("fixed", FixedBound), ("learning", RunningBound)])
def test_an_interval_has_half_the_error_on_each_side(logger, kind, predicted: bool) -> None:
    rng, target = np.random.default_rng(7), np.array([0.1, 0.3, 0.6])
    p, q = 0.05 + 0.85 * rng.dirichlet(np.ones(3), 400), rng.random((400, 3))
    a, r = drawn(p, rng), (rng.random(400) < 0.6).astype(float)
    w, log = target[a] / p[np.arange(400), a], Log(a, r, p, np.tile(target, (400, 1)), q if predicted else None)
    found = evaluate(log, logger=logger, level=0.9)
    for bits, model, end in ((r, q, found.low), (1.0 - r, 1.0 - q, 1.0 - found.high)):
        bound = kind(2.0 * predicted)
        bound.add(w * bits + predicted * shift(target, p, model, a))
        assert 0.0 < end == pytest.approx(bound.bound(0.05), rel=1e-9)


@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize("explore", [1.0, 0.03], ids=["uniform", "nearly deterministic"])
def test_intervals_of_fixed_loggers_hold_the_value(explore: float, predicted: bool) -> None:
    rng = np.random.default_rng(5)
    n, misses, widths = 400, 0, []
    target = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    by_context = explore / 3 + (1.0 - explore) * np.eye(3)[[0, 2]]
    for _ in range(300):
        x = rng.integers(2, size=n)
        a = drawn(by_context[x], rng)
        r = rng.random(n) < Q[x, a]
        q = np.clip(Q[x] + 0.1, 0.0, 1.0) if predicted else None
        found = evaluate(Log(a, r, by_context[x], target[x], q))
        misses += not found.low <= (target * Q).sum() / 2 <= found.high
        widths.append(found.high - found.low)
    assert misses <= most_misses(300, 0.05)
    assert np.mean(widths) < (0.3 if explore == 1.0 else 0.75)


@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.few(1)
def test_running_intervals_of_a_learning_logger_hold_the_running_value_throughout(predicted: bool) -> None:
    """The best action changes halfway; 200 logs of 300 rounds side by side, looked at after every 20th round."""
    rng = np.random.default_rng(6)
    logs, n, depth = 200, 300, 2.0 if predicted else 0.0
    hits, plays = np.ones((logs, 2, 3)), np.full((logs, 2, 3), 2.0)
    lines = np.arange(logs)
    low, high, value = np.zeros((3, logs, n))
    target = np.array([0.1, 0.1, 0.8])
    for t in range(n):
        x = rng.integers(2, size=logs)
        now = Q[x] if t < n / 2 else 1.0 - Q[x]
        means = hits[lines, x] / plays[lines, x]
        p = 0.05 + 0.85 * np.eye(3)[means.argmax(axis=1)]
        a = drawn(p, rng)
        r = (rng.random(logs) < now[lines, a]).astype(float)
        w = target[a] / p[lines, a]
        low[:, t] = w * r + predicted * shift(target, p, means, a)
        high[:, t] = w * (1.0 - r) + predicted * shift(target, p, 1.0 - means, a)
        value[:, t] = now @ target
        hits[lines, x, a] += r
        plays[lines, x, a] += 1.0
    missed, widths = 0, []
    for i in lines:
        below, above, wealth = RunningBound(depth), RunningBound(depth), -math.inf
        for t in range(0, n, 20):
            below.add(low[i, t : t + 20])
            above.add(high[i, t : t + 20])
            mean = value[i, : t + 20].mean()
            wealth = max(wealth, below.wealth(mean), above.wealth(1.0 - mean))
        missed += wealth > math.log(1.0 / ALPHA)
        widths.append(1.0 - above.bound(ALPHA) - below.bound(ALPHA))
    assert missed <= most_misses(logs, 0.05)
    assert np.mean(widths) < 0.6


def shift(target: Floats, p: Floats, q: Floats, a: NDArray[np.int64]) -> Floats:
    """Return the sum over actions of min(target q, k p), less min(w q, k) at the logged action, with k = 2."""
    lines = np.arange(len(a))
    w = target[a] / p[lines, a]
    return np.minimum(target * q, 2.0 * p).sum(axis=1) - np.minimum(w * q[lines, a], 2.0)
