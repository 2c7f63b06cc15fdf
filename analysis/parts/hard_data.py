"""What papers_000.py, papers_000_long.py and papers_001.py share: regrets, the worse sign, slopes, how lines are drawn."""

import math

import pandas as pd

from banditlab.analysis import load, relative
from banditlab.analysis.look import INK, shared_legend, styles
from banditlab.analysis.places import results_folder
from banditlab.analysis.statistics import growth_exponent

NAMES = {
    "ogd": "OGD",
    "ons": "ONS",
    "gaf": "GAF, Corollary 2",
    "gaf-small": "GAF, lambda = 2/B",
    "folklore": "FOLKLORE",
    "aggregating": "aggregating, quadrature",
    "mala": "aggregating, MALA",
}
LOOKS = styles(list(NAMES))
CELL = ["data", "horizon", "B", "d", "K"]
"""What tells one law of the data from another."""


def named(row):
    """Return the name of a run: GAF with another lambda than the theorem's and MALA have names of their own."""
    if row["label"] == "gaf" and not math.isclose(float(row["param.regularization"]), 32.0 * row["K"] * row["d"]):
        return "gaf-small"
    return "mala" if row["label"] == "aggregating" and row["param.sampler"] == "mala" else row["label"]


def regrets(folder):
    """Return one row per run and checkpoint: the cell, chi, forecaster, round, regret, certificate, bound."""
    result = load(folder)
    table = relative(result)
    made_for = table["environment"].str.extract(r"norm_bound=([\d.]+)", expand=False).astype(float)
    table = table[made_for.isna() | (made_for == table["norm_bound"])]
    written = table["environment"].str
    table = table.assign(
        K=written.extract(r"n_classes=(\d+)", expand=False).fillna("2").astype(int),
        d=written.extract(r"n_features=(\d+)", expand=False).fillna("1").astype(int),
    )
    return pd.DataFrame(
        {
            "data": table["environment"].str.extract(r"/(\w+)", expand=False),
            "horizon": result.last_round,
            "B": table["norm_bound"],
            "d": table["d"],
            "K": table["K"],
            "chi": table["environment"].str.extract(r"chi=(-?1)", expand=False).astype(int),
            "forecaster": table.apply(named, axis=1),
            "round": table["round"],
            "regret": table["log_loss"] - table["loss"],
            "certificate": table["certificate"],
            "bound": table["bound"],
        }
    )


def regrets_of(names):
    """Return `regrets` of those of the results folders that are there, and say which are not."""
    folders = [results_folder() / name for name in names]
    missing = [folder.name for folder in folders if not folder.is_dir()]
    print(f"left out, not run yet: {', '.join(missing)}" if missing else f"all {len(folders)} folders are there")
    return pd.concat([regrets(folder) for folder in folders if folder.is_dir()], ignore_index=True)


def worse(runs, keys=(*CELL, "forecaster", "round")):
    """Return, per cell, forecaster and round, or other `keys`, the mean regret of the worse sign and its standard error."""
    keys = list(keys)
    signs = runs.groupby([*keys, "chi"], sort=False).agg(
        **{
            "regret": ("regret", "mean"),
            "standard error": ("regret", "sem"),
            "bound": ("bound", "mean"),
            "runs": ("regret", "size"),
        }
    )
    signs = signs.reset_index().sort_values("regret", kind="stable")
    return signs.groupby(keys, sort=False).tail(1).sort_values(keys, kind="stable").reset_index(drop=True)


def checks(runs):
    """Return, per forecaster, in how many runs and checkpoints the regret is above the certificate or the bound."""
    tolerance = 1e-6 * (1.0 + runs["regret"].abs())
    checked = runs.assign(
        over_certificate=runs["regret"] > runs["certificate"] + tolerance,
        over_bound=runs["regret"] > runs["bound"] + tolerance,
    )
    counts = {
        "rows": ("regret", "size"),
        "certificates": ("certificate", "count"),
        "bounds": ("bound", "count"),
        "over_certificate": ("over_certificate", "sum"),
        "over_bound": ("over_bound", "sum"),
    }
    return checked.groupby("forecaster", sort=False).agg(**counts).reset_index()


def growth(by, others, rows):
    """Return the slopes of ln regret in ln `by` at fixed `others`, forecasters side by side, then Theorem 3's own."""
    found = rows.groupby([*others, "forecaster"], sort=False).apply(
        lambda part: growth_exponent(part[by], part["regret"]), include_groups=False
    )
    side = found.unstack("forecaster").reindex(columns=[name for name in NAMES if name in set(rows["forecaster"])])
    theorem = rows[rows["forecaster"] == "folklore"].groupby(others if len(others) > 1 else others[0], sort=False)
    bounds = pd.Series({key: growth_exponent(part[by], part["bound"]) for key, part in theorem}, dtype=float)
    return side.assign(**{"FOLKLORE's bound": bounds.reindex(side.index)})


def draw(ax, rows, by, title):
    """Draw regret against `by`, a line a forecaster, on a scale that is linear between -1 and 1."""
    for i, (name, label) in enumerate(NAMES.items()):
        part, look = rows[rows["forecaster"] == name].sort_values(by), LOOKS[name]
        if part.empty:
            continue
        shift = 1.02 ** (i - 3)  # side by side
        line = {"color": look.colour, "marker": look.marker, "ms": 4.5, "lw": 1.5, "elinewidth": 0.8}
        ax.errorbar(part[by] * shift, part["regret"], yerr=part["standard error"], label=label, **line)
    ax.axhline(0, color=INK, lw=0.8)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    ax.set_title(title)


def legend(figure, axes):
    """Put the union of the axes' legends below, other lines after the forecasters'."""
    shared_legend(figure, axes, first=NAMES.values())
