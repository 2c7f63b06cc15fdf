"""The figures of docs/results/late-lost-wrong.md: mean mistakes of each agent, a figure for each kind of feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.result_pages.late_lost_wrong import KINDS, Means
from banditlab.analysis.look import new_figure, styled, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def figure(means: Means, kind: str) -> Figure:
    """Draw the mistakes in per cent, means over tables, against the settings of a kind."""
    settings = means.settings(kind)
    picture = new_figure(3.0)
    ax = picture.subplots()
    for agent, look in styles(means.agents).items():
        shares = [float(means.of(kind, setting, agent).mean()) for setting in settings]
        ax.plot(range(len(settings)), shares, color=look.colour, marker=look.marker, ms=5, label=agent)
    ax.set_xticks(
        range(len(settings)), [setting.replace(", ", ",\n").replace(" where", "\nwhere") for setting in settings]
    )
    ax.set(xlabel=KINDS[kind], ylabel="mistakes, %", ylim=(0, None))
    picture.legend(loc="outside upper center", ncols=4)
    return picture
