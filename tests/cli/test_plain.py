"""Nothing that a file or a name holds steers the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from banditlab.cli.plain import plain, say
from tests.cli.conftest import terminal

CLEAR = "\x1b[2J\x1b]0;owned\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 世界\t1\n2", "größe 世界\t1\n2"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\u202eb\u200b", r"a\u202eb\u200b"),
        ("\x9b31m\x7f\r", r"\x9b31m\x7f\r"),
    ],
)
def test_control_characters_stand_as_escapes(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_markup_is_shown_letter_by_letter() -> None:
    out, file = terminal()
    say(out, "[bold]x[/bold]\x1b")
    assert file.getvalue() == "[bold]x[/bold]\\x1b\n"


@pytest.mark.slow
def test_a_column_s_name_steers_no_terminal(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = "".join(f"{i % 7},text{i},{i % 2}\n" for i in range(60))
    table.write_text(f'"x{CLEAR}","name{CLEAR}",y\n{rows}', "utf-8")
    command = [sys.executable, "-m", "banditlab", "compare", str(table), "--label", "y", "--agents", "uniform"]
    for more in (["--drop-column", "none"], ["--drop-column", "y"]):
        done = subprocess.run([*command, *more, "--dry-run"], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr
        assert r"\x1b[2J" in done.stdout + done.stderr
