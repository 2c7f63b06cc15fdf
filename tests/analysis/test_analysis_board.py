"""The board: what is aggregated, what it says of one repetition, names that meet, and what it embeds."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from banditlab.analysis import board
from banditlab.analysis.board import write_board
from banditlab.errors import UsageError

HOSTILE = 'x</script><script>alert(1)</script>"'


def data_of(page) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)[1])


def two_sweeps(folder_type, tmp_path, repetitions=3):
    for name in ("one", "two"):
        folder = folder_type(tmp_path / name, repetitions=repetitions)
        for r in range(repetitions):
            for gamma in (0.1, 0.3):
                folder.add_run("a", r, 100 * gamma + r, written={"gamma": gamma})
            folder.add_run(HOSTILE, r, 60.0, mistakes=60.0)
            if name == "two":
                for row in list(folder.rows.values())[-1]:
                    row["expected_mistakes"] = row["first_sight_expected_mistakes"] = np.nan
        folder.groups = {"a": "practice"}
        folder.write()
    return [tmp_path / "one", tmp_path / "two"]


def test_rows_are_settings_with_their_means(folder_type, tmp_path):
    page = write_board(two_sweeps(folder_type, tmp_path), tmp_path / "board.html")
    data = data_of(page)
    columns, names = data["columns"], data["names"]
    assert [sweep["name"] for sweep in data["sweeps"]] == ["toy in one", "toy in two"]
    rows = [
        (
            columns["sweep"][i],
            names["label"][columns["label"][i]],
            names["call"][columns["call"][i]],
            columns["mean"][i],
        )
        for i in range(len(columns["mean"]))
    ]
    assert rows[:2] == [(0, "a", "a(gamma=0.1)", pytest.approx(0.11)), (0, "a", "a(gamma=0.3)", pytest.approx(0.31))]
    assert rows[2][1] == HOSTILE
    assert columns["mean"][5] is None  # NaN
    assert [columns["best"][i] for i in (0, 1, 3, 4)] == [1, 0, 1, 0]
    half = 4.302653 * 0.01 / np.sqrt(3)  # Student's t with 2 degrees of freedom
    assert columns["low"][0] == pytest.approx(0.11 - half, abs=1e-6)
    curve = data["curves"][columns["curve"][0]]
    assert data["rounds"][curve[0]] == [1, 2, 5, 10, 20, 50, 100]
    assert curve[1:] == pytest.approx([11.0] * 7)
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("(?i)<script", text)) == len(re.findall("(?i)</script", text)) == 2


def test_one_repetition_has_no_interval(folder_type, tmp_path):
    folders = two_sweeps(folder_type, tmp_path, repetitions=1)
    columns = data_of(write_board(folders, tmp_path / "board.html"))["columns"]
    assert columns["low"] == columns["high"] == [None] * 6


def test_curves_are_embedded_while_there_is_room_the_best_first(folder_type, tmp_path, monkeypatch):
    monkeypatch.setattr(board, "MOST_NUMBERS", 2 * board.POINTS)
    columns = data_of(write_board(two_sweeps(folder_type, tmp_path), tmp_path / "board.html"))["columns"]
    assert columns["curve"] == [0, -1, 1, -1, -1, -1]


def test_requests_that_are_wrong(folder_type, tmp_path):
    one, _ = two_sweeps(folder_type, tmp_path)
    with pytest.raises(UsageError, match="at least one results folder"):
        write_board([], tmp_path / "b.html")
    with pytest.raises(UsageError, match="given twice"):
        write_board([one, tmp_path / "two" / ".." / "one"], tmp_path / "b.html")
    with pytest.raises(UsageError, match="not a results folder"):
        write_board([tmp_path], tmp_path / "b.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="the board cannot be written"):
        write_board([one], tmp_path / "file" / "b.html")
