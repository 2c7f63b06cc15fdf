"""Lines of a CSV file: detection of the separator, and of lines that are not rows of the table."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from banditlab.errors import FaultError, UsageError

SEPARATORS = ("\t", ";", "|", ",")
"""In decreasing order of preference: a comma may be a decimal separator, a tab is rarely anything else."""
SNIFFED = 2**16


def without_comments(data: bytes, marks: Sequence[str]) -> bytes:
    """Return a text without the lines that begin with one of these marks outside quotes."""
    data, kept, quoted = data.removeprefix(codecs.BOM_UTF8), [], 0
    for line in data.splitlines(keepends=True) if marks else ():
        if quoted or not line.startswith(tuple(mark.encode() for mark in marks)):
            quoted ^= line.count(b'"') % 2
            kept.append(line)
    return b"".join(kept) if marks else data


def sniff_separator(path: str, data: bytes) -> str:
    """Return the separator that splits most of the first 20 lines into the same number of fields."""
    head = data[:SNIFFED]
    head = head[: head.rfind(b"\n") + 1 or None] if len(data) > SNIFFED else head
    shares = {}
    for separator in SEPARATORS:
        widths = Counter(len(fields) for fields, _ in islice(records(path, head, separator), 20))
        shares[separator] = max((n for width, n in widths.items() if width > 1), default=0) / max(1, widths.total())
    best = max(shares, key=shares.__getitem__)
    if shares[best] == 0.0:
        raise UsageError(f"{path}: none of the separators , ; | and tab fits; set separator (--separator)")
    return best


def records(path: str, data: bytes, separator: str) -> Iterator[tuple[list[str], int]]:
    """Yield each nonblank row as its fields, with the number of its last line."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="replace", newline="")
    reader = csv.reader(text, delimiter=separator)
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield fields, reader.line_num
    except csv.Error as error:
        raise UsageError(f"{path}: not a table separated by {separator!r} (line {reader.line_num}: {error})") from None


def refuse_odd_lines(path: str, data: bytes, separator: str) -> None:
    """Raise an error for a line with too many fields, or one that begins with # and has a different number of fields.

    A line must not have more fields than the first line. In a line with fewer fields the last entries are missing.
    """
    widths: Counter[int] = Counter()
    lines: dict[int, int] = {}  # the first line with so many fields
    comments: dict[int, str] = {}
    for fields, line in records(path, data, separator):
        widths[len(fields)] += 1
        lines.setdefault(len(fields), line)
        if mark := re.match("#+", fields[0]):
            comments[len(fields)] = mark[0]
    odd = [mark for width, mark in comments.items() if widths[width] < max(widths.values())]
    if odd:
        said = f"{path}: a line begins with {odd[0]!r}; leave it out with comments (--comment)"
        raise FaultError(said, "--comment", odd[0])
    if lines and (most := max(lines)) > (first := next(iter(lines))):
        raise UsageError(
            f"{path}: line {lines[most]} has {most} fields, but the first line has {first}: it must name "
            f"each column, and texts that contain {separator!r} must be in quotes"
        )
