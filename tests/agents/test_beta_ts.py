"""Thompson sampling without contexts: its counts, the law of its actions, and the values of a column."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.sparse import csr_array

from banditlab.agents.beta_ts import BetaTS
from banditlab.errors import UsageError
from banditlab.numerics.philox import gamma
from banditlab.players.agent import Trace
from banditlab.problem import Problem

PROBLEM = Problem(6, 3, 2.0)
PER = [1, 3]


def agent(problem=PROBLEM, seed=7, **settings):
    return BetaTS(problem, np.random.default_rng(seed), **settings)


def one_hot(n, seed=0):
    """Contexts (n, 6) whose features 1, 2, 3 say one of three values, or none, and that value, 0 for none."""
    rng = np.random.default_rng(seed)
    values = rng.integers(4, size=n)
    X = rng.standard_normal((n, 6)) / 3.0
    X[:, 1:4] = 0.7 * (values[:, None] == np.arange(1, 4))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None], values


@pytest.mark.parametrize("settings", [{}, {"per": PER}])
def test_contract(one_bit_contract, settings):
    X, values = one_hot(200)
    y = np.where(np.random.default_rng(1).random(200) < 0.3, 0, values % 3)
    one_bit_contract(lambda: agent(**settings), X, y)


@pytest.mark.parametrize("per", [None, PER])
def test_the_direct_form_plays_the_same(per):
    """Hits and misses in a dictionary, by value and action; the key is the first number of the child stream."""
    X, values = one_hot(300)
    right = np.random.default_rng(2).random((300, 3)) < [0.2, 0.5, 0.6]
    trace = Trace.empty(300)
    agent(per=per).play_block(X, right, trace)
    key, counts = int(np.random.default_rng(7).spawn(1)[0].integers(2**63 - 1)), {}
    for t, value in enumerate(values.tolist()):
        value = 0 if per is None else value
        draws = []
        for k in range(3):
            hits, misses = counts.get((value, k), (0, 0))
            a, b = gamma(1.0 + hits, key, t, 2 * k), gamma(1.0 + misses, key, t, 2 * k + 1)
            draws.append(a / (a + b))
        k = int(np.argmax(draws))
        assert trace.action[t] == k
        assert trace.p_true[t] == float(right[t, k])
        hits, misses = counts.get((value, k), (0, 0))
        counts[value, k] = (hits + right[t, k], misses + (not right[t, k]))
    assert len(counts) == (3 if per is None else 12)


def test_an_action_is_played_as_often_as_its_draw_is_the_largest():
    rounds, made = 20_000, agent()
    hits, misses = np.array([3, 0, 12]), np.array([4, 1, 9])
    made.state.counts[0] = np.column_stack([misses, hits])
    played = np.bincount([made.act(np.zeros(6)).action for _ in range(rounds)], minlength=3)
    laws = [stats.beta(1 + h, 1 + m) for h, m in zip(hits, misses, strict=True)]
    for k, law in enumerate(laws):
        others = [other for other in laws if other is not law]
        chance = integrate.quad(lambda x: law.pdf(x) * np.prod([o.cdf(x) for o in others]), 0.0, 1.0)[0]  # noqa: B023
        assert abs(played[k] - rounds * chance) < 4.0 * np.sqrt(rounds * chance * (1.0 - chance))


def test_it_finds_the_best_action_of_each_value():
    X, values = one_hot(4000)
    means = np.random.default_rng(5).permuted(np.tile([0.2, 0.4, 0.8], (4, 1)), axis=1)
    right = np.random.default_rng(3).random((4000, 3)) < means[values]
    blind, by_value = Trace.empty(4000), Trace.empty(4000)
    agent().play_block(X, right, blind)
    agent(per=PER).play_block(X, right, by_value)
    assert by_value.correct[1000:].mean() > 0.75
    assert blind.correct.mean() < by_value.correct.mean() - 0.1


def test_sparse_contexts_have_the_same_values():
    X, _ = one_hot(300)
    right = np.random.default_rng(2).random((300, 3)) < 0.5
    dense, sparse = Trace.empty(300), Trace.empty(300)
    agent(per=PER).play_block(X, right, dense)
    agent(per=PER).play_block(csr_array(X), right, sparse)
    np.testing.assert_array_equal(dense.action, sparse.action)


@pytest.mark.parametrize("per", [[], [1], [1, 2, 3], [3, 1], [-1, 2], [0, 6], [0.0, 2.0], ["a", "b"]])
def test_a_block_is_two_features(per):
    wanted = r"^per must be the indices of the first and the last feature of a block, in 0 ... 5, got \["
    with pytest.raises(UsageError, match=wanted):
        agent(per=per)
