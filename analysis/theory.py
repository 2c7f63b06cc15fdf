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
# # Bounds and mistakes at the settings of the theorems
#
# Each theorem states that $\mathbb{E}[\text{mistakes}]$ is at most the loss of the best W in the ball plus the bound. This
# notebook measures both sides on the logistic model with $d = 10$, for T = 1,000 to 1,000,000. Each T is a separate run,
# because the settings depend on it. The notebook reads the results of `runs/theory-*.toml` in the folder
# `BANDITLAB_RESULTS`, by default `runs/results`, with one folder per T. It writes figures to `images/` and tables to
# `results/` of the folder `BANDITLAB_FIGURES`, by default `docs`.

# %%
import math

import numpy as np
import pandas as pd
import result_pages

from banditlab.agents.exploration import Exploration
from banditlab.agents.gaptron import Gaptron
from banditlab.agents.newtron import Newtron
from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.agents.rdue import RDUE
from banditlab.analysis import load, relative
from banditlab.analysis.look import FAINT, INK, new_figure, save, shared_legend, styled, styles
from banditlab.analysis.places import keep, kept, results_folder
from banditlab.analysis.statistics import growth_exponent
from banditlab.bounds.exploration import theorem_9_gamma
from banditlab.bounds.obama import obama_gaussian_prior
from banditlab.engine import Sweep, read_spec
from banditlab.losses import softmax
from banditlab.problem import Problem

NAMES = {
    "exploration": "FOLKLORE reduction",
    "exploration-anytime": "FOLKLORE reduction, anytime",
    "gaptron": "Gaptron",
    "gaptron-wide": "Gaptron, wide step (unpublished)",
    "rdue": "RDUE",
    "obama-lite": "OBAMA-lite, Laplace",
    "newtron": "Newtron",
    "uniform": "uniform guessing",
}
LOOKS = styles(list(NAMES), ["uniform"])
D = 10
CELL = ["K", "B", "T", "agent"]


# %% [markdown]
# ## When the bounds fall below T
#
# The table shows the smallest T beyond which $\gamma$ is below 1 (at smaller T the agent always explores), the smallest T
# beyond which the bound is also below T, and the smallest T beyond which it is below the mistakes of uniform exploration,
# (1 - 1/K) T. The constants of Newtron's bound are not known. Its theorem has a $\gamma$ of this form only for $\alpha \le
# (\ln T)/(8 R D)$, and here $\alpha$ is 1. The bound of OBAMA-lite is that of the exact posterior, and does not cover its
# Laplace approximation. The bound of the anytime reduction is its closed form $3 \sqrt{K T\, \mathrm{Reg}(T)}$, for labels
# drawn from the comparator, as in this study.


# %%
def player(agent, K, B, T):
    """Return an agent at its theorem's settings."""
    problem, rng = Problem(D, K, 1.0, T), np.random.default_rng(0)
    made = {
        "exploration": (Exploration, {}),
        "exploration-anytime": (Exploration, {"gamma": "anytime"}),
        "gaptron": (Gaptron, {}),
        "gaptron-wide": (Gaptron, {"step": "wide"}),
        "rdue": (RDUE, {}),
        "obama-lite": (ObamaLite, {"samples": 2}),  # neither gamma nor bound depends on the samples
        "newtron": (Newtron, {}),
    }
    cls, settings = made[agent]
    return cls(problem, rng, norm_bound=B, **settings)


def rate(agent, K, B, T):
    """Return gamma; of the anytime schedule, its rate in round T."""
    who = player(agent, K, B, T)
    return theorem_9_gamma(T, K, who.inner.bound(T)) if who.gamma == "anytime" else who.gamma


def closed_bound(agent, K, B, T):
    """Return the bound after T rounds, NaN where its constants are not known."""
    who = player(agent, K, B, T)
    if agent == "obama-lite":
        return obama_gaussian_prior(T, D, K, B, 1.0, who.gamma)
    if agent == "exploration-anytime":
        return 3.0 * math.sqrt(K * T * who.inner.bound(T))
    return math.nan if agent == "newtron" else who.bound(T)


def first(says):
    """Return the least T for which `says`, which then stays true, is true."""
    high = 1
    while not says(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if says(middle) else (middle, high)
    return high


def threshold(agent, K, B):
    """Return one row: from which T gamma is below 1, and from which the bound says something."""
    start = first(lambda T: rate(agent, K, B, T) < 1.0)
    row = {"K": K, "B": B, "agent": agent, "gamma below 1 from": start}
    for name, share in {"T": 1.0, "guessing": 1.0 - 1.0 / K}.items():
        column = f"bound below {name} from"
        if agent == "newtron":
            row[column] = pd.NA
        else:
            row[column] = first(lambda T, share=share: start <= T and closed_bound(agent, K, B, T) < share * T)
    return row


thresholds = pd.DataFrame(
    [threshold(agent, K, float(B)) for K in (3, 10) for B in (1, 3, 10) for agent in NAMES if agent != "uniform"]
)
since = ["bound below T from", "bound below guessing from"]
thresholds = thresholds.astype(dict.fromkeys(since, "Int64"))  # whole numbers where there are any
keep(thresholds, "theory-thresholds")

# %% [markdown]
# ## Mistakes and loss
#
# The table shows expected mistakes (the sum of the probabilities of wrong classes) minus the loss of the best W in the ball
# in hindsight. The loss has the theorem's unit: nats, or bits for Gaptron and RDUE.
#
# On a planted logistic model this difference is small. If labels are drawn from softmax(U x), the comparator's loss
# contains the labels' entropy, and an agent that draws from $\mathrm{softmax}(U x)$ makes fewer mistakes than that: $1 -
# \sum p^2 \le \text{entropy}$. The column `excess` therefore shows a second difference: mistakes minus those of the
# comparator with the agent's decoding (a draw for the reduction, OBAMA and Newtron, the gap map for Gaptron, randomized
# decoding for RDUE) and without exploration. It measures the cost of not knowing U. No theorem bounds the excess.


# %%
def plays(X, y, W):
    """Return the expected mistakes of W played in the three ways, and of its argmax, over a block."""
    P = softmax(X @ W.T)
    n, K = P.shape
    q, top = P[np.arange(n), y], P.max(axis=1)
    right = P.argmax(axis=1) == y
    a = np.where(top >= 0.5, 1.0 - top, 1.0)
    r = np.minimum(1.0, 2.0 * (1.0 - top))
    shares = {"draw": q, "gap": (1.0 - a) * right + a / K, "decode": (1.0 - r) * right + r * q}
    return {name: n - float(share.sum()) for name, share in shares.items()}


WAYS = {"gaptron": "gap", "gaptron-wide": "gap", "rdue": "decode"}


def floors(folder, wanted):
    """Return, per stream id of those wanted of a results folder, the mistakes of its comparator played in each way."""
    found = {}
    for stream, run in Sweep(read_spec(folder / "spec.toml")).plan.streams().items():
        if stream not in wanted:  # not run yet
            continue
        env = run.build_environment()
        env.reset(seed=run.environment_seed())
        with np.load(folder / "comparators" / f"{stream}.npz") as weights:
            [W] = [weights[name] for name in weights.files]
        blocks = (plays(X, y, W) for X, y in env.unwrapped.blocks(run.rounds, 100_000))
        found[stream] = pd.DataFrame(list(blocks)).sum().to_dict()
    return found


def rounded(difference, rounds):
    """Return the difference, 0 where it is a rounding error: both guess uniformly in every round."""
    return difference.where(difference.abs() > 1e-9 * rounds, 0.0)


def named(row):
    """Return the name of a run."""
    if row["player"] == "exploration" and row["param.gamma"] == "anytime":
        return "exploration-anytime"
    return "gaptron-wide" if row["player"] == "gaptron" and row.get("setting.step") == "wide" else row["player"]


def bound_of(row):
    """Return the bound: the player's own, or the one that holds for these labels, or the exact posterior's."""
    K, B, T = row["K"], row["B"], row["T"]
    if row["agent"] == "exploration-anytime":
        return player(row["agent"], K, B, T).well_specified_bound(T)
    return closed_bound(row["agent"], K, B, T) if row["agent"] == "obama-lite" else row["bound"]


def measured(folder):
    """Return one row per run of a folder."""
    table = relative(load(folder))
    made_of = table["environment"].str
    table = table.assign(
        K=made_of.extract(r"n_classes=(\d+)", expand=False).astype(int),
        B=made_of.extract(r"norm_bound=([\d.]+)", expand=False).astype(float),
        T=table["round"],
        agent=table.apply(named, axis=1),
    )
    base = floors(folder, set(table["stream_id"]))
    way = table["agent"].map(WAYS).fillna("draw")
    floor = [base[stream][how] for stream, how in zip(table["stream_id"], way, strict=True)]
    cells = table.drop_duplicates(CELL)
    bounds = {tuple(row[CELL]): bound_of(row) for _, row in cells.iterrows()}
    return table.assign(
        floor=floor,
        bound=[bounds[tuple(cell)] for cell in table[CELL].itertuples(index=False, name=None)],
        excess=rounded(table["expected_mistakes"] - floor, table["round"]),
        relative=table["expected_mistakes"] - table["unit_loss"],
    )


root = results_folder()
folders = sorted(folder for folder in root.glob("theory-*-t*") if (folder / "spec.toml").is_file())
print(f"{len(folders)} folders: {', '.join(folder.name for folder in folders)}")
runs = pd.concat([measured(folder) for folder in folders], ignore_index=True)

# %%
cells = runs.groupby(CELL, sort=False).agg(
    **{
        "unit": ("unit", "first"),
        "runs": ("relative", "size"),
        "gamma": ("gamma", "mean"),
        "mistakes": ("expected_mistakes", "mean"),
        "loss": ("unit_loss", "mean"),
        "loss in nats": ("loss", "mean"),
        "beyond loss": ("relative", "mean"),
        "standard error": ("relative", "sem"),
        "bound": ("bound", "mean"),
        "excess": ("excess", "mean"),
        "excess's error": ("excess", "sem"),
    }
)
cells = cells.reset_index()
cells["agent"] = pd.Categorical(cells["agent"], list(NAMES))
cells = cells.sort_values(CELL, ignore_index=True)
cells["beyond / bound"] = cells["beyond loss"] / cells["bound"]
cells["promise / mistakes"] = (cells["loss"] + cells["bound"]) / cells["mistakes"]
cells["kept"] = np.where(cells["bound"].isna(), "", np.where(cells["beyond loss"] <= cells["bound"], "yes", "NO"))
keep(cells.drop(columns="loss in nats"), "theory-mistakes")

# %% [markdown]
# The next table compares single runs with the bounds. Theorems bound expectations, so a single run above its bound would
# not contradict them.

# %%
over = runs[runs["bound"].notna()].assign(over=lambda table: table["relative"] > table["bound"])
checks = over.groupby("agent").agg(runs=("over", "size"), over_bound=("over", "sum")).reindex(list(NAMES)).dropna()
keep(checks.astype(int).reset_index(), "theory-checks")

# %% [markdown]
# ## Growth
#
# The table shows slopes of the logarithms in $\ln T$. They are fitted to the T at which $\gamma$ is below 1 and the bound
# is below T, if there are at least three (for Newtron, whose bound is not known, only $\gamma$ has to be below 1). "not
# above 0" means that the difference is not positive at one of these T.


# %%
def slope(T, value):
    """Return the slope of ln value in ln T, "not above 0" where it has none, "" for fewer than three points."""
    if len(T) < 3 or value.isna().any():
        return ""
    if (value <= 0).any():
        return "not above 0"
    return f"{growth_exponent(T, value):.2f}"


def growth(K, B, agent, part):
    """Return one row of slopes."""
    row = thresholds[(thresholds["K"] == K) & (thresholds["B"] == B) & (thresholds["agent"] == agent)].iloc[0]
    start = row[["gamma below 1 from", "bound below T from"]].dropna().max()
    part = part[part["T"] >= start].sort_values("T")
    return {
        "K": K,
        "B": B,
        "agent": agent,
        "from": int(start),
        "how many T": len(part),
        "mistakes beyond the loss": slope(part["T"], part["beyond loss"]),
        "excess": slope(part["T"], part["excess"]),
        "the bound": slope(part["T"], part["bound"]),
        "theorem, without logarithms": 0.5,
    }


fitted = cells[cells["agent"] != "uniform"].groupby(["K", "B", "agent"], observed=True)
keep(pd.DataFrame([growth(*key, part) for key, part in fitted]), "theory-growth")

# %% [markdown]
# ## Figures


# %%
def panels(draw, ylabel):
    """Draw a panel for each K and B, a legend below."""
    figure = new_figure(6.6)
    grid = [(K, sorted(part["B"].unique())) for K, part in cells.groupby("K")]
    axes = figure.subplots(len(grid), max(len(balls) for _, balls in grid), sharex=True, squeeze=False)
    for row, (K, balls) in zip(axes, grid, strict=True):
        for ax, B in zip(row, balls, strict=True):
            part = cells[(cells["K"] == K) & (cells["B"] == B)]
            loss = (part["loss in nats"] / part["T"]).mean()
            draw(ax, part)
            ax.set(xscale="log", title=f"K = {K}, B = {B:g}: loss {loss:.2f}")
        row[0].set(ylabel=ylabel)
    for ax in axes[-1]:
        ax.set(xlabel="T")
    shared_legend(figure, axes.flat)
    return figure


def lines(ax, part, column, each=None):
    """Draw a column against T, a line an agent."""
    for agent, own in part.groupby("agent", observed=True):
        look, own = LOOKS[agent], own.sort_values("T")
        style = {"color": look.colour, "marker": look.marker, "ms": 4.5, "lw": 1.5}
        value = own[column] / (own[each] if each else 1.0)
        ax.plot(own["T"], value.where(value > 0), label=NAMES[agent], **style)


def draw_rates(ax, part):
    """Draw mistakes per round, and the comparator's loss per round in nats where it is not far above them."""
    lines(ax, part, "mistakes", "T")
    share = part["mistakes"] / part["T"]
    low, high = float(share.min()), float(share.max())
    loss = part.drop_duplicates("T").sort_values("T")
    ax.plot(
        loss["T"], loss["loss in nats"] / loss["T"], color=INK, lw=1.0, ls=(0, (4, 3)), label="comparator's loss, nats"
    )
    room = 0.08 * (high - low)
    ax.set(ylim=(low - room, high + room))


def draw_excess(ax, part):
    """Draw the excess, and each proved bound as a dotted line in the same colour, T itself as the vacuous one."""
    lines(ax, part[part["agent"] != "uniform"], "excess")
    for agent, own in part[part["bound"].notna()].groupby("agent", observed=True):
        own = own.sort_values("T")
        ax.plot(own["T"], own["bound"], color=LOOKS[agent].colour, lw=1.1, ls=":")
    T = np.array(sorted(part["T"].unique()))
    ax.plot(T, T, color=FAINT, lw=1.0, ls=(0, (4, 3)), label="T")
    ax.set(yscale="log")


@styled
def figure_rates():
    """Draw mistakes per round against T."""
    return panels(draw_rates, "mistakes per round")


@styled
def figure_excess():
    """Draw what not knowing the comparator costs, against T, beside the bounds."""
    return panels(draw_excess, "excess mistakes (dotted: bound)")


for name, figure in {"": figure_rates, "-excess": figure_excess}.items():
    path = kept(f"images/theory{name}.png")
    save(figure(), path)
    print(f"saved {path}")

# %% [markdown]
# ## The pages

# %%
result_pages.fill("theory")
result_pages.fill("which-agent")
