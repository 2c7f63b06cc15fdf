"""Figures. Each function receives the result of a function of `curves` and returns a matplotlib Figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter, SymmetricalLogLocator
from seaborn.utils import relative_luminance

from banditlab.analysis.curves import Curve, Grid, Panel
from banditlab.analysis.formats import amount, plain, short
from banditlab.analysis.look import FAINT, INK, MARKERS, THIN, Style, new_figure, styled
from banditlab.analysis.summary import Standing

LONGEST = 40
"""The largest number of characters of a name per line of a legend."""


@styled
def mistakes_against_rounds(curves: Sequence[Curve], looks: dict[str, Style]) -> Figure:
    """Draw the share of expected mistakes so far against rounds, on logarithmic axes, with interval bands."""
    figure = new_figure(_height(curves))
    ax = figure.subplots()
    first = _rounds_axis(ax, curves)
    shown = np.concatenate([(curve.mean / curve.rounds)[curve.rounds >= first] for curve in curves])
    least = float(shown[shown > 0].min()) if (shown > 0).any() else 0.01
    bottom = min(0.5, max(1e-9, 0.8 * least))
    ax.set_ylim(bottom, 1.06)
    for curve in curves:
        _line(ax, curve, looks[curve.label], curve.rounds, floor=bottom)
    handles = [_handle(looks[curve.label], f"{curve.name}: {_last_share(curve)}") for curve in curves]
    ax.set(yscale="log", ylabel="expected mistakes so far, share of rounds")
    ax.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if bottom < 0.15 else (1, 2, 3, 4, 5, 6, 8)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))
    ax.yaxis.set_minor_locator(NullLocator())
    _legend(figure, handles)
    return figure


@styled
def relative_against_rounds(panel: Panel, looks: dict[str, Style]) -> Figure:
    """Draw expected mistakes minus the comparator's loss at one norm bound, with a thin line for min(bound, T) if there
    is a bound.
    """
    bounded = [curve for curve in panel.curves if len(curve.bound)]
    figure = new_figure(_height(panel.curves, bounded))
    ax = figure.subplots()
    ax.axhline(0, color=INK, lw=1.0, zorder=1.5)
    for curve in panel.curves:
        look = looks[curve.label]
        _line(ax, curve, look)
        if len(curve.bound):
            ax.plot(curve.rounds, curve.bound, color=look.colour, lw=0.9, ls=THIN, zorder=1.8)
    handles = [_handle(looks[curve.label], f"{curve.name}{_bound(curve)}") for curve in panel.curves]
    if bounded:
        handles.append(Line2D([], [], color=FAINT, lw=0.9, ls=THIN, label="min(bound, rounds)"))
    _rounds_axis(ax, panel.curves)
    threshold = 10.0 ** max(0, math.floor(math.log10(panel.curves[0].rounds[-1]) / 2))
    ax.set_yscale("symlog", linthresh=threshold, linscale=0.6)
    ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=threshold))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    ax.set_ylabel(f"expected mistakes − nats of the best U, B = {short(panel.norm_bound)}")
    _legend(figure, handles)
    return figure


@styled
def mistakes_against_costs(rows: Sequence[Standing], looks: dict[str, Style]) -> Figure:
    """Draw the share of expected mistakes against the mean cost, for players, their Pareto front, and the
    best choices in hindsight.
    """
    figure = new_figure(_height(rows))
    ax = figure.subplots()
    front: list[Standing] = []
    for row in sorted((row for row in rows if not row.constant), key=lambda row: (row.cost, row.mistakes.mean)):
        if not front or row.mistakes.mean < front[-1].mistakes.mean:
            front.append(row)
    ax.plot([row.cost for row in front], [row.mistakes.mean for row in front], color=FAINT, lw=1.2, zorder=2)
    handles = []
    for i, row in enumerate(rows):
        look = Style(INK, "", MARKERS[i % len(MARKERS)]) if row.constant else looks[row.label]
        point: dict[str, Any] = {
            "color": look.colour,
            "marker": look.marker,
            "ls": "",
            "fillstyle": "none" if row.constant else "full",
        }
        ax.plot([row.cost], [row.mistakes.mean], **point, ms=6, zorder=3)
        handles.append(Line2D([], [], **point, label=_literal(f"{row.name}: {plain(100 * row.mistakes.mean, 1)} %")))
    ax.set(xlabel="mean cost of the chosen actions", ylabel="expected mistakes")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    _legend(figure, handles)
    return figure


@styled
def heat_maps(grids: Sequence[Grid]) -> Figure:
    """Draw the share of mistakes over γ and B in percent, one panel per grid, with one colour scale and a frame around
    the smallest.

    Darker cells have fewer mistakes, so colours can be compared within and between panels.
    """
    figure, axes = _panels(grids, 0.95 + 0.4 * max(len(grid.gammas) for grid in grids))
    every = np.concatenate([grid.mistakes.ravel() for grid in grids])
    colours = sns.color_palette("crest_r", as_cmap=True)
    limits = {"vmin": np.nanmin(every), "vmax": np.nanmax(every)}
    for i, (ax, grid) in enumerate(zip(axes, grids, strict=False)):
        cells = ax.pcolormesh(grid.mistakes, cmap=colours, **limits, ec="face", lw=0.3)
        for row, column in np.argwhere(np.isfinite(grid.mistakes)):
            value = grid.mistakes[row, column]
            ink = "white" if relative_luminance(cells.to_rgba(value)) < 0.3 else INK
            ax.text(column + 0.5, row + 0.5, plain(100 * value, 1), ha="center", va="center", color=ink)
        row, column = np.unravel_index(np.nanargmin(grid.mistakes), grid.mistakes.shape)
        ax.add_patch(Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, fill=False, ec=INK, lw=1.8))
        ax.set_xticks(np.arange(len(grid.norm_bounds)) + 0.5, [ball or "none" for ball in grid.norm_bounds])
        ax.set_yticks(np.arange(len(grid.gammas)) + 0.5, grid.gammas)
        ax.set(xlabel="B", ylabel="γ" if i % 3 == 0 else "")
        ax.tick_params(length=0)
        ax.invert_yaxis()
        ax.spines[:].set_visible(False)
        ax.grid(False)
    return figure


@styled
def mistakes_against_gamma(grids: Sequence[Grid]) -> Figure:
    """Draw the share of expected mistakes against γ with intervals, one panel per grid and one line per B."""
    figure, axes = _panels(grids, 2.5, sharey=True)
    balls = list(dict.fromkeys(ball for grid in grids for ball in grid.norm_bounds))
    looks: dict[str, dict[str, Any]] = {
        ball: {"color": colour if ball else FAINT, "marker": MARKERS[i % len(MARKERS)], "ms": 5, "lw": 1.6}
        for i, (ball, colour) in enumerate(zip(balls, sns.color_palette("flare", len(balls)), strict=True))
    }
    for i, (ax, grid) in enumerate(zip(axes, grids, strict=False)):
        for j, ball in enumerate(grid.norm_bounds):
            order = np.argsort(grid.at[:, j])
            gammas, mistakes, low, high = (each[order, j] for each in (grid.at, grid.mistakes, grid.low, grid.high))
            ax.plot(gammas, mistakes, **looks[ball])
            ax.vlines(gammas, low, high, color=looks[ball]["color"], lw=1.4, alpha=0.7)
        ax.set_xscale("log" if np.nanmin(grid.at) > 0 else "linear")
        if np.nanmin(grid.at) > 0:
            ax.xaxis.set_major_locator(LogLocator(10, subs=(1, 3)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(float(f"{value:.6g}"))))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        ax.set(xlabel="γ", ylabel="expected mistakes" if i % 3 == 0 else "")
        ax.margins(x=0.1)
    axes[0].set_ylim(bottom=0)
    handles = [Line2D([], [], **looks[ball], label=f"B = {ball}" if ball else "has no B") for ball in balls]
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, len(handles)))
    return figure


# --------------------------------------------------------------------------------------------------------------- pieces


def _height(entries: Sequence[object], bounded: Sequence[object] = ()) -> float:
    """Return the height of a figure whose legend has these entries, some of them with a line for a bound."""
    return max(4.2, 1.0 + 0.3 * len(entries) + 0.17 * len(bounded))


def _panels(grids: Sequence[Grid], height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per grid, three per row, each with the title of the grid."""
    columns = min(3, len(grids))
    rows = math.ceil(len(grids) / columns)
    figure = new_figure(0.6 + rows * (height + 0.3))
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for ax, grid in zip(axes, grids, strict=False):
        ax.set_title(_literal(grid.title, 28), fontsize=9)
    for ax in axes[len(grids) :]:
        ax.set_visible(False)
    return figure, axes


def _line(ax: Axes, curve: Curve, look: Style, per: Any = 1.0, floor: float = -math.inf) -> None:
    """Draw a curve and its band, each divided by `per`; on a logarithmic axis the band is cut at `floor`."""
    every = max(1, len(curve.rounds) // 20)  # fewer markers than checkpoints
    style = {"color": look.colour, "ls": look.dash, "lw": 1.8, "marker": look.marker, "ms": 4, "markeredgewidth": 0}
    ax.plot(curve.rounds, curve.mean / per, markevery=every, zorder=3, **style)
    low, high = (np.maximum(edge / per, floor) for edge in (curve.low, curve.high))
    ax.fill_between(curve.rounds, low, high, color=look.colour, alpha=0.14, lw=0, zorder=2)


def _rounds_axis(ax: Axes, curves: Sequence[Curve]) -> float:
    """Give rounds a logarithmic axis that ends at the last round; return its start: 10, or 1 for short runs."""
    last = max(float(curve.rounds[-1]) for curve in curves)
    first = 10.0 if last >= 500 else 1.0
    ax.set(xscale="log", xlim=(first, max(last, 2 * first)), xlabel="rounds")
    decades = 10.0 ** np.arange(math.log10(first), math.log10(last / 1.5) if last > first else 0.0)
    ax.set_xticks([*decades, last])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    return first


def _last_share(curve: Curve) -> str:
    last = curve.mean[-1] / curve.rounds[-1]
    return f"{plain(100 * last, 1 if last >= 0.01 else 2)} %"


def _bound(curve: Curve) -> str:
    """Return the second line of a legend: the bound, if a theorem gives one."""
    if curve.bound_in_bits:
        return "\n   bound in bits: see the table"
    return f"\n   bound: {'vacuous' if curve.vacuous else amount(curve.bound[-1])}" if len(curve.bound) else ""


def _handle(look: Style, text: str) -> Line2D:
    return Line2D([], [], color=look.colour, ls=look.dash, lw=1.8, marker=look.marker, ms=4, label=_literal(text))


def _literal(text: str, width: int = LONGEST) -> str:
    """Wrap long names, and prevent matplotlib from interpreting dollar signs and a leading underscore."""
    lines = [textwrap.wrap(line, width, subsequent_indent="   ", max_lines=3) or [""] for line in text.split("\n")]
    text = "\n".join(line for each in lines for line in each).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def _legend(figure: Figure, handles: list[Line2D]) -> None:
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.6, labelspacing=0.75, borderaxespad=0.8)
