"""Intervals against hand-computed values, ties, the choice of a setting, and seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp, ttest_ind, ttest_rel

from banditlab.analysis.statistics import (
    Choice,
    Interval,
    choose,
    critical,
    difference,
    first_half,
    growth_exponent,
    holm,
    leads,
    mean_interval,
    mean_intervals,
    p_value,
    rank,
)


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
    none = mean_interval([math.nan])
    assert (math.isnan(none.mean), none.n) == (True, 0)


def test_student_s_t_at_any_number_of_repetitions():
    # BCa of 20 covers .92 of normal means where t covers .95
    x = np.random.default_rng(3).normal(size=(2000, 20))
    _, low, high = mean_intervals(x)
    assert mean_interval(x[0]).method == "t"
    witness = ttest_1samp(x[0], 0.0).confidence_interval(0.95)
    assert (low[0], high[0]) == pytest.approx((witness.low, witness.high))
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.95, abs=0.012)


def test_constant_series_have_an_interval_of_one_point():
    mean, low, high = mean_intervals(np.array([[2.0] * 30, list(range(30))]))
    assert low[0] == high[0] == 2.0
    assert low[1] < mean[1] < high[1]
    assert mean_interval([0.5] * 3).low == 0.5
    assert mean_interval([0.5] * 3).contains(0.5)


def test_two_means_have_student_s_t_and_more_have_sidak_s():
    assert critical(0.95, 9.0) == pytest.approx(t.ppf(0.975, 9))
    assert critical(0.95, 9.0, 3) == pytest.approx(t.ppf(0.5 + 0.95 ** (1 / 3) / 2, 9))  # three pairs


def deviations_of(losses):
    """Return means (R,) and deviations (R, rows) of losses (R, rows)."""
    return losses.mean(axis=1), (losses - losses.mean(axis=1, keepdims=True)) / losses.shape[1]


def test_the_interval_over_one_table_by_hand():
    # two repetitions of two rows: means 2 and 3, s^2 / 2 = .25; rows' means 1.5 and 3.5, (2 / 1) (.5^2 + .5^2) = 1
    values, rows = deviations_of(np.array([[1.0, 3.0], [2.0, 4.0]]))
    found = mean_interval(values, rows=rows)
    variance = 0.25 + 1.0
    freedom = variance**2 / (0.25**2 / 1 + 1.0**2 / 1)
    assert (found.mean, found.n, found.method) == (2.5, 2, "t, rows")
    assert found.high - found.mean == pytest.approx(t.ppf(0.975, freedom) * math.sqrt(variance))


def test_an_interval_covers_the_mean_over_fresh_tables_and_one_over_repetitions_does_not():
    rng, n, hits, naive = np.random.default_rng(5), 60, 0, 0
    for _ in range(600):
        losses = rng.normal(size=n) + 0.5 * rng.normal(size=(10, 1)) / np.sqrt(n) + rng.normal(size=(10, n))
        values, rows = deviations_of(losses)
        hits += mean_interval(values, rows=rows).contains(0.0)
        naive += mean_interval(values).contains(0.0)
    assert 0.93 <= hits / 600 <= 0.985
    assert naive / 600 < 0.7


def test_pairs_over_one_table_share_its_rows():
    hard = np.random.default_rng(1).normal(size=40) * 10
    a, b = (deviations_of(hard + gap + np.zeros((3, 40))) for gap in (1.0, 0.0))
    found = difference(a[0] + [0, 1e-3, 0], b[0], rows=(a[1], b[1]))
    assert not found.contains(0.0)
    assert mean_interval(a[0], rows=a[1]).contains(0.0)


def test_ranks_of_many_equals_seldom_assert_a_lead():
    rng = np.random.default_rng(7)
    claims = sum(rank(rng.normal(size=(10, 6)))[-1].position > 1 for _ in range(300))
    assert claims / 300 <= 0.05  # each of the 45 pairs by itself would in half of the tables


@pytest.mark.parametrize("n", [1, 2, 24])
def test_series_together_equal_series_alone(n):
    x = np.random.default_rng(0).normal(size=(5, n))
    _, low, high = mean_intervals(x)
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
            [5.0, 6.1, 7.0, 8.0],  # far behind
            [1.0, 2.0, 3.0, 4.0],  # first
            [2.0, 1.9, 4.0, 3.9],  # tied with it: differences 1, -0.1, 1, -0.1
        ]
    )
    places = rank(x)
    assert [(p.index, p.text) for p in places] == [(1, "1="), (2, "1="), (0, "3")]
    assert places[0].behind_first.mean == 0.0
    assert places[1].behind_group.contains(0.0)
    assert places[2].behind_first.mean == pytest.approx(4.025)
    assert not places[2].behind_first.contains(0.0)


def test_a_tie_group_is_measured_from_its_own_first():
    # c is tied with b, and b with a, but c is clearly behind a: c opens a separate group
    a = np.array([0.0, 0.0, 0.0, 0.0])
    b = np.array([2.0, -1.0, 2.0, -1.0]) * 0.5
    c = np.array([1.0, 1.1, 0.9, 1.0])
    assert [p.text for p in rank(np.stack([a, b, c]))] == ["1=", "1=", "3"]


def test_one_repetition_gives_an_order_and_asserts_no_rank():
    places = rank([[2.0], [1.0], [2.0]])
    assert [(p.index, p.position, p.text) for p in places] == [(1, 1, "?"), (0, 2, "?"), (2, 2, "?")]
    assert [p.text for p in rank([[2.0]])] == ["1"]


def test_only_the_places_without_evidence_are_unsure():
    nan = math.nan
    x = [[1.0, 1.1, 1.0, nan], [5.0, 5.1, 5.0, nan], [nan, nan, 9.0, 9.0]]
    assert [p.text for p in rank(x)] == ["1", "?", "?"]


def test_an_infinite_value_makes_the_mean_infinite_and_leaves_no_interval():
    for n in (3, 25):
        interval = mean_interval([1.0, 2.0, math.inf] * (n // 3) + [1.0] * (n % 3))
        assert (interval.mean, interval.n, interval.method) == (math.inf, n, "none")
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)
    assert math.isnan(mean_interval([math.inf, -math.inf]).mean)
    mean, low, high = mean_intervals([[1.0, math.inf, 2.0], [1.0, 2.0, 3.0]])
    assert mean.tolist() == [math.inf, 2.0]
    assert math.isnan(low[0])
    assert high[1] == mean_interval([1.0, 2.0, 3.0]).high


def test_an_infinite_value_is_in_differences_and_ranks_last():
    inf, finite = [1.0, math.inf, math.nan], [1.0, 2.0, 3.0]
    assert (difference(inf, finite).mean, difference(inf, finite).n) == (math.inf, 2)
    assert difference(inf, finite, paired=False).mean == math.inf
    assert math.isnan(difference(inf, inf).mean)
    assert [p.index for p in rank([inf, finite])] == [1, 0]


def test_cut_leaves_the_mean():
    cut = mean_interval([0.1, 0.9]).cut(0, 1)
    assert (cut.mean, cut.low, cut.high) == (0.5, 0.0, 1.0)
    assert math.isnan(mean_interval([0.5]).cut(0, 1).low)


def test_rows_without_a_run_are_left_out():
    assert [p.index for p in rank([[math.nan, math.nan], [1.0, 2.0]])] == [1]


@pytest.mark.parametrize(("n", "first"), [(1, []), (2, [0]), (5, [0, 1]), (4, [0, 1])])
def test_first_half(n: int, first: list[int]):
    assert first_half(range(n)) == first


def test_each_half_is_reported_at_the_choice_of_the_other():
    x = np.array([[1.0, 1.0, 9.0, 9.0], [2.0, 2.0, 0.0, 0.0]])
    choice = choose(x, [True, True, False, False])
    assert choice.reported == (1, 1, 0, 0)
    assert (choice.index, choice.held_out, choice.agree, choice.among) == (1, True, False, 2)


def test_what_a_repetition_is_reported_at_does_not_depend_on_it():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(6, 5))
    first = np.array([True, True, False, False, False])
    before = choose(x, first)
    for r in range(5):
        changed = x.copy()
        changed[:, r] = rng.normal(size=6) * 100
        after = choose(changed, first)
        assert [after.reported[i] for i in range(5) if first[i] == first[r]] == [
            before.reported[i] for i in range(5) if first[i] == first[r]
        ]


def test_the_cross_fitted_interval_covers_where_settings_are_alike():
    # the worst case for the dependence between halves: four equal settings, so that the choice is pure noise
    rng, first, hits = np.random.default_rng(0), np.arange(5) < 2, 0
    for _ in range(1000):
        x = rng.normal(size=(4, 5))
        chosen = choose(x, first).reported
        hits += mean_interval(x[list(chosen), range(5)]).contains(0.0)
    assert 0.91 <= hits / 1000 <= 0.97


def test_choice_does_not_prefer_a_setting_with_fewer_runs():
    x = np.array([[1.0, math.nan, 1.0], [2.0, 2.0, 2.0]])
    assert choose(x, [True, True, False]).reported[2] == 1


def test_choice_on_reported_runs_says_so():
    one = choose([[2.0], [1.0]], [False])
    assert (one.index, one.reported, one.held_out) == (1, (1,), False)
    assert choose([[math.nan], [math.nan]], [True]).index == 0  # nothing was run
    unfinished = choose([[math.nan, 2.0], [math.nan, 1.0]], [True, False])
    assert (unfinished.index, unfinished.reported[1], unfinished.held_out) == (1, 1, False)


def test_runs_that_do_not_meet_the_choice_of_the_other_half_are_reported_all_the_same():
    nan = math.nan
    crossed = choose([[1.0, 1.0, nan, nan], [nan, nan, 3.0, 3.0]], [True, True, False, False])
    assert (crossed.reported, crossed.held_out) == ((0, 0, 0, 0), False)


def test_one_setting_needs_no_choice():
    assert choose([[1.0, math.nan, 2.0]], [True, False, False]) == Choice(0, (0, 0, 0), True, True, 1)


def test_holms_p_values_by_hand():
    # sorted .01, .02, .03, .04 times 4, 3, 2, 1 = .04, .06, .06, .04, never falling
    assert holm([0.03, 0.01, 0.04, 0.02]).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([0.2]).tolist() == [0.2]
    assert holm([]).tolist() == []


def test_holm_rejects_what_the_step_down_rule_rejects():
    p, level = np.random.default_rng(3).beta(0.2, 2.0, 30), 0.05
    rejected = np.zeros(30, dtype=bool)
    for step, i in enumerate(np.argsort(p)):
        if p[i] > level / (30 - step):
            break
        rejected[i] = True
    assert 0 < rejected.sum() < 30
    assert ((holm(p) <= level) == rejected).all()


def test_the_exponent_of_a_power_law():
    x = np.array([1, 10, 100, 1000])
    assert growth_exponent(x, 3.0 * x**0.5) == pytest.approx(0.5)
    assert growth_exponent(x[:3], x[:3] ** 2.0) == pytest.approx(2.0)
    assert growth_exponent(x[:2], x[:2] ** 2.0, least=2) == pytest.approx(2.0)


@pytest.mark.parametrize("y", [[1.0, 2.0], [1.0, 0.0, 2.0], [1.0, -1.0, 2.0], [1.0, math.nan, 2.0]])
def test_what_has_no_exponent(y):
    assert math.isnan(growth_exponent(np.arange(1, 1 + len(y)), y))


def test_unpaired_means_of_one_tables_rows_vary_with_the_rows() -> None:
    """Two scalings of one table meet its rows in other orders: repetitions are not paired, rows are."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(0.2, 0.01, 12), rng.normal(0.25, 0.02, 9)
    of_x, of_y = (rng.normal(0, 1e-3, (len(each), 40)) for each in (x, y))
    gap = difference(x, y, rows=(of_x, of_y), paired=False)
    shared = of_x.mean(axis=0) - of_y.mean(axis=0)
    parts = np.array([x.var(ddof=1) / 12, y.var(ddof=1) / 9, 40 / 39 * (shared**2).sum()])
    freedom = parts.sum() ** 2 / (parts**2 / np.array([11, 8, 39])).sum()
    half = t.ppf(0.975, freedom) * np.sqrt(parts.sum())
    assert (gap.low, gap.high) == pytest.approx((x.mean() - y.mean() - half, x.mean() - y.mean() + half))
    assert gap.method == "t, rows"
    assert difference(x, y, paired=False).high < gap.high


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("with_rows", [True, False])
def test_a_p_value_is_where_the_interval_reaches_0(paired: bool, with_rows: bool) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(0.2, 0.05, 8), rng.normal(0.25, 0.05, 8)
    x[3] = np.nan
    rows = (rng.normal(0, 1e-3, (8, 30)), rng.normal(0, 1e-3, (8, 30))) if with_rows else None
    p = p_value(x, y, rows=rows, paired=paired)
    assert 0.001 < p < 0.9
    assert difference(x, y, rows=rows, paired=paired, level=1 - p).high == pytest.approx(0.0, abs=1e-11)


def test_p_values_at_the_edges() -> None:
    assert p_value([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0
    assert p_value([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]) == 0.0
    assert np.isnan(p_value([1.0], [2.0]))
    assert p_value([0.31, 0.29, 0.35, 0.40], [0.2, 0.3, 0.3, 0.33]) == pytest.approx(
        ttest_rel([0.31, 0.29, 0.35, 0.40], [0.2, 0.3, 0.3, 0.33]).pvalue
    )


def test_how_few_values_have_a_difference() -> None:
    witness = ttest_ind([1.0, 2.0], [3.0, 5.0], equal_var=False).confidence_interval(0.95)
    found = difference([1.0, 2.0, math.nan], [3.0, 5.0], paired=False)
    assert (found.low, found.high, found.n) == (pytest.approx(witness.low), pytest.approx(witness.high), 2)
    for a, b, mean, n in (([1.0], [3.0], -2.0, 1), ([1.0, 2.0, 3.0], [3.0], -1.0, 1), ([math.nan], [3.0], math.nan, 0)):
        found = difference(a, b, paired=False)
        assert (found.mean, found.n, found.method) == (pytest.approx(mean, nan_ok=True), n, "none")
        assert math.isnan(p_value(a, b, paired=False))
    half = difference([1.0, 2.0, math.inf], [0.0, 1.0, 2.0], paired=False)
    assert (half.mean, half.method) == (math.inf, "none")


def test_two_rows_are_ranked_as_two_and_three_repetitions_are_needed() -> None:
    a, b = [1.0, 1.1, 1.3], [1.2, 1.4, 1.5]
    first, second = rank([b, a])
    assert (second.behind_first.low, second.behind_first.high) == pytest.approx(
        (difference(b, a).low, difference(b, a).high)
    )
    assert first.behind_first == difference(a, a)
    assert [p.text for p in rank([[1.0, 1.1, 1.2], [5.0, 5.1, 5.3]])] == ["1", "2"]
    assert [p.text for p in rank([[1.0, 1.1], [5.0, 5.1]])] == ["?", "?"]
    assert [p.text for p in rank([[1.0, 2.0], [5.0, 3.0]])] == ["?", "?"]


def test_whole_numbers_that_agree_by_chance_are_no_lead() -> None:
    """The floor is the binomial variance of the rounds, (k + 1) / (n + 2) the probability of a mistake."""
    a, b, rounds = [0.30, 0.31, 0.29], [0.32, 0.33, 0.31], 100.0
    assert [p.text for p in rank([a, b])] == ["?", "?"]  # of no number of rounds nothing is known
    first, second = rank([a, b], rounds=rounds)
    assert (first.text, second.text, first.behind_first) == ("1=", "1=", Interval(0.0, 0.0, 0.0, 3, "t"))
    gap = difference(b, a, rounds=rounds)
    p, q = (round(sum(each) * rounds) + 1 for each in (a, b))
    variance = sum(k / 302 * (1 - k / 302) / 300 for k in (p, q))
    assert gap.high - gap.mean == pytest.approx(t.ppf(0.975, 2) * math.sqrt(variance))
    perfect = mean_interval([0.0, 0.0, 0.0], rounds=rounds)
    assert perfect.high == pytest.approx(t.ppf(0.975, 2) * math.sqrt(1 / 302 * (1 - 1 / 302) / 300))
    moved = mean_interval([0.3, 0.3, 0.31], rounds=rounds)  # these vary: their own variance stands
    assert moved == mean_interval([0.3, 0.3, 0.31])
    one_lacks = difference([0.3, 0.3, 0.3, math.nan], [0.4, 0.4, 0.4, 0.9], rounds=rounds)
    assert one_lacks == difference([0.3] * 3, [0.4] * 3, rounds=rounds)
    assert not leads(difference([0.4, 0.5], [0.1, 0.1], rounds=rounds))
    assert not leads(Interval(0.1, 0.0, 0.2, 3, "t"))
    assert leads(difference([0.4, 0.5, 0.6], [0.1, 0.21, 0.3], rounds=rounds))


def test_means_that_differ_by_less_than_a_millionth_of_a_mistake_are_equal() -> None:
    x = np.array([-1.0, 0.0, 1.0])
    equal, different = (mean_interval(0.3 + share * x, rounds=100.0) for share in (0.9e-8, 1.1e-8))
    assert equal.high == pytest.approx(mean_interval([0.3] * 3, rounds=100.0).high)
    assert different.high == pytest.approx(0.3 + 1.1e-8 * t.ppf(0.975, 2) / math.sqrt(3), abs=1e-12)


@pytest.mark.parametrize(("repetitions", "most"), [(2, 0.0), (3, 0.06), (5, 0.06)])
def test_equal_players_on_noise_seldom_lead(repetitions: int, most: float) -> None:
    """Whole-number mistakes of two equal players; each is wrong in a tenth of 20 rounds."""
    rng = np.random.default_rng(11)
    shares = rng.binomial(20, 0.1, (600, 2, repetitions)) / 20
    claims = [rank(pair, rounds=20.0)[1].text == "2" for pair in shares]
    assert np.mean(claims) <= most
