"""The style of figures: size, colours, dashes, markers, and file formats.

matplotlib is imported only when a figure is drawn, because a report or a board only needs the colours. Figures are ten
inches wide, so one inch is 100 px in a page of 1,000 px. Text, faint text and the grid have special colours, which the
report replaces by those of the reader's theme.
"""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, RULE = "#20242a", "#7c838c", "#d7dbe0"
WIDTH = 10.0
# seaborn's colour-blind palette without yellow and pale pink, which are hard to see on white
COLOURS = ["#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#56b4e9", "#ca9161", "#949494"]
DASHES: list[Any] = ["-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5))]
MARKERS = "osD^vPX*"
THIN = (0, (4, 3))
ORDER = (
    # players that are often compared are in the same row of eight, so they differ in colour
    *("linucb", "banditron", "fastcb", "newtron", "obama-lite", "exploration(ogd)", "gaptron", "uniform"),
    *(
        "exploration(folklore)",
        "epsilon-greedy-direct",
        "squarecb",
        "soba",
        "confidit",
        "lints",
        "rdue",
        "ovr-perceptron",
    ),
    *("epsilon-greedy", "pnewtron", "soba-diag", "exploration(aioli)", "exploration(ons)", "decoded-descent"),
    *("exploration(gaf)", "boosted-exploration"),
    *("ogd", "folklore", "ftrl", "ons", "aioli", "gaf", "aggregating", "b-grid"),
)
"""Labels, whose index determines the style. Add new labels at the end, because other players' styles must not
change."""
LOOK = {
    "text.usetex": False,  # independent of a matplotlibrc in the working folder
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "axes.grid": True,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "banditlab",
}

P = ParamSpec("P")


class Style(NamedTuple):
    """The style of one player."""

    colour: str
    dash: Any
    marker: str


def styles(labels: Sequence[str], references: Sequence[str] = ()) -> dict[str, Style]:
    """Return the style of each label.

    The style of a player in `ORDER` depends only on its index there, so it is the same in every figure, report and
    board. The style number of another player is a hash of its label, or the next free number if another label of the
    figure has this one. References are grey and dashed.
    """
    looks: dict[str, Style] = {}
    taken = {ORDER.index(label) for label in labels if label in ORDER}
    for label in labels:
        if label not in references:
            number = ORDER.index(label) if label in ORDER else _free_number(label, taken)
            taken.add(number)
            looks[label] = _style(number)
    grey = enumerate(label for label in labels if label in references)
    return looks | {label: Style(FAINT, DASHES[1 + i % 3], MARKERS[i % len(MARKERS)]) for i, label in grey}


def _free_number(label: str, taken: Container[int]) -> int:
    """Return a style number from the label's hash, or the next free one; once all are taken, other markers are used."""
    n = len(COLOURS) * len(DASHES)
    number = int.from_bytes(hashlib.sha256(label.encode("utf-8", "replace")).digest()[:4], "big") % n
    numbers = ((number + i) % n + n * lap for lap in range(len(MARKERS)) for i in range(n))
    return next((s for s in numbers if s not in taken), number)


def _style(number: int) -> Style:
    """Return the style with this number; after eight numbers the colours repeat with another dash."""
    n, rows = len(COLOURS), number // len(COLOURS)
    marker = (number + 3 * rows + rows // len(DASHES)) % len(MARKERS)
    return Style(COLOURS[number % n], DASHES[rows % len(DASHES)], MARKERS[marker])


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as .svg (with text as text and stable ids) or .png (on white, 150 dots per inch)."""
    import matplotlib as mpl

    with mpl.rc_context(LOOK), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in a script that DejaVu Sans lacks
        if str(path).endswith(".svg"):
            figure.savefig(path, metadata={"Date": None})
        else:
            figure.savefig(path, dpi=150, facecolor="white")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function that draws a figure: apply the style of this module, and compute the layout once."""

    @functools.wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context(LOOK):  # type: ignore[arg-type]
            figure = draw(*args, **kwargs)
            # compute the layout once, not for every file
            engine = figure.get_layout_engine()
            if engine is not None:
                engine.execute(figure)
            figure.set_layout_engine("none")
            return figure

    return inside


def new_figure(height: float) -> Figure:
    """Return an empty figure with this height in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def shared_legend(figure: Figure, axes: Iterable[Axes], *, ncols: int = 4, first: Iterable[str] = ()) -> None:
    """Put one legend for all axes below a figure, without duplicate labels; those in `first` come first."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    shown = dict.fromkeys([*(label for label in first if label in entries), *entries])
    figure.legend([entries[label] for label in shown], list(shown), loc="outside lower center", ncols=ncols)


def name_ticks(ax: Axes, values: Sequence[float], *, axis: Literal["x", "y"] = "x") -> None:
    """Put ticks at these values of an axis, as plain numbers, and remove minor ticks from both axes."""
    {"x": ax.set_xticks, "y": ax.set_yticks}[axis](values, [f"{value:g}" for value in values])
    ax.minorticks_off()
