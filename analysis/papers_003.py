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
# # The figure of GAF's paper
#
# R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression. NeurIPS 2021.
# Figure 1 shows the average loss of GAF, ONS and OGD on `vehicle`, `segment` and `shuttle`.
#
# The notebook reads the results of the three specs `runs/papers-003-figure-1-*.toml` in the folder `BANDITLAB_RESULTS`, by
# default `runs/results`. It writes the figure to `images/` and the tables to `results/` of the folder `BANDITLAB_FIGURES`,
# by default `docs`.

# %%
import numpy as np
import pandas as pd
import result_pages
from result_pages.papers_003 import NAMES

from banditlab.analysis.datasets import OPENML
from banditlab.analysis.look import FAINT, name_ticks, new_figure, save, styled, styles
from banditlab.analysis.places import kept, stored
from banditlab.envs import OpenML
from banditlab.forecasters import folklore, gaf, ogd, ons
from banditlab.losses import logistic_loss
from banditlab.problem import Problem

CLASSES = {"vehicle": 4, "segment": 7, "shuttle": 7}
LOOKS = styles(list(NAMES))
TUNED = {
    "gaf": ["regularization", "curvature"],
    "ons": ["regularization", "step"],
    "ogd": ["norm_bound", "step"],
    "folklore": ["regularization", "curvature"],
    "b-grid": [],
}
QUANTILES = [0.25, 0.5, 0.75]


# %% [markdown]
# ## The best point of each grid, in hindsight
#
# As in the paper, each learner has the setting with the least mean loss over all repetitions at the last round. This
# favours learners with many settings over the B-grid, which has none.


# %%
def best(runs, label):
    """Return the rows of a learner at its best setting."""
    mine = runs[runs["label"] == label]
    final = mine[mine["round"] == mine["round"].max()]
    return mine[mine["settings"] == final.groupby("settings", sort=False)["log_loss"].mean().idxmin()]


def settings(runs, label, rows):
    """Return the chosen values, each with the mark * where it is the first or last of several in its grid."""
    texts = []
    for name in TUNED[label]:
        column = f"param.{name}"
        # text where another learner's value is a word, such as the B-grid's curvature "simple"
        tried = sorted(runs.loc[runs["label"] == label, column].astype(float).unique())
        value = float(rows[column].iloc[0])
        edge = len(tried) > 1 and value in (tried[0], tried[-1])
        texts.append(f"{name} {value:.4g}{'*' if edge else ''}")
    return ", ".join(texts)


found = {name: stored(f"papers-003-figure-1-{name}") for name in CLASSES}
results = {name: result for name, result in found.items() if result is not None}
chosen = {name: {label: best(r.runs, label) for label in NAMES} for name, r in results.items()}


# %%
def quantiles(rows):
    """Return the quantiles of the average loss, one row per checkpoint."""
    average = rows.assign(average=rows["log_loss"] / rows["round"])
    return average.groupby("round")["average"].quantile(QUANTILES).unstack()


def early(runs):
    """Return the checkpoint nearest to a tenth of the rounds."""
    rounds = runs["round"].unique()
    return int(rounds[np.argmin(np.abs(rounds - rounds.max() / 10))])


def summary(name):
    """Return one row per learner: its settings, and the average loss early and at the end."""
    runs, rows = results[name].runs, []
    for label, mine in chosen[name].items():
        curve = quantiles(mine)
        first, last = early(runs), int(curve.index.max())
        rows.append(
            {
                "data": name,
                "forecaster": label,
                "settings (* at the grid's edge)": settings(runs, label, mine),
                "of": runs.loc[runs["label"] == label, "settings"].nunique(),
                "repetitions": mine["repetition"].nunique(),
                "early round": first,
                "early .5": curve.loc[first, 0.5],
                "rounds": last,
                **{f"average loss {str(q).lstrip('0')}": curve.loc[last, q] for q in QUANTILES},
                "microseconds per round": 1e6 * mine.loc[mine["round"] == last, "seconds"].median() / last,
            }
        )
    return pd.DataFrame(rows)


table = pd.concat([summary(name) for name in results], ignore_index=True)
table.round(6).to_csv(kept("results/papers-003-figure-1.csv"), index=False)
print(table.round(4).to_string(index=False))


# %% [markdown]
# ## GAF against ONS, stream by stream
#
# According to the paper, GAF and ONS are similar with many samples, and GAF is sometimes better with few (`vehicle`,
# `segment`). The table shows the difference of their average losses on the same stream, and the number of streams on which
# GAF is better.


# %%
def paired(name, at, other):
    """Return GAF's average loss less another's after `at` rounds, per stream."""
    pair = [chosen[name][label] for label in ("gaf", other)]
    pair = [rows[rows["round"] == at].set_index("repetition")["log_loss"] / at for rows in pair]
    return pair[0] - pair[1]


rows = []
for name, result in results.items():
    for at in sorted({early(result.runs), result.last_round}):
        for other in ("ons", "folklore"):
            gap = paired(name, at, other)
            row = {"data": name, "rounds": at, "GAF less": NAMES[other], "mean": gap.mean()}
            rows.append(row | {"standard error": gap.sem(), "GAF better on": f"{(gap < 0).sum()} of {len(gap)}"})
pairs = pd.DataFrame(rows)
pairs.round(6).to_csv(kept("results/papers-003-gaf-against-others.csv"), index=False)
print(pairs.round(4).to_string(index=False))


# %% [markdown]
# ## The figure


# %%
@styled
def figure():
    """Draw the median of the average loss against rounds and the band between the quartiles, one panel per data set."""
    picture = new_figure(4.6)
    axes = picture.subplots(1, len(results), squeeze=False)[0]
    for ax, (name, players) in zip(axes, chosen.items(), strict=True):
        lowest, classes = np.inf, CLASSES[name]
        for label, rows in players.items():
            curve, look = quantiles(rows), LOOKS[label]
            seen = None if ax is not axes[0] else NAMES[label]
            ax.plot(curve.index, curve[0.5], color=look.colour, ls=look.dash, lw=1.8, label=seen)
            ax.fill_between(curve.index, curve[0.25], curve[0.75], color=look.colour, alpha=0.2, lw=0)
            lowest = min(lowest, curve[0.25].min())
        ax.axhline(np.log(classes), color=FAINT, lw=1.0, ls=(0, (4, 3)))
        ax.set(xscale="log", yscale="log", xlabel="rounds", ylim=(0.8 * lowest, 2.0 * np.log(classes)))
        ax.set_title(f"{name}, {players['gaf']['repetition'].nunique()} repetitions")
        ticks = [t for t in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if 0.8 * lowest <= t <= 2.0 * np.log(classes)]
        name_ticks(ax, ticks, axis="y")
    axes[0].set(ylabel="average loss, nats (dashed: ln K)")
    picture.legend(loc="outside lower center", ncols=len(NAMES))
    return picture


path = kept("images/papers-003-figure-1.png")
save(figure(), path)
print(f"saved {path}")

# %% [markdown]
# ## The paper's own scaling
#
# LIBSVM's `vehicle` has columns in [-1, 1]. The environment's columns are in [0, 1], and its constant feature equals the
# largest norm of a row. This section repeats the runs on five random orders of the rows, in the paper's scaling, with an
# intercept of 1 and the paper's grid (for OGD its seven steps, with a ball that is never reached). It also runs GAF's best
# setting with ten times as many samples, and GAF as printed in Algorithm 1.

# %%
PAPER = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
GAF_POINTS = [{"regularization": lam, "curvature": beta / 2} for lam in PAPER for beta in PAPER]
PRINTED = {"covariance": "printed", "linear_term": "printed"}
PLAYERS = {
    "GAF": (gaf.GAF, GAF_POINTS),
    "GAF, m = 1,000": (gaf.GAF, [{"regularization": 0.01, "curvature": 0.5, "samples": 1000}]),  # GAF's best point
    "GAF as printed": (gaf.GAF, [point | PRINTED for point in GAF_POINTS]),
    "ONS": (
        ons.ONS,
        [{"regularization": lam, "step": 1 / beta, "projection": "none"} for lam in PAPER for beta in PAPER],
    ),
    "OGD": (ogd.OGD, [{"norm_bound": 1000.0, "step": step} for step in PAPER]),
    "FOLKLORE": (folklore.FOLKLORE, GAF_POINTS),
}


def in_the_papers_scaling(data_id):
    """Return contexts (n, d + 1), columns in [-1, 1] and an intercept of 1, and labels (n,)."""
    env = OpenML(data_id=data_id, scaling="minmax", normalize=False, intercept=False)
    env.reset(seed=0)
    rows, labels = next(iter(env.blocks(env.n_rows, env.n_rows)))
    rows = 2.0 * rows / np.maximum(rows.max(axis=0), 1e-12) - 1.0
    return np.column_stack([rows, np.ones(len(rows))]), labels


def average_loss(player, contexts, labels):
    """Return the average loss of one pass."""
    logits = np.empty((len(labels), player.problem.n_classes))
    player.forecast_block(contexts, labels, logits)
    return float(logistic_loss(logits, labels).mean())


def rescaled(data_id, orders):
    """Return one row per learner: mean average loss at its best point."""
    X, y = in_the_papers_scaling(data_id)
    radius = 1.000001 * float(np.linalg.norm(X, axis=1).max())
    problem = Problem(X.shape[1], int(y.max()) + 1, radius, len(y))
    losses = {name: np.zeros((len(points), orders)) for name, (_, points) in PLAYERS.items()}
    for repetition in range(orders):
        order = np.random.default_rng(repetition).permutation(len(y))
        Xo, yo = np.ascontiguousarray(X[order]), y[order]
        Xo.flags.writeable = False
        for name, (learner, points) in PLAYERS.items():
            for i, point in enumerate(points):
                player = learner(problem, np.random.default_rng(repetition), **point)
                losses[name][i, repetition] = average_loss(player, Xo, yo)
    rows = []
    for name, (_, points) in PLAYERS.items():
        i = int(losses[name].mean(axis=1).argmin())
        least = {"forecaster": name, "average loss": losses[name][i].mean(), "orders": orders}
        rows.append(least | {key: value for key, value in points[i].items() if isinstance(value, float)})
    return pd.DataFrame(rows)


if "vehicle" in results and results["vehicle"].environments[0].startswith("banditlab/OpenML"):
    again = rescaled(OPENML["vehicle"], orders=5)
    again.round(4).to_csv(kept("results/papers-003-vehicle-rescaled.csv"), index=False)
    print(again.round(4).to_string(index=False))
else:
    print("left out: the results are not those of OpenML's vehicle")

# %% [markdown]
# ## The page

# %%
result_pages.fill("papers-003")
