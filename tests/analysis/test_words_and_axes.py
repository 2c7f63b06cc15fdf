"""Words, numbers and axes of the pages by examples, on both sides of every limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.analysis import charting, words
from banditlab.analysis.curves import Curve, Grid, Panel
from banditlab.analysis.statistics import Interval

NONE = np.empty(0)


def interval(mean: float, half: float) -> Interval:
    return Interval(mean, mean - half, mean + half, 5, "t")


@pytest.mark.parametrize(
    ("value", "text"),
    [("theory", "theory"), (3.0, "3"), (1000, "1,000"), (999_999.0, "999,999"), (1e6, "1e+06"), (-2e6, "-2e+06"),
     (0.12345, "0.1235"), (2.5, "2.5"), (0.0, "0")],
)  # fmt: skip
def test_a_settings_value_has_four_digits(value: float | str, text: str) -> None:
    assert words.short(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1234.5, 0, "1,234"), (1234.56, 1, "1,234.6"), (-1234.5, 1, "−1,234.5"), (-0.04, 1, "0.0"), (0.05, 2, "0.05"),
     (math.inf, 0, "∞"), (-math.inf, 0, "−∞"), (math.nan, 0, "–"), (-0.6, 0, "−1")],
)  # fmt: skip
def test_a_number_has_a_true_minus_and_thousands(value: float, digits: int, text: str) -> None:
    assert words.plain(value, digits) == text
    if digits == 0:
        assert words.plain(value) == text


def test_amounts_shares_and_times() -> None:
    assert [words.amount(v) for v in (99.94, 100.0, -100.4, -99.5, 1234.56)] == [
        "99.9",
        "100",
        "−100",
        "−99.5",
        "1,235",
    ]
    assert [words.share(v) for v in (0.04149, 1.0, 0.0, math.nan)] == ["4.1 %", "100.0 %", "0.0 %", "–"]
    times = {12.3: "12 s", 9.96: "10 s", 9.5: "9.5 s", 1.0: "1 s", 0.999: "999 ms", 0.0123: "12 ms", 0.001: "1 ms",
             0.00012: "120 µs", 2.5e-6: "2.5 µs", 3e-8: "0.03 µs", 0.0: "0 µs", math.nan: "–", math.inf: "–"}  # fmt: skip
    assert [words.duration(v) for v in times] == list(times.values())


def test_a_share_has_a_second_decimal_where_it_is_small_and_sure() -> None:
    found = [
        ((4.0, 0.04), 2),
        ((4.0, 0.06), 1),
        ((9.9, 0.04), 2),
        ((10.1, 0.04), 1),
        ((-9.9, 0.04), 2),
        ((-10.1, 0.04), 1),
    ]
    assert [words.decimals(interval(*each)) for each, _ in found] == [digits for _, digits in found]
    assert [words.decimals(interval(mean, math.nan)) for mean in (0.9, 1.1, -0.9)] == [2, 1, 2]  # no interval
    assert words.percent(interval(4.126, 0.01)) == "4.13 %"
    assert words.percent(interval(4.126, 1.0)) == "4.1 %"
    assert words.percent(interval(math.nan, 1.0)) == "–"
    assert words.spread(interval(4.126, 0.25)) == "3.9 to 4.4"
    assert words.spread(interval(4.126, 0.01)) == "4.12 to 4.14"
    assert words.spread(interval(4.126, 0.25), 3) == "3.876 to 4.376"
    assert words.spread(interval(4.0, math.nan)) == "–"


def test_lists_and_counts() -> None:
    assert [words.joined(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [words.count(n, "run") for n in (0, 1, 2, 5000)] == ["0 runs", "1 run", "2 runs", "5,000 runs"]
    assert words.count(2, "class", "classes") == "2 classes"


@pytest.mark.parametrize(
    ("label", "title", "data"),
    [
        ("banditlab/Digits-v0", "banditlab/Digits-v0", "Digits"),
        ("banditlab/Logistic-v0(n_classes=3)", "banditlab/Logistic-v0(n_classes=3)", "Logistic with n_classes=3"),
        ("banditlab/Table-v0(path=wine.csv, label=y)", "wine.csv · banditlab/Table-v0(label=y)", "wine.csv"),
        ("banditlab/Table-v0(label=y, path=wine.csv)", "wine.csv · banditlab/Table-v0(label=y)", "wine.csv"),
        ("banditlab/Table-v0(path=wine.csv)", "wine.csv · banditlab/Table-v0", "wine.csv"),
        ("banditlab/Table-v0(path=a/b/wine.csv)", "wine.csv · banditlab/Table-v0(path=a/b/wine.csv)", "wine.csv"),
    ],
)
def test_an_environment_is_called_by_its_file(label: str, title: str, data: str) -> None:
    assert words.environment_title(label) == title
    assert words.data_title(label) == data


def test_facts_of_data_say_how_often_a_row_is_shown() -> None:
    facts = {"rows": 150.0, "features": 5.0, "classes": 3.0, "largest": 0.4}
    said = "150 rows, d = 5, K = 3, largest class 40.0 %"
    assert words.facts_of_data(facts, 149) == f"{said}; 149 of the rows shown once, in random order"
    assert words.facts_of_data(facts, 150) == f"{said}; 1 pass: each row shown once, in random order"
    assert words.facts_of_data(facts, 500).startswith(f"{said}; 3.33 passes, in a new random order each")
    del facts["largest"]
    assert words.facts_of_data(facts, 150).startswith("150 rows, d = 5, K = 3; 1 pass")


# ------------------------------------------------------------------------------------------------------------------ axes


def curve(rounds: list[float], share: list[float], bound: list[float] | None = None) -> Curve:
    at = np.array(rounds)
    mean = at * np.array(share)
    return Curve("a", "", at, mean, mean, mean, NONE if bound is None else np.array(bound), False, False)


def test_an_axis_of_rounds_begins_at_ten_from_500_on_and_its_ticks_do_not_touch_the_last() -> None:
    assert [charting.first_round(last) for last in (499, 500)] == [1.0, 10.0]
    assert charting.round_ticks(7) == [1, 7]
    assert charting.round_ticks(39) == [1, 39]
    assert charting.round_ticks(40) == [1, 10, 40]
    assert charting.round_ticks(499) == [1, 10, 100, 499]
    assert charting.round_ticks(500) == [10, 100, 500]
    assert charting.round_ticks(3999) == [10, 100, 3999]
    assert charting.round_ticks(1e6) == [10, 100, 1e3, 1e4, 1e5, 1e6]


def test_an_axis_of_shares_begins_a_fifth_below_the_least_that_is_shown() -> None:
    bottom, ticks = charting.share_axis([curve([1, 10, 100], [0.001, 0.4, 0.1])], 10.0)
    assert bottom == pytest.approx(0.08)
    assert ticks == pytest.approx([1, 0.1, 0.2, 0.5])
    bottom, ticks = charting.share_axis([curve([10, 100], [0.9, 0.25])], 10.0)
    assert bottom == pytest.approx(0.2)
    assert ticks == pytest.approx([1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    assert charting.share_axis([curve([9, 10, 100], [0.01, 0.1, 0.3])], 10.0)[0] == pytest.approx(0.08)
    assert charting.share_axis([curve([10, 100], [0.9, 0.8])], 10.0)[0] == 0.5
    assert charting.share_axis([curve([10, 100], [0.0, 0.0])], 10.0)[0] == pytest.approx(0.008)
    assert charting.share_axis([curve([10, 100], [0.0, 0.3])], 10.0)[0] == pytest.approx(0.24)
    ticks = charting.share_axis([curve([10.0], [2e-6])], 1.0)[1]
    assert sorted(ticks) == pytest.approx([m * 10.0**-e for e in (6, 5, 4, 3, 2, 1, 0) for m in (1, 2, 5)][1:-2])


def test_a_signed_axis_holds_curves_and_bounds_and_is_linear_up_to_the_root_of_the_rounds() -> None:
    panel = Panel(1.0, 5.0, 0.0, [curve([10, 5000], [0.2, -0.01], [10, 700])])
    assert charting.signed_axis(panel) == pytest.approx((-50 * 1.6 - 2, 700 * 1.6, 10.0))
    panel = Panel(1.0, 5.0, 0.0, [curve([1, 20_000], [0.2, 0.00002])])
    assert charting.signed_axis(panel) == pytest.approx((-20.0, 1.6, 100.0))
    assert charting.signed_axis(Panel(1.0, 5.0, 0.0, [curve([9], [0.5])]))[2] == 1.0


def test_a_bound_coincides_with_the_rounds_from_the_first_to_the_last() -> None:
    assert charting.at_rounds(curve([1, 10], [0.5, 0.5], [1, 10]))
    assert charting.at_rounds(curve([1, 10], [0.5, 0.5], [2, 11]))
    assert not charting.at_rounds(curve([1, 10], [0.5, 0.5], [1, 9.9]))
    assert not charting.at_rounds(curve([1, 10], [0.5, 0.5]))


def test_a_legends_entry_has_two_decimals_below_one_percent() -> None:
    assert charting.share_entry(curve([100, 1000], [0.5, 0.0123])) == "a: 1.2 %"
    assert charting.share_entry(curve([100, 1000], [0.5, 0.01])) == "a: 1.0 %"
    assert charting.share_entry(curve([100, 1000], [0.5, 0.00987])) == "a: 0.99 %"
    assert charting.relative_entry(curve([100, 1000], [0.5, 0.5], [90, 432.1])) == "a\n   bound: 432"


def test_names_are_cut_where_their_place_ends() -> None:
    assert charting.panel_title("x" * 28) == "x" * 28
    assert charting.panel_title("x" * 29) == "x" * 27 + "…"
    assert charting.wrapped("x" * 42) == ["x" * 42]
    assert charting.wrapped("word " * 8 + "xxx") == ["word word word word word word word word", "   xxx"]
    long = charting.wrapped("word " * 100)
    assert len(long) == 3
    assert max(map(len, long)) <= 39
    assert long[-1].endswith(" …")


def test_shades_go_from_the_fewest_to_the_most_of_all_grids() -> None:
    two = [Grid("a", [0.1], [1.0, 2.0], np.array([[0.2, np.nan]]), NONE, NONE),
           Grid("b", [0.1], [1.0, 2.0], np.array([[0.3, 0.6]]), NONE, NONE)]  # fmt: skip
    first, second = charting.shades_of(two)
    np.testing.assert_allclose(first, [[0.0, np.nan]])
    np.testing.assert_allclose(second, [[0.25, 1.0]])
    np.testing.assert_array_equal(charting.shades_of([two[0]])[0], [[0.0, np.nan]])


@pytest.mark.parametrize(
    ("colour", "white"),
    [((0.0, 0.0, 0.0), True), ((1.0, 1.0, 1.0), False), ((0.0, 0.0, 1.0), True), ((1.0, 0.0, 0.0), False),
     ((0.94, 0.0, 0.0), True), ((0.0, 0.56, 0.0), False), ((0.0, 0.55, 0.0), True), ((0.47, 0.47, 0.47), True),
     ((0.48, 0.48, 0.48), False), ((0.03, 0.9, 0.03), False), ((0.03, 0.55, 0.03), True)],
)  # fmt: skip
def test_ink_is_white_on_dark_colours(colour: tuple[float, float, float], white: bool) -> None:
    """Relative luminance of sRGB, 0.2126 R + 0.7152 G + 0.0722 B of the linear parts, below 0.19."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    assert (np.dot([0.2126, 0.7152, 0.0722], linear) < 0.19) == white
    assert charting.ink_on(colour) == ("#ffffff" if white else "#16181b")
