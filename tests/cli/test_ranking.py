"""Terminals of 80 columns and fewer: every name, setting and number is there whole, whatever its length."""

from __future__ import annotations

import io

import pytest
import rich.console
from rich.cells import cell_len

from banditlab.cli import console, listing
from banditlab.cli.ranking import folded, ranked_lines, say

HEADER = ("", "player", "setting", "mistakes % (95 %)", "behind", "us/round")
ROWS = [
    ("1", "exploration(folklore)", "γ=0.3 B=10 decoding=half-log", "83.71 (82.82 to 84.73)", "", "3.95"),
    ("12=", "a-player-of-one's-own-with-a-name-of-more-than-sixty-characters-in-all †", "γ=0.0125", "91.2", "+7.51", "1.3e+06"),
    ("2=", "名前がとても長いプレイヤーの名前がとても長いプレイヤー", "", "12.6 (11.4 to 13.8)", "+21.8", "0.213"),
    ("", "most frequent class", "", "89.8", "", ""),
]  # fmt: skip


@pytest.mark.parametrize("room", [46, 60, 80, 100, 250])
def test_nothing_is_cut_and_no_number_broken(room):
    head, *listed = ranked_lines([HEADER, *ROWS], room)
    assert len(head) == 1
    assert "mistakes % (95 %)" in head[0]
    for (rank, player, setting, mistakes, behind, last), lines in zip(ROWS, listed, strict=True):
        first, *more = lines
        assert first.startswith(rank)
        assert all(cell_len(line) <= room for line in lines)
        numbers = first[first.rindex(mistakes) :]
        assert (behind in numbers and last in numbers) or room < 80
        text = "".join([first[3 : first.rindex(mistakes)], *more])
        assert "".join(text.split()) == "".join((player + setting).split())


def test_a_wide_terminal_keeps_a_line_each_with_a_column_for_settings():
    lines = ranked_lines([HEADER, ROWS[0], ROWS[3]], 120)
    assert [len(each) for each in lines] == [1, 1, 1]
    assert lines[0][0].index("setting") == lines[1][0].index("γ=0.3")
    assert lines[1][0].endswith("  3.95")


def test_the_least_important_numbers_go_first():
    rows = [HEADER, ROWS[0]]
    ends = {room: ranked_lines(rows, room)[1][0].split()[-1] for room in (80, 64, 50)}
    assert ends == {80: "3.95", 64: "84.73)", 50: "84.73)"}
    assert "us/round" not in ranked_lines(rows, 50)[0][0]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("B=10 decoding=half-log", 12, ["B=10", "decoding=hal", "f-log"]),
        ("B=10 γ=1", 12, ["B=10 γ=1"]),
        ("", 5, [""]),
        ("x" * 7, 3, ["xxx", "xxx", "x"]),
    ],
)
def test_names_go_on_below_themselves(text, width, lines):
    assert folded(text, width) == lines


def test_sentences_break_at_spaces_on_a_terminal_and_nowhere_in_a_pipe():
    for terminal in (True, False):
        file = io.StringIO()
        out = rich.console.Console(file=file, force_terminal=terminal, width=20, highlight=False, color_system=None)
        say(out, "done are 1,234,567 of 7,654,321 runs in /a/path/longer/than/the/width")
        lines = file.getvalue().splitlines()
        assert len(lines) == (3 if terminal else 1)
        assert "/a/path/longer/than/the/width" in lines[-1]
        assert any("1,234,567" in line for line in lines)


def test_what_a_name_means_to_a_smiley_is_nothing():
    file = io.StringIO()
    made = console.Console()
    made.out.file = file
    say(made.out, "a:key:b")
    assert file.getvalue() == "a:key:b\n"


def test_the_list_puts_what_is_said_below_an_id_that_leaves_no_room():
    file = io.StringIO()
    out = rich.console.Console(file=file, width=80, highlight=False)
    long = "lab/an-environment-of-mine-whose-id-is-longer-than-half-a-line-v0"
    listing._print_sections(
        out, {"": [(long, "planted clusters with 17 centres and noise of many kinds in it", "./lab")]}
    )
    lines = file.getvalue().splitlines()
    assert lines[0] == long
    assert (
        " ".join(line.strip() for line in lines[1:])
        == "planted clusters with 17 centres and noise of many kinds in it (./lab)"
    )
    assert all(len(line) <= 80 for line in lines)
