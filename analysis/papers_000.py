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
# # Regret and time of FOLKLORE and its rivals
#
# N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
#
# Table 1 of the paper states orders of regret and of time per round. This notebook measures both. The regret against T, B
# and K is measured on data that are hard for proper learners. It is read from the results of `runs/papers-000-*.toml` in
# the folder `BANDITLAB_RESULTS`, by default `runs/results`. The time per round is measured in this notebook, for
# `BANDITLAB_TIMED` seconds each (default 0.06). The notebook writes figures to `images/` and tables to `results/` of the
# folder `BANDITLAB_FIGURES`, by default `docs`.

# %%
import math
import os
from time import thread_time

import numpy as np
import pandas as pd
import result_pages
from parts.hard_data import LOOKS, NAMES, checks, draw, growth, legend, regrets_of, worse

from banditlab.analysis.look import FAINT, name_ticks, new_figure, save, styled
from banditlab.analysis.places import keep, kept
from banditlab.forecasters import folklore, gaf, ogd, ons
from banditlab.problem import Problem

BALLS = [1, 3, 10, 30, 50]

# %% [markdown]
# ## The results
#
# There are five streams with $\chi = -1$ and five with $\chi = +1$. The table shows, for each round, the larger of the two
# mean regrets. The regret is against the best W in the ball in hindsight (certified comparators).


# %%
runs = regrets_of([f"papers-000-{name}" for name in ("lower-bound", *(f"b{B}" for B in BALLS), "aggregating", "mala")])
table = worse(runs)
LAST = int(table["round"].max())
final = table[table["round"] == LAST]
hard = table[table["data"] == "HardMulticlass"]
keep(final, "papers-000-regret", digits=6)

# %% [markdown]
# In every run and at every checkpoint the notebook checks whether the regret is above the certificate or above the bound.

# %%
keep(checks(runs), "papers-000-checks")


# %% [markdown]
# ## Growth
#
# The tables show least-squares slopes of $\ln(\text{regret})$: in $\ln T$ from a twentieth of the rounds on, and in $\ln B$
# and $\ln K$ at the last round. A slope is left out if a regret in the range is not positive.

# %%
in_T = growth("round", ["data", "B", "K"], table[table["round"] >= LAST / 20]).reset_index()
keep(in_T, "papers-000-growth-in-rounds")
last = hard[hard["round"] == LAST]
in_B = pd.concat(
    [growth("B", ["K"], last[last["B"] >= 10]).assign(B="10 to 50"), growth("B", ["K"], last).assign(B="1 to 50")]
).reset_index()
keep(in_B, "papers-000-growth-in-norm-bound")
in_K = growth("K", ["B"], last).reset_index()
keep(in_K, "papers-000-growth-in-classes")


# %%
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
        name_ticks(ax, values)
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
# The time is that of a forecast and an update on one core, with random contexts and labels and B = 3. It is the median of
# nine runs of equal length after a warm-up, in the thread's processor time, which excludes waiting. ONS has no projection.
# The exponents a and b of a time of $d^a K^b$ are fitted to the whole grid, and between the two largest sizes, where fixed
# costs matter least.

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


def random_rounds(problem):
    """Return 4,096 unit contexts and labels, both at random."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4096, problem.n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    return X, rng.integers(problem.n_classes, size=len(X))


def timed(player, X, y, seconds):
    """Return the median time of a round in microseconds."""
    logits = np.empty((len(X), player.problem.n_classes))

    def play(n):
        start = thread_time()
        player.forecast_block(X[:n], y[:n], logits[:n])
        return (thread_time() - start) / n

    play(4)  # compiles
    n = int(np.clip(seconds / play(16), 4, len(X)))
    play(n)
    return 1e6 * float(np.median([play(n) for _ in range(9)]))


problems = {(d, K): Problem(d, K, 1.0, 10_000) for d in DIMENSIONS for K in CLASSES}
times = pd.DataFrame(
    {"forecaster": name, "d": d, "K": K, "us": timed(make(problem), *random_rounds(problem), SECONDS)}
    for name, make in TIMED.items()
    for (d, K), problem in problems.items()
)
keep(
    times.pivot_table(index=["d", "K"], columns="forecaster", values="us")[list(TIMED)].reset_index(),
    "papers-000-time",
)


# %%
def fitted(rows):
    """Return the exponents a of d and b of K of time = d^a K^b."""
    design = np.column_stack([np.ones(len(rows)), np.log(rows["d"]), np.log(rows["K"])])
    return np.linalg.lstsq(design, np.log(rows["us"]), rcond=None)[0][1:]


def exponents(name):
    """Return the fitted exponents of a forecaster's time beside Table 1's."""
    rows = times[times["forecaster"] == name]
    a, b = fitted(rows)
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


keep(pd.DataFrame(exponents(name) for name in TIMED), "papers-000-time-exponents")

# %% [markdown]
# ## Time of the projection
#
# With the theory's step size, W of ONS stays so near 0 that the ball never matters. In this section labels are the argmax
# of a random W, B = 1, $\lambda = 1$, and the step is 10. In nearly every round ONS then leaves the ball, and the Newton
# steps of the projection, of order $(K d)^3$, dominate the time. `bound` is the share of rounds in which the projection
# moved the point, and `factorisations` is the number of its Newton steps per round.


# %%
def projected(d, K):
    """Return a row of ONS's times without and with its projection."""
    problem = Problem(d, K, 1.0, 10_000)
    X, _ = random_rounds(problem)
    y = (X @ np.random.default_rng(2).standard_normal((d, K))).argmax(axis=1)
    settings = {"norm_bound": 1.0, "step": 10.0, "regularization": 1.0}
    free = ons.ONS(problem, None, **settings, projection="none")
    bound = ons.ONS(problem, None, **settings, projection="ball")
    plain, us = timed(free, X, y, SECONDS), timed(bound, X, y, SECONDS)
    before, rounds = bound.state.ball.tally.copy(), 400
    bound.forecast_block(X[:rounds], y[:rounds], np.empty((rounds, K)))
    moved, factorisations, _ = (bound.state.ball.tally - before) / rounds
    return {"d": d, "K": K, "unprojected us": plain, "us": us, "bound": moved, "factorisations": factorisations}


projection = pd.DataFrame(projected(d, K) for d in (4, 8, 16) for K in (2, 4, 8))
keep(projection, "papers-000-time-projected")
a, b = fitted(projection)
largest = projection.set_index(["d", "K"])["us"]
print(
    f"projected: d^{a:.2f} K^{b:.2f} on the grid; d^{math.log2(largest[16, 8] / largest[8, 8]):.2f} from 8 to 16 at K = 8, "
    f"K^{math.log2(largest[16, 8] / largest[16, 4]):.2f} from 4 to 8 at d = 16"
)


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
        name_ticks(ax, DIMENSIONS)
    axes[0].set(ylabel="microseconds per round; dashed: $d^2$")
    legend(figure, axes)
    return figure


picture = kept("images/papers-000-time.png")
save(figure_time(), picture)
print(f"saved {picture}")

# %% [markdown]
# ## The page

# %%
result_pages.fill("papers-000")
