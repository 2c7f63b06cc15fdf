"""Figures drawn from made-up curves and grids, which are on record: `python -m tests.analysis.picture_record` writes them anew.

Of a figure is recorded what its axes hold: limits, ticks, lines, texts.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from banditlab.analysis import plots
from banditlab.analysis.curves import Curve, Grid, Panel
from banditlab.analysis.look import styles

FOLDER = Path(__file__).parent / "pictures"
NONE = np.empty(0)


def curve(label: str, settings: str, rounds: list[int], share: list[float], *, width: float = 0.1, bound: Any = NONE,
          vacuous: bool = False, in_bits: bool = False) -> Curve:  # fmt: skip
    at, mean = np.array(rounds, dtype=float), np.array(share) * np.array(rounds, dtype=float)
    band = width * np.abs(mean)
    return Curve(label, settings, at, mean, mean - band, mean + 1.5 * band, np.asarray(bound, float), vacuous, in_bits)


LONG = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 8000]
MANY = list(range(100, 6100, 100))
CURVES = {
    "two": [
        curve("uniform", "", LONG, [0.9, 0.85, 0.88, 0.9, 0.9, 0.91, 0.9, 0.9, 0.89, 0.9, 0.9, 0.9, 0.9]),
        curve("linucb", "(confidence=0.3)", LONG, [1, 1, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.22, 0.16, 0.12, 0.07, 0.043],
              width=0.2),
    ],
    "short": [
        curve("banditron", "(gamma=0.1)", [10, 40, 90], [0.8, 0.71, 0.66]),
        curve("gaptron", "(gamma=0.03, step=wide)", [10, 40, 90], [0.75, 0.52, 0.31]),
        curve("soba", "", [10, 40, 90], [0.0, 0.0, 0.0]),
    ],
    "many": [
        *(curve(f"exploration(forecaster number {i} of a long name)", "(gamma=theory, norm_bound=10, regularization=0.001)",
                MANY, list(0.9 - 0.05 * i - 0.0001 * np.arange(60))) for i in range(9)),
    ],
    "one round": [curve("newtron", "", [7], [3 / 7])],
    "first round": [curve("newtron", "", [1], [1.0])],
}  # fmt: skip
PANELS = {
    "bounds": Panel(3.0, [
        curve("fastcb", "(gamma=30)", LONG, [1, 0.5, 0.2, 0.3, 0.2, 0.1, 0.05, 0.02, -0.01, -0.02, -0.03, -0.03, -0.04]),
        curve("obama-lite", "", LONG, [1, 0.6, 0.4, 0.35, 0.3, 0.28, 0.2, 0.18, 0.15, 0.1, 0.09, 0.08, 0.075],
              bound=[1, 2, 5, 10, 20, 50, 100, 200, 450, 700, 1000, 1500, 1900]),
        curve("gaptron", "(norm_bound=3)", LONG, [1, 0.5, 0.4, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], bound=LONG,
              vacuous=True),
        curve("rdue", "", LONG, [0.5] * 13, in_bits=True),
    ]),
    "plain": Panel(0.25, [curve("uniform", "", [5, 50, 400], [0.2, 0.3, 0.35])]),
}  # fmt: skip


def grid(label: str, gammas: list[float], bounds: list[str], seed: int, *, hole: bool = False, other: str = "") -> Grid:
    rng = np.random.default_rng(seed)
    mistakes = np.round(rng.uniform(0.1, 0.8, (len(gammas), len(bounds))), 4)
    at = np.repeat(np.array(gammas)[:, None], len(bounds), axis=1)
    if hole:
        mistakes[0, -1] = at[0, -1] = np.nan
    return Grid(label, other, [f"{gamma:g}" for gamma in gammas], bounds, at, mistakes, mistakes * 0.9, mistakes * 1.07)


NOTHING = np.zeros((2, 1))
GRIDS = {
    "four": [
        grid("banditron", [0.01, 0.03, 0.1, 0.3], [""], 0),
        grid("exploration(folklore)", [0.0, 0.05, 0.2], ["0.3", "1", "10"], 1, hole=True, other="decoding=half-log"),
        grid("gaptron", [0.01, 0.1], ["1", "100"], 2),
        grid("an agent whose name is far too long for a panel", [0.1, 0.2, 0.3, 0.4, 0.5], ["3"], 3),
    ],
    "one": [grid("rdue", [0.003, 0.02, 0.5], ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"], 4)],
    "none wrong": [Grid("soba", "", ["0.1", "0.2"], [""], np.array([[0.1], [0.2]]), NOTHING, NOTHING, NOTHING)],
}


def looks_of(curves: list[Curve]) -> Any:
    labels = [each.label for each in curves]
    return styles(labels, [label for label in labels if label == "uniform"])


def on_paper(figure: Any) -> str:
    """Return what a figure's axes hold, as JSON, six digits each."""

    def numbers(values: Any) -> list[Any]:
        return [float(f"{value:.6g}") for value in np.asarray(values, dtype=float).ravel()]

    def line(one: Any) -> list[Any]:
        data = [numbers(one.get_xdata()), numbers(one.get_ydata())]
        look = [
            one.get_linewidth(),
            str(one.get_color()),
            str(one._unscaled_dash_pattern),
            one.get_zorder(),
            str(one.get_marker()),
        ]
        return [*data, *look, one.get_markersize(), one.get_markeredgewidth(), one.get_markevery()]

    def area(one: Any) -> list[Any]:
        paths = [numbers(path.vertices) for path in one.get_paths()]
        look = [numbers(one.get_linewidths()), one.get_alpha(), one.get_zorder(), numbers(one.get_facecolor())]
        return [paths, *look, numbers(one.get_array() if one.get_array() is not None else [])]

    figure.canvas.draw()
    told: list[Any] = [{"inches": numbers(figure.get_size_inches())}]
    for legend in figure.legends:
        texts = [text.get_text() for text in legend.get_texts()]
        sizes = [legend.handlelength, legend.labelspacing, legend.borderaxespad, legend._ncols]
        told.append({"legend": texts, "sizes": sizes, "handles": [line(each) for each in legend.get_lines()]})
    for ax in figure.axes:
        ticks = [*ax.xaxis.majorTicks[:1], *ax.yaxis.majorTicks[:1]]
        scale = f"{ax.get_yscale()}{getattr(ax.yaxis.get_transform(), 'linthresh', '')}"
        told.append({
            "shown": ax.get_visible(), "title": [ax.get_title(loc=at) for at in ("left", "center")],
            "labels": [ax.get_xlabel(), ax.get_ylabel()], "scales": [ax.get_xscale(), scale],
            "limits": [numbers(ax.get_xlim()), numbers(ax.get_ylim())],
            "ticks": [numbers(ax.get_xticks()), numbers(ax.get_yticks())],
            "named": [[t.get_text() for t in ax.get_xticklabels()], [t.get_text() for t in ax.get_yticklabels()]],
            "tick length": [tick.tick1line.get_markersize() for tick in ticks],
            "frame": [spine.get_visible() * spine.get_linewidth() for spine in ax.spines.values()],
            "grid": [tick.gridline.get_visible() * tick.gridline.get_linewidth() for tick in ticks],
            "lines": [line(each) for each in ax.lines], "areas": [area(each) for each in ax.collections if each.get_paths()],
            "boxes": [[*numbers([*each.get_xy(), each.get_width(), each.get_height()]), each.get_linewidth(), each.get_fill()]
                      for each in ax.patches],
            "texts": [[text.get_text(), numbers(text.get_position()), str(text.get_color()), text.get_fontsize()]
                      for text in ax.texts],
        })  # fmt: skip
    import matplotlib.pyplot as plt

    plt.close(figure)
    return json.dumps(told, indent=1) + "\n"


def pictures() -> dict[str, Any]:
    """Return how each figure on record is drawn, by its file's name."""
    found: dict[str, Any] = {}
    for name, curves in CURVES.items():
        looks = looks_of(curves)
        found[f"mistakes {name}.json"] = lambda c=curves, k=looks: on_paper(plots.mistakes_against_rounds(c, k))
    for name, panel in PANELS.items():
        looks = looks_of(panel.curves)
        found[f"relative {name}.json"] = lambda p=panel, k=looks: on_paper(plots.relative_against_rounds(p, k))
    for name, grids in GRIDS.items():
        found[f"heat {name}.json"] = lambda g=grids: on_paper(plots.heat_maps(g))
        found[f"gamma {name}.json"] = lambda g=grids: on_paper(plots.mistakes_against_gamma(g))
    return {name.replace(" ", "-"): draw for name, draw in found.items()}


def main() -> None:
    """Draw them all anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, draw in pictures().items():
            (FOLDER / name).write_text(draw(), encoding="utf-8", newline="\n")
            print(name)


if __name__ == "__main__":
    main()
