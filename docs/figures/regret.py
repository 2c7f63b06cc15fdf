"""How much does a forecaster lose by learning online? Its log loss minus that of the best model in hindsight."""

import matplotlib.pyplot as plt
import numpy as np

from banditlab import best_in_ball, make_env, make_forecaster, play

T = 10_000
rounds = [100, 300, 1_000, 3_000, T]
env = make_env("banditlab/Logistic-v0", rounds=T, n_features=6, n_classes=3, norm_bound=5)
for name in ("ogd", "folklore"):
    played = play(env, make_forecaster(name, env.problem, norm_bound=5), seed=0, checkpoints=rounds)
    [(X, y)] = env.blocks(T, T)
    best = [best_in_ball(X[:n], np.eye(3)[y[:n]], norm_bound=5).loss for n in rounds]
    plt.plot(rounds, np.array(played.log_loss) - best, "o-", label=name)
plt.axhline(0, color="black", lw=0.8)
plt.xscale("log")
plt.xlabel("rounds")
plt.ylabel("regret, nats")
plt.legend()
plt.savefig("regret.svg")
