"""docs/results/synsep.md: the figure of SOBA's paper, the reference figures, the second-order agents and 40 features."""

from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table

NAMES = {
    "banditron": "Banditron",
    "pnewtron": "PNewtron",
    "soba-diag": "SOBAdiag",
    "rdue": "RDUE, adaptive",
    "gaptron": "Gaptron, adaptive",
    "epsilon-greedy": "epsilon-greedy",
    "epsilon-greedy-direct": "epsilon-greedy, direct",
    "newtron": "Newtron",
    "soba": "SOBA",
    "exploration(folklore)": "FOLKLORE reduction",
    "obama-lite": "OBAMA-lite",
    "fastcb": "FastCB",
    "squarecb": "SquareCB",
    "linucb": "LinUCB",
    "lints": "LinTS",
    "confidit": "Confidit",
    "ovr-perceptron": "one-vs-rest perceptron",
    "perceptron": "perceptron (observes the label)",
    "sampled(ogd)": "OGD, sampled (observes the label)",
}
LARGE, SMALL = ["SynSep", "SynNonSep"], ["SynSepSmall", "SynNonSepSmall"]
STREAMS = 3
NOISE = 5.0
"""Per cent of labels that are noise in SynNonSep."""


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    points = pd.read_csv(results / "synsep-points.csv")
    second = pd.read_csv(results / "synsep-second-order.csv")
    [first_order] = results.glob("synsep-first-order-*.csv")
    return {
        "references": references(points),
        "soba-diag": one(points, "SynSep", "soba-diag"),
        "for-scale": for_scale(pd.read_csv(results / "synsep.csv")),
        "second-order": by_gamma(second),
        **in_words(pd.read_csv(first_order), second),
        "small": at_best(pd.read_csv(results / "synsep-small-best.csv")),
    }


def one(points: pd.DataFrame, environment: str, agent: str) -> str:
    """Return our share of mistakes at a reference figure's setting."""
    return f"{points.set_index(['environment', 'agent']).loc[(environment, agent), 'ours']:.2f} %"


def measured(rows: pd.DataFrame, environment: str, agent: str) -> str:
    """Return mean and standard error of the first row of an agent, and how many streams where they are few."""
    found = rows[(rows["environment"] == environment) & (rows["agent"] == agent)]
    if found.empty:
        return ""
    row = found.iloc[0]
    error = "" if pd.isna(row["standard error"]) else f" ± {row['standard error']:.1g}"
    return f"{row['error %']:.3g}{error}" + (f" ({row['streams']} streams)" if row["streams"] < STREAMS else "")


# ---------------------------------------------------------------------------------------------------------------- tables


def references(points: pd.DataFrame) -> str:
    """Return an independent implementation's shares of mistakes beside ours."""
    rows = [
        [row["environment"], NAMES[row["agent"]], f"{row['gamma']:g}", f"{row['reference']:g}", f"{row['ours']:.2f}"]
        + [f"{row['least']:.2f} to {row['most']:.2f}", f"{row['ours / reference']:.2f}"]
        for row in points.to_dict("records")
    ]
    header = ["data", "agent", "gamma", "reference", "ours, %", "range", "ours / reference"]
    return markdown_table(header, rows, align="llr")


def for_scale(curves: pd.DataFrame) -> str:
    """Return those that observe the label, and the one-vs-rest perceptron."""
    shown = ("perceptron", "sampled(ogd)", "ovr-perceptron")
    rows = [[NAMES[agent], *(measured(curves, environment, agent) for environment in LARGE)] for agent in shown]
    return markdown_table(["", *(f"{environment}, %" for environment in LARGE)], rows)


def by_gamma(rows: pd.DataFrame) -> str:
    """Return a row per agent and gamma."""
    lines = []
    for agent in [agent for agent in NAMES if agent in set(rows["agent"])]:
        mine = rows[rows["agent"] == agent]
        for gamma, part in mine.groupby("gamma", dropna=False):
            name = "" if pd.isna(gamma) else f"{gamma:.2g}"
            lines.append([NAMES[agent], name, *(measured(part, environment, agent) for environment in LARGE)])
    return markdown_table(["agent", "gamma", *(f"{environment}, %" for environment in LARGE)], lines)


def at_best(rows: pd.DataFrame) -> str:
    """Return a row per agent, each at its best gamma."""

    def cell(environment: str, agent: str) -> str:
        gamma = rows.loc[(rows["environment"] == environment) & (rows["agent"] == agent), "gamma"]
        text = measured(rows, environment, agent)
        return text if gamma.empty or pd.isna(gamma.iloc[0]) else f"{text} at {gamma.iloc[0]:.2g}"

    lines = [
        [NAMES[agent], *(cell(environment, agent) for environment in SMALL)]
        for agent in NAMES
        if agent in set(rows["agent"])
    ]
    return markdown_table(["agent", *(f"{environment}, % at gamma" for environment in SMALL)], lines)


# ------------------------------------------------------------------------------------------------------- in its sentences


def in_words(first_order: pd.DataFrame, second: pd.DataFrame) -> dict[str, str]:
    """Return ranges: the first-order agents at their best gammas, Newtron and the others on noisy labels."""
    tuned = first_order.dropna(subset="gamma")
    texts = {}
    for environment, marker in zip(LARGE, ("first-order", "first-order-noisy"), strict=True):
        mine = tuned[tuned["environment"] == environment].set_index("agent")["error %"]
        least, most = mine.idxmin(), mine.idxmax()
        texts[marker] = f"{mine[least]:.1f} ({NAMES[least]}) to {mine[most]:.1f} % ({NAMES[most]})"
    noisy = second[second["environment"] == "SynNonSep"].set_index("agent")["error %"]
    newtron, others = noisy.loc[["newtron"]], noisy.drop("newtron") - NOISE
    texts["newtron-noisy"] = f"{newtron.min():.0f} to {newtron.max():.0f} %"
    texts["beyond-noise"] = f"{others.min():.1f} to {others.max():.1f} pp"
    return texts
