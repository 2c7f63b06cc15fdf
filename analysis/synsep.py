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
# # The figure of SOBA's paper, with more agents
#
# A. Beygelzimer, F. Orabona, C. Zhang. Efficient online bandit multiclass learning with $\tilde{O}(\sqrt{T})$ regret. ICML
# 2017. The figure shows the share of mistakes against the exploration rate $\gamma = 2^{-16}, \dots, 2^{-1}$ on SynSep and
# SynNonSep (S. Kakade, S. Shalev-Shwartz, A. Tewari, ICML 2008).
#
# The notebook reads the results of `runs/synsep*.toml` in the folder `BANDITLAB_RESULTS`, by default `runs/results`, as far
# as they exist. It writes figures to `images/` and tables to `results/` of the folder `BANDITLAB_FIGURES`, by default
# `docs`.

# %%
import numpy as np
import pandas as pd
import result_pages
from result_pages import synsep as page

from banditlab.analysis.look import name_ticks, new_figure, save, shared_legend, styled, styles
from banditlab.analysis.places import keep, kept, stored

NAMES = page.NAMES | {
    "obama-lite": "OBAMA-lite, Laplace",
    "perceptron": "perceptron (label)",
    "sampled(ogd)": "OGD, sampled (label)",
}
SCALE = ["ovr-perceptron", "perceptron", "sampled(ogd)"]
"""Drawn dashed: full information, or without a gamma."""
LOOKS = styles([name for name in NAMES if name not in SCALE]) | dict(
    zip(SCALE, styles(SCALE, SCALE).values(), strict=True)
)
REFERENCE = pd.DataFrame(
    [
        ("SynSep", "banditron", 0.014, 1.80),
        ("SynSep", "pnewtron", 0.014, 1.27),
        ("SynSep", "soba-diag", 0.014, 1.46),
        ("SynSep", "rdue", 0.03, 2.70),
        ("SynNonSep", "banditron", 0.006, 11.8),
        ("SynNonSep", "pnewtron", 0.014, 12.1),
        ("SynNonSep", "soba-diag", 0.014, 6.6),
        ("SynNonSep", "rdue", 0.03, 9.1),
    ],
    columns=["environment", "agent", "gamma", "reference"],
)
"""Per cent of mistakes in a million rounds that an independent implementation of each agent made (2 or 3 streams)."""
CELL = ["environment", "agent", "gamma"]


def ours(environment):
    """Return the name of the data: SynSepSmall with noisy labels is SynNonSepSmall."""
    name = environment.split("/")[1].split("-v")[0]
    return "SynNonSepSmall" if name == "SynSepSmall" and "noise_rate=0.05" in environment else name


def errors(*folders):
    """Return one row per run and checkpoint of the folders that are there: per cent of mistakes so far."""
    parts = []
    for results in map(stored, folders):
        if results is None:
            continue
        runs = results.runs
        parts.append(
            pd.DataFrame(
                {
                    "run_id": runs["run_id"],
                    "environment": runs["environment"].map(ours),
                    "agent": runs["label"],
                    "gamma": runs["gamma"],
                    "repetition": runs["repetition"],
                    "round": runs["round"],
                    "error": 100.0 * runs["mistakes"] / runs["round"],
                }
            )
        )
    # a run that two specs ask for is one and the same
    return pd.concat(parts, ignore_index=True).drop_duplicates(["run_id", "round"], ignore_index=True)


def last(runs):
    """Return the rows of the last checkpoint."""
    return runs[runs["round"] == runs["round"].max()]


def summary(rows, keys):
    """Return mean, standard error and number of streams of the error."""
    table = rows.groupby(keys, sort=False, dropna=False)["error"].agg(["mean", "sem", "count"]).reset_index()
    table = table.rename(columns={"mean": "error %", "sem": "standard error", "count": "streams"})
    order = {name: i for i, name in enumerate(NAMES)}
    return table.sort_values(keys, key=lambda column: column.map(order) if column.name == "agent" else column)


# %%
runs = errors("synsep", "synsep-points", "synsep-references")
curves = summary(last(runs), CELL)
keep(curves, "synsep")

# %% [markdown]
# ## The reference figures
#
# The reference figures are shares of mistakes of an independent implementation, averaged over 2 or 3 streams of its own.
# The table compares them with our mean and range over three streams. It also shows the difference of the means in standard
# errors, where the reference's error is assumed to equal ours.

# %%
final = last(runs)


def point(row):
    """Return what was measured at a reference figure's setting."""
    mine = final[(final["environment"] == row.environment) & (final["agent"] == row.agent)]
    mine = mine[np.isclose(mine["gamma"], row.gamma)]["error"]
    gap = mine.mean() - row.reference
    return {
        "ours": mine.mean(),
        "least": mine.min(),
        "most": mine.max(),
        "streams": len(mine),
        "ours / reference": mine.mean() / row.reference,
        "standard errors apart": gap / (mine.sem() * np.sqrt(2.0)) if len(mine) > 1 else np.nan,
        "within a tenth": "" if mine.empty else "yes" if abs(gap) <= 0.1 * row.reference else "no",
    }


points = REFERENCE.join(pd.DataFrame([point(row) for row in REFERENCE.itertuples()]))
keep(points, "synsep-points")

# %% [markdown]
# ## Each agent at its best $\gamma$


# %%
def best(table):
    """Return the setting with the least mean error of each agent."""
    groups = table.groupby(["environment", "agent"], sort=False)
    return table.loc[groups["error %"].idxmin()].assign(of=groups.size().to_numpy())


keep(best(curves), "synsep-best")

# %% [markdown]
# ## Second-order agents, and a tenth of the features

# %%
second = errors("synsep-second-order")
if not second.empty:
    keep(summary(last(second), CELL), "synsep-second-order")
    at = second["round"].max()
    keep(best(summary(runs[runs["round"] == at], CELL)), f"synsep-first-order-{at}")

# %%
small = errors("synsep-small")
small_curves = summary(last(small), CELL)
keep(small_curves, "synsep-small")
keep(best(small_curves), "synsep-small-best")

# %% [markdown]
# ## The figures


# %%
def draw(ax, rows, floor):
    """Draw error against gamma, a line an agent; without a gamma a horizontal line."""
    for agent in NAMES:
        part, look = rows[rows["agent"] == agent].sort_values("gamma"), LOOKS[agent]
        if part.empty:
            continue
        if part["gamma"].isna().all() or agent in SCALE:
            style = {"color": look.colour, "ls": look.dash if agent in SCALE else (0, (6, 2)), "lw": 1.3}
            ax.axhline(max(part["error %"].iloc[0], floor), label=NAMES[agent], **style)
            continue
        bars = {"yerr": part["standard error"].fillna(0.0), "elinewidth": 0.8}
        style = {"color": look.colour, "ls": look.dash, "marker": look.marker, "ms": 4.0, "lw": 1.5}
        ax.errorbar(part["gamma"], part["error %"], label=NAMES[agent], **bars, **style)
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", xlabel="gamma")
    ticks(ax)


def ticks(ax):
    """Write the shares as plain numbers."""
    low, high = ax.get_ylim()
    shown = [t for t in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 5, 7, 10, 20, 30, 50, 90) if low <= t <= high]
    if high / low > 100.0:
        shown = [t for t in shown if t not in (5, 7, 20, 50)]
    name_ticks(ax, shown, axis="y")


def marks(ax, name):
    """Mark the reference figures with crosses in the agents' colours."""
    for row in REFERENCE[REFERENCE["environment"] == name].itertuples():
        ax.plot(row.gamma, row.reference, "x", color=LOOKS[row.agent].colour, ms=9, mew=1.6, zorder=5)


def pair(rows, names, floor):
    """Return a figure of two panels side by side."""
    figure = new_figure(5.6)
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        draw(ax, rows[rows["environment"] == name], floor)
        marks(ax, name)
        ax.set_title(name)
    axes[0].set(ylabel="mistakes, %")
    shared_legend(figure, axes)
    return figure


@styled
def figure_rates():
    """Draw the figure of the paper."""
    return pair(curves, ["SynSep", "SynNonSep"], 0.001)


@styled
def figure_small():
    """Draw the same with 40 features."""
    return pair(small_curves, ["SynSepSmall", "SynNonSepSmall"], 0.001)


def with_best(rows):
    """Return the rows of each agent at its setting with the least mean error at the last round."""
    mean = last(rows).groupby(CELL, dropna=False)["error"].mean().reset_index()
    chosen = mean.loc[mean.groupby(["environment", "agent"])["error"].idxmin()]
    return rows.merge(chosen[CELL], on=CELL)


@styled
def figure_second_order():
    """Draw the error so far against rounds, every agent at the setting that is best at the last of them."""
    figure = new_figure(5.2)
    early = runs[(runs["round"] <= second["round"].max()) & ~runs["agent"].isin(SCALE)]
    rows = with_best(pd.concat([early, second], ignore_index=True))
    axes = figure.subplots(1, 2, squeeze=False)[0]
    for ax, name in zip(axes, ["SynSep", "SynNonSep"], strict=True):
        for agent in NAMES:
            part = rows[(rows["environment"] == name) & (rows["agent"] == agent)].groupby("round")["error"].mean()
            if not part.empty:
                look, wide = LOOKS[agent], agent in set(second["agent"])
                style = {"color": look.colour, "marker": look.marker, "ms": 4.5, "lw": 2.0 if wide else 1.0}
                ax.plot(part.index, part, label=NAMES[agent], ls="-" if wide else (0, (4, 2)), **style)
        ax.set(xscale="log", yscale="log", xlabel="rounds", title=name)
        ticks(ax)
    axes[0].set(ylabel="mistakes so far, %")
    shared_legend(figure, axes[:1], ncols=5)
    return figure


for name, figure in {"": figure_rates, "-second-order": figure_second_order, "-small": figure_small}.items():
    path = kept(f"images/synsep{name}.png")
    save(figure(), path)
    print(f"saved {path}")

# %% [markdown]
# ## The pages

# %%
result_pages.fill("synsep")
result_pages.fill("which-agent")
