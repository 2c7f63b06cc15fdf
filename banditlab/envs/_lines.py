"""The lines of a CSV file: which separator they have, and which of them are no rows of the table."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from banditlab.errors import FaultError, UsageError

SEPARATORS = ("\t", ";", "|", ",")
"""In the order in which they are believed: a comma may also be a decimal sign, a tab hardly anything else."""
SNIFFED = 2**16
MOST_ODD = 50
"""So many rows of another number of fields than the others are named one by one."""


def without_comments(data: bytes, marks: Sequence[str]) -> bytes:
    """Return a text without the lines that begin with one of these marks, outside quotes."""
    data, kept, quoted = data.removeprefix(codecs.BOM_UTF8), [], 0
    for line in data.splitlines(keepends=True) if marks else ():
        if quoted or not line.startswith(tuple(mark.encode() for mark in marks)):
            quoted ^= line.count(b'"') % 2
            kept.append(line)
    return b"".join(kept) if marks else data


def sniff_separator(path: str, data: bytes) -> str:
    """Return the separator by which most of the first 20 lines have one number of fields."""
    head = data[:SNIFFED]
    head = head[: head.rfind(b"\n") + 1 or None] if len(data) > SNIFFED else head
    shares = {}
    for separator in SEPARATORS:
        widths = Counter(len(fields) for fields, _ in islice(records(path, head, separator), 20))
        shares[separator] = max((n for width, n in widths.items() if width > 1), default=0) / max(1, widths.total())
    best = max(shares, key=shares.__getitem__)
    if shares[best] == 0.0:
        raise UsageError(f"{path}: no separator among , ; | and tab fits; give separator (--separator)")
    return best


def records(path: str, data: bytes, separator: str) -> Iterator[tuple[list[str], int]]:
    """Yield the fields of each row that is not blank, and the number of lines up to its end."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="replace", newline="")
    reader = csv.reader(text, delimiter=separator)
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield fields, reader.line_num
    except csv.Error as error:
        raise UsageError(f"{path}: not a table separated by {separator!r} (line {reader.line_num}: {error})") from None


def table_lines(
    path: str, data: bytes, separator: str, first_row: int, dropped: list[int], report: Callable[[FaultError], None]
) -> tuple[bytes, list[int]]:
    """Return the lines that have as many fields as most, and the numbers of the data rows that they are, [] for all.

    The first line is row `first_row`, -1 for a header. Titles, comments, and rows of another width that are not dropped are
    reported. A header that is one name short has none for the first column, or the last one if that is empty.
    """
    rows = [(fields, end) for fields, end in records(path, data, separator)] if _is_odd(path, data, separator) else []
    if not rows:
        return data, []
    width = Counter(len(fields) for fields, _ in rows).most_common(1)[0][0]
    lines, start = data.splitlines(keepends=True), 0
    kept: list[bytes] = []
    numbers: list[int] = []
    odd: list[tuple[int, int]] = []
    marks: list[str] = []
    for fields, end in rows:
        line, start = b"".join(lines[start:end]), end
        n = first_row + len(numbers) + len(odd)
        filled = sum(map(bool, fields))
        comment = re.match("#+", fields[0]) if len(fields) != width else None
        if comment or (not kept and filled < min(2, width)):
            marks.append(comment[0] if comment else line.decode().strip()[:60])
        elif len(fields) == width:
            kept.append(line)
            numbers.append(n)
        elif not kept and n < 0 and len(fields) == width - 1:
            empty = not any(fields[-1] for fields, _ in rows if len(fields) == width)
            kept.append(separator.encode() * (not empty) + line.rstrip() + separator.encode() * empty + b"\n")
            numbers.append(n)
        else:
            odd.append((n, len(fields)))
    for mark in dict.fromkeys(marks):
        report(
            FaultError(
                f"{path}: a line begins with {mark!r}; leave it out with comments (--comment)", "--comment", mark
            )
        )
    odd = [(n, size) for n, size in odd if n not in dropped]
    if odd:
        report(_fault(path, odd, width))
    return b"".join(kept), [n for n in numbers if n >= 0]


def _is_odd(path: str, data: bytes, separator: str) -> bool:
    """Return whether rows differ in their number of fields, or the first one has a single entry as a title has."""
    widths = Counter(len(fields) for fields, _ in records(path, data, separator))
    first = next(records(path, data, separator), ([], 0))[0]
    return len(widths) > 1 or sum(map(bool, first)) < min(2, len(first))


def _fault(path: str, odd: list[tuple[int, int]], width: int) -> FaultError:
    """Return what is to be said of rows (number, fields) whose width is not that of most."""
    n, size = odd[0]
    where = f"row {n}, counted from 0," if n >= 0 else "the header"
    drop = [part for n, _ in odd for part in ("--drop-row", str(n))] if n >= 0 and len(odd) <= MOST_ODD else []
    return FaultError(
        f"{path}: {len(odd)} lines have another number of fields than the {width} that most have (the first, {where} has "
        f"{size}); "
        + ("drop those rows with drop_rows (--drop-row)" if drop else "put texts that hold a separator in quotes"),
        *drop,
    )
