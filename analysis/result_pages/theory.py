"""docs/results/theory.md: mistakes at the theorems' own settings, K and B across, agents down."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

NAMES = {
    "exploration": "FOLKLORE reduction",
    "exploration-anytime": "same, anytime",
    "gaptron": "Gaptron",
    "gaptron-wide": "Gaptron, wide step",
    "rdue": "RDUE",
    "obama-lite": "OBAMA-lite",
    "newtron": "Newtron",
}
BOUNDED = [agent for agent in NAMES if agent != "newtron"]
AT = 100_000
"""The T of the page's tables: the last that all agents play."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    thresholds, mistakes, growth = (
        pd.read_csv(results / f"theory-{name}.csv") for name in ("thresholds", "mistakes", "growth")
    )
    checks = pd.read_csv(results / "theory-checks.csv")[["runs", "over_bound"]].sum()
    told = mistakes.dropna(subset="bound")
    factors = told.loc[told["T"] == AT, "promise / mistakes"]
    return {
        "thresholds": across(thresholds, list(NAMES), from_when),
        "factors": across(mistakes[mistakes["T"] == AT], BOUNDED, lambda row: f"{row['promise / mistakes']:.2f}"),
        "excess": across(mistakes[mistakes["T"] == AT], list(NAMES), excess),
        "slopes": across(growth, list(NAMES), slopes),
        "runs": f"{checks['runs']:,}",
        "over-bound": str(checks["over_bound"] or "none"),
        "factor": f"{factors.min():.1f} to {factors.max():.1f}",
        **nearest(told),
    }


def across(rows: pd.DataFrame, agents: list[str], cell: Callable[[pd.Series], str]) -> str:
    """Return a table of one cell per agent, K and B; empty where an agent has no row there."""
    cells = rows[["K", "B"]].drop_duplicates().sort_values(["K", "B"]).itertuples(index=False, name=None)
    cells = list(cells)
    found = {(row["agent"], row["K"], row["B"]): cell(row) for _, row in rows.iterrows() if row["agent"] in agents}
    lines = [[NAMES[agent], *(found.get((agent, K, B), "") for K, B in cells)] for agent in agents]
    return markdown_table(["", *(f"K = {K}, B = {B:g}" for K, B in cells)], lines)


def from_when(row: pd.Series) -> str:
    """Return the T from which gamma is below 1 / the bound below T, "?" where its constants are not known."""
    since = row["bound below T from"]
    return f"{row['gamma below 1 from']:,} / {'?' if pd.isna(since) else f'{since:,.0f}'}"


def excess(row: pd.Series) -> str:
    """Return the excess with its standard error, and as a share of the bound where there is one."""
    share = "" if pd.isna(row["bound"]) else f" ({100 * row['excess'] / row['bound']:.0f} %)"
    excess_error = row["excess's error"]
    return f"{row['excess']:,.0f} ± {excess_error:,.0f}{share}"


def slopes(row: pd.Series) -> str:
    """Return the slopes of the excess / of the bound: "none" where it is not positive, "-" for too few T."""

    def one(value: object) -> str:
        return "-" if pd.isna(value) else "none" if value == "not above 0" else f"{float(str(value)):.2f}"

    return f"{one(row['excess'])} / {one(row['the bound'])}"


def nearest(told: pd.DataFrame) -> dict[str, str]:
    """Return where mistakes less loss come nearest to the bound, and how near."""
    row = told.loc[told["beyond / bound"].idxmax()]
    where = f"K = {row['K']}, B = {row['B']:g}, T = {row['T']:,}"
    return {"nearest": f"{row['beyond / bound']:.2f}", "nearest-where": where}
