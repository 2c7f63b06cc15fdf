"""docs/results/one-bit.md: mistakes with one bit, over those of twins that observe the bits of all actions."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from banditlab.analysis.pages import markdown_table

COLUMNS = ["one", "one greedy", "all", "all greedy"]
"""Mean mistakes in %: with one bit and with all, exploring and greedy."""
CELL = ["study", "stream", "K", "noise", "round"]
TABLES, MERGED, PLANTED, MEMORY = "tables", "merged", "planted", "memory"
NOT_PLAYED = "not played yet"
TABLE_NAMES = ("prices", "exponents", "tables", "memory")
ONE_MISTAKE = 0.5
"""Added to both counts of mistakes before a ratio is taken, so that none is 0."""


class Estimate(NamedTuple):
    """A mean or a slope, and the ends of its 95 % interval by Student's t."""

    value: float
    low: float
    high: float

    def text(self, form: str = ".2f") -> str:
        """Return the estimate and its interval as text."""
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables and its answer, by marker."""
    file = results / "one-bit.csv"
    cells = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=[*CELL, "agent", *COLUMNS])
    if cells.empty:
        return {"answer": "not played yet.", "hypotheses": hypotheses(None)} | dict.fromkeys(TABLE_NAMES, "")
    prices = with_prices(cells)
    return {
        "answer": answer(prices),
        "hypotheses": hypotheses(prices),
        "prices": price_table(prices),
        "exponents": exponent_table(prices),
        "tables": every_table(prices),
        "memory": memory_table(cells, results / "one-bit-theory.csv"),
    }


def with_prices(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per stream and round: logarithms of the ratios of mistakes, means over the three agents."""
    counts = cells[COLUMNS].mul(cells["round"] / 100.0, axis=0) + ONE_MISTAKE
    logs = np.log(counts)
    made = cells[CELL].assign(
        price=logs["one"] - logs["all greedy"],
        not_knowing=logs["one"] - logs["all"],
        exploring=logs["all"] - logs["all greedy"],
        greedy=logs["one greedy"] - logs["one"],
    )
    return made.groupby(CELL, sort=False, dropna=False).mean().reset_index()


def at_end(prices: pd.DataFrame, study: str) -> pd.DataFrame:
    """Return the rows of a study's streams at the last round of each."""
    mine = prices[prices["study"] == study]
    return mine.loc[mine.groupby(["stream", "K", "noise"], sort=False, dropna=False)["round"].idxmax()]


def mean_of(values: pd.Series) -> Estimate:
    """Return the geometric mean of ratios given as logarithms, one a stream."""
    mean, n = values.mean(), len(values)
    half = stats.t.ppf(0.975, n - 1) * values.std() / np.sqrt(n) if n > 1 else np.inf
    return Estimate(*np.exp([mean, mean - half, mean + half]))


def exponent(rows: pd.DataFrame) -> Estimate:
    """Return the slope of the logarithm of the price in that of K, by least squares."""
    fit = stats.linregress(np.log(rows["K"]), rows["price"])
    half = stats.t.ppf(0.975, len(rows) - 2) * fit.stderr
    return Estimate(fit.slope, fit.slope - half, fit.slope + half)


def hypotheses(prices: pd.DataFrame | None) -> str:
    """Return the table of what was expected, what was measured, and whether it holds."""
    head = ("hypothesis", "measured", "holds")
    if prices is None:
        return markdown_table(head, [(text, NOT_PLAYED, "") for text in EXPECTED], align="lll")
    found = [function(prices) for function in EXPECTED.values()]
    rows = [(text, said, "yes" if holds else "no") for text, (said, holds) in zip(EXPECTED, found, strict=True)]
    return markdown_table(head, rows, align="lll")


def few_classes(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge the price on tables of at most ten classes."""
    tables = at_end(prices, TABLES)
    price = mean_of(tables[tables["K"] <= 10]["price"])
    return price.text(), price.value <= 2.0


def tables_exponent(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge the exponent on tables."""
    slope = exponent(at_end(prices, TABLES))
    return slope.text(".3f"), slope.high < 0.5


def merged_exponent(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge the exponent on one table whose classes are merged."""
    slope = exponent(at_end(prices, MERGED))
    return slope.text(".3f"), slope.low > 0.0


def memory_exponent(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge the exponent where contexts have nothing in common."""
    slope = exponent(at_end(prices, MEMORY))
    return slope.text(".3f"), slope.low <= 1.0 <= slope.high


def noise_lowers(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge the price with and without label noise, at each K."""
    planted = at_end(prices, PLANTED).pivot_table(index="K", columns="noise", values="price")
    lower = planted[0.3] < planted[0.0]
    return f"lower at {lower.sum()} of {len(lower)} values of K", bool(lower.all())


def falls_with_rounds(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge the price after 20,000 rounds over that after 1,000."""
    rows = prices[prices["study"] == TABLES].pivot_table(index="stream", columns="round", values="price")
    ratio = mean_of((rows[20_000] - rows[1_000]).dropna())
    return f"ratio of the prices {ratio.text()}", ratio.high < 1.0


def greedy_is_level(prices: pd.DataFrame) -> tuple[str, bool]:
    """Judge greedy actions with one bit."""
    ratio = mean_of(at_end(prices, TABLES)["greedy"])
    return ratio.text(), ratio.high <= 1.05


EXPECTED = {
    "On tables of at most ten classes, one bit makes at most twice the mistakes of all bits (geometric mean)": few_classes,
    "On tables, the price of one bit grows with K, by an exponent below 1/2 (interval)": tables_exponent,
    "On one table whose classes are merged at random, it grows with K (interval of the exponent above 0)": merged_exponent,
    "Where contexts have nothing in common, the exponent is 1 (inside the interval)": memory_exponent,
    "With 30 % of the labels replaced, the price is lower than without noise, at every K": noise_lowers,
    "The price falls with the rounds: lower after 20,000 than after 1,000 (interval over tables of 20,000 rows)": (
        falls_with_rounds
    ),
    "On tables, greedy play with one bit makes at most 1.05 times the mistakes of exploring (upper end of the interval)": (
        greedy_is_level
    ),
}
"""What was expected before the runs, and the function that judges it."""


def answer(prices: pd.DataFrame) -> str:
    """Return the answer in three sentences."""
    tables = at_end(prices, TABLES)
    price, greedy = mean_of(tables["price"]), mean_of(tables["greedy"])
    slope = exponent(tables)
    return (
        f"on {len(tables)} tables, an agent with one bit makes {price.text()} times the mistakes of its twin with all bits "
        f"(geometric mean, with its 95 % interval). This price grows like a power of K, with exponent {slope.text()}. If "
        f"contexts have nothing in common, the exponent is {exponent(at_end(prices, MEMORY)).text()}. With one bit, an agent "
        f"that never explores makes {greedy.text()} times the mistakes of the agent that explores."
    )


def price_table(prices: pd.DataFrame) -> str:
    """Return the prices by study and number of classes."""
    rows = []
    groups = [("2", 2, 2), ("3 to 6", 3, 6), ("7 to 10", 7, 10), ("11 to 26", 11, 26), ("27 to 77", 27, 77)]
    for study in (TABLES, MERGED, PLANTED, MEMORY):
        ended = at_end(prices, study)
        for name, least, most in groups:
            mine = ended[ended["K"].between(least, most)]
            if len(mine):
                ratios = (mean_of(mine[column]) for column in ("price", "not_knowing", "exploring", "greedy"))
                rows.append((study, name, f"{len(mine)}", *(f"{ratio.value:.2f}" for ratio in ratios)))
    head = (
        "streams",
        "K",
        "number",
        "price of one bit",
        "price of not knowing",
        "price of exploring",
        "greedy over exploring, one bit",
    )
    return markdown_table(head, rows, align="llr")


def exponent_table(prices: pd.DataFrame) -> str:
    """Return the exponents of the price in K by study and rounds."""
    rows = []
    for study, noise in (
        (TABLES, None),
        (MERGED, None),
        (PLANTED, 0.0),
        (PLANTED, 0.1),
        (PLANTED, 0.3),
        (MEMORY, None),
    ):
        mine = prices[(prices["study"] == study) & ((prices["noise"] == noise) | (noise is None))]
        for rounds in (100, 1_000, 4_000, 20_000):
            there = mine[mine["round"] == rounds]
            if there["K"].nunique() > 2:
                name = study if noise is None else f"{study}, noise {noise:g}"
                rows.append((name, f"{rounds:,}", f"{len(there)}", exponent(there).text()))
    return markdown_table(("streams", "rounds", "number", "exponent of the price in K"), rows, align="lrrr")


def every_table(prices: pd.DataFrame) -> str:
    """Return the prices of each table."""
    rows = [
        (row.stream, f"{row.K:g}", f"{row.round:,}", *(f"{np.exp(value):.2f}" for value in ratios))
        for row in at_end(prices, TABLES).sort_values(["K", "stream"]).itertuples()
        for ratios in [(row.price, row.not_knowing, row.exploring, row.greedy)]
    ]
    head = (
        "table",
        "K",
        "rounds",
        "price of one bit",
        "price of not knowing",
        "price of exploring",
        "greedy over exploring, one bit",
    )
    return markdown_table(head, rows)


def memory_table(cells: pd.DataFrame, theory: Path) -> str:
    """Return mistakes beside the floors where contexts have nothing in common, d = 20."""
    mine = cells[(cells["study"] == MEMORY) & (cells["round"] == 4_000)]
    others = pd.read_csv(theory) if theory.exists() else pd.DataFrame(columns=["K", "player", "mistakes"])
    names = list(dict.fromkeys(others["player"]))
    rows = []
    for K, group in mine.groupby("K"):
        made = group.set_index("agent")[["one", "all greedy"]].stack() * 40.0
        there = others[others["K"] == K].set_index("player")["mistakes"]
        more = [f"{there[name]:.0f}" if name in there else "" for name in names]
        own = [
            f"{made[agent, column]:.0f}"
            for column in ("one", "all greedy")
            for agent in ("fastcb", "squarecb", "linucb")
        ]
        rows.append((f"{K:g}", f"{10 * (K - 1):g}", *own[:3], *more, f"{20 * (1 - 1 / K):.1f}", *own[3:]))
    head = ("K", "floor, one bit", "fastcb", "squarecb", "linucb", *names, "floor, label")
    return markdown_table((*head, "fastcb, K bits", "squarecb, K bits", "linucb, K bits"), rows)
