"""docs/results/offpolicy.md: coverage, width and error of off-policy evaluation over logs whose value is known."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

FIXED = ("uniform", "epsilon-greedy", "nearly deterministic", "hardly exploring")
LEARNING = ("epsilon-greedy that learns", "inverse gap that learns", "inverse gap that learns, rewards change")
ENOUGH = 200
"""Effective sample size from which the intervals of fixed loggers are to hold."""
INTERVALS = {
    "": "recommended",
    "_weighted": "without a model",
    "_normal_robust": "normal, doubly robust",
    "_normal_snips": "normal, SNIPS",
}
ERRORS = {"ips": "IPS", "snips": "SNIPS", "direct": "direct", "doubly_robust": "doubly robust"}


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables and texts, by marker."""
    lines = pd.read_csv(results / "offpolicy.csv")
    learns = lines["logger"].isin(LEARNING)
    fixed = lines["logger"].isin(FIXED)
    estimated = ~learns & ~fixed
    enough = fixed & (lines["size"] >= ENOUGH)
    return {
        "fixed": table(lines[fixed]),
        "learning": table(lines[learns]),
        "estimated": table(lines[estimated]),
        "errors": errors(lines),
        "least-fixed": least(lines[enough], "held"),
        "least-all": least(lines[fixed], "held"),
        "least-learning": least(lines[learns], "held"),
        "least-normal": least(lines[enough], "held_normal_robust"),
        "least-normal-learning": least(lines[learns], "held_normal_robust"),
        "least-estimated": least(lines[estimated], "held_normal_robust"),
        "logs": f"{lines['logs'].min():,}",
    }


def least(lines: pd.DataFrame, column: str) -> str:
    """Return the least coverage in %."""
    return f"{100.0 * lines[column].min():.1f} %"


def table(lines: pd.DataFrame) -> str:
    """Return coverage in % and mean width of each interval, a line a kind."""
    head = ["logger", "target", "rounds", "effective sample size", *INTERVALS.values()]
    rows = [
        [
            *(str(line[name]) for name in ("logger", "target")),
            f"{line['rounds']:,}",
            f"{line['size']:,.0f}",
            *(shown(line[f"held{name}"], line[f"width{name}"]) for name in INTERVALS),
        ]
        for line in lines.to_dict("records")
    ]
    return markdown_table(head, rows, "llr")


def shown(held: float, width: float) -> str:
    """Return coverage and width; a dash where there is no interval."""
    return "-" if math.isnan(held) else f"{100.0 * held:.1f} ({width:.3f})"


def errors(lines: pd.DataFrame) -> str:
    """Return root mean squared errors, the mean over kinds of each logger, in 1/100."""
    means = lines.groupby("logger", sort=False)[[f"error_{name}" for name in ERRORS]].mean()
    rows = [
        [str(logger), *(f"{100.0 * error:.2f}" for error in row)] for logger, row in zip(means.index, means.to_numpy())
    ]
    return markdown_table(["logger", *ERRORS.values()], rows)
