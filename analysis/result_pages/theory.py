"""docs/results/theory.md: mistakes at the theorems' own settings, K and B across, agents down."""

import math
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
    "newtron": "Newtron (no theorem)",
}
BOUNDED = [agent for agent in NAMES if agent != "newtron"]
AT = 100_000
"""The T of the page's tables: the largest that was run with all agents."""


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
        "alpha": alpha_covered(mistakes),
        **nearest(told),
        **power(mistakes),
        **horizon(mistakes[mistakes["T"] == AT]),
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


def alpha_covered(mistakes: pd.DataFrame) -> str:
    """Return the range, over the cells, of ln T/(8 R D) with R = 1: the largest alpha of Newtron's theorem at its gamma."""
    cells = mistakes[(mistakes["agent"] == "newtron") & (mistakes["T"] == AT)]
    largest = [math.log(row["T"]) / (8.0 * math.sqrt(row["K"]) * row["B"]) for _, row in cells.iterrows()]
    return f"{min(largest):.2f} to {max(largest):.2f}"


def power(mistakes: pd.DataFrame) -> dict[str, str]:
    """Return which bounds uniform exploration would satisfy, and the agents' mistakes relative to the others."""
    guess = mistakes[mistakes["agent"] == "uniform"].set_index(["K", "B", "T"])
    at = guess.xs(AT, level="T")
    told = mistakes.dropna(subset="bound").join(guess["mistakes"].rename("guessing"), on=["K", "B", "T"])
    told["kept by guessing"] = told["guessing"] <= told["loss"] + told["bound"]
    now, can_fail = told[told["T"] == AT], told[~told["kept by guessing"]]
    since = told.groupby(["K", "B", "agent"], as_index=False).apply(breaks_from, include_groups=False)
    share = can_fail["mistakes"] / (can_fail["loss"] + can_fail["bound"])
    return {
        "power": across(since, BOUNDED, lambda row: row["from"]),
        "guessing-at-0": f"{(at['beyond loss'] <= 0).sum()} of {len(at)}",
        "guessing-now": f"{now['kept by guessing'].sum()} of {len(now)}",
        "guessing": f"{told['kept by guessing'].sum()} of {len(told)}",
        "can-fail": f"{len(can_fail)}",
        "can-fail-kept": f"{(can_fail['kept'] == 'yes').sum()}",
        "can-fail-share": f"{share.min():.2f} to {share.max():.2f}",
    }


def breaks_from(cell: pd.DataFrame) -> pd.Series:
    """Return the measured T at which uniform exploration would violate the bound of a cell."""
    return pd.Series({"from": ", ".join(f"{T:,}" for T in sorted(cell.loc[~cell["kept by guessing"], "T"])) or "-"})


def horizon(now: pd.DataFrame) -> dict[str, str]:
    """Return what the anytime rate adds to excess and mistakes of the fixed one, in percent, at B = 1 and above."""
    fixed, anytime = (
        now[now["agent"] == name].set_index(["K", "B"]) for name in ("exploration", "exploration-anytime")
    )
    more = pd.DataFrame({name: 100.0 * (anytime[name] / fixed[name] - 1.0) for name in ("excess", "mistakes")})
    known = more.index.get_level_values("B") == 1
    error = (anytime["excess's error"] ** 2 + fixed["excess's error"] ** 2) ** 0.5
    apart = ((anytime["excess"] - fixed["excess"]).abs() / error)[known]
    large = more[~known]
    return {
        "horizon-excess": f"{large['excess'].min():.0f} to {large['excess'].max():.0f} %",
        "horizon-mistakes": f"{large['mistakes'].min():.1f} to {large['mistakes'].max():.1f} %",
        "horizon-small": " and ".join(f"{value:+.0f} %" for value in more.loc[known, "excess"]),
        "horizon-errors": f"{apart.max():.1f}",
    }
