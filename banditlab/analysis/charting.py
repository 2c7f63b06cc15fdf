"""What every drawing of a figure has in common, whoever draws it: limits and ticks of the axes, texts of the legend.

`plots` draws by matplotlib, for papers; `svg_figures` writes the SVG of a report's page itself, in a hundredth of the time.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from banditlab.analysis.curves import Curve, Floats, Grid, Panel
from banditlab.analysis.words import amount, plain

LONGEST = 42
"""Characters of a name on one line of a legend."""


def first_round(last: float) -> float:
    """Return where a logarithmic axis of rounds starts: 10, or 1 for short runs."""
    return 10.0 if last >= 500 else 1.0


def round_ticks(last: float) -> list[float]:
    """Return the ticks of an axis of rounds: powers of ten that do not touch the last round's number, and the last round."""
    first = first_round(last)
    ticks = [10.0**e for e in range(12) if first <= 10.0**e <= last]
    if len(ticks) > 1 and last / ticks[-1] < 4:
        ticks.pop()
    return [*ticks, last]


def share_axis(curves: Sequence[Curve], first: float) -> tuple[float, list[float]]:
    """Return the lower end of a logarithmic axis of shares, which ends at 1.06, and its ticks."""
    seen = np.concatenate([(curve.mean / curve.rounds)[curve.rounds >= first] for curve in curves])
    least = float(seen[seen > 0].min()) if (seen > 0).any() else 0.01
    bottom = min(0.5, 0.8 * least)
    steps = (1, 2, 5) if bottom < 0.15 else (1, 2, 3, 4, 5, 6, 7, 8)
    return bottom, [m * 10.0**-e for e in range(7) for m in steps if bottom <= m * 10.0**-e <= 1]


def share_text(value: float) -> str:
    """Return a tick of `share_axis`: "5 %"."""
    return f"{100 * value:.4g} %"


def signed_axis(panel: Panel) -> tuple[float, float, float]:
    """Return the limits of a panel's vertical axis and its threshold: linear between - and + that, logarithmic beyond."""
    shown = np.concatenate([curve.mean for curve in panel.curves] + [curve.bound for curve in panel.curves])
    low, high = min(0.0, float(shown.min())), max(1.0, float(shown.max()))
    last = float(panel.curves[0].rounds[-1])
    threshold = 10.0 ** max(0, math.floor(math.log10(last) / 2))
    return low * 1.6 - threshold / 5, high * 1.6, threshold


def at_rounds(curve: Curve) -> bool:
    """Return whether min(bound, round) is the round from the first checkpoint to the last."""
    return len(curve.bound) > 0 and bool((curve.bound >= curve.rounds).all())


def share_entry(curve: Curve) -> str:
    """Return a legend's text: name and share of mistakes at the last round."""
    share = curve.mean[-1] / curve.rounds[-1]
    return f"{curve.name}: {plain(100 * share, 1 if share >= 0.01 else 2)} %"


def relative_entry(curve: Curve) -> str:
    """Return a legend's text: name, and on a second line the bound where a theorem gives one."""
    if curve.bound_in_bits:
        return f"{curve.name}\n   bound in bits: see the table"
    if len(curve.bound):
        return f"{curve.name}\n   bound: {'vacuous' if curve.vacuous else amount(curve.bound[-1])}"
    return curve.name


def wrapped(text: str) -> list[str]:
    """Return a legend's lines: each up to LONGEST characters as it is, else as several, cut after the third."""
    lines = []
    for line in text.split("\n"):
        indent = "   "
        lines += (
            [line]
            if len(line) <= LONGEST
            else textwrap.wrap(line, LONGEST - 3, subsequent_indent=indent, max_lines=3, placeholder=" …")
        )
    return lines


def panel_title(label: str) -> str:
    """Return a label cut to the width of a small panel."""
    return label if len(label) <= 28 else f"{label[:27]}…"


def shades_of(grids: Sequence[Grid]) -> list[Floats]:
    """Return each grid's mistakes on one scale over all grids: 0 the fewest, 1 the most, NaN where there is no run."""
    seen = np.concatenate([grid.mistakes[np.isfinite(grid.mistakes)] for grid in grids])
    least, most = float(seen.min()), float(seen.max())
    return [(grid.mistakes - least) / max(most - least, 1e-9) for grid in grids]


def ink_on(colour: Sequence[float]) -> str:
    """Return white for a dark colour (red, green, blue in [0, 1]), else black, by its luminance."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if luminance < 0.19 else "#16181b"
