"""Tables as CSV: what a spreadsheet would run is text, and numbers stay numbers."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from banditlab.analysis.cells import write_csv


def written(table: pd.DataFrame, folder: Path) -> list[list[str]]:
    write_csv(table, folder / "table.csv")
    with (folder / "table.csv").open(newline="") as rows:
        return list(csv.reader(rows))


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\n=1", "-", "-nan", "+1_0"]
)
def test_what_begins_like_a_formula_is_text(text: str, tmp_path: Path) -> None:
    assert written(pd.DataFrame({text: [text, "plain"]}), tmp_path) == [["'" + text], ["'" + text], ["plain"]]


def test_numbers_stay_numbers_and_nothing_else_changes(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"x": [-1.5, float("nan")], "mixed": [-2, "-0.25"], "t": ["a=b", "-inf"], "k": ["+1e-3", None]}
    )
    before = table.copy()
    rows = written(table, tmp_path)
    assert rows[1:] == [["-1.5", "-2", "a=b", "+1e-3"], ["", "-0.25", "-inf", ""]]
    pd.testing.assert_frame_equal(table, before)


def test_no_cell_begins_a_row_of_its_own(tmp_path: Path) -> None:
    assert written(pd.DataFrame({"c": ["a\r=1", "\r=2", "b\r\n=3"]}), tmp_path) == [
        ["c"],
        ["a\n=1"],
        ["'\n=2"],
        ["b\n=3"],
    ]


def test_categories_are_escaped_too(tmp_path: Path) -> None:
    assert written(pd.DataFrame({"c": pd.Categorical(["=a"])}), tmp_path) == [["c"], ["'=a"]]
