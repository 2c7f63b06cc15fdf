"""docs/results/boosting-tables.md: Tables 1, 3, 4 and 5 of Jung, Goetz and Tewari (2017), and AdaBoost.OLM++ beside them."""

from pathlib import Path

import pandas as pd
from parts.jung_2017 import COLUMNS, PAPER

from banditlab.analysis.pages import markdown_table

SETS = list(PAPER["all"].index)
BROUGHT = ("isolet", "movement")
"""Sets whose file the user brings: the page counts the entries of the others."""
LIGHT, EXACT = "DT, weight 1", "AdaOLM, exact"
METHODS = ["DT", LIGHT, *COLUMNS[1:3], EXACT, "OLM++", *COLUMNS[3:]]
CLOSE = 0.03
"""How far from the paper's figure an entry may lie to count as reproduced."""
NONE = "—"
MEASURES = {"last-fifth": "last fifth", "all": "all"}


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    table = pd.read_csv(results / "boosting-tables.csv")
    first = pd.read_csv(results / "boosting-tables-1.csv").set_index("data")
    compared = pd.read_csv(results / "boosting-tables-olm-plus.csv")
    learners = pd.read_csv(results / "boosting-tables-learners.csv")
    return {
        **{name: accuracies(table, measure) for name, measure in MEASURES.items()},
        "best-edge": best_edges(first),
        "seconds": seconds(table),
        "olm-plus-sum": summed_up(compared),
        "olm-plus": against(compared),
        **shares(table),
        "exact-ahead-balance-scale": behind(compared, "balance-scale", "all", "AdaOLM, exact"),
        "exact-ahead-car": behind(compared, "car", "all", "AdaOLM, exact"),
        "coded-behind-last-fifth": ahead(compared, "balance-scale", "last fifth", "AdaOLM"),
        "coded-behind-all": ahead(compared, "balance-scale", "all", "AdaOLM"),
        "oza-ahead-balance-scale": behind(compared, "balance-scale", "all", "OLB"),
        "tree-ahead-mice": behind(compared, "mice", "all", LIGHT),
        **errors_by_learners(learners),
    }


def bare(value: float, digits: int = 3) -> str:
    """Return a number without the 0 before its point: ".768", "-.012"."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def present(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each set that was played, by method, in the order of the page."""
    return {name: table[table["data"] == name].set_index("method") for name in SETS if (table["data"] == name).any()}


# ---------------------------------------------------------------------------------------------------------------- tables


def accuracies(table: pd.DataFrame, measure: str) -> str:
    """Return Table 3 or 4: ours with its standard deviation, below it the paper's figure and the difference."""
    rows = []
    for name, mine in present(table).items():
        orders = ", ".join(str(n) for n in sorted(set(mine["orders"])))
        rows.append([f"{name} ({orders})", *(accuracy(mine, method, measure) for method in METHODS)])
    return markdown_table(["set (orders)", *METHODS], rows)


def accuracy(mine: pd.DataFrame, method: str, measure: str) -> str:
    """Return one cell; the difference is bold beyond .03."""
    if method not in mine.index:
        return NONE
    row = mine.loc[method]
    spread, gap = row[f"{measure}, sd"], row[f"{measure}, difference"]
    text = bare(row[measure]) + (f" ± {bare(spread)}" if pd.notna(spread) else "")
    if pd.isna(gap) or method == EXACT:
        return text
    sign = f"{gap:+.3f}".replace("0.", ".", 1)
    return f"{text}<br>{bare(row[f'{measure}, paper'])}, " + (f"**{sign}**" if abs(gap) > CLOSE else sign)


def seconds(table: pd.DataFrame) -> str:
    """Return Table 5, the paper's seconds in brackets."""

    def cell(mine: pd.DataFrame, method: str) -> str:
        if method not in mine.index:
            return NONE
        ours, paper = mine.loc[method, ["seconds", "seconds, paper"]]
        return f"{ours:.0f}" + ("" if pd.isna(paper) or method == EXACT else f" ({paper:.0f})")

    rows = [[name, *(cell(mine, method) for method in METHODS)] for name, mine in present(table).items()]
    return markdown_table(["set", *METHODS], rows)


def best_edges(first: pd.DataFrame) -> str:
    """Return Table 1, OnlineMBBM at the best of its five edges."""

    def cell(row: pd.Series, method: str) -> str:
        ours, paper = row.get(method), row.get(f"{method}, paper")
        return NONE if pd.isna(ours) else bare(ours) + ("" if pd.isna(paper) else f" ({bare(paper)})")

    def best(row: pd.Series) -> str:
        if pd.isna(row.get("Best MBBM")):
            return NONE
        edge, paper = (row[f"best edge{ending}"].removeprefix("MB ") for ending in ("", ", paper"))
        return f"{bare(row['Best MBBM'])} at {edge} ({bare(row['Best MBBM, paper'])} at {paper})"

    rows = [
        [name, *(cell(row, method) for method in ("DT", "OLB", "AdaOLM", "OLM++")), best(row)]
        for name, row in first.iterrows()
    ]
    return markdown_table(["set", "best tree", "OLB", "AdaOLM", "OLM++", "best MBBM"], rows)


def against(compared: pd.DataFrame) -> str:
    """Return AdaBoost.OLM++ against every rival, order by order; bold where its interval is below 0."""
    rows = []
    for row in compared.to_dict("records"):
        interval = "" if pd.isna(row["low"]) else f" ({row['low']:+.3f} to {row['high']:+.3f})"
        means = [bare(row["OLM++"]), bare(row["rival"])]
        gap = f"{row['difference']:+.3f}{interval}"
        gap = f"**{gap}**" if row["high"] < 0.0 else gap
        rows.append([row["data"], row["measure"], row["against"], *means, gap, f"{row['won']}, {row['lost']}"])
    return markdown_table(
        ["set", "rows", "against", "OLM++", "rival", "difference (95 %)", "won, lost"], rows, align="lllr"
    )


def summed_up(compared: pd.DataFrame) -> str:
    """Return in how many comparisons AdaBoost.OLM++ is significantly behind and ahead, in all and of each rival."""
    rows = []
    for name, mine in [*compared.groupby("against", sort=False), ("all of them", compared)]:
        behind, ahead = int((mine["high"] < 0.0).sum()), int((mine["low"] > 0.0).sum())
        rows.append([name, str(len(mine)), str(behind), str(ahead), str(len(mine) - behind - ahead)])
    return markdown_table(["against", "comparisons", "OLM++ behind", "OLM++ ahead", "neither"], rows)


# ------------------------------------------------------------------------------------------------------- in its sentences


def shares(table: pd.DataFrame) -> dict[str, str]:
    """Return how many entries of Tables 3 and 4 lie within .03 of the paper: in all, without mice, per set."""
    light = with_light_trees(table)
    told = table[~table["method"].isin([EXACT, LIGHT])]
    gaps = told.melt(["data"], [f"{measure}, difference" for measure in MEASURES.values()], value_name="gap")
    gaps = gaps.dropna(subset="gap").assign(close=lambda entries: entries["gap"].abs() <= CLOSE)

    def of(close: pd.Series) -> str:
        return f"{close.sum()} of {len(close)}" if len(close) else "none played"

    def percent(close: pd.Series) -> str:
        return f" ({100 * close.mean():.0f} %)"

    return {
        "close": f"{gaps['close'].sum()} of {len(gaps)} entries{percent(gaps['close'])}",
        "close-light": light,
        **{f"close-{name}": of(gaps.loc[gaps["data"] == name, "close"]) for name in SETS if name not in BROUGHT},
    }


def with_light_trees(table: pd.DataFrame) -> str:
    """Return the share of all entries if DT is of trees that weigh every example 1."""
    told = table[~table["method"].isin([EXACT, "DT"])]
    gaps = told[[f"{measure}, difference" for measure in MEASURES.values()]].stack().dropna()
    return f"{(gaps.abs() <= CLOSE).sum()} of {len(gaps)}"


def ahead(compared: pd.DataFrame, name: str, measure: str, rival: str) -> str:
    """Return the 95 % interval by which AdaBoost.OLM++ is ahead of a rival: ".019 to .050"."""
    row = compared[(compared["data"] == name) & (compared["measure"] == measure) & (compared["against"] == rival)]
    return "none played" if row.empty else f"{bare(row['low'].iloc[0])} to {bare(row['high'].iloc[0])}"


def behind(compared: pd.DataFrame, name: str, measure: str, rival: str) -> str:
    """Return the interval by which the rival is ahead of AdaBoost.OLM++."""
    turned = {"low": -compared["high"], "high": -compared["low"]}
    return ahead(compared.assign(**turned), name, measure, rival)


def errors_by_learners(learners: pd.DataFrame) -> dict[str, str]:
    """Return car's errors on the last fifth: the range at one tree, each method's at a hundred."""
    car = learners[learners["data"] == "car"].pivot(index="learners", columns="method", values="error, last fifth")
    names = {"car-exact": "AdaOLM, exact", "car-olm-plus": "OLM++", "car-coded": "AdaOLM"}
    if not {1, 100} <= set(car.index):
        return dict.fromkeys(["car-one-tree", *names], "none played")
    few = f"{bare(car.loc[1].min(), 2)} to {bare(car.loc[1].max(), 2)}"
    return {"car-one-tree": few, **{marker: bare(car.loc[100, method]) for marker, method in names.items()}}
