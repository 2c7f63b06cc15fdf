"""The figure of docs/results/rivals.md: a row per table, stackcb between the best tuned peer, fastcb and all labels told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.result_pages.rivals import OWN, PEERS, REFERENCE, Line, shuffled
from banditlab.analysis.look import COLOURS, FAINT, INK, name_ticks, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = (
    (REFERENCE, "|", FAINT, "fastcb"),
    ("boosting one pass", "D", COLOURS[2], "boosting, observes every label, one pass"),
    ("logistic one pass", "s", COLOURS[1], "logistic regression, observes every label, one pass"),
)


@styled
def figure(lines: list[Line]) -> Figure:
    """Draw mistakes in per cent on a logarithmic axis, tables in the order of stackcb's."""
    tables = shuffled(lines)
    order = sorted(tables, key=lambda name: tables[name][OWN].mean)
    picture = new_figure(1.6 + 0.2 * len(order))
    ax = picture.subplots()
    seats = np.arange(len(order))
    for player, marker, colour, text in SHOWN:
        here = [(tables[name][player].mean, i) for i, name in enumerate(order) if player in tables[name]]
        if here:
            ax.plot(*zip(*here, strict=True), marker, ms=5, color=colour, label=text, mew=2 if marker == "|" else 1)
    best = [
        min((rows[p].mean for p in PEERS if p in rows), default=np.nan) for rows in (tables[name] for name in order)
    ]
    ax.plot(best, seats, "o", ms=7, mfc="none", mec=COLOURS[3], label="best peer in hindsight")
    ax.plot([tables[name][OWN].mean for name in order], seats, "o", ms=5, color=COLOURS[0], label="stackcb")
    ax.set(xscale="log", xlabel="mistakes in one pass, %")
    low, high = ax.get_xlim()
    name_ticks(ax, [t for t in (0.2, 0.5, 1, 2, 5, 10, 20, 40, 80) if low <= t <= high])
    ax.set_yticks(seats, order, color=INK)
    ax.set_ylim(-0.7, len(order) - 0.3)
    picture.legend(loc="outside upper center", ncols=3)
    return picture
