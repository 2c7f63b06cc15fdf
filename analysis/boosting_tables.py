# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Online multiclass boosting: the tables of the paper, and AdaBoost.OLM++
#
# This notebook reproduces Tables 1, 3, 4 and 5 of Y. H. Jung, J. Goetz, A. Tewari (Online multiclass boosting, NIPS 2017):
# the accuracy of boosters over 100 Hoeffding trees on the last 20 % of a data set and on the whole set, and their run time.
# AdaBoost.OLM++ is not in the paper. The notebook reads `boosting-tables-SET` and `boosting-learners-SET` in the folder
# `BANDITLAB_RESULTS`, by default `runs/results`, as far as they exist. It writes the figure to `images/` and the tables to
# `results/` of the folder `BANDITLAB_FIGURES`, by default `docs`, and also into the page `boosting-tables.md`.

# %%
from itertools import product

import numpy as np
import pandas as pd
import result_pages
from parts.jung_2017 import PAPER
from result_pages.boosting_tables import CLOSE, LIGHT, METHODS, SETS

from banditlab.analysis import load
from banditlab.analysis.look import FAINT, new_figure, save, styled, styles
from banditlab.analysis.places import kept, results_folder
from banditlab.analysis.statistics import difference, mean_interval

OURS, EXACT, DERIVED = "OLM++", ", exact", ("AdaOLM", "OvA", "AdaOVA")
NAMES = {
    "best-single": "DT",
    "oza": "OLB",
    "adaboost-olm": "AdaOLM",
    "adaboost-olm++": OURS,
    "adaboost-ol-ova": "OvA",
    "adaova": "AdaOVA",
}
root = results_folder()

# %% [markdown]
# ## Runs
#
# The paper's "best decision tree" is chosen in hindsight, separately for the last 20 % and for all rows. All orders use the
# same 100 trees, so it is the tree with the fewest mistakes over all orders.


# %%
def method(run):
    """Return the paper's name for the booster of a run."""
    if run["player"] == "online-mbbm":
        return "MB " + f"{run['param.edge']:g}".removeprefix("0")
    if run["player"] == "best-single" and run["param.weight_scale"] != "random":
        return LIGHT
    return NAMES[run["player"]] + (EXACT if mended(run) else "")


def mended(run):
    """Return whether a booster takes the exact derivative where the paper's has the code's."""
    return NAMES[run["player"]] in DERIVED and run["param.derivative"] == "exact"


def mistakes_of(runs, single):
    """Return mistakes (runs, trees) of every tree of `best-single`, or (runs, 1) of the booster."""
    trees = [c for c in runs if c.startswith("diagnostic.mistakes.")]
    return runs[trees].to_numpy() if single else runs[["mistakes"]].to_numpy()


def of_best(mistakes):
    """Return mistakes (runs,) of the column of mistakes (runs, trees) with the fewest in all."""
    return mistakes[:, mistakes.sum(axis=0).argmin()]


def played(folder):
    """Return one row per finished run: method, order, accuracies and seconds."""
    results = load(root / folder)
    print(f"{folder}: {results.planned - results.missing} of {results.planned} runs, {len(results.failures)} failures")
    runs = results.runs
    cut, rounds = sorted(runs["round"].unique())[-2:]
    parts = []
    runs["method"] = [method(run) for run in runs.to_dict("records")]
    for (player, _), mine in runs.groupby(["player", "method"], sort=False):
        ends = mine[mine["round"] == rounds].set_index("run_id")
        cuts = mine[mine["round"] == cut].set_index("run_id").loc[ends.index]
        at_end, at_cut = (mistakes_of(part, player == "best-single") for part in (ends, cuts))
        part = ends.reset_index()[["repetition", "stream_id", "seconds", "param.n_learners", "method"]]
        part["last fifth"] = 1.0 - of_best(at_end - at_cut) / (rounds - cut)
        part["all"] = 1.0 - of_best(at_end) / rounds
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def begun(folder):
    """Return whether a results folder has a finished run."""
    return any((root / folder).glob("results.parquet")) or any((root / folder).glob("shards/*/*.parquet"))


there = [name for name in SETS if begun(f"boosting-tables-{name}")]
runs = {name: played(f"boosting-tables-{name}") for name in there}

# %% [markdown]
# ## Tables 3, 4 and 5
#
# The paper prints no standard deviations. Ours are over orders of the rows.


# %%
def entry(name, column):
    """Return one row of the long table: ours, our spread, the paper's figure and the difference."""
    mine = runs[name][runs[name]["method"] == column]
    row = {"data": name, "method": column, "orders": len(mine)}
    for measure, paper in PAPER.items():
        ours = mine[measure].mean()
        theirs = paper.loc[name].get(column.split(",")[0], np.nan)
        row |= {measure: ours, f"{measure}, sd": mine[measure].std()}
        row |= {f"{measure}, paper": theirs}
        row |= {} if measure == "seconds" else {f"{measure}, difference": ours - theirs}
    return row


entries = [entry(name, column) for name, column in product(there, METHODS) if (runs[name]["method"] == column).any()]
table = pd.DataFrame(entries)
table.round(4).to_csv(kept("results/boosting-tables.csv"), index=False)


def wide(measure):
    """Return one of the tables as the paper prints it, ours and the difference."""
    shown = table.pivot(index="data", columns="method", values=measure).reindex(index=there)
    columns = [c for c in METHODS if c in shown]
    gap = table.assign(gap=table[measure] - table[f"{measure}, paper"]).pivot(
        index="data", columns="method", values="gap"
    )
    return shown[columns], gap.reindex(index=there, columns=[c for c in columns if c != OURS])


for measure, caption in {"last fifth": "Table 3", "all": "Table 4", "seconds": "Table 5"}.items():
    shown, gap = wide(measure)
    digits = 0 if measure == "seconds" else 3
    print(f"{caption}, ours\n{shown.round(digits).to_string()}")
    if measure != "seconds":
        print(f"{caption}, ours less the paper's\n{gap.round(3).to_string()}")
print(table.pivot(index="data", columns="method", values="orders").reindex(index=there).to_string())

gaps = (
    table[~table["method"].str.endswith((EXACT, LIGHT))]
    .melt(
        id_vars=["data", "method"],
        value_vars=["last fifth, difference", "all, difference"],
        var_name="measure",
        value_name="gap",
    )
    .dropna()
)
close = gaps["gap"].abs() <= CLOSE
print(f"{close.sum()} of {len(gaps)} entries of Tables 3 and 4 within {CLOSE} ({100 * close.mean():.0f} %)")
print(gaps.assign(close=close).pivot_table(index="data", columns="measure", values="close", aggfunc="mean").to_string())
print(gaps[~close].sort_values(["data", "method"]).round(3).to_string(index=False))

# %% [markdown]
# ## Table 1: the best of five edges


# %%
def highlight(name):
    """Return Table 1's row of a data set: the last fifth and the seconds, ours beside the paper's, MBBM at its best edge."""
    mine = table[table["data"] == name].set_index("method")
    row = {"data": name}
    for column in ("DT", "OLB", "AdaOLM", "AdaOLM" + EXACT, OURS):
        if column in mine.index:
            row |= {column: mine.loc[column, "last fifth"], f"{column}, s": mine.loc[column, "seconds"]}
            row |= {f"{column}, paper": mine.loc[column, "last fifth, paper"]}
    edges = mine[mine.index.str.startswith("MB")]
    if len(edges):
        best, paper = edges["last fifth"].idxmax(), PAPER["last fifth"].loc[name, edges.index]
        row |= {"Best MBBM": edges.loc[best, "last fifth"], "Best MBBM, s": edges.loc[best, "seconds"]}
        row |= {"Best MBBM, paper": paper.max(), "best edge": best, "best edge, paper": paper.idxmax()}
    return row


first = pd.DataFrame(highlight(name) for name in there)
first.round(4).to_csv(kept("results/boosting-tables-1.csv"), index=False)
print(first.round(3).T.to_string())

# %% [markdown]
# ## AdaBoost.OLM++ against AdaBoost.OLM, order by order


# %%
def against(name, measure, rival):
    """Return the paired difference in accuracy of AdaBoost.OLM++ to a rival over the orders that both played."""
    mine = runs[name].set_index("stream_id")
    ours, theirs = (mine.loc[mine["method"] == label, measure] for label in (OURS, rival))
    ours, theirs = ours.align(theirs, join="inner")
    gap = difference(ours, theirs)
    row = {"data": name, "measure": measure, "against": rival, "OLM++": ours.mean(), "rival": theirs.mean()}
    row |= {"difference": gap.mean, "low": gap.low, "high": gap.high, "orders": gap.n, "interval": gap.method}
    return row | {"won": int((ours > theirs).sum()), "lost": int((ours < theirs).sum())}


def both(name, rival):
    return {OURS, rival} <= set(runs[name]["method"])


compared = pd.DataFrame(
    against(name, measure, rival)
    for name, measure, rival in product(there, ["last fifth", "all"], ["AdaOLM", "AdaOLM" + EXACT, "OLB", LIGHT])
    if both(name, rival)
)
if len(compared):
    compared.round(4).to_csv(kept("results/boosting-tables-olm-plus.csv"), index=False)
    print(compared.round(3).to_string(index=False))

# %% [markdown]
# ## Error against the number of weak learners

# %%
more = {name: played(f"boosting-learners-{name}") for name in there if begun(f"boosting-learners-{name}")}
LABELS = {"AdaOLM": "AdaBoost.OLM, the code's derivative", "AdaOLM" + EXACT: "AdaBoost.OLM", OURS: "AdaBoost.OLM++"}
LOOKS = styles([*LABELS.values()])


def curves(name):
    """Return one row per method and number of learners: error on all rows and on the last fifth, with intervals."""
    rows = []
    for (label, n), mine in more[name].groupby(["method", "param.n_learners"]):
        row = {"data": name, "method": label, "learners": int(n), "orders": len(mine)}
        for measure in ("last fifth", "all"):
            error = mean_interval(1.0 - mine[measure])
            row |= {f"error, {measure}": error.mean, f"{measure}, low": error.low, f"{measure}, high": error.high}
        rows.append(row)
    return pd.DataFrame(rows)


@styled
def figure(table):
    """Draw error on all rows (solid) and on the last fifth (dashed) against N, one panel per data set."""
    names = list(dict.fromkeys(table["data"]))
    picture = new_figure(3.6)
    axes = picture.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        for label, title in LABELS.items():
            mine = table[(table["data"] == name) & (table["method"] == label)].sort_values("learners")
            look = LOOKS[title]
            for measure, dashes in {"all": "-", "last fifth": "--"}.items():
                shown = title if measure == "all" else None
                ax.plot(
                    mine["learners"],
                    mine[f"error, {measure}"],
                    color=look.colour,
                    marker=look.marker,
                    ls=dashes,
                    label=shown,
                )
                ax.fill_between(
                    mine["learners"], mine[f"{measure}, low"], mine[f"{measure}, high"], color=look.colour, alpha=0.12
                )
        ax.set(xscale="log", xlabel="weak learners N", title=name)
        ax.grid(color=FAINT)
    axes[0].set_ylabel("error: all rows, last fifth (dashed)")
    axes[0].legend()
    return picture


if more:
    by_learners = pd.concat([curves(name) for name in more], ignore_index=True)
    by_learners.round(4).to_csv(kept("results/boosting-tables-learners.csv"), index=False)
    print(by_learners.round(3).to_string(index=False))
    save(figure(by_learners), kept("images/boosting-learners.png"))

# %% [markdown]
# ## The page

# %%
result_pages.fill("boosting-tables")
