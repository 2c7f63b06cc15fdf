"""StackCB's first rounds, in which it has met fewer contexts than they have columns: on clusters and on noise."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.stacked.cold_start import add_bounds
from banditlab.agents.stacked.experts import LINEAR
from banditlab.agents.stacked.stackcb import EPOCH, ROUNDS, StackCB, rebuild
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem

pytestmark = pytest.mark.slow
"""The beginning of `stackcb` compiles its kernels once more."""

SMALL = {"blocks": 2, "features": 32}


def make(K, d, radius=1.0, seed=7, cold=None, **settings):
    """cold: whether it begins so, where that is chosen."""
    agent = StackCB(Problem(d, K, radius), np.random.default_rng(seed), **settings)
    if cold is not None:
        agent.state.cold[0] = agent.state.cold[0] and cold
    return agent


def played(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(as_contexts(X), np.asarray(y, np.int64), trace)
    return trace


def clusters(rng, K, d, T):
    """K clusters, each 0 in most of d columns, in as much noise."""
    centres = 1.2 * rng.standard_normal((K, d)) * (rng.random((K, d)) < 0.08)
    y = rng.integers(0, K, T)
    return centres[y] + rng.standard_normal((T, d)), y


def test_confidence_bounds_by_hand():
    m, q = np.array([9.0, 0.3, -0.1, 0.2]), np.array([9.0, 0.04, 0.01, 0.0])
    one, three = np.zeros(2), np.zeros(3)
    for n in (20, 21):  # in the first half of d rounds only
        add_bounds(m, q, 0.5, 1, 1, n, 40, one)
        add_bounds(m, q, 0.5, 1, 3, n, 40, three)
    np.testing.assert_allclose(one, [4 * 2 * 0.3, 0.0])
    np.testing.assert_allclose(three, [4 * (0.3 - 0.02 + 0.9 * 0.2), 4 * (-0.1 - 0.005 + 0.9 * 0.1), 4 * 0.2])


@pytest.mark.parametrize(("K", "d", "same"), [(2, 1, True), (2, 7, True), (2, 8, False), (3, 11, True), (3, 12, False)])
@pytest.mark.few(2)
def test_with_few_columns_a_class_nothing_is_different(K, d, same):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-0.3, 0.3, (300, d)), rng.integers(0, K, 300)
    agents = [make(K, d, cold=cold, **SMALL) for cold in (True, False)]
    traces = [played(agent, X, y) for agent in agents]
    assert agents[0].state.cold[0] != same
    assert (agents[0].state.counts[EPOCH] == agents[1].state.counts[EPOCH]) == same
    if same:
        np.testing.assert_array_equal(traces[0].p_true, traces[1].p_true)
        np.testing.assert_array_equal(traces[0].action, traces[1].action)


def test_contract(one_bit_contract, stream):
    X, y = stream(3, 40, 90, noise=0.3)
    one_bit_contract(lambda: make(3, 40, **SMALL), X, y)


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.few(1)
def test_clusters_in_many_columns_are_found_sooner(K):
    """200 columns, 200 rounds: a quarter fewer mistakes or more."""
    mistakes = {True: 0, False: 0}
    for seed in range(4):
        X, y = clusters(np.random.default_rng([seed, 3]), K, 200, 200)
        for cold in mistakes:
            trace = played(make(K, 200, radius=60.0, seed=seed, cold=cold), X, y)
            mistakes[cold] += int((~trace.correct).sum())
    assert mistakes[True] < 0.75 * mistakes[False]


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.few(1)
def test_on_noise_the_frequent_class_is_played(K):
    """Directions tell nothing here, and the stacks must be heard: at most 3 % of the rounds more than without."""
    mistakes = {True: [], False: []}
    for seed in range(4):
        rng = np.random.default_rng([seed, 5])
        X, y = rng.standard_normal((300, 200)), np.where(rng.random(300) < 0.85, 1, rng.integers(0, K, 300))
        for cold, found in mistakes.items():
            found.append(1 - played(make(K, 200, radius=60.0, seed=seed, cold=cold), X, y).correct.mean())
    assert np.mean(mistakes[True]) < np.mean(mistakes[False]) + 0.03
    X, y = rng.standard_normal((2000, 200)), rng.integers(0, K, 2000)
    assert played(make(K, 200, radius=60.0, **SMALL), X, y).correct.mean() == pytest.approx(1 / K, abs=0.04)


@pytest.mark.slow
def test_a_change_begins_it_again(stream):
    """After d rounds nothing is added to the logits, and after a change that leaves three rounds it is."""
    K, d = 3, 40
    X, y = stream(K, d, 90)
    agent, x = make(K, d, **SMALL), as_contexts(X[0])
    played(agent, X, y)

    def added():
        zetas = []
        for cold in (True, False):
            agent.state.cold[0] = cold
            agent.act(x)
            zetas.append(agent.state.scratch.zeta.copy())
        agent.state.cold[0] = True
        return zetas[0] - zetas[1]

    assert not added().any()
    agent.state.counts[ROUNDS] = 3
    rebuild(agent.state, True)
    q = agent.state.scratch.q[LINEAR * K : LINEAR * K + K]
    assert (added() > 4 * 0.9 * np.sqrt(q) - 4).all()


@pytest.mark.parametrize("value", [1e-200, 1e98])
def test_extreme_columns(value):
    rng = np.random.default_rng(0)
    for K in (2, 4, 10):
        X, y = value * rng.standard_normal((70, 40)), rng.integers(0, K, 70)
        agent = make(K, 40, radius=1e100, **SMALL)
        assert np.isfinite(played(agent, X, y).p_true).all()
        assert np.isfinite(agent.state.scratch.zeta).all()
