"""The simulated weak learner has the edge it says, and spends what the weak learning condition lets it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from banditlab.boosting.weak.simulated import Simulated
from banditlab.bounds.boosting_mbbm import simulated_excess
from banditlab.errors import UsageError
from banditlab.problem import Problem

NOTHING = np.zeros(1)


def learner(k, seed=0, **settings):
    return Simulated(Problem(1, k, 1.0), np.random.default_rng(seed), **settings)


def rows(rng, k, label):
    """Return costs (k, k) of which the label's row has zero diagonal and sum 1, and now and then is zero."""
    D = rng.exponential(size=(k, k)) ** 3
    D[np.arange(k), np.arange(k)] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    if rng.random() < 0.1:
        D[label] = 0.0
    return D


@pytest.mark.parametrize(("k", "edge"), [(2, 0.1), (5, 0.0), (5, 0.4), (3, 1.0)])
def test_random_draws_from_u_gamma(k, edge):
    weak, rng, T = learner(k, edge=edge), np.random.default_rng(1), 8_000
    counts = np.zeros(k)
    for label in rng.integers(0, k, T):
        weak.peek(int(label))
        counts[(weak.predict(NOTHING) - label) % k] += 1
    expected = np.full(k, (1 - edge) / k) + edge * (np.arange(k) == 0)
    assert (np.abs(counts / T - expected) <= 4 * np.sqrt(expected * (1 - expected) / T) + 1e-12).all()


@pytest.mark.parametrize(
    ("edge", "u", "said"), [(0.5, 0.49, 2), (0.5, 0.5, 0), (0.5, 0.74, 1), (0.25 - 2.0**-54, 1.0 - 2.0**-53, 3)]
)
def test_the_label_has_uniforms_below_the_edge_and_every_class_a_part_of_the_rest(edge, u, said):
    weak = learner(4, edge=edge)
    weak.rng = SimpleNamespace(random=lambda: u)
    weak.peek(2)
    assert weak.predict(NOTHING) == said


def test_the_adversary_may_spend_all_it_has():
    weak = learner(2, behaviour="adversarial")
    weak.update(NOTHING, 0, 1.0)  # before it predicted there is nothing to pay
    weak.peek(0)
    assert (weak.predict(NOTHING), weak.account) == (1, 1.0)


@pytest.mark.parametrize(("k", "edge", "excess"), [(2, 0.1, 1.0), (3, 0.3, 1.0), (8, 0.05, 20.0)])
def test_adversarial_meets_equation_1_at_every_time_and_leaves_little(k, edge, excess):
    rng, weak = np.random.default_rng(2), learner(k, edge=edge, behaviour="adversarial", excess=excess)
    paid = fair = 0.0
    for t in range(4_000):
        label, weight = int(rng.integers(k)), float(rng.random() ** 2)
        D = rows(rng, k, label)
        weak.peek(label)
        paid_now = D[label, weak.predict(NOTHING, D)]
        weak.update(NOTHING, label, weight)
        paid += weight * paid_now
        fair += weight * (1 - edge) / k * float(D[label].any())
        assert paid <= fair + excess + 1e-9, t
    assert paid >= fair + excess - 2.0
    assert weak.account == pytest.approx(fair + excess - paid, abs=1e-9)


def test_random_meets_equation_1_with_the_excess_of_equation_27():
    """400 runs at weights and costs drawn beforehand: at most a share delta of them pay more, the longest time included."""
    k, true, claimed, delta, T = 4, 0.3, 0.2, 0.1, 300
    rng, above = np.random.default_rng(3), 0
    excess = simulated_excess(k, true, claimed, delta)
    assert excess == pytest.approx(4 * math.log(10) / 0.2)
    for seed in range(400):
        weak, w = learner(k, seed, edge=true), rng.random(T) < 0.5
        paid = 0.0
        for t in range(T):
            weak.peek(0)
            paid += w[t] * (weak.predict(NOTHING) == 1)  # all cost on class 1: the largest variance
        above += paid > (1 - claimed) / k * w.sum() + excess
    assert above <= 400 * delta


def test_costs_are_taken_above_the_labels_and_by_their_share():
    """The adversary does what it does under D when handed the costs D came from, and when handed none a mistake is 1/(k-1)."""
    k, rng = 4, np.random.default_rng(5)
    raw, cut, blind = (learner(k, edge=0.2, behaviour="adversarial") for _ in range(3))
    for _ in range(300):
        label, D = int(rng.integers(k)), rows(rng, k, int(rng.integers(k)))
        for weak, costs in ((cut, D), (raw, 0.25 * D - 3.0), (blind, None)):
            weak.peek(label)
            last = weak.predict(NOTHING, costs)
            weak.update(NOTHING, label, 1.0)
        assert raw.account == pytest.approx(cut.account)
        assert blind._cost == pytest.approx(0.0 if last == label else 1 / 3)


def test_spread_gives_each_its_own_edge():
    edges = [learner(3, seed, edge=0.3, spread=0.2).own_edge for seed in range(200)]
    assert min(edges) < 0.12
    assert max(edges) > 0.48
    assert all(0.1 <= e <= 0.5 for e in edges)
    assert learner(3, edge=0.9, spread=1.0, seed=4).own_edge <= 1.0
    assert learner(3, edge=0.3).own_edge == 0.3


def test_it_must_be_told():
    weak = learner(3)
    with pytest.raises(UsageError, match="call peek"):
        weak.predict(NOTHING)
    weak.peek(2)
    weak.predict(NOTHING)
    with pytest.raises(UsageError, match="call peek"):
        weak.predict(NOTHING)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"edge": 1.2}, r"edge must lie in \[0, 1\]"),
        ({"spread": -0.1}, r"spread must lie in \[0, 1\]"),
        ({"behaviour": "lazy"}, "behaviour must be one of 'random', 'adversarial'"),
        ({"excess": 0.5}, "excess must be at least 1"),
        ({"excess": float("nan")}, "excess must be a number above 0"),
    ],
)
def test_settings_out_of_range(settings, line):
    with pytest.raises(UsageError, match=line):
        learner(3, **settings)
