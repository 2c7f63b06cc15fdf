"""The figures of a report's page where scripts are off, as SVG text. Each function takes what `curves` computed.

They show what those of `plots` show (for papers, by matplotlib), in milliseconds instead of most of a second each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from banditlab.analysis.charting import (
    at_rounds,
    first_round,
    ink_on,
    panel_title,
    relative_entry,
    round_ticks,
    shades_of,
    share_axis,
    share_entry,
    share_text,
    signed_axis,
    wrapped,
)
from banditlab.analysis.curves import Curve, Floats, Grid, Panel
from banditlab.analysis.drawing import WIDTH, Axis, Sheet, between, hexed, width_of
from banditlab.analysis.look import FAINT, INK, MARKERS, THIN, Style
from banditlab.analysis.words import plain, short

CREST = ("#2c3172", "#26487e", "#1e5e87", "#21728b", "#34858d", "#49988f", "#62ab90", "#82bc91", "#a5cd90")
FLARE = ("#edb081", "#ea916e", "#e5715e", "#d9535d", "#c14168", "#a3386f", "#863071", "#672a6b", "#4b2362")
"""seaborn's palettes of these names, the first from dark to light."""
LEFT, TOP, LINE = 92.0, 14.0, 17.0
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Entry:
    """A line of a legend: its look (None for a thin dashed line) and its lines of text."""

    look: Style | None
    lines: list[str]


def mistakes_against_rounds(curves: Sequence[Curve], looks: dict[str, Style]) -> str:
    """Return the share of expected mistakes so far against rounds, both axes logarithmic, with interval bands."""
    entries = [Entry(looks[curve.label], wrapped(share_entry(curve))) for curve in curves]
    sheet, box = _sheet_with_legend(entries, len(curves))
    first = first_round(_last(curves))
    bottom, ticks = share_axis(curves, first)
    x, y = _rounds(curves, box), Axis.log(bottom, 1.06, box[3], box[1])
    _frame(
        sheet,
        box,
        curves,
        x,
        [(float(y.place(t)), share_text(t)) for t in ticks],
        "expected mistakes so far, share of rounds",
    )
    sheet.clip(box)
    for curve in curves:
        _curve(sheet, curve, looks[curve.label], x, y, curve.rounds)
    sheet.unclip()
    return sheet.svg()


def relative_against_rounds(panel: Panel, looks: dict[str, Style]) -> str:
    """Return expected mistakes minus the comparator's loss in one ball; min(bound, T) thin where there is one."""
    bounded = [curve for curve in panel.curves if len(curve.bound)]
    entries = [Entry(looks[curve.label], wrapped(relative_entry(curve))) for curve in panel.curves]
    entries += [Entry(None, ["min(bound, rounds)"])] if bounded else []
    sheet, box = _sheet_with_legend(entries, len(panel.curves))
    low, high, threshold = signed_axis(panel)
    x, y = _rounds(panel.curves, box), Axis.signed(low, high, threshold, box[3], box[1])
    ticks = [(float(y.place(t)), plain(t)) for t in _signed_ticks(low, high, threshold)]
    _frame(sheet, box, panel.curves, x, ticks, f"expected mistakes − nats of the best U, B = {short(panel.norm_bound)}")
    sheet.clip(box)
    zero = float(y.place(0.0))
    sheet.line([box[0], box[2]], [zero, zero], INK, 1.2)
    for curve in bounded:
        if not at_rounds(curve):
            sheet.line(x.place(curve.rounds), y.place(curve.bound), looks[curve.label].colour, 1.2, THIN)
    if any(at_rounds(curve) for curve in bounded):  # they all coincide: one line in no player's colour
        rounds = panel.curves[0].rounds
        sheet.line(x.place(rounds), y.place(rounds), FAINT, 1.2, THIN)
    for curve in panel.curves:
        _curve(sheet, curve, looks[curve.label], x, y)
    sheet.unclip()
    return sheet.svg()


def heat_maps(grids: Sequence[Grid]) -> str:
    """Return the share of mistakes over gamma and B, a panel per player, one colour scale, every cell with its number."""
    columns = min(3, len(grids))
    tall = max(len(grid.gammas) for grid in grids)
    step, high = WIDTH / columns, 80.0 + 38.0 * tall
    sheet = Sheet(high * math.ceil(len(grids) / columns))
    for i, (grid, shades) in enumerate(zip(grids, shades_of(grids), strict=True)):
        left, top = step * (i % columns) + 78.0, high * (i // columns) + 28.0
        sheet.text(left, top - 10, panel_title(grid.label), more=' font-weight="600"')
        _cells(sheet, grid, shades, left, top, (step - 96.0) / len(grid.norm_bounds))
    return sheet.svg()


def mistakes_against_gamma(grids: Sequence[Grid]) -> str:
    """Return the share of expected mistakes against gamma, one panel per player, one line per B, with intervals."""
    columns = min(3, len(grids))
    bounds = sorted({b for grid in grids for b in grid.norm_bounds if not math.isnan(b)})
    scale = [hexed(between(FLARE, (j + 1) / (len(bounds) + 1))) for j in range(len(bounds))]
    shades = dict(zip(bounds, scale, strict=True))
    highest = float(np.nanmax([np.nanmax(np.fmax(grid.high, grid.mistakes)) for grid in grids]))
    step, high = WIDTH / columns, 250.0
    entries = [(shades[b], MARKERS[j % 8], f"B = {short(b)}") for j, b in enumerate(bounds)]
    if any(math.isnan(b) for grid in grids for b in grid.norm_bounds):
        entries.append((FAINT, "o", "has no B"))
    per_row = max(1, int((WIDTH - 40) // (60 + max(width_of(text) for _, _, text in entries))))
    rows = math.ceil(len(grids) / columns)
    sheet = Sheet(high * rows + 12 + 22.0 * math.ceil(len(entries) / per_row))
    for i, grid in enumerate(grids):
        left, top = step * (i % columns) + 70.0, high * (i // columns) + 26.0
        sheet.text(left, top - 9, panel_title(grid.label), more=' font-weight="600"')
        box = (left, top, step * (i % columns + 1) - 14.0, top + high - 78.0)
        _against_gamma(sheet, grid, box, 1.06 * highest or 1.0, shades)
    for j, (colour, marker, text) in enumerate(entries):
        x, y = 70 + (WIDTH - 90) / per_row * (j % per_row), high * rows + 16 + 22 * (j // per_row)
        sheet.line([x, x + 30], [y - 4, y - 4], colour, 2)
        sheet.markers([x + 15], [y - 4], marker, colour)
        sheet.text(x + 38, y, text)
    return sheet.svg()


# --------------------------------------------------------------------------------------------------------------- pieces


def _last(curves: Sequence[Curve]) -> float:
    return max(float(curve.rounds[-1]) for curve in curves)


def _rounds(curves: Sequence[Curve], box: Box) -> Axis:
    last = _last(curves)
    first = first_round(last)
    return Axis.log(first, last if last > first else 2 * first, box[0], box[2])


def _frame(
    sheet: Sheet, box: Box, curves: Sequence[Curve], x: Axis, ticks: list[tuple[float, str]], label: str
) -> None:
    rounds = [(float(x.place(t)), plain(t)) for t in round_ticks(_last(curves))]
    sheet.frame(box, rounds, ticks, ("rounds", label))


def _signed_ticks(low: float, high: float, threshold: float) -> list[float]:
    """Return 0 and powers of ten from the threshold on, on both sides, at most some ten of them."""
    start = round(math.log10(threshold))
    ups = [10.0**e for e in range(start, 300) if 10.0**e <= high]
    downs = [-(10.0**e) for e in range(start, 300) if -(10.0**e) >= low]
    every = max(1, math.ceil((len(ups) + len(downs)) / 10))
    return [*downs[::-1][(len(downs) - 1) % every :: every], 0.0, *ups[::every]]


def _sheet_with_legend(entries: Sequence[Entry], curves: int) -> tuple[Sheet, Box]:
    """Return a sheet with its legend on the right, and the box that is left to the curves."""
    widest = max((width_of(line) for entry in entries for line in entry.lines), default=0.0)
    left = max(480.0, WIDTH - 56.0 - widest)
    tall = sum(LINE * len(entry.lines) + 7.0 for entry in entries)
    sheet = Sheet(max(420.0, 30.0 * curves + 100.0, tall + 20.0))
    y = TOP + 10.0
    for entry in entries:
        if entry.look is None:
            sheet.line([left, left + 34], [y - 4, y - 4], FAINT, 1.2, THIN)
        else:
            sheet.line([left, left + 34], [y - 4, y - 4], entry.look.colour, 2.4, entry.look.dash)
            sheet.markers([left + 17], [y - 4], entry.look.marker, entry.look.colour)
        for line in entry.lines:
            indent = len(line) - len(line.lstrip())
            sheet.text(left + 42 + 5 * indent, y, line.strip())
            y += LINE
        y += 7.0
    return sheet, (LEFT, TOP, left - 26.0, sheet.height - 54.0)


def _curve(sheet: Sheet, curve: Curve, look: Style, x: Axis, y: Axis, per: Floats | float = 1.0) -> None:
    """Draw a curve with its band, each divided by `per`."""
    across, mean = x.place(curve.rounds), y.place(curve.mean / per)
    if np.isfinite(curve.low).all():
        sheet.band(across, y.place(curve.low / per), y.place(curve.high / per), look.colour)
    sheet.line(across, mean, look.colour, 2.4, look.dash)
    every = max(1, len(across) // 20)  # markers, where checkpoints are many
    sheet.markers(across[::every], mean[::every], look.marker, look.colour)


def _cells(sheet: Sheet, grid: Grid, shades: Floats, left: float, top: float, width: float) -> None:
    """Draw a grid's cells, each with its mistakes in percent, the fewest framed."""
    best = np.unravel_index(np.nanargmin(grid.mistakes), grid.mistakes.shape)
    for (i, j), value in np.ndenumerate(grid.mistakes):
        x, y = left + width * j, top + 38.0 * i
        if j == 0:
            sheet.text(left - 8, y + 24, short(grid.gammas[i]), anchor="end")
        if i == 0:
            bottom = top + 38.0 * len(grid.gammas)
            sheet.text(x + width / 2, bottom + 18, short(grid.norm_bounds[j]), anchor="middle")
        if not math.isfinite(value):
            continue
        colour = between(CREST, float(shades[i, j]))
        box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="38"'
        sheet.parts.append(f'<rect {box} fill="{hexed(colour)}"/>')
        if (i, j) == best:
            inner = f'x="{x + 2:.1f}" y="{y + 2:.1f}" width="{width - 4:.1f}" height="34"'
            sheet.parts.append(f'<rect {inner} fill="none" stroke="{ink_on(colour)}" stroke-width="2.4"/>')
        sheet.text(x + width / 2, y + 24, plain(100 * value, 1), anchor="middle", more=f' fill="{ink_on(colour)}"')
    sheet.text(left + width * len(grid.norm_bounds) / 2, top + 38.0 * len(grid.gammas) + 38, "B", anchor="middle")
    sheet.text(left - 60, top + 19.0 * len(grid.gammas) + 5, "γ")


def _against_gamma(sheet: Sheet, grid: Grid, box: Box, highest: float, shades: dict[float, str]) -> None:
    """Draw a grid's lines over gamma, one for each B."""
    low, high = min(grid.gammas), max(grid.gammas)
    if low > 0:
        x = Axis.log(low, high, box[0], box[2], margin=0.1)
    else:
        margin = 0.1 * (high - low)
        x = Axis.linear(low - margin, high + margin, box[0], box[2])
    y = Axis.linear(0.0, highest, box[3], box[1])
    bounds = list(shades)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if highest / s <= 6)
    ticks = [(float(y.place(k * step)), f"{100 * k * step:.0f} %") for k in range(int(highest / step) + 1)]
    sheet.frame(box, _apart(grid.gammas, x), ticks, ("γ", ""))
    for j, bound in enumerate(grid.norm_bounds):
        colour, marker = (FAINT, "o") if math.isnan(bound) else (shades[bound], MARKERS[bounds.index(bound) % 8])
        there = np.isfinite(grid.mistakes[:, j])
        across = x.place(np.array(grid.gammas)[there])
        lows, highs = y.place(grid.low[there, j]), y.place(grid.high[there, j])
        if np.isfinite(grid.low[there, j]).all():
            bars = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(across, lows, highs, strict=True))
            sheet.path(bars, f'fill="none" stroke="{colour}" stroke-width="1.8" stroke-opacity="0.7"')
        sheet.line(across, y.place(grid.mistakes[there, j]), colour, 2)
        sheet.markers(across, y.place(grid.mistakes[there, j]), marker, colour)


def _apart(values: Sequence[float], axis: Axis) -> list[tuple[float, str]]:
    """Return the ticks at these values, without the texts that would touch the one before."""
    ticks: list[tuple[float, str]] = []
    free = -math.inf
    for value in values:
        at, text = float(axis.place(value)), short(float(f"{value:.6g}"))
        half = width_of(text) / 2
        ticks.append((at, text if at - half > free else ""))
        free = at + half + 4 if at - half > free else free
    return ticks
