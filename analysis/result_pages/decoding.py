"""docs/results/decoding.md: a draw from the forecast against half-log, K and B across, agents down."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

AT = 100_000
"""The T of the page's tables: the largest that was run."""
REDUCTION = ["exploration", "exploration half-log"]
NAMES = {
    "exploration": "FOLKLORE reduction, a draw",
    "exploration half-log": "same, half-log",
    "exploration sparsemax": "same, sparsemax",
    "exploration-anytime": "anytime, a draw",
    "exploration-anytime half-log": "same, half-log",
    "obama-lite": "OBAMA, a draw",
    "obama-lite half-log": "same, half-log",
    "rdue": "RDUE as printed",
    "rdue half-log": "same, half-log",
    "gaptron": "Gaptron as printed",
    "gaptron half-log": "same, half-log",
    "decoded-descent randomized": "descent, randomized",
    "decoded-descent half-log": "descent, half-log",
    "decoded-descent-wide half-log": "descent, half-log, wide step",
    "decoded-descent-wide sparsemax": "descent, sparsemax, wide step",
}
PLAYED = [agent for agent in NAMES if not agent.startswith("obama")]


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    thresholds, mistakes, paired, checks, growth, searched = (
        pd.read_csv(results / f"decoding-{name}.csv")
        for name in ("thresholds", "mistakes", "paired", "checks", "growth", "searched")
    )
    now, pairs = mistakes[mistakes["T"] == AT], paired[paired["T"] == AT]
    return {
        "thresholds": across(thresholds, list(NAMES), lambda row: f"{row['bound below T from']:,}"),
        "factors": across(now, PLAYED, lambda row: f"{row['promise / mistakes']:.2f}"),
        "mistakes": across(now, PLAYED, lambda row: f"{row['mistakes'] / row['T']:.4f}"),
        "paired": paired_table(pairs),
        "slopes": across(growth, REDUCTION, lambda row: f"{one(row['excess'])} / {one(row['the bound'])}"),
        "checks": checks_table(checks),
        "searched": searched_table(searched),
        **speaks(thresholds),
        **fewer(pairs),
        **kept(checks, searched),
    }


def across(rows: pd.DataFrame, agents: list[str], cell: Callable[[pd.Series], str]) -> str:
    """Return a table of one cell per agent, K and B; empty where an agent has no row there."""
    cells = list(rows[["K", "B"]].drop_duplicates().sort_values(["K", "B"]).itertuples(index=False, name=None))
    found = {(row["agent"], row["K"], row["B"]): cell(row) for _, row in rows.iterrows() if row["agent"] in agents}
    lines = [[NAMES[agent], *(found.get((agent, K, B), "") for K, B in cells)] for agent in agents]
    return markdown_table(["", *(f"K = {K}, B = {B:g}" for K, B in cells)], lines)


def one(value: object) -> str:
    """Return a slope: "none" where it is not positive, "-" for too few T."""
    return "-" if pd.isna(value) else "none" if value == "not above 0" else f"{float(str(value)):.2f}"


def paired_table(pairs: pd.DataFrame) -> str:
    """Return by how many percent the decoded form makes fewer mistakes, with the standard error over streams."""
    cells = list(pairs[["K", "B"]].drop_duplicates().sort_values(["K", "B"]).itertuples(index=False, name=None))
    found = {
        (row["decoded"], row["K"], row["B"]): f"{row['fewer']:.1f} ± {row['error']:.1f} %"
        for _, row in pairs.iterrows()
    }
    against = pairs.drop_duplicates("decoded").set_index("decoded")["plain"]
    lines = [
        [f"{name} against {against[name]}", *(found.get((name, K, B), "") for K, B in cells)] for name in against.index
    ]
    return markdown_table(["fewer mistakes by", *(f"K = {K}, B = {B:g}" for K, B in cells)], lines)


def checks_table(checks: pd.DataFrame) -> str:
    """Return runs, how many of them above the bound, and how near they come."""
    lines = [
        [row["agent"], f"{row['runs']:,}", str(row["over bound"]), f"{row['largest beyond / bound']:.2f}",
         f"{row['largest mistakes / promise']:.2f}"]
        for _, row in checks.iterrows()
    ]  # fmt: skip
    return markdown_table(
        ["", "runs", "above the bound", "largest (mistakes - loss) / bound", "largest mistakes / (loss + bound)"], lines
    )


def searched_table(searched: pd.DataFrame) -> str:
    """Return, for each agent and kind of labels, the searched setting that comes nearest to its bound."""
    best = searched.loc[searched.groupby(["agent", "labels"])["beyond / bound"].idxmax()]
    lines = [
        [row["agent"], row["labels"], str(row["K"]), "" if pd.isna(row["gamma"]) else f"{row['gamma']:g}",
         f"{row['beyond / bound']:.2f}", f"{row['mistakes / promise']:.2f}"]
        for _, row in best.iterrows()
    ]  # fmt: skip
    return markdown_table(["", "labels", "K", "gamma", "(mistakes - loss) / bound", "mistakes / (loss + bound)"], lines)


def speaks(thresholds: pd.DataFrame) -> dict[str, str]:
    """Return after which T the reduction's bound is below T at K = B = 10, by decoding, and the difference."""
    rows = thresholds[(thresholds["K"] == 10) & (thresholds["B"] == 10)].set_index("agent")["bound below T from"]
    plain, half_log = (int(rows[name]) for name in REDUCTION)
    ratios = thresholds[thresholds["agent"].isin(REDUCTION)].pivot(
        index=["K", "B"], columns="agent", values="bound below T from"
    )
    share = 1.0 - ratios[REDUCTION[1]] / ratios[REDUCTION[0]]
    return {
        "speaks-plain": f"{plain:,}",
        "speaks-half-log": f"{half_log:,}",
        "speaks-earlier": f"{plain - half_log:,}",
        "speaks-share": f"{100 * share.min():.0f} to {100 * share.max():.0f} %",
    }


def fewer(pairs: pd.DataFrame) -> dict[str, str]:
    """Return how many percent fewer mistakes half-log makes, as a range over cells, and in how many cells and streams."""
    own = pairs[(pairs["plain"] == "exploration") & (pairs["decoded"] == "exploration half-log")]
    return {
        "fewer-cells": f"{(own['fewer'] > 0).sum()} of {len(own)}",
        "fewer-streams": f"{own['ahead'].sum()} of {own['streams'].sum()}",
        "fewer-range": f"{own['fewer'].min():.1f} to {own['fewer'].max():.1f} %",
    }


def kept(checks: pd.DataFrame, searched: pd.DataFrame) -> dict[str, str]:
    """Return how many runs, how many above a bound, and how near runs and searched settings come."""
    whole = checks[checks["agent"] == "all"].iloc[0]
    top = searched.loc[searched["beyond / bound"].idxmax()]
    return {
        "runs": f"{whole['runs']:,}",
        "over-bound": str(whole["over bound"] or "none"),
        "nearest": f"{whole['largest beyond / bound']:.2f}",
        "nearest-searched": f"{top['beyond / bound']:.2f}",
        "nearest-searched-where": f"{top['agent']}, K = {top['K']}, {top['labels']}, gamma = {top['gamma']:g}",
        "above-half": f"{(searched['beyond / bound'] > 0.5).sum()} of {len(searched)}",
        "searched-over": str((searched["beyond / bound"] > 1.0).sum() or "none"),
        "nearest-promise": f"{searched['mistakes / promise'].max():.2f}",
    }
