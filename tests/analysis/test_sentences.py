"""Sentences of the report by examples with different numbers in each place, on both sides of every "if"."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import sentences
from banditlab.analysis.statistics import Interval, _of_rows, _sum, critical, mean_intervals, p_value

NONE = Interval(math.nan, math.nan, math.nan, 0, "none")


def row(name: str, share: float, position: int, *, n: int = 4, behind: Interval = NONE, **more: Any) -> Any:
    mistakes = (
        Interval(share, share - 0.01, share + 0.01, n, "t") if n > 1 else Interval(share, math.nan, math.nan, n, "none")
    )
    there = {"among": 1, "held_out": True, "agree": True, "label": name}
    return SimpleNamespace(name=name, position=position, mistakes=mistakes, behind_group=behind, **there | more)


BEHIND = Interval(0.05, 0.03, 0.07, 4, "t")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("a", 0.4, 1)], "a made 40.0 % mistakes (95 % interval 39.0 to 41.0); nobody else was run here."),
        ([row("a", 0.4, 1, n=1)], "a made 40.0 % mistakes (one repetition, so no interval); nobody else was run here."),
        ([row("a", 0.4, 1), row("b", 0.45, 2, behind=BEHIND)],
         "a made 40.0 % mistakes (95 % interval 39.0 to 41.0), ahead of b by 5.0 points (3.0 to 7.0) on the same streams."),
        ([row("a", 0.4, 1), row("b", 0.41, 1)],
         "a and b are tied first with 40.0 % and 41.0 % mistakes: every interval of a difference to the first of them "
         "contains 0."),
        ([row("a", 0.4, 1), row("b", 0.45, 2, behind=BEHIND), row("c", 0.46, 2), row("d", 0.5, 4)],
         "a made 40.0 % mistakes (95 % interval 39.0 to 41.0), ahead of b by 5.0 points (3.0 to 7.0) on the same streams; "
         "b and c are tied second."),
        ([*(row(name, 0.4, 1) for name in "abc"), row("d", 0.45, 4, behind=BEHIND), row("e", 0.45, 4)],
         "a, b and c are tied first with 40.0 %, 40.0 % and 40.0 % mistakes: every interval of a difference to the first of "
         "them contains 0, ahead of d by 5.0 points (3.0 to 7.0) on the same streams; d and e are tied 4th."),
        ([row(name, 0.4 + i / 100, i + 1, n=1) for i, name in enumerate("abc")],
         "One repetition: an order only, no intervals and no evidence for ranks. Mistakes: a 40.0 %, b 41.0 % and c 42.0 %."),
        ([row(name, 0.4 + i / 100, i + 1, n=1) for i, name in enumerate("abcde")],
         "One repetition: an order only, no intervals and no evidence for ranks. Mistakes: a 40.0 %, b 41.0 % and c 42.0 %, "
         "then 2 others."),
        ([row("a", 0.4, 1, n=1), row("b", 0.45, 2, behind=BEHIND)],
         "a made 40.0 % mistakes (one repetition, so no interval), ahead of b by 5.0 points (3.0 to 7.0) on the same streams."),
    ],
)  # fmt: skip
def test_who_came_first(rows: list[Any], said: str) -> None:
    assert sentences.headline(rows, True) == said


def test_a_lead_with_and_without_an_interval() -> None:
    assert sentences._lead(NONE, True) == "(no stream has met both yet)"
    assert sentences._lead(Interval(0.05, math.nan, math.nan, 1, "none"), True) == "by 5.0 points on the same streams"
    assert sentences._lead(BEHIND, False) == "by 5.0 points (3.0 to 7.0), the streams not being the same"
    assert [sentences._ordinal(position) for position in (1, 2, 3, 4, 11)] == [
        "first",
        "second",
        "third",
        "4th",
        "11th",
    ]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([5], "repetition 5"),
        ([0, 1, 2], "repetitions 0, 1 and 2"),
        ([0, 1, 2, 3], "repetitions 0 to 3"),
        ([2, 3, 4, 5, 6], "repetitions 2 to 6"),
        ([0, 1, 2, 4], "repetitions 0, 1, 2 and 4"),
        ([3, 2, 1, 0], "repetitions 3, 2, 1 and 0"),
    ],
)
def test_repetitions_in_a_row_are_named_by_their_ends(numbers: list[int], said: str) -> None:
    assert sentences._repetitions(numbers) == said


def arena(**keys: Any) -> Any:
    there = {"halves": ([0, 1], [2, 3]), "repetitions": [0, 1, 2, 3], "family": 2, "foreign": {}, "environment": "e"}
    results = SimpleNamespace(last_round=1000, spec={"norm_bounds": [1.0]}, failures=[])
    return SimpleNamespace(**there | {"results": results} | keys)


def test_how_settings_were_chosen() -> None:
    one, two = row("a", 0.4, 1), row("b", 0.45, 2, among=3)
    intervals = "Intervals of mistakes: 95 %, Student's t over 4 repetitions, each on its own, cut at 0 and 100 %."
    assert sentences.how_chosen(arena(), [one]) == (
        f"Nothing was chosen: each player has one setting, reported on repetitions 0 to 3. {intervals}"
    )
    both = "and the other way round, so no run helped to choose the setting it is reported at. The setting named is the best "
    both += "on all repetitions; both halves chose the same one for"
    assert sentences.how_chosen(arena(), [one, two]) == (
        "Settings were chosen for each half of the repetitions on the other half: repetitions 0 and 1 are reported at the best "
        f"setting on repetitions 2 and 3, {both} 1 of 1 player. {intervals}"
    )
    halves = ([0], [1, 2])
    said = sentences.how_chosen(arena(halves=halves), [one, two, row("c", 0.5, 3, among=2, agree=False)])
    assert "on the other half: repetition 0 is reported at the best setting on repetitions 1 and 2, " in said
    assert f"{both} 1 of 2 players, not for c. Intervals" in said
    single = sentences.how_chosen(arena(halves=([], [0])), [row("a", 0.4, 1, n=1, among=2, held_out=False)])
    assert single.startswith("There is one repetition, so the best setting of each player was chosen on the very run")
    assert "Runs are missing" not in single
    assert single.endswith("the order is that of the means, and no rank is asserted (?).")
    loose = [row("a", 0.4, 1, among=2, held_out=False), row("b", 0.4, 1, among=2, held_out=False), two]
    assert (
        "Runs are missing, so a and b are reported on repetitions the setting was chosen on."
        in sentences.how_chosen(arena(), loose)
    )
    assert "Runs are missing, so a is reported on" in sentences.how_chosen(arena(), [loose[0], two])
    assert sentences._agreement([]) == ""


@pytest.mark.parametrize(
    ("method", "family", "words", "rows"),
    [
        ("t", 2, None, False),
        ("t", 3, "3 players", False),
        ("t, rows", 3, "3 settings", True),
        ("t, rows", 2, None, True),
    ],
)
def test_what_intervals_cover(method: str, family: int, words: str | None, rows: bool) -> None:
    listed = [row("a", 0.4, 1), row("b", 0.45, 2)]
    for each in listed:
        each.mistakes = Interval(0.4, 0.3, 0.5, 4, method)
    said = sentences._about_intervals(arena(family=family), listed)
    assert ("over the rows of the table" in said) == rows
    assert ("cover every pair of the" in said) == (words is not None)
    assert words is None or f"every pair of the {words} at once" in said
    three = [*listed, row("c", 0.5, 3)]
    assert ("3 players" in sentences._about_intervals(arena(family=3), three)) is True  # as many as are listed


def comparators(*losses: float) -> pd.DataFrame:
    """Return the comparators of balls 1, 2, 3 ... with these losses; mistakes are the losses."""
    balls = [float(i + 1) for i in range(len(losses))]
    return pd.DataFrame({"norm_bound": balls, "loss_nats": losses, "mistakes": losses})


@pytest.mark.parametrize(
    ("losses", "share", "end"),
    [
        ((600.0, 500.0), 0.4, None),  # 0.8 of 50 %
        ((500.0, 400.0), 0.31, "from B = 1 to B = 2 the loss fell from 500 to 400 nats, so larger norm bounds should give a "
         "stronger comparator."),
        ((500.0, 490.0), 0.31,
         "from B = 1 to B = 2 the loss fell from 500 to 490 nats only, so a larger norm bound would add little."),
        ((500.0, 489.0), 0.31, "from B = 1 to B = 2 the loss fell from 500 to 489 nats, so larger norm bounds should give a "
         "stronger comparator."),
        ((900.0, 500.0, 400.0), 0.31,
         "from B = 2 to B = 3 the loss fell from 500 to 400 nats, so larger norm bounds should give a "
         "stronger comparator."),
        ((400.0, 500.0), 0.31, "larger balls hold stronger ones or the same, and were not computed."),
        ((400.0,), 0.31, "larger balls hold stronger ones or the same, and were not computed."),
    ],
)  # fmt: skip
def test_a_comparator_may_be_weak(losses: tuple[float, ...], share: float, end: str | None) -> None:
    said = sentences._weak_comparator(comparators(*losses), row("a", share, 1), 1000)
    if end is None:
        assert said == ""
        return
    best = min(losses) / 10
    assert said.startswith(
        f"a makes far fewer mistakes (31.0 % against {best:.1f} %): linear models with rows of norm at most"
    )
    assert said.endswith(f" are weak here; {end}")


def test_norm_bounds_that_are_no_comparators() -> None:
    assert sentences._foreign(arena()) == ""
    assert sentences._foreign(arena(foreign={"a": [3.0]})) == (
        "No comparator was computed at the own norm bound of a (B = 3): it is compared with every ball, and its bound is not "
        "checked."
    )
    assert sentences._foreign(arena(foreign={"a": [3.0, 5.0], "b": [7.0]})).endswith(
        "of a (B = 3 and 5) and b (B = 7): they are compared with every ball, and their bounds are not checked."
    )


def test_why_there_is_no_comparator() -> None:
    failure = SimpleNamespace(is_comparator=True, environment="e")
    results = SimpleNamespace(spec={"norm_bounds": [1.0]}, failures=[])
    assert sentences._no_comparator(arena(results=results)).endswith("are not there yet")
    for failures, said in (
        ([failure], "failed (see below)"),
        ([SimpleNamespace(is_comparator=False, environment="e")], "are not there yet"),
        ([SimpleNamespace(is_comparator=True, environment="f")], "are not there yet"),
    ):
        results.failures = failures
        assert sentences._no_comparator(arena(results=results)).endswith(said)
    results.spec = {"norm_bounds": []}
    assert (
        sentences._no_comparator(arena(results=results)) == "No comparator was computed (norm_bounds = [] in spec.toml)"
    )


def test_the_game_is_told_by_who_plays() -> None:
    label = "Where it says so, players are told the label, the right class."
    for kinds, bit, other in ((["bit"], True, False), (["bit", "bit"], True, False), (["label"], False, False),
                              (["bit", "label"], True, True), (["label", "reference"], False, False)):  # fmt: skip
        said = sentences.the_game(kinds)
        assert ("told only whether that was right." in said, label in said) == (bit, other)
        assert ("told the right one afterwards." in said) != bit


# ------------------------------------------------------------------------------------------------------------- what is amiss


def results(**keys: Any) -> Any:
    runs = pd.DataFrame({"round": [10, 1000], "label": ["a", "a"], "environment": ["e", "e"], "ranked": [0.1, 0.1]})
    there = {
        "missing": 0,
        "planned": 12,
        "failures": [],
        "unreadable": [],
        "runs": runs,
        "last_round": 1000,
        "data": {},
    }
    return SimpleNamespace(**there | keys)


def test_what_is_missing_failed_or_unreadable() -> None:
    assert sentences.state(results()) == []
    [one] = sentences.state(results(missing=1))
    assert one == "Unfinished: 1 run of 12 is missing; the same command continues."
    assert sentences.state(results(missing=3))[0].startswith("Unfinished: 3 runs of 12 are missing")
    run, stream = (SimpleNamespace(is_comparator=each) for each in (False, True))
    assert sentences.state(results(failures=[run, run])) == ["Failed: 2 runs, listed below."]
    assert sentences.state(results(failures=[stream])) == ["Failed: the comparators of 1 stream, listed below."]
    assert sentences.state(results(failures=[run, stream, stream])) == [
        "Failed: 1 run and the comparators of 2 streams, listed below."
    ]
    for files, names in ((list("abcde"), "a, b, c, d and e"), (list("abcdef"), "a, b, c, d, e and others")):
        [said] = sentences.state(results(unreadable=files))
        assert said == f"{len(files)} files could not be read, and what stood there alone counts as missing: {names}."


def test_runs_without_a_number_have_no_rank() -> None:
    def lost(labels: str, at: int = 1000) -> list[str]:
        runs = pd.DataFrame({"round": at, "label": list(labels), "ranked": math.nan})
        return sentences._without_a_number(results(runs=runs))

    assert lost("a") == ["1 run of a has no number of mistakes (NaN), and no rank."]
    assert lost("abcdea") == ["6 runs of a, b, c, d and e have no number of mistakes (NaN), and no rank."]
    assert lost("abcdef") == ["6 runs of a, b, c, d, e and others have no number of mistakes (NaN), and no rank."]
    assert lost("a", 10) == []


def test_mistakes_far_from_what_probabilities_promise() -> None:
    """Beyond 6 + 6 sqrt(1 + V): 18 where V = 3, 12 where V = 0."""

    def told(off: float, variance: float, kind: str = "bit", at: int = 1000) -> int:
        runs = pd.DataFrame({"round": [at], "kind": [kind], "mistakes_variance": [variance], "mistakes": [100.0 + off],
                             "expected_mistakes": [100.0], "environment": ["e"], "label": ["a"]})  # fmt: skip
        return len(sentences._off_expectation(results(runs=runs)))

    assert [told(off, 3.0) for off in (18.0, 18.1, -18.1, -18.0)] == [0, 1, 1, 0]
    assert [told(off, 0.0) for off in (12.0, 12.1)] == [0, 1]
    assert [told(99.0, 3.0, kind) for kind in ("reference", "label")] == [1, 0]
    assert (told(99.0, math.nan), told(99.0, 3.0, at=10)) == (0, 0)


def test_players_are_named_in_the_order_of_the_spec() -> None:
    two = pd.DataFrame({"round": 1000, "kind": "bit", "mistakes_variance": 0.0, "mistakes": 200.0, "expected_mistakes": 100.0,
                        "environment": "e", "label": ["b", "a", "b"]})  # fmt: skip
    said = sentences._off_expectation(results(runs=two))
    assert [line.partition(" on ")[0] for line in said] == ["Do not trust b", "Do not trust a"]
    assert "in 2 runs its mistakes (200.0 in the mean)" in said[0]
    assert said[0].endswith("reports promise (100.0).")
    runs = pd.DataFrame({"label": ["b", "a", "c"], "settings": "", "gamma": math.nan, "norm_bound": math.nan})
    assert sentences._axes(runs) == "b, a and c at their default settings."
    runs = pd.DataFrame({"label": ["b", "b", "a", "d", "d"], "settings": ["x", "y", "", "u", "v"],
                         "gamma": [0.1, 0.3, 0.1, 0.2, 0.2], "norm_bound": math.nan,
                         "setting.gamma": ["0.1", "0.3", "0.1", None, None]})  # fmt: skip
    assert sentences._axes(runs) == "b over γ in {0.1, 0.3}; a in one setting; d in 2 settings."
    runs = pd.DataFrame(
        {"label": ["a(b)", "a(b)"], "settings": "", "gamma": math.nan, "norm_bound": math.nan, "setting.inner": "b"}
    )
    assert sentences._axes(runs) == "a(b) at its default settings."


# ---------------------------------------------------------------------------------------------------------------- statistics


def test_the_variance_by_the_sampling_of_rows() -> None:
    assert _of_rows(np.array([1.0])) == (0.0, 1.0)
    assert _of_rows(np.array([1.0, -1.0])) == (4.0, 1.0)
    assert _of_rows(np.array([1.0, -2.0, 1.0])) == (9.0, 2.0)
    assert _sum(0.5, [(0.0, 3.0), (0.0, 7.0)], 4, "t").freedom == 3.0
    both = _sum(0.5, [(2.0, 3.0), (1.0, 7.0)], 4, "t")
    assert (both.variance, both.freedom) == (3.0, pytest.approx(9.0 / (4.0 / 3.0 + 1.0 / 7.0)))


def test_intervals_of_many_series() -> None:
    mean, low, high, method = mean_intervals(np.array([[1.0, 2.0, 6.0], [1.0, math.nan, 2.0], [4.0, 4.0, 4.0]]))
    half = critical(0.95, 2.0) * np.std([1.0, 2.0, 6.0], ddof=1) / math.sqrt(3.0)
    np.testing.assert_allclose(low, [3.0 - half, math.nan, 4.0])
    np.testing.assert_allclose(high, [3.0 + half, math.nan, 4.0])
    assert (mean[0], method) == (3.0, "t")
    assert critical(0.95, 2.0) == pytest.approx(4.302652729749462)
    assert critical(0.95, 2.0, 3) == pytest.approx(7.582405712076758)
    for n in (0, 1):
        mean, low, _, method = mean_intervals(np.ones((2, n)))
        assert (method, np.isnan(low).all(), np.isnan(mean).all()) == ("none", True, n == 0)


def test_without_any_variance_a_difference_is_sure() -> None:
    assert p_value([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert p_value([2.0, 3.0], [1.0, 2.0]) == 0.0
    assert math.isnan(p_value([1.0], [2.0]))
    assert p_value([1.0, 2.0, 4.0], [0.0, 2.0, 3.0]) == pytest.approx(0.18350341907227397)
