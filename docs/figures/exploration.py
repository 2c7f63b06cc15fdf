"""How much should an agent explore? Mistake rate against the exploration rate, mean of ten runs."""

import matplotlib.pyplot as plt
import numpy as np

from banditlab import make_agent, make_env, play

env = make_env("banditlab/Logistic-v0", rounds=3_000, n_features=10, n_classes=5)
gammas = np.geomspace(0.001, 0.5, 10)
for name in ("epsilon-greedy-direct", "banditron"):
    runs = [[play(env, make_agent(name, env.problem, seed=s, gamma=g), seed=s) for s in range(10)] for g in gammas]
    shares = [np.mean([run.expected_mistakes[-1] / 30 for run in of_gamma]) for of_gamma in runs]
    plt.plot(gammas, shares, "o-", label=name)
plt.xscale("log")
plt.xlabel("exploration rate γ")
plt.ylabel("mistake rate, %")
plt.legend()
plt.savefig("exploration.svg")
