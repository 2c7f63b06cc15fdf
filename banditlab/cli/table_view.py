"""The output of `banditlab compare` about a table before the runs: columns and roles, agents left out, and faults."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from typing import Any

from banditlab.comparison import Comparison, Comparisons, Note
from banditlab.errors import FaultyTableError

WIDTH = 80
MOST_LINES = 40
"""For a table with more columns, only columns with a remark have a line; all other columns are counted."""
LONGEST_NAME = 24
MOST_NOTICES = 10
"""The largest number of notices about many tables that are printed before the runs."""


def comparison_lines(made: Comparison, classes: bool) -> list[str]:
    """Return lines on the table and the agents of a comparison, and on all classes if requested, 80 characters wide."""
    lines = class_lines(made.classes, made.n_rows) if classes else []
    lines += _told("notice: ", made.sentences)
    if made.survey is not None:
        lines += [*note_lines(made.survey.notes), *_told("notice: ", made.survey.sentences)]
    lines += _told("left out: ", made.left_out)
    if made.left_out:
        lines.append("(to include them, use --agents a,b,c or --agents all)")
    return lines


def many_lines(made: Comparisons, whole: bool) -> list[str]:
    """Return lines on many tables: all faults, the agents left out, and the first notices (with `whole`, all
    notices).
    """
    said = made.sentences if whole else made.sentences[:MOST_NOTICES]
    lines = [*_told("fault in ", made.faults), *_told("notice: ", said)]
    if len(said) < len(made.sentences):
        lines.append(f"and {len(made.sentences) - len(said):,} more notices; --dry-run prints all")
    return [*lines, *_told("left out: ", made.left_out)]


def class_lines(classes: dict[Any, int], n: int) -> list[str]:
    """Return lines with the number of rows of the largest classes, in decreasing order, and the number of others."""
    ranked = sorted(classes.items(), key=lambda item: -item[1])
    shown = [f"  {name!s:<{LONGEST_NAME}}  {rows:>9,}  {rows / n:6.1%}" for name, rows in ranked[:MOST_LINES]]
    rest = len(ranked) - len(shown)
    return ["classes:", *shown, *([f"  and {rest:,} with fewer rows"] if rest else [])]


def note_lines(notes: list[Note]) -> list[str]:
    """Return a line or two for each column: name, role, remark, and the option that changes it."""
    shown = notes if len(notes) <= MOST_LINES else [note for note in notes if note.option]
    width = min(LONGEST_NAME, max((len(note.name) for note in shown), default=0))
    lines = ["columns:"] if notes else []
    for note in shown[:MOST_LINES]:
        name = note.name if len(note.name) <= width else note.name[: width - 1] + "…"
        head = f"  {name:<{width}}  {note.role:<15}  {note.remark}".rstrip()
        if note.option and len(head) + 2 + len(note.option) <= WIDTH:
            lines.append(f"{head}  {note.option}")
        else:
            lines += _wrapped(head, 4)
            lines += _wrapped(f"{'':<{width + 4}}{note.option}", width + 4) if note.option else []
    rest = [*([] if shown is notes else [note for note in notes if not note.option]), *shown[MOST_LINES:]]
    if rest:
        counted = ", ".join(f"{n:,} {role}" for role, n in Counter(note.role for note in rest).most_common())
        lines += _wrapped(f"  and {counted}")
    return lines


def fault_lines(error: FaultyTableError, source: str, more: list[str]) -> list[str]:
    """Return all faults of a table, each as a paragraph, and the corrected command on a separate line.

    `more` contains the other options of the request as words.
    """
    lines = [f"banditlab: {error.faults[0]}"]
    if len(error.faults) > 1:
        lines = [f"banditlab: {source} has {len(error.faults)} faults:"]
        for fault in error.faults:
            lines += _wrapped(fault.removeprefix(f"{source}: "), 4, "  * ")
    if not error.command:
        return lines
    lines += _wrapped(f"the corrected command {error.loss}") if error.loss else []
    return [*lines, " ".join([f"corrected: {error.command}", *map(shlex.quote, more)])]


def _told(what: str, sentences: list[str]) -> list[str]:
    return [line for sentence in sentences for line in _wrapped(f"{what}{sentence}")]


def _wrapped(text: str, indent: int = 2, begin: str = "") -> list[str]:
    whole: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, WIDTH, initial_indent=begin, subsequent_indent=" " * indent, **whole) or [""]
