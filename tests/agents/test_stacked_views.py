"""What StackCB's experts see of a context: scales of columns, ranks, medians of distances, frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.agents.stacked.stackcb import CHANGES, THRESHOLD, StackCB
from banditlab.agents.stacked.views import BANDWIDTHS, QUANTILES, frequencies, measure, rank, see_views, unseen
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def make(K, d, radius=1.0, seed=7, **settings):
    return StackCB(Problem(d, K, radius), np.random.default_rng(seed), **settings)


def test_views_by_hand():
    X = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0], [2.0, 5.0]])
    scale, views = unseen(2, 4), np.full(6, np.nan)
    measure(scale, X, 0, 4)
    see_views(scale, np.zeros((0, 2, 2, 8)), np.zeros(0, bool), 32, as_contexts(np.array([4.0, 6.0])), views)
    np.testing.assert_allclose(views, [2.0 / math.sqrt(0.5), 0.0, 0.5, 1.5, 0.0, 0.5])
    # the last two rows and the two before them: |0| and |0 - 1|/sd ... the median of {2 - 3, 2 - 1} in units of sd
    assert 1.0 / scale.whole[1] == pytest.approx(1.0 / math.sqrt(0.5))


def test_ranks_do_not_heed_how_large_an_outlier_is():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 5, (70, 4)).astype(float), rng.integers(0, 3, 70)
    X[7] = 10.0
    traces = []
    for size in (1.0, 1e6):
        Z = X.copy()
        Z[7] *= size
        agent = make(3, 4, radius=1e8)
        agent.play_block(Z, y, Trace.empty(70))
        views = np.zeros(2 * 5 + 8 * 96)
        see_views(agent.state.scale, agent.state.W, agent.state.by_rank, agent.features, as_contexts(X[0]), views)
        traces.append(views[10:].reshape(8, 96))
    by_rank = agent.state.by_rank
    np.testing.assert_array_equal(traces[0][by_rank], traces[1][by_rank])
    assert abs(traces[0][~by_rank] - traces[1][~by_rank]).max() > 0.1


def test_frequencies_read_the_share_of_columns_they_say():
    agent = make(2, 10)
    for block, W in enumerate(agent.state.W):
        share = BANDWIDTHS[block // 2 % 4][1]
        assert (abs(W).sum(axis=(0, 2)) > 0).sum() == round(10 * share)
    assert agent.state.counts[CHANGES] == 0
    assert make(2, 10, changes=False).state.settings[THRESHOLD] == math.inf


def test_scales_at_their_edges():
    """What counts as constant, as zero, and as a median distance that is none."""

    def scale_of(*columns):
        X = as_contexts(np.column_stack([np.resize(column, 64) for column in columns]))
        scale = unseen(X.shape[1], 64)
        measure(scale, X, 0, 64)
        return scale

    flat, wavy = 1.0 + 0.9e-12 * np.array([-1, 1]), 1.0 + 1.5e-12 * np.array([-1, 1])
    tiny, small = 0.9e-290 * np.array([-1, 1]), 1.5e-290 * np.array([-1, 1])
    scale = scale_of(flat, wavy, tiny, small, [0.0], [-3.0, 5.0])
    assert (scale.per_sd > 0.0).tolist() == (scale.per_range > 0.0).tolist() == [False, True, False, True, False, True]
    assert scale.per_sd[[3, 5]].tolist() == pytest.approx([1 / 1.5e-290, 0.25])
    assert scale.per_range[[3, 5]].tolist() == pytest.approx([1 / 3e-290, 0.125])
    assert scale.whole[0] == pytest.approx(1 / math.sqrt(3))
    # rows of one sign alternate: the last 32 and the 32 before them are equal, and 1 is taken
    assert scale.whole[1] == 1.0
    near = np.append(np.arange(63) * 1e-9, 1.0)  # one context far away: the others differ by less than a millionth
    assert scale_of(near).whole[1] == pytest.approx(1e6)
    assert scale_of(np.arange(64.0)).whole[1] == pytest.approx(np.arange(64.0).std() / 32.0)
    assert scale_of([2.0]).whole.tolist() == [1.0, 1.0, 1.0]


def test_the_median_of_an_even_and_an_odd_number_of_pairs():
    for n in (2, 3, 4, 6, 7, 11):
        X = np.random.default_rng(n).standard_normal((n, 2))
        half = n // 2
        scale = unseen(2, n)
        measure(scale, as_contexts(np.roll(X, 1, axis=0)), 1, n)  # the memory goes round
        V = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -3, 3)
        median = np.median(np.linalg.norm(V[n - half :] - V[n - 2 * half : n - half], axis=1))
        assert scale.whole[1] == pytest.approx(1 / median)


def test_views_of_contexts_far_outside_are_cut():
    """Three deviations on either side; one range below the least, two above it."""
    scale = unseen(1, 4)
    measure(scale, np.array([[1.0], [3.0], [2.0], [2.0]]), 0, 4)
    for x, cut in ((1e3, [3.0, 0.5, 2.0, 0.5]), (-1e3, [-3.0, 0.5, -1.0, 0.5])):
        views = np.full(4, np.nan)
        see_views(scale, np.zeros((0, 2, 1, 8)), np.zeros(0, bool), 32, as_contexts(np.array([x])), views)
        assert views.tolist() == cut


@pytest.mark.parametrize(("d", "half"), [(1, 1), (2, 1), (3, 2), (5, 2), (7, 4)])
def test_half_the_columns_are_one_at_least(d, half):
    """To the nearest whole number, of two the even one."""
    W = frequencies(np.random.default_rng(0), d, 8, 32)
    read = [(abs(block).sum(axis=(0, 2)) > 0).sum() for block in W]
    assert read == [d, d, d, d, half, half, half, half]


def test_the_scale_of_one_context_is_that_of_none():
    scale = unseen(2, 4)
    measure(scale, np.array([[3.0, -1.0]] * 4), 2, 1)
    assert scale.whole.tolist() == [1.0, 1.0, 1.0]
    assert not scale.per_sd.any()
    assert scale.mean.tolist() == [3.0, -1.0]


@pytest.mark.parametrize("seed", range(4))
def test_a_rank_counts_the_quantiles_below_and_those_that_equal(seed):
    """With ties, beyond either end, and between two: the direct count over all seventeen."""
    rng = np.random.default_rng(seed)
    quantiles = np.sort(rng.integers(0, 4 + 10 * seed, size=(1, QUANTILES)).astype(float), axis=1)
    for x in [*quantiles[0], *rng.uniform(-2.0, 45.0, 40), -1e300, 1e300]:
        below, upto = (quantiles[0] < x).sum(), (quantiles[0] <= x).sum()
        expected = 0.5 * (below + upto)
        if below == upto and 0 < below < QUANTILES:
            low, high = quantiles[0, below - 1 : below + 1]
            expected = below - 0.5 + (x - low) / (high - low)
        assert rank(quantiles, 0, x) == expected
