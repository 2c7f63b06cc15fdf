"""The ranked table on a terminal of any width: a name, a setting or a number is never cut, and no number is broken.

Where a line has no room for all columns, the setting goes below its player; names that are longer still go on below
themselves; and where that leaves a player fewer than `LEAST` columns, the last numbers go, which report.html has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from banditlab.cli.plain import say

if TYPE_CHECKING:
    from banditlab.analysis.across import Across
    from banditlab.analysis.summary import Standing

LEAST = 24
"""Columns a player has at least where there are numbers to be left out for it."""
GAP = "  "
SECONDS, REPEATS, COST = "us/round", "repeats %", "mean cost"
"""The last column: the time of a round, or mistakes on rows seen before, or what the chosen actions cost."""
MOST_AGENTS = 10
"""Agents that are printed of a comparison over many data sets."""
NUMBERS = 3
"""Columns behind rank, player and setting."""


def print_ranking(out: Console, rows: list[Standing]) -> None:
    """Print the tables of all environments, and below them what their signs mean."""
    from banditlab.analysis.formats import environment_title

    for environment, kind in dict.fromkeys((row.environment, row.kind) for row in rows):
        told = {"bit": "", "reference": " (for scale, unranked: the label is seen)"}.get(
            kind, " (players that observe the label)"
        )
        mine = [row for row in rows if (row.environment, row.kind) == (environment, kind)]
        last = _last_column(mine)
        say(out, f"{environment_title(environment)}{told}", "italic")
        out.print()
        header = ("", "player", "setting", "mistakes % (95 %)", "behind", last)
        head, *listed = ranked_lines([header, *(cells(row, last) for row in mine)], out.width)
        for line in head:
            say(out, line, "bold")
        say(out, "─" * max(cell_len(line) for lines in (head, *listed) for line in lines))
        for row, lines in zip(mine, listed, strict=True):
            for line in lines:
                say(out, line, "dim" if row.constant else None)
        out.print()
    for sentence in _signs(rows):
        say(out, sentence)


def print_across(out: Console, made: Across) -> None:
    """Print the first agents of a comparison over many data sets, against the one of the lowest mean rank."""
    best = made.agents[0]
    rows = [("", "player", "mean rank", f"mistakes / {best}'s (95 %)", "better, tied, worse", "")]
    for agent, mean_rank in zip(made.agents[:MOST_AGENTS], made.ranks, strict=False):
        pair = made.pairs.get((agent, best))
        sign = "*" if pair and made.ahead(best, agent) else ""
        ratio = f"{pair.ratio.mean:.3f} ({pair.ratio.low:.3f} to {pair.ratio.high:.3f})" if pair else "1"
        counts = f"{pair.wins}, {pair.ties}, {pair.losses}" if pair else ""
        rows.append((sign, agent, f"{mean_rank:.2f}", ratio, counts, ""))
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        say(out, _joined(row, widths, left=2), "bold" if row is rows[0] else None)
    if len(made.agents) > MOST_AGENTS:
        say(out, f"and {len(made.agents) - MOST_AGENTS} agents more")
    out.print()
    independent = f", {made.n_families} families of them" if made.n_families < len(made.arenas) else ""
    say(
        out,
        f"{made.sentence()} Critical difference of mean ranks: {made.critical:.2f} ({len(made.agents)} agents, "
        f"{len(made.arenas)} data sets{independent}). * is significantly worse over data sets: by the interval, one for "
        "all pairs at once, and by the mean ranks. report.html has every data set.",
    )
    for line in made.left_out:
        say(out, f"not compared over data sets: {line}")


def hidden(rows: Sequence[Standing], notes: Sequence[Any]) -> list[str]:
    """Return a sentence for each column that, by its note, tells the labels, if no agent beats the most frequent class."""
    constant = next((row.mistakes.mean for row in rows if row.constant), math.inf)
    none = not any(row.mistakes.mean < constant for row in rows)
    what = "yet no agent beats the most frequent class: too few rounds, no linear relation, or a scale that hides it"
    return [f"column {note.name!r} {note.remark}, {what}" for note in notes if none and "alone tells" in note.remark]


def _signs(rows: Sequence[Standing]) -> list[str]:
    said = {
        "mistakes %, which is ranked, counts the first time each row is shown; repeats % the other times": any(
            not math.isnan(row.repeated) and math.isnan(row.cost) for row in rows
        ),
        "mean cost is that of the chosen actions, the first time each row is shown": any(
            not math.isnan(row.cost) for row in rows
        ),
        "† makes more mistakes than always playing the action that is right most often (known in hindsight)": any(
            row.below_constant for row in rows
        ),
        "each player at the best of its settings, chosen for each half of the repetitions on the other half": any(
            row.among > 1 and row.held_out for row in rows
        ),
        "= is a tie: the interval of the difference, one of all pairs at once, contains 0": any(
            "=" in row.rank for row in rows
        ),
        "? is an order without evidence: of fewer than three repetitions, or without an interval": any(
            row.rank == "?" for row in rows
        ),
    }
    return [sentence for sentence, on in said.items() if on]


def _last_column(rows: Sequence[Standing]) -> str:
    if any(not math.isnan(row.cost) for row in rows):
        return COST
    return REPEATS if any(not math.isnan(row.repeated) for row in rows) else SECONDS


def cells(row: Standing, last: str = SECONDS) -> tuple[str, ...]:
    """Return rank, player, setting and three numbers of a row as text; the last is what the column `last` names."""
    share, behind = row.mistakes.scaled(100), row.behind_first.scaled(100)
    digits = 2 if share.mean < 10 else 1
    interval = f" ({share.low:.{digits}f} to {share.high:.{digits}f})" if math.isfinite(share.low) else ""
    gap = f"+{behind.mean:.{2 if behind.mean < 10 else 1}f}" if behind.mean > 0 else ""
    label = f"{row.label}{' †' if row.below_constant else ''}"
    number = {COST: f"{row.cost:.4g}", REPEATS: f"{100 * row.repeated:.{digits}f}"}
    shown = number.get(last, f"{1e6 * row.seconds_per_round:.3g}")
    none = row.constant and (last != COST or math.isnan(row.cost))
    return (row.rank, label, row.settings, f"{share.mean:.{digits}f}{interval}", gap, "" if none else shown)


def ranked_lines(rows: Sequence[tuple[str, ...]], room: int) -> list[list[str]]:
    """Return the lines of each row, the header first, so that they fit into `room` columns; see the module."""
    rows = [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if sum(widths) + len(GAP) * (len(widths) - 1) <= room:
        return [[_joined(row, widths)] for row in rows]
    shown, left = NUMBERS, 0
    for shown in range(NUMBERS, 0, -1):
        left = room - widths[0] - sum(widths[3 : 3 + shown]) - len(GAP) * (1 + shown)
        if left >= min(LEAST, max(widths[1], widths[2] + len(GAP))):
            break
    left = max(left, 8)
    return [_stacked(row, [widths[0], left, *widths[3 : 3 + shown]]) for row in rows]


def _stacked(row: tuple[str, ...], widths: list[int]) -> list[str]:
    rank, player, setting, *numbers = row
    beside = f"{player}{GAP}{setting}".rstrip()
    if cell_len(beside) <= widths[1]:
        first, more = beside, []
    else:
        below = folded(setting, widths[1] - len(GAP)) if setting else []
        first, *more = [*folded(player, widths[1]), *(f"{GAP}{line}" for line in below)]
    lines = [_joined((rank, first, *numbers[: len(widths) - 2]), widths, left=2)]
    return [*lines, *(" " * (widths[0] + len(GAP)) + line for line in more)]


def folded(text: str, width: int) -> list[str]:
    """Return a text as lines of at most `width` columns, broken at spaces, and inside a word only where it is longer."""
    return [line.plain.rstrip() for line in Text(text).wrap(Console(), width)]


def _joined(row: Sequence[str], widths: Sequence[int], left: int = 3) -> str:
    """Return cells as one line, the first `left` aligned left, the numbers right."""
    parts = []
    for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
        pad = " " * max(0, width - cell_len(cell))
        parts.append(cell + pad if i < left else pad + cell)
    return GAP.join(parts).rstrip()
