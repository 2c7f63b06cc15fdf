"""docs/results/real-data.md: eight sets, defaults and the best of eight, other libraries beside ours."""

from pathlib import Path

import numpy as np
import pandas as pd

from banditlab.analysis.pages import markdown_table

OURS = "fastcb"
SCALE = ["perceptron", "sampled", "uniform"]
"""Told the label, or learning nothing: not ranked."""
TWIN = ", twin"
"""What the csv files add to the name of another library's method where our twin stands for it."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    defaults, tuned = (pd.read_csv(results / f"real-data-{name}.csv") for name in ("defaults", "tuned"))
    to_peers, to_tuned = (pd.read_csv(results / f"real-data-best-{name}.csv") for name in ("peer", "tuned-peer"))
    wide = by_set(defaults)
    low, high = to_peers["high"].max(), (to_peers["high"] < 0).sum()
    return {
        "best-peer": against(to_peers),
        "upper-limit": f"{low:+.2f}",
        "sets-ahead": f"{high} of {len(to_peers)}",
        "defaults": mistakes(wide.drop(index=SCALE)),
        "scale": mistakes(wide.loc[SCALE], bold=False, head=""),
        "tuned": mistakes(by_set(tuned)),
        **to_tuned_peers(to_tuned),
        "tests": str(len(pd.read_csv(results / "real-data-tests.csv"))),
        "wins": wins(pd.read_csv(results / "real-data-win-tie-loss.csv", index_col=0).fillna("")),
    }


def by_set(table: pd.DataFrame) -> pd.DataFrame:
    """Return mistakes in per cent, agents down and sets across, a method's twin in its place."""
    sets = list(dict.fromkeys(table["data"]))
    wide = table.pivot(index="agent", columns="data", values="mistakes %")[sets]
    twins = wide[wide.index.str.endswith(TWIN)].rename(lambda name: name.removesuffix(TWIN))
    return pd.concat([wide[~wide.index.isin([*twins.index, *(f"{name}{TWIN}" for name in twins.index)])], twins])


def code(name: str) -> str:
    """Return an agent's name as the page writes it."""
    return f"`{name.removesuffix(TWIN)}`"


def mistakes(wide: pd.DataFrame, bold: bool = True, head: str = "agent") -> str:
    """Return a row per agent; ranked: in the order of the mean rank, the fewest mistakes on a set bold."""
    if bold:
        wide = wide.loc[wide.rank().mean(axis=1).sort_values(kind="stable").index]
    least = wide.min() if bold else pd.Series(np.nan, index=wide.columns)

    def cell(value: float, fewest: float) -> str:
        text = "" if pd.isna(value) else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
        return f"**{text}**" if value == fewest else text

    rows = [[code(name), *(cell(row[data], least[data]) for data in wide)] for name, row in wide.iterrows()]
    return markdown_table([head, *wide], rows)


def interval(row: "pd.Series[float]") -> str:
    """Return a difference in points with its interval."""
    return f"{row['difference']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"


def against(table: pd.DataFrame) -> str:
    """Return our recommended agent against the best peer of each set."""
    rows = [
        [row["data"], code(row["rival"]), f"{row['ours %']:.2f}", f"{row['theirs %']:.2f}", interval(row)]
        for _, row in table.iterrows()
    ]
    return markdown_table(["set", "best peer", f"`{OURS}` %", "peer %", "difference, points (95 %)"], rows, align="llr")


def wins(score: pd.DataFrame) -> str:
    """Return wins, ties and losses, row against column."""
    names = [name.removesuffix(TWIN) for name in score.index]
    return markdown_table(["", *names], [[name, *row] for name, row in zip(names, score.to_numpy(), strict=True)], "l")


def to_tuned_peers(table: pd.DataFrame) -> dict[str, str]:
    """Return by how much our agent is behind the best tuned peer on vehicle, and level with it on two sets."""
    at = table.set_index(["ours", "data"])

    def points(ours: str, data: str, sign: str = "") -> str:
        row = at.loc[(ours, data)]
        return f"{row['difference']:{sign}.2f}, {row['low']:.2f} to {row['high']:.2f}"

    behind = {f"vehicle-{ours}": points(ours, "vehicle") for ours in ("default", "tuned")}
    return behind | {f"level-{data}": points("default", data, "+") for data in ("nursery", "mushroom")}
