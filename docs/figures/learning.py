"""Which agent learns fastest? Mistake rate so far on scikit-learn's digits, mean and range of five runs."""

import matplotlib.pyplot as plt
import numpy as np

from banditlab import best_in_ball, make_agent, make_env, play

env = make_env("banditlab/Digits-v0", rounds=5_000)
rounds = np.unique(np.geomspace(50, 5_000, 30).astype(int))
for name in ("uniform", "epsilon-greedy-direct", "linucb", "fastcb", "stackcb"):
    runs = [play(env, make_agent(name, env.problem, seed=s), seed=s, checkpoints=rounds) for s in range(5)]
    shares = 100 * np.array([run.expected_mistakes for run in runs]) / rounds
    plt.fill_between(rounds, shares.min(axis=0), shares.max(axis=0), alpha=0.2)
    plt.plot(rounds, shares.mean(axis=0), label=f"{name}: {shares.mean(axis=0)[-1]:.1f} %")
[(X, y)] = env.blocks(5_000, 5_000)
best = best_in_ball(X, np.eye(10)[y], norm_bound=10)
plt.axhline(100 * best.mistakes / best.rounds, color="black", ls="--", label="best logistic model in hindsight")
plt.xscale("log")
plt.xlabel("rounds")
plt.ylabel("mistake rate so far, %")
plt.figlegend(loc="outside upper center", ncols=3)
plt.savefig("learning.svg")
