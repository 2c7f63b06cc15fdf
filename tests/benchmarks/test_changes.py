"""The study of changing labels: how they change, what is counted and written; no agent plays here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.result_pages import changes as told
from benchmarks.commands import changes

Y = np.array([0, 0, 0, 2, 1, 2, 0, 1, 0, 0, 1, 2, 0, 1, 2, 0])


def changed(how: str) -> list[int]:
    return changes.CHANGES[how](Y.copy(), 3, np.random.default_rng(0)).tolist()


def test_labels_change_as_they_are_said_to() -> None:
    first, second = Y[:8].tolist(), Y[8:]
    assert changed("as they were") == Y.tolist()
    assert changed("all moved by one at half time") == [*first, *((second + 1) % 3).tolist()]
    # of the first half 0 is the most frequent, then 1 and 2, of which the lower comes first
    assert changed("the two most frequent swapped at half time") == [*first, 1, 1, 0, 2, 1, 0, 2, 1]
    quarters = np.repeat([0, 1, 0, 1], 4)
    assert changed("moved by one and back, every quarter") == ((Y + quarters) % 3).tolist()


def test_labels_that_drift_have_all_moved_by_the_last_quarter() -> None:
    y, T = np.zeros(4000, np.int64), 4000
    found = changes.drift(y, 5, np.random.default_rng(1))
    assert not found[: T // 2 + 1].any()
    assert (found[3 * T // 4 :] == 1).all()
    shares = [found[2000 + 250 * i : 2250 + 250 * i].mean() for i in range(4)]
    np.testing.assert_allclose(shares, [0.125, 0.375, 0.625, 0.875], atol=0.08)


def line(table: str, labels: str, player: str, mistakes: Any, called: Any = (0, 0)) -> told.Line:
    return told.Line(table, labels, player, 4000, mistakes, called)


LINES = [
    line("a", told.STATIONARY, "stackcb", (10.0, 12.0, 90.0), (0, 0, 2)),  # the third stream is for false alarms alone
    line("a", told.STATIONARY, "changes = false", (11.0, 13.0)),
    line("a", told.STATIONARY, "fastcb", (20.0, 22.0)),
    line("b", told.STATIONARY, "stackcb", (30.0, 30.0, 30.0), (0, 1, 0)),
    line("b", told.STATIONARY, "changes = false", (30.0, 30.0)),
    line("b", told.STATIONARY, "fastcb", (34.0, 34.0)),
]


def test_means_are_over_the_streams_that_all_have() -> None:
    *_, row = told.means(LINES).splitlines()
    # less fastcb: -10 on a, -4 on b, whose mean has the standard error 3
    assert row == "| as they were | 20.5 | 21.0 | 27.5 | -7.0 ± 3.0 | 1 in 4 | 1 |"
    assert told.by_table(LINES).splitlines()[2:] == ["| a | 11.0 / 21.0 |", "| b | 30.0 / 34.0 |"]
    assert told.alarms(LINES) == "2 of 6 runs"


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert told.read(tmp_path / "changes.csv") == []
    told.write(tmp_path / "changes.csv", LINES)
    assert told.read(tmp_path / "changes.csv") == LINES


def test_every_change_and_player_is_played_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (changes.PLACE / "changes.md").read_text("utf-8")
    (tmp_path / "changes.md").write_text(page, "utf-8")
    monkeypatch.setattr(changes, "PLACE", tmp_path)
    seen: list[tuple[str, int]] = []

    def play(player: str, env: Any, change: Any, seed: int, rounds: int) -> tuple[float, int]:
        seen.append((player, seed))
        return float(seed), 0

    monkeypatch.setattr(changes, "play", play)
    changes.main(streams=2, stationary=3, rounds=100, only="planted", keep=True)
    lines = told.read(tmp_path / "changes.csv")
    assert [(each.labels, each.player) for each in lines] == [
        (how, who) for how in changes.CHANGES for who in told.PLAYERS
    ]
    assert [len(each.mistakes) for each in lines] == [3] + [2] * 14
    assert len(seen) == 31
    assert "0 of 3 runs" in (tmp_path / "changes.md").read_text("utf-8")
