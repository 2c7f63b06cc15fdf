"""docs/results/intervals.md: whether intervals hold, and what a comparison finds in noise and in tables of known truth."""

from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

MODELS = [(100, 3, 2, 2.0), (300, 5, 3, 2.0), (200, 8, 4, 3.0), (500, 5, 5, 4.0)]
"""(rows, features, classes, standard deviation of the weights) of the planted models, in turn."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's texts and tables by marker."""
    shown = {"coverage": shown_coverage, "noise": shown_noise, "known": shown_known, "kinds": shown_kinds}
    shown |= {"over": shown_over}
    read = {name: pd.read_csv(results / f"intervals-{name}.csv", keep_default_na=False) for name in shown}
    return texts(read["noise"], read["known"]) | {name: show(read[name]) for name, show in shown.items()}


def texts(noise: pd.DataFrame, known: pd.DataFrame) -> dict[str, str]:
    """Return the counts in the page's first sentences."""
    return {
        "noise-ahead": f"{(noise['ahead_of_uniform'] != '').sum()} of {len(noise)}",
        "known-ranked": f"{known['ranked_wrong'].sum()} of {known['ranked'].sum():,}",
        "known-apart": f"{known['apart_wrong'].sum()} of {known['apart'].sum():,}",
        "known-held": f"{known['all_held'].sum()} of {len(known)}",
    }


def shown_coverage(table: pd.DataFrame) -> str:
    """Return the table for the page, a column for each number of repetitions."""
    wide = table.pivot(index="data", columns="n", values="covered").reindex(list(dict.fromkeys(table["data"])))
    rows = [[str(name), *(f"{value:.3f}" for value in row)] for name, row in zip(wide.index, wide.to_numpy())]
    return markdown_table(["data", *(f"n = {n}" for n in wide.columns)], rows)


def shown_noise(table: pd.DataFrame) -> str:
    """Return the table for the page, a line a shape."""
    rows = []
    for (n, d, K), group in [*table.groupby(["rows", "features", "classes"]), (("all", "", ""), table)]:
        ahead, apart = (group["ahead_of_uniform"] != "").sum(), (group["pairs_apart"] > 0).sum()
        rows.append([*map(str, (n, d, K, len(group), ahead, apart)), f"{100 * group['lead'].mean():.1f}"])
    head = [
        "rows",
        "d",
        "K",
        "tables",
        "any agent better than uniform",
        "any pair significantly different",
        "lead of the first, pp",
    ]
    return markdown_table(head, rows, "r")


def shown_known(table: pd.DataFrame) -> str:
    """Return the table for the page, a line a model."""
    rows = []
    for model, group in [*table.groupby("model"), ("all", table)]:
        n, d, K = MODELS[model][:3] if model != "all" else ("all", "", "")
        wrong, apart = (group["ranked_wrong"] > 0).sum(), (group["apart_wrong"] > 0).sum()
        counts = (
            n,
            d,
            K,
            len(group),
            group["ranked"].sum(),
            wrong,
            group["apart"].sum(),
            apart,
            group["all_held"].sum(),
        )
        rows.append([*map(str, counts), f"{group['pairs_held'].sum() / group['pairs'].sum():.3f}"])
    head = ["rows", "d", "K", "tables", "leads by rank", "tables with a wrong lead", "significant pairs"]
    head += ["tables with a wrong pair", "tables where all intervals cover", "share of intervals that cover"]
    return markdown_table(head, rows, "r")


def shown_over(table: pd.DataFrame) -> str:
    """Return the table for the page: what a comparison over tables of noise counts and asserts."""
    decided, apart = table["wins"].sum() + table["losses"].sum(), ((table["low"] > 1) | (table["high"] < 1)).sum()
    widest = table.loc[(table["ratio"] - 1).abs().idxmax(), "ratio"]
    agents = len({*table["first"], *table["second"]})
    row = [
        table["tables"].iloc[0],
        table["repetitions"].iloc[0],
        agents,
        len(table),
        decided,
        f"{widest:.3f}",
        apart,
        table["ahead"].sum(),
    ]
    head = ["tables", "repetitions", "agents", "pairs", "leads on single tables", "ratio farthest from 1"]
    return markdown_table(
        [*head, "intervals of ratios without 1", "pairs reported as ahead"], [[str(cell) for cell in row]], "r"
    )


def shown_kinds(table: pd.DataFrame) -> str:
    """Return the table for the page, a line a kind."""
    rows = [[str(cell) for cell in row] for row in table.to_numpy()]
    head = [
        "kind",
        "pure-noise tables",
        "any agent better than uniform",
        "ahead of the most frequent class",
        "false leads",
    ]
    return markdown_table([*head, "tables with a signal", "best found"], rows)
