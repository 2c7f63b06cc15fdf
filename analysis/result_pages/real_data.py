"""docs/results/real-data.md: eight sets under three scalings, defaults and the best of eight, other libraries beside ours."""

from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

OURS = "fastcb"
SCALE = ["perceptron", "sampled", "uniform"]
"""Told the label, or learning nothing: not ranked."""
PRACTICE = [OURS, "squarecb", "linucb", "lints", "epsilon-greedy-direct", "mabwiser-linucb", "river-linucb", "vw"]
TWIN = ", twin"
"""What the csv files add to the name of another library's method where our twin stands for it."""
SCALINGS = {"norm": "norm", "standard": "standardised", "given": "as given"}


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    defaults, tuned = (pd.read_csv(results / f"real-data-{name}.csv") for name in ("defaults", "tuned"))
    to_peers, to_tuned = (pd.read_csv(results / f"real-data-best-{name}.csv") for name in ("peer", "tuned-peer"))
    shown = mistakes(by_set(defaults), by_set(defaults, "scaling"))
    ranked, scale = [row for row in shown if row not in SCALE], SCALE
    tuned_rows = mistakes(by_set(tuned), by_set(tuned, "scaling"))
    sets = list(dict.fromkeys(defaults["data"]))
    return {
        "best-peer": against(to_peers),
        "ahead": sets_where(to_peers, to_peers["high"] < 0),
        "behind": sets_where(to_peers, to_peers["low"] > 0),
        "level": sets_where(to_peers, (to_peers["low"] <= 0) & (to_peers["high"] >= 0)),
        "same-scaling": same_scaling(pd.read_csv(results / "real-data-same-scaling.csv")),
        "defaults": markdown_table(["agent", *sets], [shown[name] for name in ranked]),
        "scale": markdown_table(["", *sets], [shown[name] for name in scale]),
        "all-rounds": all_rounds(defaults),
        "tuned": markdown_table(["agent", *sets], list(tuned_rows.values())),
        "tuned-peer-default": against(to_tuned[to_tuned["ours"] == "default"]),
        "tuned-peer-tuned": against(to_tuned[to_tuned["ours"] == "tuned"]),
        "tests": str(len(pd.read_csv(results / "real-data-tests.csv"))),
        "wins": wins(pd.read_csv(results / "real-data-win-tie-loss.csv", index_col=0).fillna("")),
    }


def by_set(table: pd.DataFrame, values: str = "mistakes %") -> pd.DataFrame:
    """Return mistakes in per cent (or another column), agents down and sets across, a method's twin in its place."""
    sets = list(dict.fromkeys(table["data"]))
    wide = table.pivot(index="agent", columns="data", values=values)[sets]
    twins = wide[wide.index.str.endswith(TWIN)].rename(lambda name: name.removesuffix(TWIN))
    return pd.concat([wide[~wide.index.isin([*twins.index, *(f"{name}{TWIN}" for name in twins.index)])], twins])


def number(value: float) -> str:
    """Return mistakes in per cent with two or three digits."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def mistakes(wide: pd.DataFrame, scaling: pd.DataFrame) -> dict[str, list[str]]:
    """Return a row per agent, in the order of the mean rank: mistakes and the scaling's first letter, the fewest bold."""
    ranks = wide.drop(index=SCALE, errors="ignore").rank().mean(axis=1).sort_values(kind="stable")
    least = wide.loc[ranks.index].min()

    def cell(name: str, data: str) -> str:
        value = wide.loc[name, data]
        if pd.isna(value):
            return ""
        text = number(value)
        return f"{f'**{text}**' if value == least[data] else text} {scaling.loc[name, data][0]}"

    order = [*ranks.index, *(name for name in SCALE if name in wide.index)]
    return {name: [code(name), *(cell(name, data) for data in wide)] for name in order}


def all_rounds(defaults: pd.DataFrame) -> str:
    """Return, of the agents of practice, the mistakes at first showings and in all rounds, where rows came again."""
    first, every = by_set(defaults), by_set(defaults, "all rounds %")
    known = [name for name in PRACTICE if name in first.index]
    again = [data for data in first if (first.loc[OURS, data] - every.loc[OURS, data]) > 0.5]
    rows = [
        [code(name), *(f"{number(first.loc[name, data])} / {number(every.loc[name, data])}" for data in again)]
        for name in known
    ]
    return markdown_table(["agent", *again], rows)


def same_scaling(table: pd.DataFrame) -> str:
    """Return our recommended agent against the best peer under the same scaling, set by set."""
    rows = [
        [data, *(interval(mine[mine["scaling"] == scaling].iloc[0]) for scaling in SCALINGS)]
        for data, mine in table.groupby("data", sort=False)
    ]
    return markdown_table(["set", *SCALINGS.values()], rows)


def sets_where(table: pd.DataFrame, where: "pd.Series[bool]") -> str:
    """Return how many data sets, and which."""
    names = list(table.loc[where, "data"])
    marked = ", ".join(f"`{name}`" for name in names)
    return f"{len(names)} of {len(table)} data sets" + (f" ({marked})" if names else "")


def code(name: str) -> str:
    """Return an agent's name as the page writes it."""
    return f"`{name.removesuffix(TWIN)}`"


def interval(row: "pd.Series[float]") -> str:
    """Return a difference in pp with its interval."""
    return f"{row['difference']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"


def against(table: pd.DataFrame) -> str:
    """Return our recommended agent against the best peer of each set, each with its scaling's first letter."""
    rows = [
        [
            row["data"],
            f"{row['ours %']:.2f} {row['ours scaling'][0]}",
            code(row["rival"]),
            f"{row['theirs %']:.2f} {row['their scaling'][0]}",
            interval(row),
        ]
        for _, row in table.iterrows()
    ]
    return markdown_table(["set", f"`{OURS}` %", "best peer", "peer %", "difference, pp (95 %)"], rows, align="lrlr")


def wins(score: pd.DataFrame) -> str:
    """Return wins, ties and losses, row against column."""
    names = [name.removesuffix(TWIN) for name in score.index]
    return markdown_table(["", *names], [[name, *row] for name, row in zip(names, score.to_numpy(), strict=True)], "l")
