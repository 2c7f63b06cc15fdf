"""Small charts as SVG text, in the page's own colours and type: no library, no file, light and dark alike."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 640, 150, 24, 14, 40


SPAN = 5.0
"""A logarithmic axis shows at least this factor."""


class Dot(NamedTuple):
    """A row of a dot chart: its name, what is measured with its interval, and others to compare it with."""

    name: str
    value: float
    low: float
    high: float
    others: tuple[float, ...]


class Line(NamedTuple):
    """A line of a line chart."""

    name: str
    points: tuple[tuple[float, float], ...]
    kind: str
    """ "mine" or "faint"."""


def figure(svg: str, caption: str) -> str:
    """Return a figure with its caption, as Markdown that passes it through."""
    return f'```{{raw}} html\n<figure class="measured">{svg}\n<figcaption>{escape(caption)}</figcaption></figure>\n```'


def dots(rows: list[Dot], unit: str, title: str) -> str:
    """Return a chart of one dot a row with its interval, others as small marks, on a scale from 0."""
    high = max(max(r.value, r.high if math.isfinite(r.high) else 0.0, *r.others) for r in rows)
    top = _nice(high)
    height = TOP + 24 * len(rows) + BOTTOM
    x = lambda value: LEFT + (WIDTH - LEFT - RIGHT) * value / top  # noqa: E731
    parts = [_grid(x, [top * i / 5 for i in range(6)], height, unit)]
    for i, row in enumerate(rows):
        y = TOP + 24 * i + 12
        parts.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>')
        for other in row.others:
            parts.append(f'<line class="faint" x1="{x(other):.1f}" x2="{x(other):.1f}" y1="{y - 6}" y2="{y + 6}"/>')
        if math.isfinite(row.low):
            ends = f'x1="{x(max(0.0, row.low)):.1f}" x2="{x(row.high):.1f}"'
            parts.append(f'<line class="mine" {ends} y1="{y}" y2="{y}" stroke-width="2"/>')
        parts.append(f'<circle class="mine" cx="{x(row.value):.1f}" cy="{y}" r="4.5"/>')
    return _svg(parts, height, title)


def lines(found: list[Line], x_name: str, y_name: str, title: str) -> str:
    """Return a chart of lines, both axes logarithmic; values not above 0 are left out."""
    points = [(a, b) for line in found for a, b in line.points if a > 0 and b > 0]
    least = max(b for _, b in points) / SPAN  # so that lines that hardly differ do not look far apart
    heights = [*(b for _, b in points), min(least, *(b for _, b in points))]
    height = 300
    x = _log_axis([a for a, _ in points], LEFT, WIDTH - 150)
    y = _log_axis(heights, height - BOTTOM, TOP + 16)
    parts = []
    for value in _decades(heights):
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - 150}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{_short(value)}</text>')
    ticks = sorted({a for a, _ in points})
    for value in ticks if len(ticks) < 7 else [v for v in ticks if math.log10(v).is_integer()]:
        parts.append(f'<text x="{x(value):.1f}" y="{height - BOTTOM + 18}" text-anchor="middle">{_short(value)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - 150) / 2}" y="{height - 4}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(f'<text x="{LEFT - 8}" y="{TOP}" text-anchor="end">{escape(y_name)}</text>')
    ends: list[tuple[float, float, str]] = []
    for line in found:
        shown = [(x(a), y(b)) for a, b in line.points if a > 0 and b > 0]
        if not shown:
            continue
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in shown)
        dash = ' stroke-dasharray="5 4"' if line.kind == "faint" else ""
        parts.append(
            f'<polyline class="{line.kind}" fill="none" style="fill:none" stroke-width="2"{dash} points="{path}"/>'
        )
        ends.append((shown[-1][1], shown[-1][0], line.name))
    for at, (_, right, name) in zip(apart([end[0] for end in sorted(ends)]), sorted(ends), strict=True):
        parts.append(f'<text x="{right + 8:.1f}" y="{at + 4:.1f}">{escape(name)}</text>')
    return _svg(parts, height, title)


def apart(heights: list[float], least: float = 14.0) -> list[float]:
    """Return increasing heights in their order, moved down where one is less than `least` below the one before."""
    moved: list[float] = []
    for at in heights:
        moved.append(max(at, moved[-1] + least) if moved else at)
    return moved


def _svg(parts: list[str], height: float, title: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img"><title>{escape(title)}</title>'
    return head + "".join(parts) + "</svg>"


def _grid(x: object, ticks: list[float], height: float, unit: str) -> str:
    parts = []
    for value in ticks:
        at = x(value)  # type: ignore[operator]
        parts.append(f'<line class="rule" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 4}" text-anchor="middle">{escape(unit)}</text>')
    return "".join(parts)


def _nice(value: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is not below a value."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= value * (1 - 1e-9))


def _log_axis(values: list[float], begin: float, end: float):  # type: ignore[no-untyped-def]
    low, high = math.log(min(values)), math.log(max(values))
    return lambda value: begin + (end - begin) * (math.log(value) - low) / ((high - low) or 1.0)


def _decades(values: list[float]) -> list[float]:
    """Return where the axis is marked: powers of ten, five times them and twice where there are few."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    step = max(1, (high - low) // 5)
    marks = (1.0, 2.0, 5.0) if high - low <= 2 else (1.0,)
    every = [m * 10.0**e for e in range(low, high + 1, step) for m in marks]
    return [value for value in every if min(values) <= value <= max(values)]


def _short(value: float) -> str:
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"
