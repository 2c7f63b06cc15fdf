"""Does the theorem hold? Measured mistakes and the theorem's guarantee, which is the comparator's loss plus a bound."""

import matplotlib.pyplot as plt
import numpy as np

from banditlab import best_in_ball, make_agent, make_env, play

horizons, measured, guarantee = [1_000, 3_000, 10_000, 30_000, 100_000], [], []
for T in horizons:
    env = make_env("banditlab/Logistic-v0", rounds=T, n_features=6, n_classes=3, norm_bound=5)
    agent = make_agent("exploration", env.problem, seed=1, forecaster="ogd", norm_bound=5, gamma="theory")
    played = play(env, agent, seed=0)
    [(X, y)] = env.blocks(T, T)
    measured.append(played.expected_mistakes[-1] / T)
    guarantee.append((best_in_ball(X, np.eye(3)[y], norm_bound=5).loss + agent.bound(T)) / T)
plt.plot(horizons, guarantee, "k--", label="guarantee of the theorem")
plt.plot(horizons, measured, "o-", label="exploration around ogd, measured")
plt.ylim(bottom=0)
plt.xscale("log")
plt.xlabel("rounds T")
plt.ylabel("expected mistakes per round")
plt.legend()
plt.savefig("theorem.svg")
