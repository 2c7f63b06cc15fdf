"""Fill tables and texts between markers of hand-written pages.

    <!-- table: accuracy -->
    | set | ours |
    |---|---:|
    | car | .94 |
    <!-- end -->

    We win on <!-- text: won -->7 of 8<!-- end --> sets.

The markers of a table are on separate lines. The marker of a text must not begin a line, because Markdown treats a line
that begins with a comment as HTML.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from banditlab.errors import UsageError, nearest
from banditlab.validation import at_least, nonnegative, number

END = "<!-- end -->"
START = re.compile(r"<!-- (table|text): ([\w.+-]+) -->")
RULES = {"l": "---", "r": "---:", "c": ":---:"}


def fill_page(path: str | os.PathLike[str], parts: Mapping[str, str]) -> bool:
    """Write tables and texts between the markers of a page, and return whether that changed the page.

    Text between markers that `parts` does not name is not changed, so several notebooks may fill one page.

    Raises
    ------
    UsageError
        The page does not exist, has no marker with that name, or has markers in the wrong order; or a text has several
        lines.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: the page does not exist")
    before = path.read_text(encoding="utf-8")
    try:
        after = filled(before, parts)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
    return after != before


def filled(page: str, parts: Mapping[str, str]) -> str:
    """Return a page's text with `parts` between its markers (see `fill_page`)."""
    spans = _spans(page)
    for name, text in parts.items():
        if name not in spans:
            raise UsageError(f"no marker <!-- table: {name} --> or <!-- text: {name} -->{nearest(name, spans)}")
        if "<!--" in text:
            raise UsageError(f"{name}: text between markers cannot contain a marker")
        if spans[name][0] == "text" and "\n" in text.strip():
            raise UsageError(f"{name}: a text must be one line; use <!-- table: {name} -->")
    for name, (kind, start, end) in reversed(spans.items()):  # the places of those before stay the same
        if name in parts:
            text = parts[name].strip()
            page = page[:start] + (f"\n{text}\n" if kind == "table" else text) + page[end:]
    return page


def page_parts(page: str) -> dict[str, str]:
    """Return the texts between the markers of a page, by name, without the line breaks at the ends of a table."""
    return {name: page[start:end].strip() for name, (_, start, end) in _spans(page).items()}


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "lr") -> str:
    """Return a Markdown table.

    Parameters
    ----------
    header, rows
        The texts of the cells. A vertical bar is escaped.
    align
        A letter per column, "l", "r" or "c"; the last letter applies to all further columns.

    Raises
    ------
    UsageError
        A row and the header have different numbers of cells, a cell has a line break, or `align` has another letter.
    """
    letters = align + align[-1:] * (len(header) - len(align))
    if not align or len(align) > len(header) or set(letters) - set(RULES):
        raise UsageError(f"align = {align!r}: give from 1 to {len(header)} of the letters l, r, c")
    lines = [_row(header), "|" + "|".join(RULES[letter] for letter in letters) + "|"]
    for row in rows:
        if len(row) != len(header):
            raise UsageError(f"a row of {len(row)} cells in a table of {len(header)} columns: {', '.join(row)}")
        lines.append(_row(row))
    return "\n".join(lines)


def plus_minus(value: float, error: float, *, digits: int = 2) -> str:
    """Return a string such as "14.1 ± 3.2", with thousands separators and `digits` significant digits of the error.

    If the error is 0 or NaN (NaN: there is only one value), it is omitted and the value has three significant digits.

    Raises
    ------
    UsageError
        `value` is not a finite number, `error` is negative or infinite, or `digits` is below 1.
    """
    if not math.isfinite(number("value", value)):
        raise UsageError(f"value must be a finite number, got {value:g}")
    at_least("digits", digits, 1)
    if math.isnan(number("error", error)) or nonnegative("error", error) == 0.0:
        return f"{value:,.{_decimals(value, 3)}f}" if value else "0"
    places = _decimals(error, digits)
    return f"{value:,.{places}f} ± {error:,.{places}f}"


def _decimals(value: float, digits: int) -> int:
    return max(0, digits - 1 - math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}")))))


def _row(cells: Sequence[str]) -> str:
    if any("\n" in cell for cell in cells):
        raise UsageError(f"a cell of a table must be one line; use <br> in: {', '.join(map(repr, cells))}")
    escaped = [re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in cells]
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in escaped)


def _spans(page: str) -> dict[str, tuple[str, int, int]]:
    """Return, for each name, the kind of its marker and the start and end of the enclosed text."""
    spans: dict[str, tuple[str, int, int]] = {}
    for found in START.finditer(page):
        kind, name = found.groups()
        end = page.find(END, found.end())
        if end == -1 or START.search(page, found.end(), end):
            raise UsageError(f"the marker <!-- {kind}: {name} --> has no {END} before the next marker")
        if name in spans:
            raise UsageError(f"two markers are named {name}")
        before = page[: found.start()].rpartition("\n")[2]
        if kind == "table" and (before or page[found.end()] != "\n" or page[end - 1] != "\n"):
            raise UsageError(f"the markers of table {name} must be on separate lines")
        if kind == "text" and not re.sub(r"^[\s>]*([-*+]|\d+[.)])?[\s>]*", "", before):
            raise UsageError(f"the marker of text {name} begins a line, which Markdown would treat as HTML")
        spans[name] = (kind, found.end(), end)
    if page.count(END) != len(spans):
        raise UsageError(f"{page.count(END)} times {END} for {len(spans)} opening markers")
    return spans
