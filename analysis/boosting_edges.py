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
# # Error against the number of weak learners
#
# Theorem 2 and Lemma 9 of Y. H. Jung, J. Goetz, A. Tewari (Online multiclass boosting, NIPS 2017): with weak learners of
# edge $\gamma$, the error of OnlineMBBM falls like $\phi_N(0)$, exponentially in $\gamma^2 N$.
#
# The learners are simulated. They observe the label, and either draw from $u_\gamma^y$ ("random") or make the costliest
# mistake that the weak learning condition allows ("adversarial", $S = 1$). The notebook needs no input. It writes the
# figure to `images/` and the table to `results/` of the folder `BANDITLAB_FIGURES`, by default `docs`. `BANDITLAB_ROUNDS`
# sets the number of rounds.

# %%
import os

import numpy as np
import pandas as pd

from banditlab.analysis.look import FAINT, INK, new_figure, save, styled, styles
from banditlab.analysis.places import kept
from banditlab.boosting.mbbm import OnlineMBBM
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.olm_plus import AdaBoostOLMPlus
from banditlab.boosting.potentials import ExactPotentials
from banditlab.bounds.boosting_mbbm import mbbm_error_rate, mbbm_mistakes
from banditlab.problem import Problem

ROUNDS = int(os.environ.get("BANDITLAB_ROUNDS", "2000"))
CLASSES, EDGES = (3, 8), (0.1, 0.2, 0.3)
LEARNERS = {"random": (1, 2, 4, 8, 16, 32, 64, 100), "adversarial": (1, 4, 16, 64)}
AT_MOST = {("OnlineMBBM", 8, "adversarial"): 16}  # exact costs at 64 learners and 8 classes take ten times the rest
NAMES = ("OnlineMBBM", "AdaBoost.OLM")
LOOKS = styles([*NAMES])
EXCESS = 1.0


# %% [markdown]
# ## The runs
#
# Random learners use neither costs nor weights, so potentials matter for adversarial learners only. For these, potentials
# are exact.


# %%
def booster(name, k, edge, behaviour, n):
    """Return a booster of n simulated learners of that edge, which it is told; its seed comes from what it is."""
    seed = np.random.SeedSequence([NAMES.index(name), k, round(1000 * edge), len(behaviour), n])
    weak = {"weak_learner": "simulated", "behaviour": behaviour, "excess": EXCESS, "n_learners": n}
    problem, rng = Problem(1, k, 1.0), np.random.default_rng(seed)
    if name == "AdaBoost.OLM":
        return AdaBoostOLM(problem, rng, edge=edge, **weak)
    blind = {"potentials": "monte-carlo", "draws": 1} if behaviour == "random" else {}
    return OnlineMBBM(problem, rng, edge=edge, **{"weak_learner.edge": edge}, **weak, **blind)


def played(name, k, edge, behaviour, n):
    """Return one row: mistakes in all and on the last half, OnlineMBBM's 0-1 loss (a tie counts) and its bound."""
    player = booster(name, k, edge, behaviour, n)
    labels = np.random.default_rng([k, n]).integers(0, k, ROUNDS).tolist()
    wrong, lost, x = np.zeros(ROUNDS), 0, np.ones(1)
    for t, label in enumerate(labels):
        player.peek(label)
        decision = player.act(x)
        wrong[t] = decision.action != label
        if name == "OnlineMBBM":
            votes = np.bincount(decision.payload[:n].astype(int), minlength=k)
            lost += votes[label] < votes.max() or (votes == votes.max()).sum() > 1
        player.learn(x, decision, label)
    row = {"booster": name, "classes": k, "edge": edge, "learners are": behaviour, "N": n, "rounds": ROUNDS}
    row |= {"mistakes": int(wrong.sum()), "error, last half": wrong[ROUNDS // 2 :].mean()}
    if name == "OnlineMBBM":
        row |= {"0-1 loss, ties lost": lost, "phi_N(0)": player.error_rate}
        if behaviour == "adversarial":  # random learners meet the condition for smaller edges only
            total = player.weight_bounds.sum()
            row["bound, S = 1"] = mbbm_mistakes(k, n, edge, ROUNDS, EXCESS, player.error_rate, total)
    return row


table = pd.DataFrame(
    played(name, k, edge, behaviour, n)
    for name in NAMES
    for k in CLASSES
    for edge in EDGES
    for behaviour, numbers in LEARNERS.items()
    for n in numbers
    if n <= AT_MOST.get((name, k, behaviour), 100)
)
table.round(5).to_csv(kept("results/boosting-edges.csv"), index=False)

# %% [markdown]
# ## Measured against the theorem

# %%
told = table.dropna(subset="bound, S = 1")
above = (told["0-1 loss, ties lost"] > told["bound, S = 1"]).sum()
print(f"adversarial learners: {above} of {len(told)} runs of OnlineMBBM above Theorem 2's bound")
print(
    f"loss over T phi_N(0): {(told['0-1 loss, ties lost'] / (told['phi_N(0)'] * ROUNDS)).describe().round(3).to_dict()}"
)
drawn = table[(table["booster"] == "OnlineMBBM") & (table["learners are"] == "random")]
p = drawn["phi_N(0)"]
z = (drawn["0-1 loss, ties lost"] - p * ROUNDS) / np.sqrt(np.maximum(p * (1 - p) * ROUNDS, 1.0))
print(f"random learners: loss less T phi_N(0), in standard errors, from {z.min():.2f} to {z.max():.2f} ({len(z)} runs)")
last = table[(table["N"] == 100) | ((table["N"] == 64) & (table["learners are"] == "adversarial"))]
print(last.pivot_table("error, last half", ["classes", "edge", "learners are", "N"], "booster").round(4).to_string())


# %% [markdown]
# ## The bounds of the adaptive boosters
#
# Theorem 5 (with the constants of its proof) and (C.5) of N. Agarwal, S. Kale, J. Zimmert (ALT 2022) bound the mistakes of
# the best expert by the edges that were measured, on every stream. The bounds are below the number of rounds only with 100
# strong learners and more rounds. This section therefore uses random learners and five times as many rounds. In the mean
# over its draws, the booster makes at most $e/(e-1)$ times (that bound + $\ln N$) mistakes.


# %%
def bounded(cls, k, edge, n=100):
    """Return one row: the mistakes of the best expert and of the booster beside what is proved of them."""
    rounds, x, wrong = 5 * ROUNDS, np.ones(1), 0
    seed = np.random.SeedSequence([k, round(1000 * edge), len(cls.id)])
    weak = {"weak_learner": "simulated", "behaviour": "random", "edge": edge, "n_learners": n}
    player = cls(Problem(1, k, 1.0, rounds), np.random.default_rng(seed), **weak)
    for label in np.random.default_rng([k, n, 1]).integers(0, k, rounds).tolist():
        player.peek(label)
        decision = player.act(x)
        wrong += decision.action != label
        player.learn(x, decision, label)
    found = player.diagnostics()
    most, best = found["best_expert_bound"], found["best_expert_mistakes"]
    edges = np.array([found[f"edge.{i}"] for i in range(1, n + 1)])
    row = {"booster": cls.id, "classes": k, "edge": edge, "N": n, "rounds": rounds, "sum of squares": (edges**2).sum()}
    row |= {"best expert": best, "its bound": most, "mistakes": int(wrong)}
    return row | {"bound on their mean": np.e / (np.e - 1) * (most + np.log(n))}


adaptive = pd.DataFrame(
    bounded(cls, k, edge) for cls in (AdaBoostOLM, AdaBoostOLMPlus) for k in (2, 3) for edge in (0.6, 0.9)
)
adaptive.round(4).to_csv(kept("results/boosting-bounds.csv"), index=False)
over = (adaptive["best expert"] > adaptive["its bound"]) | (adaptive["mistakes"] > adaptive["bound on their mean"])
print(f"adaptive boosters: {over.sum()} of {len(over)} runs above a bound")
print(adaptive.round(1).to_string(index=False))


# %% [markdown]
# ## The figure


# %%
@styled
def figure():
    """Draw error against N, one panel per number of classes and edge, with phi_N(0) and Lemma 9's bound on it."""
    picture, floor = new_figure(6.4), 0.5 / ROUNDS
    axes = picture.subplots(len(CLASSES), len(EDGES), sharex=True, sharey=True)
    numbers = np.arange(1, 101)
    for line, k in zip(axes, CLASSES, strict=True):
        for ax, edge in zip(line, EDGES, strict=True):
            phi, none = ExactPotentials(100, k, edge), np.zeros(k, dtype=np.int64)
            ax.plot(numbers, [phi(n, none, 0) for n in numbers], color=INK, lw=1.2, label="$\\phi_N(0)$ (a tie counts)")
            lemma = [min(1.0, mbbm_error_rate(k, n, edge)) for n in numbers]
            ax.plot(numbers, lemma, color=FAINT, lw=1.2, ls=(0, (4, 3)), label="Lemma 9, at most 1")
            here = table[(table["classes"] == k) & (table["edge"] == edge)]
            for name, aside in zip(NAMES, (0.97, 1.03), strict=True):
                for behaviour, fill in (("random", LOOKS[name].colour), ("adversarial", "white")):
                    rows = here[(here["booster"] == name) & (here["learners are"] == behaviour)]
                    shown = np.maximum(rows["error, last half"], floor)
                    look = {"color": LOOKS[name].colour, "marker": LOOKS[name].marker, "mfc": fill, "ms": 6}
                    ax.plot(aside * rows["N"], shown, ls="none", label=f"{name}, {behaviour}", clip_on=False, **look)
            ax.set(xscale="log", yscale="log", ylim=(floor, 1.3), title=f"k = {k}, $\\gamma$ = {edge}")
            ax.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
            ax.minorticks_off()
    for ax in axes[-1]:
        ax.set(xlabel="weak learners N")
    for ax in axes[:, 0]:
        ax.set(ylabel="error on the last half")
    picture.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return picture


path = kept("images/boosting-edges.png")
save(figure(), path)
print(f"saved {path}")
