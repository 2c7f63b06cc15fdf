"""Intervals against hand-computed values, ties, the choice of a setting, and seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_ind, ttest_rel

from banditlab.analysis.statistics import choose, difference, mean_interval, mean_intervals, rank, split


def test_t_interval_by_hand():
    # 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653, half width 4.302653 / sqrt(3) = 2.484138
    interval = mean_interval([1.0, 2.0, 3.0])
    assert (interval.mean, interval.n, interval.method) == (2.0, 3, "t")
    assert interval.low == pytest.approx(2 - 2.4841377, abs=1e-6)
    assert interval.high == pytest.approx(2 + 2.4841377, abs=1e-6)


def test_missing_values_are_left_out():
    assert mean_interval([1.0, math.nan, 2.0, 3.0]) == mean_interval([1.0, 2.0, 3.0])


def test_one_value_has_no_interval_and_none_has_no_mean():
    one = mean_interval([5.0])
    assert one.mean == 5.0
    assert math.isnan(one.low)
    assert one.method == "none"
    assert not one.contains(5.0)
    assert math.isnan(mean_interval([math.nan]).mean)


def test_bca_from_twenty_repetitions_agrees_with_scipy():
    x = np.random.default_rng(3).exponential(size=20)
    interval = mean_interval(x)
    assert interval.method == "BCa"
    assert mean_interval(x[:19]).method == "t"
    witness = bootstrap((x,), np.mean, n_resamples=40_000, method="BCa", rng=np.random.default_rng(9))
    assert interval.low == pytest.approx(witness.confidence_interval.low, abs=0.02)
    assert interval.high == pytest.approx(witness.confidence_interval.high, abs=0.02)
    # skewed data: the BCa interval reaches further up than down, which Student's t cannot do
    assert interval.high - interval.mean > interval.mean - interval.low


def test_bootstrap_ignores_the_global_generator():
    x = np.random.default_rng(3).exponential(size=25)
    np.random.seed(1)  # noqa: NPY002
    first = mean_interval(x)
    np.random.seed(2)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert mean_interval(x) == first
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    assert mean_interval(x, seed=5) != first


def test_constant_series_have_an_interval_of_one_point():
    mean, low, high, method = mean_intervals(np.array([[2.0] * 30, list(range(30))]))
    assert method == "BCa"
    assert low[0] == high[0] == 2.0
    assert low[1] < mean[1] < high[1]
    assert mean_interval([0.5] * 3).low == 0.5


def test_series_together_equal_series_alone():
    x = np.random.default_rng(0).normal(size=(5, 24))
    _, low, high, _ = mean_intervals(x)
    alone = [mean_interval(row) for row in x]
    np.testing.assert_allclose(low, [i.low for i in alone], rtol=1e-12)
    np.testing.assert_allclose(high, [i.high for i in alone], rtol=1e-12)


def test_paired_difference_is_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=8), rng.normal(size=8)
    witness = ttest_rel(a, b).confidence_interval(0.95)
    found = difference(a, b)
    assert (found.low, found.high) == pytest.approx((witness.low, witness.high))


def test_pairing_removes_what_streams_share():
    hard = np.array([0.0, 10.0, 20.0, 30.0])
    gap = np.array([1.0, 1.1, 0.9, 1.0])
    assert not difference(hard + gap, hard).contains(0.0)
    assert difference(hard + gap, hard, paired=False).contains(0.0)


def test_unpaired_difference_is_welchs():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=8), 3 * rng.normal(size=5)
    witness = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    found = difference(a, b, paired=False)
    assert (found.low, found.high) == pytest.approx((witness.low, witness.high))


def test_pairs_with_a_missing_half_are_left_out():
    found = difference([1.0, 2.0, math.nan, 5.0], [0.0, 0.0, 0.0, math.nan])
    assert found.n == 2
    assert found.mean == 1.5


def test_rank_with_ties():
    x = np.array(
        [
            [5.0, 6.0, 7.0, 8.0],  # far behind
            [1.0, 2.0, 3.0, 4.0],  # first
            [2.0, 1.9, 4.0, 3.9],  # tied with it: differences 1, -0.1, 1, -0.1
        ]
    )
    places = rank(x)
    assert [(p.index, p.text) for p in places] == [(1, "1="), (2, "1="), (0, "3")]
    assert places[0].behind_first.mean == 0.0
    assert places[1].behind_group.contains(0.0)
    assert places[2].behind_first.mean == pytest.approx(4.0)
    assert not places[2].behind_first.contains(0.0)


def test_a_tie_group_is_measured_from_its_own_first():
    # c is tied with b, and b with a, but c is clearly behind a: c opens a group of its own
    a = np.array([0.0, 0.0, 0.0, 0.0])
    b = np.array([2.0, -1.0, 2.0, -1.0]) * 0.5
    c = np.array([1.0, 1.1, 0.9, 1.0])
    assert [p.text for p in rank(np.stack([a, b, c]))] == ["1=", "1=", "3"]


def test_one_repetition_ranks_by_the_mean_and_ties_only_equal_ones():
    assert [(p.index, p.text) for p in rank([[2.0], [1.0], [2.0]])] == [(1, "1"), (0, "2="), (2, "2=")]


def test_rows_without_a_run_are_left_out():
    assert [p.index for p in rank([[math.nan, math.nan], [1.0, 2.0]])] == [1]


@pytest.mark.parametrize(
    ("n", "chosen_on", "reported_on"), [(1, [0], [0]), (2, [0], [1]), (5, [0, 1], [2, 3, 4]), (4, [0, 1], [2, 3])]
)
def test_split(n: int, chosen_on: list[int], reported_on: list[int]):
    assert split(range(n)) == (chosen_on, reported_on)


def test_choice_looks_at_its_own_repetitions_only():
    x = np.array([[1.0, 1.0, 9.0, 9.0], [2.0, 2.0, 0.0, 0.0]])
    choice = choose(x, [True, True, False, False], [False, False, True, True])
    assert (choice.index, choice.held_out, choice.among) == (0, True, 2)


def test_choice_does_not_prefer_a_setting_with_fewer_runs():
    x = np.array([[1.0, math.nan, 1.0], [2.0, 2.0, 2.0]])
    assert choose(x, [True, True, False], [False, False, True]).index == 1


def test_choice_on_reported_runs_says_so():
    one = choose([[2.0], [1.0]], [True], [True])
    assert (one.index, one.held_out) == (1, False)
    unfinished = choose([[math.nan, 2.0], [math.nan, 1.0]], [True, False], [False, True])
    assert (unfinished.index, unfinished.held_out) == (1, False)
