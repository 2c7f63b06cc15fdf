"""A sheet to draw SVG on: lines, areas, texts and axes as text, without a library; 1,000 units wide."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import escape

from banditlab.analysis.curves import Floats
from banditlab.analysis.look import FAINT, INK, RULE

WIDTH = 1000
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no way to write."""
SHAPES = {
    "s": "m-3-3h6v6h-6z",
    "D": "m0-4l4 4l-4 4l-4-4z",
    "^": "m0-4l4 7h-8z",
    "v": "m0 4l-4-7h8z",
    "P": "m-1.4-4h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z",
    "X": "m-4-2l2-2l2 2l2-2l2 2l-2 2l2 2l-2 2l-2-2l-2 2l-2-2l2-2z",
    "*": "m0-4.6l1.3 3h3.2l-2.5 2.1l1 3.3l-3-1.9l-3 1.9l1-3.3l-2.5-2.1h3.2z",
    "o": "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
}
"""Markers as paths around the point they stand at."""


def clean(text: str) -> str:
    """Return text as SVG takes it: escaped, without what XML cannot hold."""
    return str(escape(FORBIDDEN.sub("\ufffd", text)))


def width_of(text: str, size: float = 13.0) -> float:
    """Return about how wide a text is: wide letters of East Asia twice a narrow one."""
    return size * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.54 for c in text)


def dashes(dash: Any, width: float) -> str:
    """Return matplotlib's dash (offset, pattern in line widths), or "-", as attributes."""
    return "" if dash == "-" else f' stroke-dasharray="{" ".join(f"{width * part:.3g}" for part in dash[1])}"'


@dataclass(frozen=True)
class Axis:
    """A direction of a frame: `place` maps values (arrays, too) to units of the sheet."""

    place: Callable[[Any], Any]

    @staticmethod
    def linear(low: float, high: float, start: float, end: float) -> Axis:
        """Return an axis from `low` at `start` to `high` at `end`."""
        per = (end - start) / ((high - low) or 1.0)
        return Axis(lambda value: start + (np.asarray(value, dtype=float) - low) * per)

    @staticmethod
    def log(low: float, high: float, start: float, end: float, margin: float = 0.0) -> Axis:
        """Return a logarithmic axis, with a part of its length beside both ends; what is 0 or less lies far outside."""
        wide = margin * (math.log(high) - math.log(low))  # of logarithms: 1e200 / 1e-200 is no number
        inner = Axis.linear(math.log(low) - wide, math.log(high) + wide, start, end)
        tiny = math.log(low) - wide - 50.0

        def place(value: Any) -> Any:
            x = np.asarray(value, dtype=float)
            return inner.place(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), tiny))

        return Axis(place)

    @staticmethod
    def signed(low: float, high: float, threshold: float, start: float, end: float) -> Axis:
        """Return an axis that is linear between -threshold and threshold, logarithmic beyond."""

        def bend(value: Any) -> Any:
            x = np.asarray(value, dtype=float)
            size = np.maximum(np.abs(x) / threshold, 1e-300)
            return np.where(size <= 1, 0.667 * x / threshold, np.sign(x) * (0.667 + np.log10(size)))

        inner = Axis.linear(float(bend(low)), float(bend(high)), start, end)
        return Axis(lambda value: inner.place(bend(value)))


class Sheet:
    """Elements of a drawing, in the order they are drawn."""

    def __init__(self, height: float) -> None:
        self.height, self.parts, self.clips = height, list[str](), 0

    def svg(self) -> str:
        """Return the drawing as a file of its own."""
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:.0f}">\n'
            f'<g font-family="system-ui, sans-serif" font-size="13" fill="{INK}">\n{body}\n</g>\n</svg>\n'
        )

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> None:
        """Write a line of text, its baseline at y."""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{clean(text)}</text>')

    def path(self, d: str, more: str) -> None:
        """Draw a path."""
        self.parts.append(f'<path d="{d}" {more}/>')

    def line(self, x: Any, y: Any, colour: str, width: float, dash: Any = "-") -> None:
        """Draw a line through points, which breaks where a point is not finite."""
        self.path(through(x, y), f'fill="none" stroke="{colour}" stroke-width="{width}"{dashes(dash, width)}')

    def markers(self, x: Any, y: Any, marker: str, colour: str) -> None:
        """Draw a marker at each point that is finite."""
        there = ((a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b))
        d = "".join(f"M{a:.1f} {b:.1f}{SHAPES[marker]}" for a, b in there)
        if d:
            self.path(d, f'fill="{colour}"')

    def band(self, x: Any, low: Any, high: Any, colour: str) -> None:
        """Fill what is between two lines."""
        d = through(np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]]))
        self.path(f"{d}z", f'fill="{colour}" fill-opacity="0.14"')

    def clip(self, frame: tuple[float, float, float, float]) -> None:
        """Keep what is drawn until `unclip` within (left, top, right, bottom), and a little beyond for lines on the edge."""
        left, top, right, bottom = frame
        self.clips += 1
        box = f'x="{left - 1:.1f}" y="{top - 1:.1f}" width="{right - left + 5:.1f}" height="{bottom - top + 2:.1f}"'
        self.parts.append(
            f'<clipPath id="clip{self.clips}"><rect {box}/></clipPath><g clip-path="url(#clip{self.clips})">'
        )

    def unclip(self) -> None:
        """End `clip`."""
        self.parts.append("</g>")

    def frame(
        self,
        frame: tuple[float, float, float, float],
        x: Iterable[tuple[float, str]],
        y: Iterable[tuple[float, str]],
        labels: tuple[str, str],
    ) -> None:
        """Draw the axes of (left, top, right, bottom): ticks as (place, text), a grid line each; and the axes' names."""
        left, top, right, bottom = frame
        x, y = list(x), list(y)
        grid = "".join(f"M{at:.1f} {top:.1f}V{bottom:.1f}" for at, _ in x)
        grid += "".join(f"M{left:.1f} {at:.1f}H{right:.1f}" for at, _ in y)
        self.path(grid, f'fill="none" stroke="{RULE}" stroke-width="1"')
        self.path(f"M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}", f'fill="none" stroke="{FAINT}" stroke-width="1.1"')
        for at, text in x:
            self.text(at, bottom + 19, text, anchor="middle")
        for at, text in y:
            self.text(left - 8, at + 4.5, text, anchor="end")
        self.text((left + right) / 2, bottom + 41, labels[0], anchor="middle")
        if labels[1]:
            middle = (top + bottom) / 2
            turn = f' transform="rotate(-90 18 {middle:.1f})"'
            self.text(18, middle, labels[1], anchor="middle", more=turn)


def through(x: Any, y: Any) -> str:
    """Return the path through points; it begins anew behind a point that is not finite."""
    d, on = [], False
    for a, b in zip(x, y, strict=True):
        if math.isfinite(a) and math.isfinite(b):
            d.append(f"{'L' if on else 'M'}{a:.1f} {b:.1f}")
            on = True
        else:
            on = False
    return "".join(d)


def between(anchors: Sequence[str], value: float) -> tuple[float, float, float]:
    """Return the colour (red, green, blue in [0, 1]) at `value` in [0, 1] on a scale of evenly spaced ones, "#rrggbb"."""
    known: Floats = np.array([[int(a[i : i + 2], 16) / 255 for i in (1, 3, 5)] for a in anchors])
    at = min(max(value, 0.0), 1.0) * (len(anchors) - 1)
    i = min(int(at), len(anchors) - 2)
    red, green, blue = (known[i] + (at - i) * (known[i + 1] - known[i])).tolist()
    return red, green, blue


def hexed(colour: Sequence[float]) -> str:
    """Return (red, green, blue) as "#rrggbb"."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)
