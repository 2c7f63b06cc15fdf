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
# # The figures of AIOLI's paper
#
# R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
#
# For Figure 1 the notebook trains learners. For Figure 2 it reads the results of the five specs
# `runs/papers-001-figure-2-n*.toml` in the folder `BANDITLAB_RESULTS`, by default `runs/results`. It writes figures to
# `images/` and tables to `results/` of the folder `BANDITLAB_FIGURES`, by default `docs`.

# %%
import math

import numpy as np
import pandas as pd
import result_pages
from parts.hard_data import regrets_of, worse

from banditlab.analysis.look import FAINT, INK, new_figure, save, styled, styles
from banditlab.analysis.places import kept
from banditlab.analysis.statistics import growth_exponent
from banditlab.comparators import best_in_ball, collapse
from banditlab.envs import LowerBound
from banditlab.forecasters import aggregating, aioli, ftrl
from banditlab.problem import Problem

HORIZONS = [100, 1_000, 10_000, 31_623, 100_000]
NAMES = {"ftrl": "FTRL", "aioli": "AIOLI", "aggregating": "aggregating forecaster", "b-grid": "AIOLI, B from a grid"}
LOOKS = styles(list(NAMES))


# %% [markdown]
# ## Figure 1: the prediction functions
#
# There is one feature x in [-1, 1], labels are drawn with $P(+1 \mid x) = 1/(1 + \exp(-6 x))$, and the ball is $|\theta|
# \le 10$. The figure shows each learner's forecast at x after 10 and after 100 rounds. A proper learner forecasts $\theta
# x$, a straight line in log-odds. The two improper learners hedge more the larger $|x|$ is. The paper does not describe the
# data of its figure.

# %%
BALL, SLOPE, GRID = 10.0, 6.0, np.linspace(-1.0, 1.0, 401)


def learners():
    """Return the three learners of the ball |theta| <= BALL: its rows have norms up to half of it."""
    problem = Problem(1, 2, 1.0, 100)
    return {
        "ftrl": ftrl.FTRL(problem, None, norm_bound=BALL / 2, regularization=2.0),  # lambda = 1 on theta
        "aioli": aioli.AIOLI(problem, None, norm_bound=BALL / 2),
        "aggregating": aggregating.Aggregating(problem, None, norm_bound=BALL / 2, sampler="quadrature"),
    }


def log_odds(seed, checkpoints):
    """Return {rounds: {id: log-odds of +1 on GRID}} and the rounds played, (x, positive)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, max(checkpoints))
    positive = rng.random(len(x)) < 1.0 / (1.0 + np.exp(-SLOPE * x))
    players, found = learners(), {}
    for t in range(len(x)):
        for player in players.values():
            player.update(x[t : t + 1], 0 if positive[t] else 1)
        if t + 1 in checkpoints:
            answers = {name: player.predict_many(GRID[:, None]) for name, player in players.items()}
            found[t + 1] = {name: logits[:, 0] - logits[:, 1] for name, logits in answers.items()}
    return found, (x, positive)


functions, (played, positive) = log_odds(7, [10, 100])


# %%
@styled
def figure_1():
    """Draw probability and log-odds of +1 against x, after 10 and 100 rounds."""
    figure = new_figure(6.4)
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (rounds, curves) in enumerate(functions.items()):
        for name, z in curves.items():
            look, label = LOOKS[name], NAMES[name] if column == 0 else None
            axes[0, column].plot(GRID, 1.0 / (1.0 + np.exp(-z)), color=look.colour, lw=1.8, label=label)
            axes[1, column].plot(GRID, z, color=look.colour, lw=1.8)
        truth = {"color": FAINT, "lw": 1.0, "ls": (0, (4, 3))}
        label = "what the labels were drawn from" if column == 0 else None
        axes[0, column].plot(GRID, 1.0 / (1.0 + np.exp(-SLOPE * GRID)), label=label, **truth)
        axes[1, column].plot(GRID, SLOPE * GRID, **truth)
        x, up = played[:rounds], positive[:rounds]
        axes[0, column].plot(x, np.where(up, 1.04, -0.04), "|", color=INK, ms=7, alpha=0.6)
        axes[0, column].set_title(f"after {rounds} rounds")
        axes[1, column].set(xlabel="x")
    axes[0, 0].set(ylabel="predicted probability of +1")
    axes[1, 0].set(ylabel="its log-odds")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


picture = kept("images/papers-001-figure-1.png")
save(figure_1(), picture)
print(f"saved {picture}")

# %% [markdown]
# The table shows the log-odds divided by x, which is the $\theta$ of a proper learner with the same forecast.

# %%
SHOWN = [0.1, 0.5, 1.0]
slopes = pd.DataFrame(
    {
        "rounds": rounds,
        "forecaster": name,
        **{f"log-odds / x at {at:g}": round(float(np.interp(at, GRID, z)) / at, 2) for at in SHOWN},
    }
    for rounds, curves in functions.items()
    for name, z in curves.items()
)
slopes.to_csv(kept("results/papers-001-figure-1.csv"), index=False)
print(slopes.to_string(index=False))

# %% [markdown]
# ## Figure 2: regret on the data that are hard for proper learners
#
# Each n has separate runs, because data and ball ($|\theta| \le B = \ln n$) depend on n. There are ten streams with $\chi =
# -1$ and ten with $\chi = +1$. The table shows the larger of the two mean regrets at round n, against the best $\theta$ in
# the ball in hindsight.


# %%
def both_signs(runs):
    """Return, per n and forecaster, the worse sign's mean regret and its standard error, and what both signs say."""
    keys = ["n", "forecaster"]
    beyond = runs["regret"] - runs["certificate"]
    whole = runs.assign(beyond=beyond).groupby(keys, sort=False)
    both = {
        "runs": whole.size(),
        "largest regret less certificate": whole["beyond"].max(),
        "bound": whole["bound"].mean(),
    }
    means = runs.groupby([*keys, "chi"])["regret"].mean().groupby(level=keys).min().rename("other sign")
    signs = worse(runs, keys).set_index(keys)[["regret", "standard error", "chi"]]
    return signs.join(means).join(pd.DataFrame(both)).reindex(both["runs"].index).reset_index()


runs = regrets_of([f"papers-001-figure-2-n{n}" for n in HORIZONS])
runs = runs[runs["round"] == runs["horizon"]].rename(columns={"horizon": "n"})
table = both_signs(runs)
table.round(3).to_csv(kept("results/papers-001-figure-2.csv"), index=False)
print(table.round(2).to_string(index=False))


# %%
@styled
def figure_2():
    """Draw the worse mean regret against n, its streams as dots, on a scale that is linear between -1 and 1."""
    figure = new_figure(5.0)
    ax = figure.subplots()
    for i, (name, label) in enumerate(NAMES.items()):
        rows, look = table[table["forecaster"] == name], LOOKS[name]
        shift = 1.05 ** (i - 1.5)  # side by side
        line = {"color": look.colour, "marker": look.marker, "ms": 6, "lw": 1.8, "label": label}
        ax.errorbar(rows["n"] * shift, rows["regret"], yerr=rows["standard error"], **line)
        dots = runs.merge(rows[["n", "forecaster", "chi"]], on=["n", "forecaster", "chi"])
        ax.plot(dots["n"] * shift, dots["regret"], ".", color=look.colour, ms=4, alpha=0.35)
    n = np.array(sorted(table["n"].unique()), dtype=float)
    ax.plot(n, n ** (1 / 3), color=FAINT, lw=1.0, ls=(0, (4, 3)), label="$n^{1/3}$")
    ax.axhline(0, color=INK, lw=1.0)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    ax.set(xlabel="n", ylabel="regret, nats: mean of the worse sign, and its streams")
    figure.legend(loc="outside right upper")
    return figure


picture = kept("images/papers-001-figure-2.png")
save(figure_2(), picture)
print(f"saved {picture}")


# %% [markdown]
# Growth is measured by the slope of $\ln(\text{regret})$ in $\ln n$ where the regret is positive and rising, and by the
# regret divided by $\ln n$.


# %%
for name in NAMES:
    rows = table[table["forecaster"] == name]
    rising = rows[rows["n"] <= 31_623]
    exponent = growth_exponent(rising["n"], rising["regret"], least=2)
    per_log = ", ".join(f"{r / math.log(n):.2f}" for n, r in zip(rows["n"], rows["regret"], strict=True))
    print(f"{NAMES[name]}: slope to n = 31,623: {exponent:.2f}; regret / ln n: {per_log}")


# %% [markdown]
# ## The algorithm as printed
#
# Algorithm 1's update of b lacks the factor 1/2 of Equation (5). Does this explain why the paper could show AIOLI's regret
# on a log-log plot? This section compares Equation (5), as implemented in banditlab, with the printed line, on ten other
# streams of each sign for n up to 10,000.


# %%
def printed_loss(x, signs, B):
    """Return the loss of Algorithm 1 as printed, d = 1, on contexts x and labels +1 or -1."""
    A, b, total = 1.0 / B**2, 0.0, 0.0
    for xt, y in zip(x.tolist(), signs.tolist(), strict=True):
        m, q = xt * b / A, xt * xt / A
        low, high = min(m, 0.0), max(m, 0.0)  # z = m - (q/2) tanh(z/2) lies between
        for _ in range(60):
            z = 0.5 * (low + high)
            low, high = (low, z) if z - m + 0.5 * q * math.tanh(0.5 * z) > 0.0 else (z, high)
        total += max(0.0, -y * z) + math.log1p(math.exp(-abs(z)))
        g, eta = -y * xt / (1.0 + math.exp(y * z)), math.exp(y * z) / (1.0 + B)
        A += 0.5 * eta * g * g
        b += (eta * g * z / xt - 1.0) * g  # (5) has half of this
    return total


def two_regrets(n, chi, seed):
    """Return the regret of AIOLI, and of Algorithm 1 as printed, on one stream."""
    env = LowerBound(n=n, chi=chi, horizon=n)
    env.reset(seed=seed)
    X, y = (np.concatenate(parts) for parts in zip(*env.blocks(n, n), strict=True))
    B, logits = math.log(n), np.empty((n, 2))
    aioli.AIOLI(env.problem, None, norm_bound=B / 2).forecast_block(X, y, logits)
    least = best_in_ball(*collapse(X, y, 2), B / 2).loss
    signs = 1 - 2 * y
    return np.logaddexp(0.0, -signs * (logits[:, 0] - logits[:, 1])).sum() - least, printed_loss(
        X[:, 0], signs, B
    ) - least


rows = []
for n in sorted(n for n in table["n"].unique() if n <= 10_000):
    both = {chi: np.mean([two_regrets(n, chi, seed) for seed in range(10)], axis=0) for chi in (-1, 1)}
    names = ("Equation (5)", "Algorithm 1 as printed")
    rows.append({"n": n} | {name: max(both[-1][i], both[1][i]) for i, name in enumerate(names)})
printed = pd.DataFrame(rows)
printed.round(2).to_csv(kept("results/papers-001-as-printed.csv"), index=False)
print(printed.round(2).to_string(index=False))

# %% [markdown]
# ## The page

# %%
result_pages.fill("papers-001")
