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


def two_sweeps(folder_type, tmp_path, repetitions=2):
    for name in ("one", "two"):
        folder = folder_type(tmp_path / name, repetitions=repetitions)
        for r in range(repetitions):
            for gamma, step in ((0.1, 1.0), (0.3, 2e-6)):
                folder.add_run("a", r, 100 * gamma + step * r, written={"gamma": gamma})
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
    labels, called = ([names[key][i] for i in columns[key]] for key in ("label", "call"))
    assert called[:2] == ["a(gamma=0.1)", "a(gamma=0.3)"]
    assert (labels[:3], columns["sweep"][:3]) == (["a", "a", HOSTILE], [0, 0, 0])
    assert columns["mean"][:3] == pytest.approx([0.105, 0.3, 0.6])
    assert columns["mean"][5] is None  # NaN
    assert [columns["best"][i] for i in (0, 1, 3, 4)] == [1, 0, 1, 0]
    t = 12.706205  # Student's with 1 degree of freedom
    p = 121 / 202  # 60 of 100 in both repetitions: the binomial variance
    halves = [t * 0.01 / 2, t * 2e-8 / 2, t * np.sqrt(p * (1 - p) / 200)]
    assert columns["low"][:3] == pytest.approx(np.array([0.105, 0.3, 0.6]) - halves, abs=1e-6)
    assert columns["high"][:3] == pytest.approx([0.105 + halves[0], 0.3 + halves[1], 1.0], abs=1e-6)
    curve = data["curves"][columns["curve"][0]]
    assert data["rounds"][curve[0]] == [1, 2, 5, 10, 20, 50, 100]
    assert curve[1:] == pytest.approx([10.5] * 7)
    text = page.read_text(encoding="utf-8")
    assert "<title>banditlab board</title>" in text
    assert len(re.findall("(?i)<script", text)) == len(re.findall("(?i)</script", text)) == 2


def test_one_repetition_has_no_interval(folder_type, tmp_path):
    folders = two_sweeps(folder_type, tmp_path, repetitions=1)
    columns = data_of(write_board(folders, tmp_path / "new" / "folder" / "board.html"))["columns"]
    assert columns["low"] == columns["high"] == [None] * 6


def test_curves_are_embedded_while_there_is_room_the_best_first(folder_type, tmp_path, monkeypatch):
    monkeypatch.setattr(board, "MOST_NUMBERS", 2 * board.POINTS)
    columns = data_of(write_board(two_sweeps(folder_type, tmp_path), tmp_path / "board.html"))["columns"]
    assert columns["curve"] == [0, -1, 1, -1, -1, -1]


def test_a_curve_has_at_most_twelve_checkpoints_and_ends_with_its_environment(folder_type, tmp_path):
    folder = folder_type(tmp_path / "long", rounds=10_000)
    folder.add_run("a", 0, 1000.0)
    short = folder.add_run("a", 0, 1000.0, environment="Short-v0")
    folder.rows[short] = folder.rows[short][:7]
    folder.rows[short][-1] |= {"round": 70, "first_sight_rounds": 70}
    page = write_board([folder.write()], tmp_path / "board.html")
    data = data_of(page)
    assert data["rounds"] == [[1, 2, 5, 20, 50, 70, 100, 200, 500, 2000, 5000, 10000]]
    assert data["curves"] == [[0, *[10] * 5, None, *[10] * 6], [0, *[10] * 5, 14.286, *[None] * 6]]
    assert [sweep["name"] for sweep in data["sweeps"]] == ["toy"]
    assert "<title>toy · banditlab board</title>" in page.read_text(encoding="utf-8")


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
