"""Numbers, settings and names as text, by examples on both sides of every limit."""

from __future__ import annotations

import math

import pytest

from banditlab.analysis import formats
from banditlab.analysis.statistics import Interval


def interval(mean: float, half: float) -> Interval:
    return Interval(mean, mean - half, mean + half, 5, "t")


@pytest.mark.parametrize(
    ("value", "text"),
    [("theory", "theory"), (3.0, "3"), (1000, "1,000"), (999_999.0, "999,999"), (1e6, "1e+06"), (-2e6, "-2e+06"),
     (0.12345, "0.1235"), (2.5, "2.5"), (0.0, "0")],
)  # fmt: skip
def test_a_settings_value_has_four_digits(value: float | str, text: str) -> None:
    assert formats.short(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1234.5, 0, "1,234"), (1234.56, 1, "1,234.6"), (-1234.5, 1, "−1,234.5"), (-0.04, 1, "0.0"), (0.05, 2, "0.05"),
     (math.inf, 0, "∞"), (-math.inf, 0, "−∞"), (math.nan, 0, "–"), (-0.6, 0, "−1")],
)  # fmt: skip
def test_a_number_has_a_true_minus_and_thousands(value: float, digits: int, text: str) -> None:
    assert formats.plain(value, digits) == text
    if digits == 0:
        assert formats.plain(value) == text


def test_amounts_shares_and_times() -> None:
    amounts = {99.94: "99.9", 100.0: "100", -100.4: "−100", -99.5: "−99.5", 1234.56: "1,235"}
    assert [formats.amount(v) for v in amounts] == list(amounts.values())
    assert [formats.share(v) for v in (0.04149, 1.0, 0.0, math.nan)] == ["4.1 %", "100.0 %", "0.0 %", "–"]
    times = {12.3: "12 s", 9.96: "10 s", 9.5: "9.5 s", 1.0: "1 s", 0.999: "999 ms", 0.0123: "12 ms", 0.001: "1 ms",
             0.00012: "120 µs", 2.5e-6: "2.5 µs", 3e-8: "0.03 µs", 0.0: "0 µs", math.nan: "–", math.inf: "–"}  # fmt: skip
    assert [formats.duration(v) for v in times] == list(times.values())


def test_a_share_has_a_second_decimal_where_it_is_small_and_sure() -> None:
    two = [(4.0, 0.04), (9.9, 0.04), (-9.9, 0.04)]
    one = [(4.0, 0.06), (10.0, 0.04), (10.1, 0.04), (-10.1, 0.04), (0.05, 0.05)]
    assert [formats.decimals(interval(*each)) for each in two + one] == [2] * 3 + [1] * 5
    assert [formats.decimals(interval(mean, math.nan)) for mean in (0.9, 1.0, 1.1, -0.9)] == [2, 1, 1, 2]  # no interval
    assert formats.percent(interval(4.126, 0.01)) == "4.13 %"
    assert formats.percent(interval(4.126, 1.0)) == "4.1 %"
    assert formats.percent(interval(math.nan, 1.0)) == "–"
    assert formats.spread(interval(4.126, 0.25)) == "3.9 to 4.4"
    assert formats.spread(interval(4.126, 0.01)) == "4.12 to 4.14"
    assert formats.spread(interval(4.0, math.nan)) == "–"


def test_counts() -> None:
    assert [formats.count(n, "run") for n in (0, 1, 2, 5000)] == ["0 runs", "1 run", "2 runs", "5,000 runs"]


@pytest.mark.parametrize(
    ("label", "title", "data"),
    [
        ("banditlab/Digits-v0", "banditlab/Digits-v0", "Digits"),
        ("banditlab/Logistic-v0(n_classes=3)", "banditlab/Logistic-v0(n_classes=3)", "Logistic with n_classes=3"),
        ("banditlab/Table-v0(path=wine.csv, label=y)", "wine.csv · banditlab/Table-v0(label=y)", "wine.csv"),
        ("banditlab/Table-v0(label=y, path=wine.csv)", "wine.csv · banditlab/Table-v0(label=y)", "wine.csv"),
        ("banditlab/Table-v0(path=wine.csv)", "wine.csv · banditlab/Table-v0", "wine.csv"),
        ("banditlab/Table-v0(path=a, subpath=ab)", "a · banditlab/Table-v0(subpath=ab)", "a"),
        ("banditlab/Table-v0(path=a/b/wine.csv)", "wine.csv · banditlab/Table-v0(path=a/b/wine.csv)", "wine.csv"),
    ],
)
def test_an_environment_is_called_by_its_file(label: str, title: str, data: str) -> None:
    assert formats.environment_title(label) == title
    assert formats.data_title(label) == data


def test_facts_of_data() -> None:
    facts = {"rows": 150.0, "features": 5.0, "classes": 3.0, "largest": 0.4}
    said = "150 rows, d = 5, K = 3, largest class 40.0 %"
    assert formats.facts_of_data(facts, 75) == f"{said}; 0.5 passes"
    assert formats.facts_of_data(facts, 150) == f"{said}; 1 pass"
    assert formats.facts_of_data(facts, 500) == f"{said}; 3.33 passes"
    del facts["largest"]
    assert formats.facts_of_data(facts, 150) == "150 rows, d = 5, K = 3; 1 pass"
    assert formats.facts_of_data(facts | {"text": 1.0}, 150).endswith("; text features are fitted on the whole table")


def test_titles_leave_out_what_all_of_a_name_share() -> None:
    titles = {
        "a": "Logistic with n_features=10, norm_bound=3, n_classes=3",
        "b": "Logistic with n_features=10, norm_bound=3, n_classes=10",
        "c": "Digits",
        "d": "Other with n_features=10",
    }
    short = formats.without_what_is_common(titles)
    assert list(short.values()) == ["Logistic with n_classes=3", "Logistic with n_classes=10", "Digits", titles["d"]]
    apart = {"a": "X with p=1, q=2", "b": "X with p=1"}  # nothing would be left of the second
    assert formats.without_what_is_common(apart) == {"a": "X with q=2", "b": "X with p=1"}
    odd = {"a": "X with name=f(1, 2), q=1", "b": "X with name=f(1, 3), q=1"}
    assert formats.without_what_is_common(odd) == odd
