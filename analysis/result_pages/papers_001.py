"""docs/results/papers-001.md: the figures of AIOLI's paper in numbers."""

from pathlib import Path

import numpy as np
import pandas as pd

from banditlab.analysis.pages import markdown_table, plus_minus

NAMES = {"ftrl": "FTRL", "aggregating": "aggregating", "aioli": "AIOLI", "b-grid": "AIOLI, B from a grid"}


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    first, second, printed = (
        pd.read_csv(results / f"papers-001-{name}.csv") for name in ("figure-1", "figure-2", "as-printed")
    )
    regret = second.pivot(index="n", columns="forecaster", values="regret")
    ftrl, per_log = regret.loc[: regret["ftrl"].idxmax(), "ftrl"], regret["aggregating"] / np.log(regret.index)
    return {
        "slopes": slopes(first),
        "regrets": regrets(second),
        "ftrl-slope": f"{np.polyfit(np.log(ftrl.index), np.log(ftrl), 1)[0]:.2f}",
        "aggregating-per-log": f"{per_log.min():.2f} and {per_log.max():.2f}",
        "by-equation-5": in_words(printed["Equation (5)"]),
        "as-printed": in_words(printed["Algorithm 1 as printed"]),
        "ftrl-last": f"{regret['ftrl'].iloc[-1]:.1f}",
        "runs": f"{second['runs'].sum():,}",
    }


def slopes(first: pd.DataFrame) -> str:
    """Return log-odds divided by x, rounds and forecasters down."""
    at = [column for column in first if column.startswith("log-odds")]
    rows = [
        [str(row["rounds"]), NAMES[row["forecaster"]].split(",")[0], *(f"{row[x]:.2f}" for x in at)]
        for row in first.to_dict("records")
    ]
    first_x, *others = (x.removeprefix("log-odds / x at ") for x in at)
    header = ["rounds", "forecaster", f"log-odds / x at x = {first_x}", *(f"at {x}" for x in others)]
    return markdown_table(header, rows, align="rlr")


def regrets(second: pd.DataFrame) -> str:
    """Return the worse sign's mean regret against n, and AIOLI's bound."""
    cells = second.set_index(["n", "forecaster"])
    rows = [
        [f"{n:,}"]
        + [plus_minus(*cells.loc[(n, name), ["regret", "standard error"]]) for name in NAMES]
        + [f"{cells.loc[(n, 'aioli'), 'bound']:.1f}"]
        for n in second["n"].drop_duplicates()
    ]
    return markdown_table(["n", *NAMES.values(), "AIOLI's bound (Theorem 1)"], rows, align="r")


def in_words(values: "pd.Series[float]") -> str:
    """Return regrets in a row: "-0.4, -22, -92"."""
    return ", ".join(f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}" for value in values)
