"""Arrays, colours, axes, markers and sentences of the pages at their edges, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import answers, drawing, embedding, look, words
from banditlab.analysis.drawing import Axis, between, through, width_of
from banditlab.analysis.embedding import json_text, script_of
from banditlab.analysis.glossary import glossed
from banditlab.analysis.matrices import complete, groups_of, matrix, mean_of
from banditlab.analysis.pages import filled, markdown_table
from banditlab.analysis.statistics import Interval
from banditlab.analysis.svg_figures import _apart, _signed_ticks
from banditlab.errors import UsageError

# ------------------------------------------------------------------------------------------------------------------ arrays


def test_groups_are_in_the_order_of_the_table() -> None:
    table = pd.DataFrame({"a": ["y", "x", "y", "x", "z"], "b": [1, 1, 1, 2, 1]})
    found = {key: at.tolist() for key, at in groups_of(table, ["a", "b"]).items()}
    assert list(found.items()) == [(("y", "1"), [0, 2]), (("x", "1"), [1]), (("x", "2"), [3]), (("z", "1"), [4])]
    assert groups_of(table[:0], ["a"]) == {}


def test_values_over_rows_and_columns() -> None:
    down, across, values = matrix([2, 1, 2], [7, 9, 8], [0.5, 1.5, 2.5])
    assert (down.tolist(), across.tolist()) == ([1, 2], [7, 8, 9])
    np.testing.assert_array_equal(values, [[np.nan, np.nan, 1.5], [0.5, 2.5, np.nan]])
    with pytest.raises(ValueError, match="two values for one place"):
        matrix([1, 1], [2, 2], [0.0, 0.0])
    np.testing.assert_array_equal(complete(np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])), [[1.0, 3.0], [4.0, 6.0]])
    assert mean_of([1.0, np.nan, 2.0]) == 1.5
    assert math.isnan(mean_of([np.nan]))


# -------------------------------------------------------------------------------------------------------------------- data


def test_numbers_of_a_page_have_six_digits_and_none_is_infinite() -> None:
    data = {"a": [1.23456789, 2.0, -0.0, math.nan, math.inf], 3: (np.float32(0.5), np.int64(7), np.True_, True, None)}
    assert str(json_text(data)) == '{"a":[1.23457,2,0,null,null],"3":[0.5,7,true,true,null]}'
    assert str(json_text(np.array([[999_999_000_000_000.0, 1e15]]))) == "[[999999000000000,1000000000000000.0]]"
    assert str(json_text("<é\u2028&>")) == '"\\u003c\\u00e9\\u2028\\u0026\\u003e"'
    assert embedding.DIGITS == 6


@pytest.mark.parametrize(("text", "ends"), [("a </SCRIPT >", True), ("a <!-- b", True), ("a < b -->", False)])
def test_a_script_must_not_end_its_element(text: str, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "asset", lambda name: f" {text} ")
    if ends:
        with pytest.raises(ValueError, match="ends its own element"):
            script_of("a", "b")
    else:
        assert str(script_of("a", "b")) == f"\n{text}\n{text}\n"


def test_a_term_explains_itself_where_it_appears_first() -> None:
    said = str(glossed("A theory <of> the theory; the log loss."))
    assert said.startswith('A <a class="term" href="#term-')
    assert said.count("<a ") == 2
    assert " &lt;of&gt; the theory; the <a " in said
    assert said.endswith("log loss</a>.")
    assert str(glossed("nothing")) == "nothing"


# ------------------------------------------------------------------------------------------------------------------ drawing


def test_a_wide_letter_is_as_wide_as_high() -> None:
    assert width_of("ab") == pytest.approx(2 * 0.54 * 13.0)
    assert width_of("名前x", 10.0) == pytest.approx(25.4)


def test_axes_by_their_ends() -> None:
    line = Axis.linear(2.0, 6.0, 100.0, 20.0)
    np.testing.assert_allclose(line.place([2.0, 6.0, 3.0]), [100.0, 20.0, 80.0])
    np.testing.assert_allclose(Axis.linear(2.0, 2.0, 100.0, 20.0).place([2.0, 3.0]), [100.0, 20.0])  # no division by 0
    logs = Axis.log(0.01, 100.0, 0.0, 400.0)
    np.testing.assert_allclose(logs.place([0.01, 0.1, 1.0, 100.0]), [0.0, 100.0, 200.0, 400.0], atol=1e-9)
    assert logs.place(0.0) == pytest.approx(logs.place(-3.0)) == pytest.approx(-50.0 * 100.0 / math.log(10.0))
    wide = Axis.log(0.01, 100.0, 0.0, 600.0, margin=0.25)
    np.testing.assert_allclose(wide.place([0.01, 100.0]), [100.0, 500.0])
    far = Axis.log(1e-200, 1e200, 0.0, 1.0)
    np.testing.assert_allclose(far.place([1e-200, 1.0, 1e200]), [0.0, 0.5, 1.0], atol=1e-12)


def test_a_signed_axis_is_linear_up_to_its_threshold() -> None:
    axis = Axis.signed(-1000.0, 1000.0, 10.0, -2.667, 2.667)
    at = [0.0, 5.0, 10.0, 100.0, 1000.0]
    np.testing.assert_allclose(axis.place(at), [0.0, 0.3335, 0.667, 1.667, 2.667], atol=1e-12)
    np.testing.assert_allclose(axis.place(np.negative(at)), -axis.place(at), atol=1e-12)


def test_ticks_of_a_signed_axis_are_some_ten_powers_of_ten() -> None:
    assert _signed_ticks(-100.0, 1000.0, 10.0) == [-100.0, -10.0, 0.0, 10.0, 100.0, 1000.0]  # the ends are ticks
    assert _signed_ticks(-99.0, 999.0, 10.0) == [-10.0, 0.0, 10.0, 100.0]
    assert _signed_ticks(0.0, 1e9, 1.0) == [0.0, *(10.0**e for e in range(10))]  # ten
    assert _signed_ticks(0.0, 1e10, 1.0) == [0.0, *(10.0**e for e in range(0, 11, 2))]  # one more
    assert _signed_ticks(-1e3, 1e8, 1.0) == [-100.0, -1.0, 0.0, *(10.0**e for e in range(0, 9, 2))]
    assert _signed_ticks(-1e6, 1e6, 1.0) == [-1e6, -1e4, -1e2, -1.0, 0.0, 1.0, 1e2, 1e4, 1e6]
    assert _signed_ticks(0.0, 0.5, 1.0) == [0.0]


def test_words_on_an_axis_do_not_touch() -> None:
    step = (width_of("10") + 4) / 10

    def shown(values: list[float], per: float) -> list[str]:
        return [text for _, text in _apart(values, Axis(lambda value: per * np.asarray(value)))]

    assert shown([10, 20], step * 1.001) == ["10", "20"]
    assert shown([10, 20, 30], step * 0.999) == ["10", "", "30"]


def test_a_path_begins_anew_behind_a_gap() -> None:
    nan = math.nan
    assert through([1, 2, nan, 4, 5, 6], [1, 2, 3, 4, nan, 6]) == "M1.0 1.0L2.0 2.0M4.0 4.0M6.0 6.0"


def test_colours_between_anchors() -> None:
    anchors = ("#000000", "#ff8000", "#ffffff")
    for value, colour in ((0.0, (0, 0, 0)), (0.25, (127.5, 64, 0)), (0.5, (255, 128, 0)), (0.75, (255, 191.5, 127.5)),
                          (1.0, (255, 255, 255)), (-1.0, (0, 0, 0)), (2.0, (255, 255, 255))):  # fmt: skip
        np.testing.assert_allclose(between(anchors, value), np.divide(colour, 255))
    assert drawing.hexed(between(anchors, 0.5)) == "#ff8000"


def test_players_keep_their_looks_and_references_are_grey() -> None:
    """A player's seat depends on its name, and on who was seated there before."""
    one = look.styles(["fastcb", "uniform", "yours"], [])
    two = look.styles(["yours", "uniform"], ["uniform"])
    assert one["yours"] == two["yours"]
    assert two["uniform"] == look.Style(look.FAINT, look.DASHES[1], look.MARKERS[0])
    greys = look.styles(list("abcdefghi"), list("abcdefghi"))
    assert [greys[c].dash for c in "abcd"] == [look.DASHES[1], look.DASHES[2], look.DASHES[3], look.DASHES[1]]
    assert [greys[c].marker for c in "ai"] == [look.MARKERS[0], look.MARKERS[8 % len(look.MARKERS)]]
    many = [f"player {i}" for i in range(100)]
    assert len({(s.colour, str(s.dash), s.marker) for s in look.styles(many, []).values()}) == 100


# -------------------------------------------------------------------------------------------------------- pages and numbers


def test_one_character_before_a_marker_is_seen() -> None:
    table, text = "<!-- table: t -->\nx\n<!-- end -->\n", "<!-- text: t -->x<!-- end -->\n"
    assert filled(table, {"t": "y"}) == table.replace("x", "y")
    assert filled(f"\n{table}", {}) == f"\n{table}"
    assert filled(f"a{text}", {"t": "y"}) == "a<!-- text: t -->y<!-- end -->\n"
    assert filled(f"\na{text}", {"t": "y"}) == "\na<!-- text: t -->y<!-- end -->\n"
    for page in (f"a{table}", f"\na{table}", table.replace("x\n<", "x<"), table.replace("-->\nx", "-->x")):
        with pytest.raises(UsageError, match="stand on lines of their own"):
            filled(page, {})
    for page in (text, f"\n{text}", f"- {text}", f"> 1. {text}"):
        with pytest.raises(UsageError, match="begins a line"):
            filled(page, {})


def test_the_last_letter_holds_for_all_columns_that_follow() -> None:
    assert markdown_table(["a", "b", "c"], []).splitlines()[1] == "|---|---:|---:|"
    assert markdown_table(["a"], [], "r").splitlines()[1] == "|---:|"
    assert markdown_table(["a", "b"], [], "cl").splitlines()[1] == "|:---:|---|"


def interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 5, "t")


def test_decimals_at_their_limits() -> None:
    assert words.decimals(interval(0.0, 0.125)) == words.decimals(interval(0.0, 0.1)) == 1  # half of 0.1 is 0.05
    assert words.decimals(interval(0.0, 0.09375)) == 2
    assert [words.decimals(Interval(mean, math.nan, math.nan, 1, "none")) for mean in (1.0, 0.99)] == [1, 2]
    assert [words.decimals(Interval(mean, mean, mean, 5, "t")) for mean in (10.0, 9.99, -10.0)] == [1, 2, 1]
    assert interval(1.0, 2.0).contains(1.0)
    assert interval(1.0, 2.0).contains(2.0)
    assert not interval(1.0, 2.0).contains(0.999)


# ----------------------------------------------------------------------------------------------------------------- answers

NONE = Interval(math.nan, math.nan, math.nan, 0, "none")


def standing(
    label: str, share: float = 0.4, *, position: int = 1, behind: Interval = NONE, n: int = 5, settings: str = ""
) -> Any:
    mistakes = Interval(share, share - 0.01, share + 0.01, n, "t")
    return SimpleNamespace(
        label=label, settings=settings, position=position, rank=str(position), mistakes=mistakes, behind_first=behind
    )


def arena(**keys: Any) -> Any:
    there = {"repeats": False, "results": SimpleNamespace(last_round=1000), "repetitions": [0, 1, 2], "paired": True}
    return SimpleNamespace(**there | keys)


AHEAD = Interval(0.05, 0.03, 0.07, 5, "t")
PERHAPS = Interval(0.01, -0.01, 0.03, 5, "t")


def test_a_winner_by_how_much_and_how_sure() -> None:
    rows = [standing("a"), standing("b", 0.45, position=2, behind=AHEAD)]
    winner, said, lead, sure = answers._who(arena(), rows)
    assert (winner, said[:26]) == ("a", "a wins: wrong in 40.0 % of")
    assert lead == "5.0 percentage points fewer mistakes than the next, b."
    assert (
        sure == "sure at 95 % from 5 repetitions, the difference is 3.0 to 7.0 percentage points, on the same streams."
    )
    winner, said, lead, sure = answers._who(arena(), rows[:1])
    assert (winner, lead, sure) == ("a", "there is nobody to win against.", "")
    single = [standing("a", n=1), *(standing(label, 0.45, n=1, position=2, behind=AHEAD) for label in "bcdef")]
    winner, said, _, sure = answers._who(arena(), single)
    assert (winner, said.endswith("fewest in a single repetition.")) == ("", True)
    for alike, told in ((1, "; so is b."), (3, "; so are b, c and d."), (4, "; so are 4 others.")):
        equal = [standing(label, n=1) for label in "abcde"[: alike + 1]]
        assert answers._who(arena(), [*equal, single[-1]])[1].endswith("fewest in a single repetition" + told)
    assert answers._who(arena(), [standing("a", n=1), standing("b", n=2, position=2, behind=AHEAD)])[0] == "a"


def test_those_tied_first_are_named_up_to_four() -> None:
    for n, names in ((2, "a and b"), (4, "a, b, c and d"), (5, "5 players")):
        rows = [standing(label, behind=PERHAPS) for label in "abcde"[:n]]
        winner, said, lead, sure = answers._who(arena(), rows)
        assert (winner, lead) == ("", "nobody is shown to be ahead of anybody.")
        assert said.startswith(f"No single winner: {names} are tied first. Fewest mistakes: a,")
        assert sure == "3 repetitions do not tell the tied ones apart."
    after = [standing("z", 0.45, position=3, behind=AHEAD), standing("y", 0.5, position=4, behind=AHEAD)]
    _, _, lead, sure = answers._who(arena(), [*rows[:2], *after])
    assert lead == "a makes 5.0 percentage points fewer mistakes than the first player behind the tie, z."
    assert sure.startswith("3 repetitions do not tell the tied ones apart. The lead on z: sure at 95 %")


def test_a_lead_may_be_nothing() -> None:
    a, b = standing("a"), standing("b", settings="B=3")
    assert answers._lead(a, standing("b")) == "no stream has met both a and b yet."
    b.behind_first = Interval(math.nan, math.nan, math.nan, 3, "t")
    assert answers._lead(a, b) == "no stream has met both a and b (B=3) yet."
    b.behind_first = Interval(0.0, -0.1, 0.1, 3, "t")
    assert answers._lead(a, b) == "a makes as many mistakes as the next, b (B=3)."
    assert answers._sure(NONE, arena()) == "there is no interval, so nobody knows."
    assert answers._sure(Interval(0.05, 0.0, 0.1, 5, "t"), arena(paired=False)) == (
        "not sure, it could be nothing: 0.0 to 10.0 percentage points at 95 %, on streams of their own."
    )
    assert answers._sure(Interval(0.05, 0.01, 0.09, 0, "t"), arena()).startswith(
        "sure at 95 %, the difference is 1.0 to 9.0"
    )


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (math.nan, "the first cannot be compared"),
        (0.0, "the same as the first here"),
        (-0.0004, "the same as the first here"),
        (0.0006, "0.1 points more than the first here"),
        (-0.0314, "3.1 points fewer than the first here"),
    ],
)
def test_points_more_or_fewer(difference: float, said: str) -> None:
    assert answers._points(difference) == said


BOUNDS = pd.DataFrame(
    {"label": ["a", "a", "b"], "settings": ["", "B=1", ""], "vacuous": [True, False, True], "bound": [5e3, 9.0, 7e3]}
)


@pytest.mark.parametrize(
    ("label", "settings", "explored", "beaten", "theorem", "expected"),
    [
        ("uniform", "", 1.0, True, True, ("guesses by design, for scale", False)),
        ("c", "", 0.5, False, False, ("plays at random in 50.0 % of the rounds", False)),
        ("c", "", 0.6, True, True, ("plays at random in 60.0 % of the rounds, as its theorem asks for 1,000 rounds", True)),
        ("c", "", 0.4999, True, True, ("is no better than the most frequent class after 1,000 rounds", False)),
        ("c", "", math.nan, False, False, ("", False)),
        ("a", "B=1", 0.5, False, False, ("plays at random in 50.0 % of the rounds", False)),
        ("a", "", 0.1, True, False, ("is no better than the most frequent class after 1,000 rounds and is promised nothing: "
         "its bound, 5,000 mistakes, is more than the 1,000 rounds (vacuous)", True)),
    ],
)  # fmt: skip
def test_why_a_player_guesses(
    label: str, settings: str, explored: float, beaten: bool, theorem: bool, expected: tuple[str, bool]
) -> None:
    row = standing(label, settings=settings)
    assert answers._why(row, explored, BOUNDS, 1000, beaten=beaten, by_theorem=theorem) == expected
    if label == "c":
        assert answers._why(row, explored, BOUNDS[:0], 1000, beaten=beaten, by_theorem=theorem) == expected


def test_six_bars_are_drawn_the_last_of_them_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "constant_share", lambda arena: NONE)
    monkeypatch.setattr(answers, "_model", lambda arena: None)
    rows = [standing(label, 0.1 * (i + 1), position=1 if i < 2 else i + 1) for i, label in enumerate("abcdefg")]
    bars = answers._bars(arena(), rows[:6])
    assert [(bar.name, bar.kind) for bar in bars] == [(c, "first" if c in "ab" else "player") for c in "abcdef"]
    assert [bar.name for bar in answers._bars(arena(), rows)] == list("abcdeg")
    assert [bar.kind for bar in answers._bars(arena(), [rows[1], rows[3]])] == ["first", "player"]
    unranked = standing("a")
    unranked.rank = "?"
    assert [bar.kind for bar in answers._bars(arena(), [unranked])] == ["player"]
    monkeypatch.setattr(answers, "constant_share", lambda arena: Interval(0.5, 0.4, 0.6, 3, "t"))
    monkeypatch.setattr(answers, "_model", lambda arena: ("10", 0.25))
    last = [(bar.kind, bar.share) for bar in answers._bars(arena(), [rows[0], standing("x", math.nan)])]
    assert last == [("first", 0.1), ("model", 0.25), ("constant", 0.5)]
