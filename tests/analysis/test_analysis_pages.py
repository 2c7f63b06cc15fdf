"""Tables and texts go between their markers and nowhere else; a marker that is missing or out of order is named."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from banditlab.analysis.pages import fill_page, filled, markdown_table, page_parts, plus_minus
from banditlab.errors import UsageError

PAGE = """# A page

Prose, with | a bar |.

<!-- table: accuracy -->
| set | ours |
|---|---:|
| car | .5 |
<!-- end -->

* We win on <!-- text: won -->1 of 2<!-- end --> sets, by <!-- text: most -->.1<!-- end -->.

<!-- table: empty -->
<!-- end -->
"""


def test_what_is_named_is_written_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    table = markdown_table(["set", "ours"], [["car", ".6"], ["mice", ".7"]])
    assert fill_page(page, {"accuracy": table, "won": "2 of 2", "empty": "| a |\n|---|\n"})
    after = page.read_text(encoding="utf-8")
    assert page_parts(after) == {"accuracy": table, "won": "2 of 2", "most": ".1", "empty": "| a |\n|---|"}
    expected = PAGE.replace("| car | .5 |", "| car | .6 |\n| mice | .7 |").replace("1 of 2", "2 of 2")
    assert after == expected.replace("empty -->\n", "empty -->\n| a |\n|---|\n")


def test_filling_twice_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert fill_page(page, {"empty": "| a |\n|---|"})
    once, time = page.read_bytes(), page.stat().st_mtime_ns
    assert not fill_page(page, page_parts(page.read_text(encoding="utf-8")))
    assert (page.read_bytes(), page.stat().st_mtime_ns) == (once, time)


def test_an_empty_table_is_two_markers() -> None:
    assert filled(PAGE, {"empty": "x"}).endswith("<!-- table: empty -->\nx\n<!-- end -->\n")
    assert page_parts(PAGE)["empty"] == ""


BROKEN = {
    "no marker <!-- table: acuracy --> or <!-- text: acuracy -->; did you mean 'accuracy'?": (PAGE, {"acuracy": ""}),
    "accuracy: text between markers cannot contain a marker": (PAGE, {"accuracy": "a <!-- end -->"}),
    "won: a text must be one line; use <!-- table: won -->": (PAGE, {"won": "a\nb"}),
    "two markers are named won": (PAGE.replace("text: most", "text: won"), {}),
    "the marker <!-- text: won --> has no <!-- end --> before the next marker": (
        PAGE.replace("1 of 2<!-- end -->", "1 of 2"),
        {},
    ),
    "the marker <!-- table: last --> has no <!-- end --> before the next marker": (PAGE + "<!-- table: last -->\n", {}),
    "5 times <!-- end --> for 4 opening markers": (PAGE + "<!-- end -->\n", {}),
    "the markers of table accuracy must be on separate lines": (PAGE.replace("<!-- table: a", "So <!-- table: a"), {}),
    "the markers of table accuracy must be on separate": (PAGE.replace("| .5 |\n<!-- end", "| .5 | <!-- end"), {}),
    "the markers of table empty must be on separate lines": (PAGE.replace("empty -->\n", "empty --> "), {}),
    "the marker of text won begins a line, which Markdown would treat as HTML": (PAGE.replace("We win on ", ""), {}),
    "the marker of text most begins a line, which Markdown would treat as HTML": (PAGE.replace("by ", "by\n  "), {}),
}


@pytest.mark.parametrize("message", BROKEN)
def test_what_is_wrong_is_said_and_nothing_written(message: str, tmp_path: Path) -> None:
    text, parts = BROKEN[message]
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"^{re.escape(str(page))}: {re.escape(message)}"):
        fill_page(page, parts)
    assert page.read_text(encoding="utf-8") == text


def test_a_page_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.md: the page does not exist"):
        fill_page(tmp_path / "nowhere.md", {})


def test_cells_and_columns() -> None:
    table = markdown_table(["a", "b", "", "d"], [["x|y", "", r"\|", "1"]], align="lcr")
    assert table == "| a | b | | d |\n|---|:---:|---:|---:|\n| x\\|y | | \\| | 1 |"


@pytest.mark.parametrize(
    ("rows", "align", "message"),
    [
        ([["1"]], "l", "a row of 1 cells in a table of 2 columns"),
        ([["1", "2\n3"]], "l", "a cell of a table must be one line"),
        ([], "lx", "align = 'lx'"),
        ([], "lll", "align = 'lll': give from 1 to 2 of the letters"),
        ([], "", "align = ''"),
    ],
)
def test_a_table_that_cannot_be(rows: list[list[str]], align: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        markdown_table(["a", "b"], rows, align)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (14.132, 3.159, "14.1 ± 3.2"),
        (-1543.0, 143.9, "-1,543 ± 144"),
        (2.0, 0.0996, "2.00 ± 0.10"),  # 0.0996 is 0.10 to two digits, not 0.100
        (0.0, 0.5, "0.00 ± 0.50"),
        (123.4, 0.0, "123"),
        (0.5, math.nan, "0.500"),
        (0.0, math.nan, "0"),
    ],
)
def test_the_error_has_two_digits(value: float, error: float, text: str) -> None:
    assert plus_minus(value, error) == text


def test_an_error_of_one_digit() -> None:
    assert plus_minus(0.0085, 0.0014, digits=1) == "0.009 ± 0.001"


@pytest.mark.parametrize(
    ("value", "error", "digits", "message"),
    [
        (math.nan, 0.5, 2, "value must be a finite number, got nan"),
        (math.nan, math.nan, 2, "value must be a finite number, got nan"),
        (-math.inf, 0.0, 2, "value must be a finite number, got -inf"),
        (1.0, math.inf, 2, "error must be a number that is 0 or above, got inf"),
        (1.0, -0.1, 2, "error must be a number that is 0 or above, got -0.1"),
        (1.0, 0.1, 0, "digits must be at least 1, got 0"),
    ],
)
def test_what_is_no_value_with_an_error_is_refused_in_one_line(
    value: float, error: float, digits: int, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        plus_minus(value, error, digits=digits)
    assert str(caught.value) == message
