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
# # The experiment FOLKLORE's paper does not have
#
# N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
#
# Its Table 1 orders the learners by regret and by time per round. Here both are measured: regret against T, B and K on
# data that are hard for proper learners, from the results of `runs/papers-000-*.toml` in the folder `BANDITLAB_RESULTS`
# or `runs/results`; time per round on plays timed here, `BANDITLAB_TIMED` seconds each (0.06 where unset). Pictures go
# to `images/` and tables to `results/` of the folder `BANDITLAB_FIGURES`, or of `docs`.

# %%
import math
import os
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from banditlab.analysis import load, relative
from banditlab.analysis.look import FAINT, INK, new_figure, save, styled, styles
from banditlab.forecasters import folklore, gaf, ogd, ons
from banditlab.problem import Problem

BALLS = [1, 3, 10, 30, 50]
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


def place(variable, default):
    """Return the folder a variable names, or the default of the folder above a notebook server's."""
    folder = Path(os.environ.get(variable, default))
    return folder if folder.is_dir() or not (Path("..") / folder).is_dir() else Path("..") / folder


def kept(name):
    """Return where a picture or table is kept, its folder made."""
    path = place("BANDITLAB_FIGURES", "docs") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def keep(table, name):
    """Write a table with four significant digits and print it."""
    table.to_csv(kept(f"results/papers-000-{name}.csv"), index=False, float_format="%.4g")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))


# %% [markdown]
# ## The results
#
# Five streams with chi = -1 and five with chi = +1; reported is, per round, the worse of the two mean regrets to the
# best W of the ball in hindsight (certified comparators).


# %%
def named(row):
    """Return the name of a run: GAF with another lambda than the theorem's and MALA have names of their own."""
    if row["label"] == "gaf" and not math.isclose(float(row["param.regularization"]), 32.0 * row["K"]):
        return "gaf-small"
    return "mala" if row["label"] == "aggregating" and row["param.sampler"] == "mala" else row["label"]


def regrets(folder):
    """Return one row per run and checkpoint: data, B, K, chi, forecaster, round, regret, certificate, bound."""
    table = relative(load(folder))
    made_for = table["environment"].str.extract(r"norm_bound=([\d.]+)", expand=False).astype(float)
    table = table[made_for.isna() | (made_for == table["norm_bound"])]
    classes = table["environment"].str.extract(r"n_classes=(\d+)", expand=False).fillna("2").astype(int)
    table = table.assign(K=classes)
    return pd.DataFrame(
        {
            "data": table["environment"].str.extract(r"/(\w+)", expand=False),
            "B": table["norm_bound"],
            "K": classes,
            "chi": table["environment"].str.extract(r"chi=(-?1)", expand=False).astype(int),
            "forecaster": table.apply(named, axis=1),
            "round": table["round"],
            "regret": table["log_loss"] - table["loss"],
            "certificate": table["certificate"],
            "bound": table["bound"],
        }
    )


def worse(runs):
    """Return, per data, B, K, forecaster and round, the mean regret of the worse sign and its standard error."""
    keys = ["data", "B", "K", "forecaster", "round"]
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


root = place("BANDITLAB_RESULTS", "runs/results")
folders = [root / f"papers-000-{name}" for name in ("lower-bound", *(f"b{B}" for B in BALLS), "aggregating", "mala")]
missing = [folder.name for folder in folders if not folder.is_dir()]
print("all eight folders are there" if not missing else f"left out, not run yet: {', '.join(missing)}")
runs = pd.concat([regrets(folder) for folder in folders if folder.is_dir()], ignore_index=True)
table = worse(runs)
LAST = int(table["round"].max())
final = table[table["round"] == LAST]
hard = table[table["data"] == "HardMulticlass"]
keep(final, "regret")

# %% [markdown]
# Checks in every run and at every checkpoint: how often is the regret above the certificate, or above the bound?

# %%
tolerance = 1e-6 * (1.0 + runs["regret"].abs())
checked = runs.assign(
    over_certificate=runs["regret"] > runs["certificate"] + tolerance,
    over_bound=runs["regret"] > runs["bound"] + tolerance,
)
keep(
    checked.groupby("forecaster", sort=False)
    .agg(
        rows=("regret", "size"),
        certificates=("certificate", "count"),
        bounds=("bound", "count"),
        over_certificate=("over_certificate", "sum"),
        over_bound=("over_bound", "sum"),
    )
    .reset_index(),
    "checks",
)


# %% [markdown]
# ## Growth
#
# Least-squares slopes of ln regret: in ln T from a twentieth of the rounds on, in ln B and ln K at the last round. Not
# given where a regret in the range is not positive.


# %%
def slope(x, y):
    """Return the slope of ln y in ln x; NaN for fewer than three points or where a y is not positive."""
    if len(x) < 3 or (y <= 0).any():
        return math.nan
    return float(np.polyfit(np.log(x.astype(float)), np.log(y), 1)[0])


def growth(by, others, rows):
    """Return the slopes of ln regret in ln `by` at fixed `others`, forecasters side by side, then Theorem 3's own."""
    found = rows.groupby([*others, "forecaster"], sort=False).apply(
        lambda part: slope(part[by], part["regret"]), include_groups=False
    )
    side = found.unstack("forecaster").reindex(columns=[name for name in NAMES if name in set(rows["forecaster"])])
    theorem = rows[rows["forecaster"] == "folklore"].groupby(others if len(others) > 1 else others[0], sort=False)
    bounds = pd.Series({key: slope(part[by], part["bound"]) for key, part in theorem}, dtype=float)
    return side.assign(**{"FOLKLORE's bound": bounds.reindex(side.index)})


in_T = growth("round", ["data", "B", "K"], table[table["round"] >= LAST / 20]).reset_index()
keep(in_T, "growth-in-rounds")
last = hard[hard["round"] == LAST]
in_B = pd.concat(
    [growth("B", ["K"], last[last["B"] >= 10]).assign(B="10 to 50"), growth("B", ["K"], last).assign(B="1 to 50")]
).reset_index()
keep(in_B, "growth-in-norm-bound")
in_K = growth("K", ["B"], last).reset_index()
keep(in_K, "growth-in-classes")


# %%
def draw(ax, rows, by, title, labelled=False):
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
    """Put the union of the axes' legends below."""
    entries = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    shown = {label: entries[label] for label in NAMES.values() if label in entries}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=4)


def ticks(ax, values):
    """Name every value of the horizontal axis."""
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.minorticks_off()


@styled
def figure_rounds():
    """Draw regret against T: two and ten classes in rows, three balls in columns."""
    figure = new_figure(6.4)
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, K in enumerate((2, 10)):
        for column, B in enumerate((1, 10, 50)):
            part = hard[(hard["K"] == K) & (hard["B"] == B) & (hard["round"] >= 10)]
            draw(axes[row, column], part, "round", f"K = {K}, B = {B}")
            t = np.geomspace(10, LAST, 50)
            axes[row, column].plot(t, np.sqrt(t), color=FAINT, lw=1.0, ls=(0, (4, 3)), label="_")
    for ax in axes[-1]:
        ax.set(xlabel="T")
    for ax in axes[:, 0]:
        ax.set(ylabel="regret, nats; dashed: $\\sqrt{T}$")
    legend(figure, axes.flat)
    return figure


@styled
def figure_over(by, panels, values, shape):
    """Draw regret at the last round against B or K, a panel for every value of the other."""
    figure = new_figure(3.1 * shape[0] + 0.6)
    axes = figure.subplots(*shape, sharex=True, sharey=True).ravel()
    other = "K" if by == "B" else "B"
    for ax, value in zip(axes, panels, strict=False):
        draw(ax, last[last[other] == value], by, f"{other} = {value}")
        ticks(ax, values)
        ax.set(xlabel=by)
        ax.xaxis.set_tick_params(labelbottom=True)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[:: shape[1]]:
        ax.set(ylabel=f"regret at T = {LAST:,}, nats")
    legend(figure, axes)
    return figure


classes = sorted(int(K) for K in last["K"].unique())
for name, figure in {
    "rounds": figure_rounds(),
    "norm-bound": figure_over("B", classes, BALLS, (2, 2)),
    "classes": figure_over("K", BALLS, classes, (2, 3)),
}.items():
    picture = kept(f"images/papers-000-{name}.png")
    save(figure, picture)
    print(f"saved {picture}")

# %% [markdown]
# ## Time per round
#
# Predict and update on one core, contexts and labels at random, B = 3; after a warming play the median of nine plays
# of equal length. ONS without projection. The exponents a, b of time = d^a K^b are fitted on the whole grid, and between
# the two largest sizes, where fixed costs weigh least.

# %%
DIMENSIONS, CLASSES, SECONDS = [8, 16, 32, 64], [2, 4, 8], float(os.environ.get("BANDITLAB_TIMED", "0.06"))
TIMED = {
    "ogd": lambda problem: ogd.OGD(problem, None, norm_bound=3.0),
    "ons": lambda problem: ons.ONS(problem, None, norm_bound=3.0, projection="none"),
    "gaf": lambda problem: gaf.GAF(problem, np.random.default_rng(0), norm_bound=3.0, smoothing="theory"),
    "folklore": lambda problem: folklore.FOLKLORE(problem, None, norm_bound=3.0),
}
ORDERS = {"ogd": (1, 1), "ons": (2, 2), "gaf": (2, 3), "folklore": (2, 3)}
"""Table 1's exponents of d and K where those of its two terms that grows in d dominates."""


def timed(player, problem):
    """Return the median time of a round in microseconds."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4096, problem.n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    y, logits = rng.integers(problem.n_classes, size=len(X)), np.empty((len(X), problem.n_classes))

    def play(n):
        start = perf_counter()
        player.forecast_block(X[:n], y[:n], logits[:n])
        return (perf_counter() - start) / n

    play(4)  # compiles
    n = int(np.clip(SECONDS / play(16), 4, len(X)))
    play(n)
    return 1e6 * float(np.median([play(n) for _ in range(9)]))


problems = {(d, K): Problem(d, K, 1.0, 10_000) for d in DIMENSIONS for K in CLASSES}
times = pd.DataFrame(
    {"forecaster": name, "d": d, "K": K, "us": timed(make(problem), problem)}
    for name, make in TIMED.items()
    for (d, K), problem in problems.items()
)
keep(times.pivot_table(index=["d", "K"], columns="forecaster", values="us")[list(TIMED)].reset_index(), "time")


# %%
def exponents(name):
    """Return the fitted exponents of a forecaster's time beside Table 1's."""
    rows = times[times["forecaster"] == name]
    design = np.column_stack([np.ones(len(rows)), np.log(rows["d"]), np.log(rows["K"])])
    _, a, b = np.linalg.lstsq(design, np.log(rows["us"]), rcond=None)[0]
    us = rows.set_index(["d", "K"])["us"]
    return {
        "forecaster": name,
        "d, Table 1": ORDERS[name][0],
        "d, fitted": a,
        "d, 32 to 64 at K = 8": math.log2(us[64, 8] / us[32, 8]),
        "K, Table 1": ORDERS[name][1],
        "K, fitted": b,
        "K, 4 to 8 at d = 64": math.log2(us[64, 8] / us[64, 4]),
    }


keep(pd.DataFrame(exponents(name) for name in TIMED), "time-exponents")


# %%
@styled
def figure_time():
    """Draw the time of a round against d, a panel for each K."""
    figure = new_figure(4.2)
    axes = figure.subplots(1, len(CLASSES), sharey=True)
    for ax, K in zip(axes, CLASSES, strict=True):
        for name in TIMED:
            rows, look = times[(times["forecaster"] == name) & (times["K"] == K)], LOOKS[name]
            ax.plot(rows["d"], rows["us"], color=look.colour, marker=look.marker, ms=5, lw=1.6, label=NAMES[name])
        d = np.array(DIMENSIONS, dtype=float)
        ax.plot(d, 0.02 * d**2, color=FAINT, lw=1.0, ls=(0, (4, 3)), label="_")
        ax.set(xscale="log", yscale="log", xlabel="d", title=f"K = {K}")
        ticks(ax, DIMENSIONS)
    axes[0].set(ylabel="microseconds a round; dashed: $d^2$")
    legend(figure, axes)
    return figure


picture = kept("images/papers-000-time.png")
save(figure_time(), picture)
print(f"saved {picture}")
