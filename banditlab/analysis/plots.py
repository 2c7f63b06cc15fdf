"""Figures. Each function takes what `curves` computed and returns a matplotlib Figure; nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter, SymmetricalLogLocator

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
from banditlab.analysis.look import FAINT, INK, MARKERS, THIN, Style, new_figure, styled
from banditlab.analysis.words import plain, short


@styled
def mistakes_against_rounds(curves: Sequence[Curve], looks: dict[str, Style]) -> Figure:
    """Draw the share of expected mistakes so far against rounds, both axes logarithmic, with interval bands."""
    figure = new_figure(max(4.2, 1.0 + 0.3 * len(curves)))
    ax = figure.subplots()
    first = _rounds_axis(ax, curves)
    bottom, ticks = share_axis(curves, first)
    handles = []
    for curve in curves:
        look = looks[curve.label]
        _line(ax, curve, look, curve.rounds, floor=bottom)
        handles.append(_handle(look, share_entry(curve)))
    ax.set(yscale="log", ylabel="expected mistakes so far, share of rounds")
    ax.set_ylim(bottom, 1.06)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: share_text(value)))
    ax.yaxis.set_minor_locator(NullLocator())
    _legend(figure, handles)
    return figure


@styled
def relative_against_rounds(panel: Panel, looks: dict[str, Style]) -> Figure:
    """Draw expected mistakes minus the comparator's loss in one ball; min(bound, T) thin where there is one."""
    bounded = [curve for curve in panel.curves if len(curve.bound)]
    second_lines = len(bounded) + sum(curve.bound_in_bits for curve in panel.curves)
    figure = new_figure(max(4.2, 1.0 + 0.3 * len(panel.curves) + 0.17 * second_lines))
    ax = figure.subplots()
    ax.axhline(0, color=INK, lw=1.0, zorder=1.5)
    handles = []
    for curve in panel.curves:
        look = looks[curve.label]
        _line(ax, curve, look)
        if len(curve.bound) and not at_rounds(curve):
            ax.plot(curve.rounds, curve.bound, color=look.colour, lw=0.9, ls=THIN, zorder=1.8)
        handles.append(_handle(look, relative_entry(curve)))
    if any(at_rounds(curve) for curve in bounded):  # they all coincide: one line in no player's colour
        ax.plot(panel.curves[0].rounds, panel.curves[0].rounds, color=FAINT, lw=0.9, ls=THIN, zorder=1.8)
    if bounded:
        handles.append(Line2D([], [], color=FAINT, lw=0.9, ls=THIN, label="min(bound, rounds)"))
    _rounds_axis(ax, panel.curves)
    _signed_axis(ax, panel)
    ax.set_ylabel(f"expected mistakes − nats of the best U, B = {short(panel.norm_bound)}")
    _legend(figure, handles)
    return figure


@styled
def heat_maps(grids: Sequence[Grid]) -> Figure:
    """Draw the share of mistakes over gamma and B, one panel per player, one colour scale, every cell with its number.

    The darker, the fewer mistakes, so that colours compare within and between panels. A frame marks a panel's fewest.
    """
    columns = min(3, len(grids))
    rows = math.ceil(len(grids) / columns)
    tall = max(len(grid.gammas) for grid in grids)
    figure = new_figure(rows * (0.95 + 0.4 * tall))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    colours = sns.color_palette("crest_r", as_cmap=True)
    for i, (ax, grid, shown) in enumerate(zip(axes, grids, shades_of(grids), strict=False)):
        ax.pcolormesh(shown, cmap=colours, vmin=0.0, vmax=1.0, ec="face", lw=0.3)
        _numbers(ax, 100 * grid.mistakes, colours(shown), 1)
        row, column = np.unravel_index(np.nanargmin(grid.mistakes), grid.mistakes.shape)
        ax.add_patch(Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, fill=False, ec="#20242b", lw=1.8))
        ax.set_title(_literal(panel_title(grid.label)))
        ax.set_xticks(np.arange(len(grid.norm_bounds)) + 0.5, [short(b) for b in grid.norm_bounds])
        ax.set_yticks(np.arange(len(grid.gammas)) + 0.5, [short(g) for g in grid.gammas])
        ax.set(xlabel="B", ylabel="γ" if i % columns == 0 else "")
        ax.tick_params(length=0)
        ax.invert_yaxis()
        ax.spines[:].set_visible(False)
        ax.grid(False)
    for ax in axes[len(grids) :]:
        ax.set_visible(False)
    return figure


@styled
def mistakes_against_gamma(grids: Sequence[Grid]) -> Figure:
    """Draw the share of expected mistakes against gamma, one panel per player, one line per B, with intervals."""
    columns = min(3, len(grids))
    rows = math.ceil(len(grids) / columns)
    figure = new_figure(0.6 + 2.5 * rows)
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False, sharey=True)).ravel()
    bounds = sorted({b for grid in grids for b in grid.norm_bounds if not math.isnan(b)})
    shades = dict(zip(bounds, sns.color_palette("flare", len(bounds)).as_hex(), strict=True)) if bounds else {}
    for i, (ax, grid) in enumerate(zip(axes, grids, strict=False)):
        for j, bound in enumerate(grid.norm_bounds):
            colour, marker = (FAINT, "o") if math.isnan(bound) else (shades[bound], MARKERS[bounds.index(bound) % 8])
            _with_bars(ax, grid, j, colour, marker)
        positive = [g for g in grid.gammas if g > 0]
        ax.set_xscale("log" if len(positive) == len(grid.gammas) else "linear")
        ax.xaxis.set_major_locator(FixedLocator(grid.gammas))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(float(f"{value:.6g}"))))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        ax.set_title(_literal(panel_title(grid.label)))
        ax.set_xlabel("γ")
        if i % columns == 0:
            ax.set_ylabel("expected mistakes")
        ax.margins(x=0.1)
    highest = np.nanmax([np.nanmax(np.fmax(grid.high, grid.mistakes)) for grid in grids])
    axes[0].set_ylim(0, 1.06 * highest or 1.0)
    for ax in axes[len(grids) :]:
        ax.set_visible(False)
    handles = [
        Line2D([], [], color=shades[b], marker=MARKERS[k % 8], ms=5, label=f"B = {short(b)}")
        for k, b in enumerate(bounds)
    ]
    if any(math.isnan(b) for grid in grids for b in grid.norm_bounds):
        handles.append(Line2D([], [], color=FAINT, marker="o", ms=5, label="has no B"))
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, len(handles)))
    return figure


# --------------------------------------------------------------------------------------------------------------- pieces


def _line(ax: Axes, curve: Curve, look: Style, per: Any = 1.0, floor: float = -math.inf) -> None:
    """Draw a curve and its band, each divided by `per`; the band ends at `floor`, for an axis that has no 0."""
    x, y = curve.rounds, curve.mean / per
    every = max(1, len(x) // 20)  # markers, where checkpoints are many
    style = {"color": look.colour, "ls": look.dash, "lw": 1.8, "marker": look.marker, "ms": 4, "markeredgewidth": 0}
    ax.plot(x, y, markevery=every, zorder=3, **style)
    if np.isfinite(curve.low).all():
        ax.fill_between(
            x,
            np.maximum(curve.low / per, floor),
            np.maximum(curve.high / per, floor),
            color=look.colour,
            alpha=0.14,
            lw=0,
            zorder=2,
        )


def _rounds_axis(ax: Axes, curves: Sequence[Curve]) -> float:
    """Give rounds a logarithmic axis that ends at the last one; return where it starts: 10, or 1 for short runs."""
    last = max(float(curve.rounds[-1]) for curve in curves)
    first = first_round(last)
    ax.set_xscale("log")
    ax.set_xlim(first, max(last, 2 * first) if last <= first else last)
    ax.xaxis.set_major_locator(FixedLocator(round_ticks(last)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("rounds")
    return first


def _numbers(ax: Axes, values: Floats, cells: Floats, digits: int) -> None:
    """Print each cell's number, dark on light cells and white on dark ones."""
    for (i, j), value in np.ndenumerate(values):
        if not math.isfinite(value):
            continue
        ax.text(
            j + 0.5,
            i + 0.5,
            plain(value, digits),
            ha="center",
            va="center",
            size=10,
            color=ink_on(cells[i, j, :3].tolist()),
        )


def _handle(look: Style, text: str) -> Line2D:
    return Line2D([], [], color=look.colour, ls=look.dash, lw=1.8, marker=look.marker, ms=4, label=_literal(text))


def _literal(text: str) -> str:
    """Wrap long names, and keep matplotlib from reading dollar signs as mathematics, a leading underscore as "hide"."""
    text = "\n".join(wrapped(text)).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def _with_bars(ax: Axes, grid: Grid, j: int, colour: str, marker: str) -> None:
    y, low, high = grid.mistakes[:, j], grid.low[:, j], grid.high[:, j]
    there = np.isfinite(y)
    gammas = np.array(grid.gammas)[there]
    ax.plot(gammas, y[there], color=colour, marker=marker, ms=5, lw=1.6, markeredgewidth=0)
    if np.isfinite(low[there]).all():
        ax.vlines(gammas, low[there], high[there], color=colour, lw=1.4, alpha=0.7)


def _legend(figure: Figure, handles: list[Line2D]) -> None:
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.6, labelspacing=0.75, borderaxespad=0.3)


def _signed_axis(ax: Axes, panel: Panel) -> None:
    """Give the vertical axis powers of ten on both sides of 0, and limits that hold lines and bounds."""
    low, high, threshold = signed_axis(panel)
    ax.set_yscale("symlog", linthresh=threshold, linscale=0.6)
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=threshold))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
