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
# # Decoding: from a forecast to an action
#
# This notebook compares two ways to choose an action from the same forecasts: a draw (as printed) and half-log. Agents have
# the settings of their theorems, on the logistic model with $d = 10$, for T = 1,000 to 100,000. Each T is a separate run,
# because the settings depend on it. The streams are the same, so differences are paired. The notebook reads the results of
# `runs/decoding-*.toml` in the folder `BANDITLAB_RESULTS`, by default `runs/results`, with one folder per T. It writes
# figures to `images/` and tables to `results/` of the folder `BANDITLAB_FIGURES`, by default `docs`.

# %%
import math

import numpy as np
import pandas as pd
import result_pages

from banditlab.agents.decoded_descent import DecodedDescent
from banditlab.agents.exploration import Exploration
from banditlab.agents.gaptron import Gaptron
from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.agents.rdue import RDUE
from banditlab.agents.sampled import Sampled
from banditlab.analysis import load, relative
from banditlab.analysis.look import FAINT, new_figure, save, shared_legend, styled, styles
from banditlab.analysis.places import keep, kept, results_folder
from banditlab.analysis.statistics import growth_exponent
from banditlab.bounds.decoding import mistakes_per_nat
from banditlab.bounds.exploration import theorem_9_gamma
from banditlab.bounds.obama import decoded_obama
from banditlab.engine import Sweep, read_spec
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.decoding import DECODINGS, decode_forecast
from banditlab.players.agent import Trace
from banditlab.problem import Problem

D = 10
CELL = ["K", "B", "T", "agent"]
MADE = {
    "exploration": (Exploration, {"decoding": "sample"}),
    "exploration half-log": (Exploration, {"decoding": "half-log"}),
    "exploration sparsemax": (Exploration, {"decoding": "sparsemax"}),
    "exploration-anytime": (Exploration, {"decoding": "sample", "gamma": "anytime"}),
    "exploration-anytime half-log": (Exploration, {"decoding": "half-log", "gamma": "anytime"}),
    "obama-lite": (ObamaLite, {"decoding": "sample", "samples": 2}),
    "obama-lite half-log": (ObamaLite, {"decoding": "half-log", "samples": 2}),
    "rdue": (RDUE, {}),
    "rdue half-log": (RDUE, {"decoding": "half-log"}),
    "gaptron": (Gaptron, {}),
    "gaptron half-log": (Gaptron, {"decoding": "half-log"}),
    "decoded-descent randomized": (DecodedDescent, {"decoding": "randomized"}),
    "decoded-descent half-log": (DecodedDescent, {"decoding": "half-log"}),
    "decoded-descent-wide half-log": (DecodedDescent, {"decoding": "half-log", "step": "wide"}),
    "decoded-descent-wide sparsemax": (DecodedDescent, {"decoding": "sparsemax", "step": "wide"}),
}
"""Agents whose theorem has thresholds, by the names of the tables; those without a rule are as printed."""


# %% [markdown]
# ## When the bounds fall below T
#
# The table shows the smallest T beyond which $\gamma$ is below 1, and the smallest T beyond which the bound is also below
# T. The bound of OBAMA-lite is that of the exact posterior. The bound of the anytime reduction is its closed form, $3
# \sqrt{f K T\, \mathrm{Reg}(T)}$, for labels drawn from the comparator.


# %%
def player(agent, K, B, T):
    """Return an agent at its theorem's settings."""
    cls, settings = MADE[agent]
    return cls(Problem(D, K, 1.0, T), np.random.default_rng(0), norm_bound=B, **settings)


def rate(who, T):
    """Return gamma; of the anytime schedule, its rate in round T."""
    K = who.problem.n_classes
    factor = mistakes_per_nat(who.decoding, K)
    return theorem_9_gamma(T, K, factor * who.inner.bound(T)) if who.gamma == "anytime" else who.gamma


def closed_bound(who, T):
    """Return the bound after T rounds."""
    K = who.problem.n_classes
    if isinstance(who, ObamaLite):
        return decoded_obama(T, D, K, who.norm_bound, 1.0, who.gamma, who.decoding)
    if who.gamma == "anytime":
        return 3.0 * math.sqrt(mistakes_per_nat(who.decoding, K) * K * T * who.inner.bound(T))
    return who.bound(T)


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
    start = first(lambda T: rate(player(agent, K, B, T), T) < 1.0)
    speaks = first(lambda T: start <= T and closed_bound(player(agent, K, B, T), T) < T)
    return {"K": K, "B": B, "agent": agent, "gamma below 1 from": start, "bound below T from": speaks}


thresholds = pd.DataFrame([threshold(agent, K, float(B)) for K in (3, 10) for B in (1, 3, 10) for agent in MADE])
keep(thresholds, "decoding-thresholds")

# %% [markdown]
# ## Mistakes and bounds
#
# The table compares expected mistakes (the sum of the probabilities of wrong classes) with f times the loss of the best W
# in the ball plus the bound. `excess` is the number of mistakes minus that of the comparator with the same decoding and
# without exploration.


# %%
def named(row):
    """Return the name of a run: the player, its schedule or step, its rule where that is not its own."""
    name = row["player"]
    if name == "exploration" and row["param.gamma"] == "anytime":
        name = "exploration-anytime"
    if name == "decoded-descent" and row.get("setting.step") == "wide":
        name = "decoded-descent-wide"
    own = {"exploration": "sample", "exploration-anytime": "sample", "sampled": "sample", "rdue": "randomized",
           "randomized-decoding": "randomized", "gaptron": "thresholded"}  # fmt: skip
    rule = row["param.decoding"]
    return name if name == "uniform" or rule == own.get(name) else f"{name} {rule}"


def floors(folder, wanted):
    """Return, per stream id of those wanted, the expected mistakes of the comparator played by each rule."""
    found = {}
    for stream, run in Sweep(read_spec(folder / "spec.toml")).plan.streams().items():
        if stream not in wanted:
            continue
        env = run.build_environment()
        env.reset(seed=run.environment_seed())
        with np.load(folder / "comparators" / f"{stream}.npz") as weights:
            [W] = [weights[name] for name in weights.files]
        total = dict.fromkeys(DECODINGS, 0.0)
        for X, y in env.unwrapped.blocks(run.rounds, 100_000):
            S = softmax(X @ W.T)
            for rule, name in enumerate(DECODINGS):
                Q = S.copy()
                for q in Q:
                    decode_forecast(rule, q)
                total[name] += len(y) - float(Q[np.arange(len(y)), y].sum())
        found[stream] = total
    return found


def bound_of(row):
    """Return the bound of a run: the player's own, or, of the anytime rate, the one that holds for these labels."""
    if "anytime" not in row["agent"]:
        return row["bound"]
    return player(row["agent"], row["K"], row["B"], row["T"]).well_specified_bound(row["T"])


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
    floor = [base[s].get(rule, math.nan) for s, rule in zip(table["stream_id"], table["param.decoding"], strict=True)]
    bounds = {tuple(row[CELL]): bound_of(row) for _, row in table.drop_duplicates(CELL).iterrows()}
    return table.assign(
        bound=[bounds[tuple(cell)] for cell in table[CELL].itertuples(index=False, name=None)],
        excess=table["expected_mistakes"] - floor,
        relative=table["expected_mistakes"] - table["unit_loss"],
    )


root = results_folder()
folders = sorted(folder for folder in root.glob("decoding-*-t*") if (folder / "spec.toml").is_file())
print(f"{len(folders)} folders: {', '.join(folder.name for folder in folders)}")
runs = pd.concat([measured(folder) for folder in folders], ignore_index=True)

# %%
cells = runs.groupby(CELL, sort=True).agg(
    **{
        "unit": ("unit", "first"),
        "runs": ("relative", "size"),
        "gamma": ("gamma", "mean"),
        "mistakes": ("expected_mistakes", "mean"),
        "loss": ("unit_loss", "mean"),
        "beyond loss": ("relative", "mean"),
        "bound": ("bound", "mean"),
        "excess": ("excess", "mean"),
        "excess's error": ("excess", "sem"),
    }
)
cells = cells.reset_index()
cells["beyond / bound"] = cells["beyond loss"] / cells["bound"]
cells["promise / mistakes"] = (cells["loss"] + cells["bound"]) / cells["mistakes"]
keep(cells, "decoding-mistakes")

# %% [markdown]
# ## Paired comparison of a draw with half-log


# %%
def paired(plain, decoded):
    """Return, for each cell, by how many percent a decoded agent makes fewer mistakes than the plain one, stream by stream."""
    wide = runs.pivot_table(index=["K", "B", "T", "stream_id"], columns="agent", values="expected_mistakes")
    pair = wide[[plain, decoded]].dropna()
    table = pair.assign(fewer=100.0 * (1.0 - pair[decoded] / pair[plain]))
    found = table.groupby(level=["K", "B", "T"]).agg(
        **{plain: (plain, "mean"), decoded: (decoded, "mean")},
        fewer=("fewer", "mean"), error=("fewer", "sem"), streams=("fewer", "size"),
        ahead=("fewer", lambda x: int((x > 0).sum())),
    )  # fmt: skip
    found.columns = ["plain mistakes", "decoded mistakes", *found.columns[2:]]
    return found.reset_index().assign(plain=plain, decoded=decoded)


pairs = pd.concat(
    [
        paired("exploration", "exploration half-log"),
        paired("exploration", "exploration sparsemax"),
        paired("exploration-anytime", "exploration-anytime half-log"),
        paired("rdue", "rdue half-log"),
        paired("randomized-decoding", "randomized-decoding half-log"),
    ]
)
keep(pairs, "decoding-paired")

# %% [markdown]
# ## In single runs
#
# Theorems bound expectations, so a single run above its bound would not contradict them. Runs with the printed decoding are
# left out.

# %%
new = runs[runs["bound"].notna() & runs["agent"].str.contains(" ")]
new = new.assign(
    over=new["relative"] > new["bound"],
    share=new["relative"] / new["bound"],
    of_promise=new["expected_mistakes"] / (new["unit_loss"] + new["bound"]),
)
checks = new.groupby("agent").agg(
    **{"runs": ("over", "size"), "over bound": ("over", "sum"), "largest beyond / bound": ("share", "max"),
       "largest mistakes / promise": ("of_promise", "max")}
)  # fmt: skip
checks = checks.reset_index()

# %% [markdown]
# ## A search for runs near the bound
#
# The search uses streams of K clusters, with labels that are certain or random, and exploration rates other than the
# theorem's. It shows the largest (mistakes - f loss)/bound over the settings, and mistakes/(f loss + bound). The loss is
# that of a matrix in the ball chosen for the stream, so the first ratio is no larger than the true one.


# %%
def searched(label, cls, settings, K, noise, T=4000, B=5.0, repetitions=3):
    """Return one row: K clusters, their own labels or a coin's between the first two, and what the agent makes of them."""
    rng = np.random.default_rng(0)
    who = rng.integers(0, 2 if noise else K, T)
    X, y = np.eye(K)[np.zeros(T, int) if noise else who], who.astype(np.int64)
    U = np.zeros((K, K))
    if noise:
        U[:2] = B * np.eye(K)[0]  # half and half for the first two
        U[2:] = -B * np.eye(K)[0]
    else:
        U = 2.0 * B * np.eye(K) - B
        U *= B / np.linalg.norm(U, axis=1, keepdims=True)
    mistakes = []
    for seed in range(repetitions):
        agent = cls(Problem(K, K, 1.0, T), np.random.default_rng(seed), norm_bound=B, **settings)
        trace = Trace.empty(T)
        agent.play_block(np.ascontiguousarray(X), y, trace)
        mistakes.append(float((1.0 - trace.p_true).sum()))
    per_nat = mistakes_per_nat(agent.decoding, K) if cls in (Exploration, Sampled) else 1.0 / math.log(2.0)
    loss, bound = per_nat * float(logistic_loss(X @ U.T, y).sum()), agent.bound(T)
    measured = float(np.mean(mistakes))
    return {
        "agent": label,
        "K": K,
        "labels": "a coin" if noise else "no noise",
        "gamma": settings.get("gamma", math.nan),
        "T": T,
        "mistakes": measured,
        "loss": loss,
        "bound": bound,
        "beyond / bound": (measured - loss) / bound,
        "mistakes / promise": measured / (loss + bound),
    }


tried = [
    searched(label, cls, {"gamma": gamma, **settings} if gamma else settings, K, noise)
    for label, cls, settings, gammas in (
        ("exploration half-log", Exploration, {}, (0.05, 0.2, 0.5, 0.8)),
        ("exploration sparsemax", Exploration, {"decoding": "sparsemax"}, (0.2, 0.5)),
        ("decoded-descent half-log", DecodedDescent, {}, (0.05, 0.2, 0.5, 0.8)),
        ("decoded-descent-wide sparsemax", DecodedDescent, {"decoding": "sparsemax", "step": "wide"}, (0.2, 0.5)),
        ("sampled half-log", Sampled, {}, (0,)),
    )
    for gamma in gammas
    for K in (2, 5)
    for noise in (False, True)
]
searches = pd.DataFrame(tried)
keep(searches, "decoding-searched")
total = {"agent": "all", "runs": checks["runs"].sum(), "over bound": checks["over bound"].sum()}
total |= {name: checks[name].max() for name in checks.columns[3:]}
keep(pd.concat([checks, pd.DataFrame([total])]), "decoding-checks")

# %% [markdown]
# ## Growth
#
# The slopes are those of the logarithms of excess and bound in $\ln T$. They are fitted to the T at which the bound is
# below T, if there are at least three.


# %%
def slope(T, value):
    """Return the slope of ln value in ln T, "not above 0" where it has none, "" for fewer than three points."""
    if len(T) < 3 or value.isna().any():
        return ""
    return "not above 0" if (value <= 0).any() else f"{growth_exponent(T, value):.2f}"


def growth(K, B, agent, part):
    """Return one row of slopes."""
    row = thresholds[(thresholds["K"] == K) & (thresholds["B"] == B) & (thresholds["agent"] == agent)].iloc[0]
    part = part[part["T"] >= row["bound below T from"]].sort_values("T")
    slopes = {"excess": slope(part["T"], part["excess"]), "the bound": slope(part["T"], part["bound"])}
    return {"K": K, "B": B, "agent": agent, "how many T": len(part)} | slopes


fitted = cells[cells["agent"].isin(MADE)].groupby(["K", "B", "agent"])
keep(pd.DataFrame([growth(*key, part) for key, part in fitted]), "decoding-growth")

# %% [markdown]
# ## Figure
#
# The figure shows mistakes per round of the reduction at the settings of its theorem, with a draw and with half-log, and
# the guarantee of each theorem.

# %%
SHOWN = {"exploration": "a draw (as printed)", "exploration half-log": "half-log"}
LOOKS = styles(list(SHOWN), [])


def draw_panel(ax, part):
    """Draw mistakes per round (solid) and the promise, loss + bound per round (dotted), against T."""
    for agent, name in SHOWN.items():
        own, look = part[part["agent"] == agent].sort_values("T"), LOOKS[agent]
        ax.plot(own["T"], own["mistakes"] / own["T"], color=look.colour, marker=look.marker, ms=4.5, lw=1.5, label=name)
        promise = (own["loss"] + own["bound"]) / own["T"]
        ax.plot(own["T"], promise, color=look.colour, lw=1.2, ls=":", label=f"{name}: its theorem's promise")
    guess = part[part["agent"] == "uniform"].sort_values("T")
    ax.plot(guess["T"], guess["mistakes"] / guess["T"], color=FAINT, lw=1.0, ls=(0, (4, 3)), label="guessing")
    ax.set(xscale="log", ylim=(0.0, 2.0))


@styled
def figure():
    """Draw a panel for each K and B, a legend below."""
    drawn = new_figure(6.6)
    grid = [(K, sorted(part["B"].unique())) for K, part in cells.groupby("K")]
    axes = drawn.subplots(len(grid), max(len(balls) for _, balls in grid), sharex=True, sharey=True, squeeze=False)
    for row, (K, balls) in zip(axes, grid, strict=True):
        for ax, B in zip(row, balls, strict=True):
            draw_panel(ax, cells[(cells["K"] == K) & (cells["B"] == B)])
            ax.set(title=f"K = {K}, B = {B:g}")
        row[0].set(ylabel="mistakes per round")
    for ax in axes[-1]:
        ax.set(xlabel="T")
    shared_legend(drawn, axes.flat)
    return drawn


path = kept("images/decoding.png")
save(figure(), path)
print(f"saved {path}")

# %% [markdown]
# ## The page

# %%
result_pages.fill("decoding")
