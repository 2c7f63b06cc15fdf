"""The ranked table on a terminal of any width; names, settings and numbers are never truncated.

If a line is too short for all columns, the setting is printed below its agent, and long names are wrapped. If fewer
than `LEAST` characters remain for an agent, the last numbers are omitted; report.html contains them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from banditlab.cli.plain import plain, say

if TYPE_CHECKING:
    from banditlab.analysis.across import Across
    from banditlab.analysis.summary import Standing

LEAST = 24
"""The smallest width of the column of agents before numbers are omitted."""
SECONDS, REPEATS, COST = "us/round", "repeats %", "mean cost"
"""The last column: the time of a round, the mistakes on repeated rows, or the cost of the chosen actions."""
MOST_AGENTS = 10
"""The largest number of agents printed for a comparison over many data sets."""
NUMBERS = 3
"""The columns after rank, agent and setting."""


def print_ranking(out: Console, rows: list[Standing]) -> None:
    """Print the tables of all environments, followed by an explanation of their symbols."""
    from banditlab.analysis.formats import environment_title, learner

    for environment, kind in dict.fromkeys((row.environment, row.kind) for row in rows):
        notes = {"bit": "", "reference": " (references, not ranked: they observe the label)"}
        told = notes.get(kind, " (forecasters: they observe the label)")
        mine = [row for row in rows if (row.environment, row.kind) == (environment, kind)]
        last = _last_column(mine)
        say(out, f"{environment_title(environment)}{told}", "italic")
        out.print()
        header = ("", learner([kind]), "setting", "mistakes % (95 %)", "behind", last)
        table = ranked_table([header, *(cells(row, last) for row in mine)], out.width)
        for row, shown in zip(mine, table.rows, strict=True):
            shown.style = "dim" if row.constant else ""
        out.print(table)
        out.print()
    for sentence in _signs(rows):
        say(out, sentence)


def print_across(out: Console, made: Across) -> None:
    """Print the agents with the lowest mean ranks over many data sets, each compared with the best of them."""
    best = made.agents[0]
    rows = [("", "agent", "", "mean rank", f"mistakes / {best}'s (95 %)", "better, tied, worse")]
    for agent, mean_rank in zip(made.agents[:MOST_AGENTS], made.ranks, strict=False):
        pair = made.pairs.get((agent, best))
        sign = "*" if pair and made.ahead(best, agent) else ""
        ratio = f"{pair.ratio.mean:.3f} ({pair.ratio.low:.3f} to {pair.ratio.high:.3f})" if pair else "1"
        counts = f"{pair.wins}, {pair.ties}, {pair.losses}" if pair else ""
        rows.append((sign, agent, "", f"{mean_rank:.2f}", ratio, counts))
    out.print(ranked_table(rows, out.width))
    if len(made.agents) > MOST_AGENTS:
        say(out, f"and {len(made.agents) - MOST_AGENTS} more agents")
    out.print()
    independent = f" in {made.n_families} families" if made.n_families < len(made.arenas) else ""
    say(
        out,
        f"{made.sentence()} Critical difference of mean ranks: {made.critical:.2f} ({len(made.agents)} agents, "
        f"{len(made.arenas)} data sets{independent}). * is significantly worse over data sets, both by the simultaneous "
        "interval and by the mean ranks. report.html shows every data set.",
    )
    for line in made.left_out:
        say(out, f"not compared over data sets: {line}")


def hidden(rows: Sequence[Standing], notes: Sequence[Any]) -> list[str]:
    """Return a warning for each column that alone determines the labels, if no agent beats the most frequent class."""
    constant = next((row.mistakes.mean for row in rows if row.constant), math.inf)
    none = not any(row.mistakes.mean < constant for row in rows)
    what = "but no agent is better than the most frequent class: too few rounds, no linear relation, or an unsuitable scale"
    return [f"column {note.name!r} {note.remark}, {what}" for note in notes if none and note.gives_away]


def _signs(rows: Sequence[Standing]) -> list[str]:
    said = {
        "mistakes % (ranked): rounds in which a row occurs for the first time; repeats %: the other rounds": any(
            not math.isnan(row.repeated) and math.isnan(row.cost) for row in rows
        ),
        "mean cost: cost of the chosen actions at the first occurrence of each row": any(
            not math.isnan(row.cost) for row in rows
        ),
        "†: more mistakes than always choosing the action that is right most often (known in hindsight)": any(
            row.below_constant for row in rows
        ),
        "settings are chosen on one half of the repetitions and evaluated on the other half, and the other way round": any(
            row.among > 1 and row.held_out for row in rows
        ),
        "=: the difference from the first of the rank is not significant (95 % intervals for all pairs at once)": any(
            "=" in row.rank for row in rows
        ),
        "?: no evidence for the order (fewer than three repetitions, or no interval)": any(
            row.rank == "?" for row in rows
        ),
    }
    return [sentence for sentence, on in said.items() if on]


def _last_column(rows: Sequence[Standing]) -> str:
    if any(not math.isnan(row.cost) for row in rows):
        return COST
    return REPEATS if any(not math.isnan(row.repeated) for row in rows) else SECONDS


def cells(row: Standing, last: str = SECONDS) -> tuple[str, ...]:
    """Return the rank, agent, setting and three numbers of a row as text; the last number is that of the column
    `last`.
    """
    share, behind = row.mistakes.scaled(100), row.behind_first.scaled(100)
    digits = 2 if share.mean < 10 else 1
    interval = f" ({share.low:.{digits}f} to {share.high:.{digits}f})" if math.isfinite(share.low) else ""
    gap = f"+{behind.mean:.{2 if behind.mean < 10 else 1}f}" if behind.mean > 0 else ""
    label = f"{row.label}{' †' if row.below_constant else ''}"
    number = {COST: f"{row.cost:.4g}", REPEATS: f"{100 * row.repeated:.{digits}f}"}
    shown = number.get(last, f"{1e6 * row.seconds_per_round:.3g}")
    none = row.constant and (last != COST or math.isnan(row.cost))
    return (row.rank, label, row.settings, f"{share.mean:.{digits}f}{interval}", gap, "" if none else shown)


def ranked_table(rows: Sequence[tuple[str, ...]], room: int) -> Table:
    """Return rows, starting with the header, as a table of width `room` (see the module)."""
    lines = [[plain(" ".join(cell.split())) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) + 2 for column in zip(*lines, strict=True)]
    names = 3
    if sum(widths) - 2 > room:
        names, least = 2, widths[0] + min(LEAST, max(widths[1], widths[2])) - 2
        fits = [n for n in range(1, NUMBERS + 1) if least + sum(widths[3 : 3 + n]) <= room]
        last = 3 + max(fits, default=1)
        lines = [
            [rank, f"{agent}\n  {setting}".rstrip(), *numbers[: last - 3]] for rank, agent, setting, *numbers in lines
        ]
        lines[0][1] = rows[0][1]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for i, name in enumerate(lines[0]):
        table.add_column(
            name, justify="left" if i < names else "right", no_wrap=i in (0, *range(names, 9)), overflow="fold"
        )
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table
