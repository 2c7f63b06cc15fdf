"""Terminals of 80 columns and fewer: every name, setting and number is there whole, whatever its length."""

from __future__ import annotations

import io
import math
from types import SimpleNamespace
from typing import Any

import pytest
from rich.cells import cell_len

from banditlab.analysis.statistics import Interval
from banditlab.cli import console, listing, ranking
from banditlab.cli.plain import say
from banditlab.cli.ranking import cells, print_ranking, ranked_table
from tests.cli.conftest import terminal

HEADER = ("", "agent", "setting", "mistakes % (95 %)", "behind", "us/round")
ROWS = [
    ("1", "exploration(folklore)", "γ=0.3 B=10 decoding=half-log", "83.71 (82.82 to 84.73)", "", "3.95"),
    ("12=", "a-player-of-one's-own-with-a-name-of-more-than-sixty-characters-in-all †", "γ=0.0125", "91.2", "+7.51", "1.3e+06"),
    ("2=", "名前がとても長いプレイヤーの名前がとても長いプレイヤー", "", "12.6 (11.4 to 13.8)", "+21.8", "0.213"),
    ("", "most frequent class", "", "89.8", "", ""),
]  # fmt: skip


def shown(rows: list[tuple[str, ...]], room: int) -> list[str]:
    """Return the lines of a table, without the line below its header."""
    out, file = terminal(room)
    out.print(ranked_table(rows, room))
    return [line.rstrip() for line in file.getvalue().splitlines() if "─" not in line]


@pytest.mark.parametrize("room", [46, 60, 80, 100, 250])
def test_nothing_is_cut_and_no_number_broken(room):
    head, *lines = shown([HEADER, *ROWS], room)
    assert "mistakes % (95 %)" in head
    assert all(cell_len(line) <= room for line in lines)
    text = "".join("".join(lines).split())
    for rank, player, setting, mistakes, behind, last in ROWS:
        [first] = [line for line in lines if mistakes in line]
        assert first.startswith(rank)
        assert (behind in first and last in first) or room < 80
        assert len(lines) > len(ROWS) or room > 200
        assert room < 100 or "".join(setting.split()) in text
        assert set("".join((player + setting).split())) <= set(text)


def test_a_wide_terminal_keeps_a_line_each_with_a_column_for_settings():
    head, *lines = shown([HEADER, ROWS[0], ROWS[3]], 120)
    assert len(lines) == 2
    assert head.index("setting") == lines[0].index("γ=0.3")
    assert lines[0].endswith("3.95")


def test_the_least_important_numbers_go_first():
    rows = [HEADER, ROWS[0]]
    ends = {room: shown(rows, room)[1].split()[-1] for room in (80, 64, 50)}
    assert ends == {80: "3.95", 64: "84.73)", 50: "84.73)"}
    assert "us/round" not in shown(rows, 50)[0]


def test_sentences_break_at_spaces_on_a_terminal_and_nowhere_in_a_pipe():
    for is_terminal in (True, False):
        out, file = terminal(20, force_terminal=is_terminal)
        say(out, "done are 1,234,567 of 7,654,321 runs in /a/path/longer/than/the/width")
        lines = file.getvalue().splitlines()
        assert len(lines) == (3 if is_terminal else 1)
        assert "/a/path/longer/than/the/width" in lines[-1]
        assert any("1,234,567" in line for line in lines)


def test_what_a_name_means_to_a_smiley_is_nothing():
    file = io.StringIO()
    made = console.Console()
    made.out.file = file
    say(made.out, "a:key:b")
    assert file.getvalue() == "a:key:b\n"


def test_the_list_cuts_nothing_where_an_id_leaves_no_room():
    out, file = terminal(80)
    row = (
        "lab/an-environment-of-mine-whose-id-is-longer-than-half-a-line-v0",
        "planted clusters with 17 centres",
        "./lab",
    )
    listing._print_sections(out, {"": [row]})
    lines = file.getvalue().splitlines()
    assert sorted("".join("".join(lines).split())) == sorted("".join("".join(row).split()))
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(("room", "line"), [(14, "a        f  u"), (13, "a  f  u")])
def test_the_list_has_columns_of_one_width_where_ids_leave_half_the_room(room, line):
    out, file = terminal(room)
    listing._print_sections(out, {"One": [("a", "f", "u")], "Two": [("long-id", "f", "u")]})
    assert file.getvalue() == f"One\n{line}\n\nTwo\nlong-id  f  u\n"


NONE = Interval(math.nan, math.nan, math.nan, 0, "none")


def standing(**keys: Any) -> Any:
    there = {
        "environment": "e", "kind": "bit", "rank": "1", "label": "p", "settings": "", "among": 1, "held_out": True,
        "mistakes": Interval(0.05, 0.04, 0.06, 3, "t"), "behind_first": NONE, "seconds_per_round": 1.234e-6,
        "repeated": math.nan, "constant": False, "below_constant": False, "cost": math.nan,
    }  # fmt: skip
    return SimpleNamespace(**there | keys)


def share(mean: float, off: float = math.nan) -> Interval:
    return Interval(mean, mean - off, mean + off, 3, "t")


@pytest.mark.parametrize(
    ("keys", "last", "expected"),
    [
        ({}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"mistakes": share(0.0996)}, "us/round", ("1", "p", "", "9.96", "", "1.23")),
        ({"mistakes": share(0.1)}, "us/round", ("1", "p", "", "10.0", "", "1.23")),
        ({"mistakes": share(0.5, 0.25)}, "us/round", ("1", "p", "", "50.0 (25.0 to 75.0)", "", "1.23")),
        ({"behind_first": share(0.0)}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"behind_first": share(-0.1)}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"behind_first": share(0.004)}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "+0.40", "1.23")),
        ({"behind_first": share(0.0996)}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "+9.96", "1.23")),
        ({"behind_first": share(0.1)}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "+10.0", "1.23")),
        ({"repeated": 0.1234}, "repeats %", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "12.34")),
        ({"repeated": 0.1234, "mistakes": share(0.5)}, "repeats %", ("1", "p", "", "50.0", "", "12.3")),
        ({"rank": "2=", "settings": "B=1", "below_constant": True}, "us/round",
         ("2=", "p †", "B=1", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"cost": 0.00123456}, "mean cost", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "0.001235")),
        ({"cost": 12.0, "constant": True}, "mean cost", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "12")),
        ({"constant": True}, "mean cost", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "")),
        ({"constant": True}, "us/round", ("1", "p", "", "5.00 (4.00 to 6.00)", "", "")),
    ],
)  # fmt: skip
def test_a_row_of_the_ranking(keys: dict[str, Any], last: str, expected: tuple[str, ...]) -> None:
    assert cells(standing(**keys), last) == expected
    assert cells(standing()) == cells(standing(), "us/round")


def test_a_ranking_is_a_table_for_each_environment_and_kind() -> None:
    rows = [
        standing(),
        standing(label="q", rank="2", repeated=0.5),
        standing(kind="label", label="told"),
        standing(environment="f", label="other", rank="?"),
    ]
    out, file = terminal(120)
    print_ranking(out, rows)
    lines = [line for line in file.getvalue().splitlines() if line]
    heads = [line for line in lines if line.startswith(("e", "f"))]
    assert heads == ["e", "e (forecasters: they observe the label)", "f"]
    titles = [line for line in lines if "mistakes % (95" in line]
    assert ["repeats %" in line for line in titles] == [True, False, False]
    assert ["us/round" in line for line in titles] == [False, True, True]
    at = lines.index("f")
    assert lines[at + 1 : at + 4] == [
        f"   agent  setting  {'mistakes % (95 %)':>19}  behind  us/round",
        "─" * 56,
        f"?  other           5.00 (4.00 to 6.00)  {'':6}  {1.23:>8}",
    ]
    assert lines[-2:] == [
        "mistakes % (ranked): rounds in which a row occurs for the first time; repeats %: the other rounds",
        "?: no evidence for the order (fewer than three repetitions, or no interval)",
    ]


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({}, None),
        ({"below_constant": True}, "†"),
        ({"among": 2}, "settings are chosen on one half of the repetitions"),
        ({"among": 2, "held_out": False}, None),
        ({"rank": "1="}, "=: the difference"),
        ({"rank": "?"}, "?: no evidence"),
        ({"repeated": 0.5}, "mistakes % (ranked)"),
    ],
)
def test_signs_are_explained_where_they_stand(keys: dict[str, Any], word: str | None) -> None:
    said = ranking._signs([standing(**keys), standing()])
    assert [sentence.startswith(word or "?") for sentence in said] == ([True] if word else [])
