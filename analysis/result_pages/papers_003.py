"""docs/results/papers-003.md: the figure of GAF's paper in numbers."""

from pathlib import Path

import pandas as pd

from banditlab.analysis.pages import markdown_table, plus_minus

NAMES = {"gaf": "GAF", "ons": "ONS", "ogd": "OGD", "folklore": "FOLKLORE", "b-grid": "B-grid, untuned"}
QUARTILES = ["average loss .25", "average loss .5", "average loss .75"]


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables, and the figures in its sentences, by marker."""
    losses, gaps, rescaled = (
        pd.read_csv(results / f"papers-003-{name}.csv")
        for name in ("figure-1", "gaf-against-others", "vehicle-rescaled")
    )
    again = rescaled.set_index("forecaster")["average loss"]
    return {
        "losses": average_losses(losses),
        "rescaled": in_both_scalings(losses, again),
        **to_others(gaps),
        "printed": f"{again['GAF as printed']:.3f} against {again['ONS']:.3f}",
        "corrected": f"{again['GAF']:.3f}",
        "samples": f"{again['GAF, m = 1,000']:.3f} instead of {again['GAF']:.3f}",
    }


def average_losses(losses: pd.DataFrame) -> str:
    """Return the median of the average loss early and, with its quartiles, at the end; bold: the least."""
    rows = []
    for name, mine in losses.groupby("data", sort=False):
        at = mine.set_index("forecaster").reindex(list(NAMES))
        for rounds, columns in {"early round": ["early .5"], "rounds": QUARTILES}.items():
            median = columns[len(columns) // 2]
            cells = []
            for _, row in at.iterrows():
                text = f"**{row[median]:.3f}**" if row[median] == at[median].min() else f"{row[median]:.3f}"
                quartiles = f" ({row[QUARTILES[0]]:.3f} to {row[QUARTILES[2]]:.3f})" if columns == QUARTILES else ""
                cells.append(text + quartiles)
            rows.append([name, f"{at[rounds].iloc[0]:,}", *cells])
    return markdown_table(["data", "rounds", *NAMES.values()], rows)


def in_both_scalings(losses: pd.DataFrame, again: "pd.Series[float]") -> str:
    """Return vehicle's loss as in the figure, and in the paper's scaling."""
    vehicle = losses[losses["data"] == "vehicle"].set_index("forecaster")["average loss .5"].rename(NAMES)
    rows = [[name, f"{vehicle[name]:.3f}" if name in vehicle else "", f"{loss:.3f}"] for name, loss in again.items()]
    return markdown_table(["forecaster", "as above", "columns in [-1, 1], intercept 1"], rows)


def to_others(gaps: pd.DataFrame) -> dict[str, str]:
    """Return how far apart GAF and ONS, or FOLKLORE, are early and at the end of each data set's streams."""
    texts = {}
    for (data, rival), mine in gaps.groupby(["data", "GAF less"]):
        for when, row in zip(("early", "end"), mine.sort_values("rounds").to_dict("records"), strict=True):
            texts[f"{data}-{when}-{rival.lower()}"] = plus_minus(abs(row["mean"]), row["standard error"], digits=1)
    early_folklore = [name for name in texts if name.endswith("early-folklore")]
    return {name: text for name, text in texts.items() if name not in early_folklore}
