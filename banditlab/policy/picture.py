"""A picture of a log: mistakes with their interval, delays of feedback, and how often actions were right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from banditlab.errors import UsageError
from banditlab.policy.confidence import sequence
from banditlab.policy.status import LogStatus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from banditlab.policy.evaluating import Evaluated

SHOWN = 2000
"""The largest number of points of a curve."""
BLUE, RED, GREY = "#0072B2", "#D55E00", "#777777"


def draw_status(status: LogStatus, path: str | os.PathLike[str]) -> None:
    """Draw a log's status to a file; its extension, .svg, .png or .pdf, determines the format.

    Raises
    ------
    UsageError
        The extension is not one of these, or the file cannot be written.
    """
    with _figure(path, 10.0) as figure:
        first, second, third = figure.subplots(1, 3, width_ratios=(2, 1, 1))
        _mistakes(first, status)
        _delays(second, status)
        _right(third, status)


def draw_evaluation(made: Evaluated, policy: str, path: str | os.PathLike[str]) -> None:
    """Draw the estimates of a policy's value to a file: the recommended one with its interval, the doubly robust one
    with 1.96 standard errors. For the file, see `draw_status`.
    """
    found = made.evaluation
    rows = {"mean reward of the log": made.logged, "ips": found.ips, "snips": found.snips}
    rows |= {"direct": found.direct, "doubly robust": found.doubly_robust, f"value of {policy}": found.value}
    with _figure(path, 7.0) as figure:
        ax = figure.subplots()
        ax.axvline(made.logged, color=GREY, ls="--", lw=1)
        ax.plot([*rows.values()], range(len(rows)), "o", color=BLUE)
        ax.hlines(len(rows) - 1, found.low, found.high, color=BLUE, lw=3, label="95 % interval, with a theorem")
        half, at = 1.96 * found.standard_error, found.doubly_robust
        ax.hlines([*rows].index("doubly robust"), at - half, at + half, color=RED, label="1.96 standard errors")
        ax.set_yticks(range(len(rows)), [*rows])
        ax.set(xlabel="reward per decision", title=f"{found.rounds:,} decisions", xlim=(0, 1))
        ax.legend(frameon=False)


@contextmanager
def _figure(path: str | os.PathLike[str], width: float) -> Iterator[Figure]:
    """Yield a figure, and write it to the file at the end of the `with` block."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if Path(path).suffix.lower() not in (".svg", ".png", ".pdf"):
        raise UsageError(f"--picture {path}: the extension must be .svg, .png or .pdf")
    with rc_context(
        {
            "svg.hashsalt": "banditlab",
            "text.usetex": False,  # ignore a matplotlibrc in the working folder
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    ):
        figure = Figure(figsize=(width, 3.4), layout="constrained")
        yield figure
        try:
            figure.savefig(path, dpi=150)
        except OSError as error:
            raise UsageError(f"--picture {path}: cannot be written ({error.strerror})") from None


def _mistakes(ax: Axes, status: LogStatus) -> None:
    n = len(status.mistakes)
    ax.set(title="Mistakes, so far", xlabel="decisions that count", ylabel="share of mistakes", ylim=(0, 1))
    if not n:
        return
    mean, low, high = sequence(status.mistakes)
    at = np.unique(np.linspace(0, n - 1, SHOWN).astype(np.int64))
    ax.fill_between(at + 1, low[at], high[at], color=BLUE, alpha=0.2, lw=0, label="95 %, anytime-valid")
    ax.plot(at + 1, mean[at], color=BLUE)
    if status.trained.get("rows"):
        share = status.trained["mistakes"] / status.trained["rows"]
        ax.axhline(share, color=GREY, ls="--", lw=1, label="in training")
    if status.drift is not None:
        ax.axvline(status.drift, color=RED, lw=1, label="a rise")
    ax.legend(frameon=False)


def _delays(ax: Axes, status: LogStatus) -> None:
    ax.set(
        title="Feedback, by its delay",
        xlabel="seconds after the decision",
        ylabel="fraction of all decisions",
        ylim=(0, 1),
    )
    if not len(status.delays):
        return
    delays = np.sort(np.maximum(status.delays, 1e-3))
    at = np.unique(np.linspace(0, len(delays) - 1, SHOWN).astype(np.int64))
    ax.step(delays[at], (at + 1) / status.decisions, where="post", color=BLUE)
    ax.set_xscale("log")
    ax.minorticks_off()  # labels within a decade would overlap
    ticks = {f"{tick:.2g}": float(tick) for tick in np.geomspace(delays[0], delays[-1], 3)}
    ax.set_xticks(list(ticks.values()), list(ticks))


def _right(ax: Axes, status: LogStatus) -> None:
    ax.set(
        title="Right, by probability",
        xlabel="probability of the action",
        ylabel="share right",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    for one in status.bins:
        if one.n:
            ax.bar(one.low, one.right, one.high - one.low, align="edge", color=BLUE, alpha=0.6, edgecolor="white")
            ax.text(
                (one.low + one.high) / 2, one.right, f"{one.n:,}", ha="center", va="bottom", fontsize=6, rotation=90
            )
