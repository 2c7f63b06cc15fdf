"""docs/results/papers-000.md: regret and time of FOLKLORE and its rivals."""

import math
from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table, plus_minus

NAMES = {"ogd": "OGD", "ons": "ONS", "gaf": "GAF, Cor. 2", "gaf-small": "GAF, 2/B", "folklore": "FOLKLORE"}
TIMED = {"ogd": "OGD", "ons": "ONS, unprojected", "gaf": "GAF, m = 100", "folklore": "FOLKLORE"}
SLOPES = [(1, 2), (1, 10), (10, 2), (10, 3), (10, 10), (50, 2), (50, 10)]
"""The pairs of B and K that the page's first table shows."""
REGRETS = [(1, 2), (1, 10), (3, 2), (10, 2), (10, 3), (10, 10), (30, 2), (50, 2), (50, 10)]
"""The pairs of B and K that the table of regrets shows."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""

    def table(name: str) -> pd.DataFrame:
        return pd.read_csv(results / f"papers-000-{name}.csv")

    regret = table("regret").query("data == 'HardMulticlass'").set_index(["B", "K", "forecaster"])
    checks, long = (table(name).set_index("forecaster") for name in ("checks", "long-checks"))
    return {
        "slopes": slopes(table("growth-in-rounds")),
        "peaks": peaks(table("long-peaks"), regret, table("long-regret")),
        "regrets": regrets(regret),
        "exponents": exponents(table("time-exponents")),
        "projection": projection(table("time-projected")),
        "checks": f"{checks.loc['folklore', 'rows']:,}",
        "checks-quadrature": f"{checks.loc['aggregating', 'rows']:,}",
        "checks-long": f"{long.loc['folklore', 'rows']:,}",
        "over": str(sum(part[["over_certificate", "over_bound"]].to_numpy().sum() for part in (checks, long)) or "no"),
    }


def nats(value: float) -> str:
    """Return a number of nats: one decimal below 10."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}"


def slow(found: dict[str, str]) -> str:
    """Return the aggregating forecaster's cell: by quadrature, or else by MALA."""
    return found.get("aggregating") or (f"{found['mala']} (MALA)" if "mala" in found else "")


def slopes(growth: pd.DataFrame) -> str:
    """Return slopes of ln regret in ln T; "< 0" where the regret is not positive all along."""
    growth = growth[growth["data"] == "HardMulticlass"].set_index(["B", "K"])
    rows = []
    for B, K in SLOPES:
        found = {name: f"{value:.2f}" for name, value in growth.loc[(B, K)].drop("data").dropna().items()}
        cells = [found.get(name, "< 0") for name in NAMES]
        rows.append([str(B), str(K), *cells, found["FOLKLORE's bound"], slow(found)])
    return markdown_table(["B", "K", *NAMES.values(), "its bound", "aggregating"], rows, align="r")


def peaks(peaks: pd.DataFrame, regret: pd.DataFrame, long: pd.DataFrame) -> str:
    """Return the largest regret at two horizons and the slope between them, and that of FOLKLORE's bound."""
    short, far = sorted(peaks["horizon"].unique())
    at = peaks.set_index(["B", "K", "forecaster", "horizon"])
    bounds = long[long["data"] == "HardMulticlass"].set_index(["B", "K", "forecaster"])["bound"]
    header, rows = ["B", "K"], []
    for name in ("OGD", "FOLKLORE", "its bound"):
        header += [f"{name}, {short:,}", f"{far:,}", "slope"]
    for B, K in peaks[["B", "K"]].drop_duplicates().itertuples(index=False, name=None):
        cells = []
        for name in ("ogd", "folklore"):
            before, after = at.loc[(B, K, name, short)], at.loc[(B, K, name, far)]
            largest = plus_minus(after["largest regret"], after["standard error"])
            cells += [nats(before["largest regret"]), largest, f"{after['slope from the horizon before']:.2f}"]
        low, high = regret.loc[(B, K, "folklore"), "bound"], bounds[B, K, "folklore"]
        cells += [nats(low), nats(high), f"{math.log(high / low) / math.log(far / short):.2f}"]
        rows.append([str(B), str(K), *(cell.replace("-0.00", "0.00") for cell in cells)])
    return markdown_table(header, rows, align="r")


def regrets(regret: pd.DataFrame) -> str:
    """Return regrets of the worse sign at the last round; standard errors where forecasters are to be told apart."""
    rows = []
    for B, K in REGRETS:
        mine = regret.loc[(B, K)]
        means = {name: nats(mine.loc[name, "regret"]) for name in ("ogd", "ons", "gaf")}
        others = mine.drop(list(means))[["regret", "standard error"]]
        found = means | {name: plus_minus(*row) for name, row in others.iterrows()}
        bound = nats(mine.loc["folklore", "bound"])
        rows.append([str(B), str(K), *(found[name] for name in NAMES), bound, slow(found)])
    return markdown_table(["B", "K", *NAMES.values(), "its bound", "aggregating"], rows, align="r")


def exponents(fitted: pd.DataFrame) -> str:
    """Return the exponents of time = d^a K^b beside Table 1's."""
    rows = []
    for row in fitted.set_index("forecaster").loc[list(TIMED)].reset_index().to_dict("records"):
        cells = [f"{value:g}" if "Table" in name else f"{value:.2f}" for name, value in row.items() if "," in name]
        rows.append([TIMED[row["forecaster"]], *cells])
    header = ["", "d: Table 1", "fitted", "32 to 64, K = 8", "K: Table 1", "fitted", "4 to 8, d = 64"]
    return markdown_table(header, rows)


def projection(times: pd.DataFrame) -> str:
    """Return microseconds per round of ONS without and with its projection."""
    rows = [
        [f"{row['d']:.0f}", f"{row['K']:.0f}", f"{row['unprojected us']:.2f}"]
        + [f"{row['us']:.2f}" if row["us"] < 10 else f"{row['us']:.0f}", f"{row['factorisations']:.1f}"]
        for row in times.to_dict("records")
    ]
    return markdown_table(["d", "K", "unprojected, µs", "projected, µs", "factorisations per round"], rows, align="r")
