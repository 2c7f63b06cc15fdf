"""The figure of docs/results/bakeoff.md: ratios of mistakes with their intervals, and two agents table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.result_pages.bakeoff import AFTERWARDS, CONSTANT, FIRST, Means
from banditlab.analysis.look import new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def figure(means: Means) -> Figure:
    """Draw every player's mistakes divided by the first agent's, and its own beside those of the best of Vowpal Wabbit."""
    picture = new_figure(4.2)
    left, right = picture.subplots(1, 2)
    ratios = {name: means.ratio(name) for name in means.players if name != FIRST}
    names = sorted(ratios, key=lambda name: -ratios[name].mean)
    for place, name in enumerate(names):
        ratio = ratios[name]
        left.plot([ratio.low, ratio.high], [place, place], color="C0")
        left.plot(ratio.mean, place, "o", color="C0", ms=4)
    left.axvline(1.0, color="0.6", lw=0.8)
    left.set_yticks(range(len(names)), names)
    left.set(xscale="log", xlabel=f"mistakes divided by those of {FIRST}")
    left.set_xticks([1, 1.5, 2, 3, 5, 10], ["1", "1.5", "2", "3", "5", "10"])
    left.minorticks_off()
    peers = [name for name in names if name.startswith("VW") and not name.endswith(AFTERWARDS) and name != CONSTANT]
    mine, its = (means.shares[means.players.index(name)] for name in (FIRST, peers[-1]))
    right.scatter(its, mine, s=9, color="C0")
    ends = np.array([0.0, 100.0])
    right.plot(ends, ends, color="0.6", lw=0.8)
    right.set(xlabel=f"mistakes of {peers[-1]}, %", ylabel=f"mistakes of {FIRST}, %", xlim=(0, 90), ylim=(0, 90))
    return picture
