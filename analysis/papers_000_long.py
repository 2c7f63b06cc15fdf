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
# # Growth in T and in d, on longer streams
#
# N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
#
# `papers_000.py` has 4,000 rounds and one feature, which is too few rounds to show a logarithm at B = 50. This notebook
# uses the same data for 100,000 rounds (B = 1, 10, 50), and games on up to eight axes (B = 10, 10,000 rounds). It reads the
# results of `runs/papers-000-long-*.toml` and `-axes.toml` in the folder `BANDITLAB_RESULTS`, by default `runs/results`. It
# writes figures to `images/` and tables to `results/` of the folder `BANDITLAB_FIGURES`, by default `docs`.

# %%
import math

import numpy as np
import pandas as pd
import result_pages
from parts.hard_data import LOOKS, checks, draw, growth, legend, regrets_of, worse

from banditlab.analysis.look import FAINT, name_ticks, new_figure, save, styled
from banditlab.analysis.places import keep, kept
from banditlab.analysis.statistics import growth_exponent

# %% [markdown]
# ## The results
#
# There are five streams with $\chi = -1$ and five with $\chi = +1$. The table shows, for each round, the larger of the two
# mean regrets. The regret is against the best W in the ball in hindsight (certified comparators).

# %%
runs = regrets_of([f"papers-000-{name}" for name in ("long-b1", "long-b10", "long-b50", "axes")])
table = worse(runs)
final = table[table["round"] == table["horizon"]]
keep(final, "papers-000-long-regret", digits=6)

# %%
keep(checks(runs), "papers-000-long-checks")


# %% [markdown]
# ## Growth in T
#
# Only the rare rounds are informative. Their share of all rounds is $\sqrt{\epsilon}/(2b)$, where $b = 2B$ and $\epsilon$
# depends on the horizon. Until some rare rounds have occurred, a learner's regret is temporary. Slopes of
# $\ln(\text{regret})$ in $\ln T$ are therefore fitted twice: between the rounds at which one and ten rare rounds are
# expected, and after that. The table also shows the slopes of FOLKLORE's bound and of $\ln T$ itself. A slope is left out
# if a regret in the range is not positive, or if there are fewer than three checkpoints.
#
# A second measure needs no positive regret: the nats gained per factor e of T after the temporary growth. It is compared
# with $(K-1) d/(4c)$ of Theorem 3, where $c = 1/(2B + \ln K + 2)$.


# %%
def rare_share(horizon, B):
    """Return the share of rounds with a rare class, the mean of both signs, in one dimension."""
    b = 2.0 * B
    return math.sqrt(min(1.0 / 16.0, (b / horizon) ** (2.0 / 3.0))) / (2.0 * b)


def per_factor_e(rows):
    """Return the slope of the regret in ln T."""
    return float(np.polyfit(np.log(rows["round"]), rows["regret"], 1)[0]) if len(rows) > 2 else math.nan


long = table[table["data"] == "HardMulticlass"]
slopes, gains = [], []
for (horizon, B, K), part in long.groupby(["horizon", "B", "K"]):
    ten = 10.0 / rare_share(horizon, B)
    where = {"horizon": horizon, "B": B, "K": K, "ten rare rounds by": round(ten)}
    for name, span in {"before": part["round"].between(ten / 10, ten), "after": part["round"] >= ten}.items():
        rows = part[span]
        if rows["round"].nunique() < 3:
            continue
        side = growth("round", ["K"], rows).reset_index(drop=True)
        t = pd.Series(sorted(rows["round"].unique()), dtype=float)
        extent = {"transient": name, "from": int(t.iloc[0]), "to": int(t.iloc[-1])}
        slopes.append(
            pd.concat([pd.DataFrame([where | extent]), side.assign(**{"ln T": growth_exponent(t, np.log(t))})], axis=1)
        )
        if name == "after":
            nats = {label: per_factor_e(own) for label, own in rows.groupby("forecaster")}
            gains.append(where | extent | nats | {"Theorem 3": (K - 1) * (2.0 * B + math.log(K) + 2.0) / 4.0})
in_T = pd.concat(slopes, ignore_index=True)
last = ["FOLKLORE's bound", "ln T"]
keep(in_T[[*in_T.columns.drop(last), *last]], "papers-000-long-growth-in-rounds")
keep(pd.DataFrame(gains), "papers-000-long-nats-per-factor-e")

# %% [markdown]
# The table shows the largest regret of each cell at any checkpoint, next to that for 4,000 rounds, whose $\epsilon$ is the
# hardest for 4,000 rounds. The slope between the two horizons measures how the largest regret grows, even if the regret
# falls afterwards.

# %%
shorter = worse(regrets_of([f"papers-000-b{B}" for B in (1, 10, 50)]))
both = pd.concat([shorter, long], ignore_index=True)
both = both[both.groupby(["B", "K"])["horizon"].transform("nunique") > 1]
peaks = both.loc[both.groupby(["B", "K", "forecaster", "horizon"])["regret"].idxmax()]
columns = ["B", "K", "forecaster", "horizon", "round", "regret", "standard error"]
peaks = peaks[columns].rename(columns={"round": "at round", "regret": "largest regret"})
pairs = peaks.groupby(["B", "K", "forecaster"])
ratio = np.log(pairs["largest regret"].shift(0) / pairs["largest regret"].shift(1))
peaks["slope from the horizon before"] = ratio / np.log(peaks["horizon"] / pairs["horizon"].shift(1))
keep(peaks, "papers-000-long-peaks", digits=6)


# %%
def draw_bound(ax, part):
    """Add FOLKLORE's bound and a square root of T to a panel."""
    own = part[part["forecaster"] == "folklore"].sort_values("round")
    ax.plot(own["round"], own["bound"], color=LOOKS["folklore"].colour, lw=1.2, ls=":", label="FOLKLORE's bound")
    t = np.geomspace(part["round"].min(), part["round"].max(), 50)
    ax.plot(t, np.sqrt(t), color=FAINT, lw=1.0, ls=(0, (4, 3)), label="$\\sqrt{T}$")


def panel(ax, B, K):
    """Draw one law of the data: regret against T, the end of the transient as a vertical line."""
    part = long[(long["B"] == B) & (long["K"] == K)]
    if part.empty:  # not run yet
        ax.set_title(f"K = {K}, B = {B}: not run")
        return
    horizon = part["horizon"].max()
    part = part[part["round"] >= horizon / 1000]
    draw(ax, part, "round", f"K = {K}, B = {B}")
    draw_bound(ax, part)
    ax.axvline(10.0 / rare_share(horizon, B), color=FAINT, lw=1.0, label="ten rare rounds")


@styled
def figure_rounds():
    """Draw regret to 100,000 rounds: two and five classes in rows, three balls in columns."""
    figure = new_figure(6.8)
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, K in zip(axes, (2, 5), strict=True):
        for ax, B in zip(row, (1, 10, 50), strict=True):
            panel(ax, B, K)
        row[0].set(ylabel="regret, nats")
    for ax in axes[-1]:
        ax.set(xlabel="T")
    legend(figure, axes.flat)
    return figure


# %% [markdown]
# ## Growth in d
#
# Games on d axes share the ball: each has rows of norm $B/\sqrt{d}$ and $T/d$ rounds. The table shows the largest regret
# over the checkpoints, and the bound at the last round.

# %%
on_axes = table[table["data"] == "HardAxes"]
worst = on_axes.loc[on_axes.groupby(["d", "K", "forecaster"])["regret"].idxmax()]
worst = worst.assign(bound=on_axes.groupby(["d", "K", "forecaster"])["bound"].max().to_numpy())
keep(worst, "papers-000-features")
if not worst.empty:
    keep(growth("d", ["K"], worst).reset_index(), "papers-000-growth-in-features")


@styled
def figure_features():
    """Draw the largest regret against d, a panel for each number of classes."""
    figure = new_figure(4.2)
    classes = sorted(worst["K"].unique())
    axes = figure.subplots(1, len(classes), sharey=True, squeeze=False)[0]
    for ax, K in zip(axes, classes, strict=True):
        part = worst[worst["K"] == K]
        draw(ax, part, "d", f"K = {K}")
        own = part[part["forecaster"] == "folklore"].sort_values("d")
        ax.plot(own["d"], own["bound"], color=LOOKS["folklore"].colour, lw=1.2, ls=":", label="FOLKLORE's bound")
        name_ticks(ax, sorted(part["d"].unique()))
        ax.set(xlabel="d")
    axes[0].set(ylabel=f"largest regret of {worst['horizon'].max():,} rounds")
    legend(figure, axes)
    return figure


# %%
pictures = {"long-rounds": figure_rounds}
if not worst.empty:
    pictures["features"] = figure_features
for name, figure in pictures.items():
    picture = kept(f"images/papers-000-{name}.png")
    save(figure(), picture)
    print(f"saved {picture}")

# %% [markdown]
# ## The page

# %%
result_pages.fill("papers-000")
