"""What does late feedback cost? Mistake rate on the digits against the delay of the feedback, mean of five runs."""

import matplotlib.pyplot as plt
import numpy as np

from banditlab import make_agent, make_env, play

env = make_env("banditlab/Digits-v0", rounds=5_000)
delays = [0, 10, 30, 100, 300, 1_000]
for name in ("linucb", "fastcb", "stackcb"):
    shares = []
    for delay in delays:
        agents = [make_agent(name, env.problem, seed=s) for s in range(5)]
        runs = [play(env, agent, seed=s, feedback={"delay": delay}) for s, agent in enumerate(agents)]
        shares.append(np.mean([run.expected_mistakes[-1] / 50 for run in runs]))
    plt.plot(delays, shares, "o-", label=name)
plt.xscale("symlog", linthresh=10)
plt.xlabel("delay of the feedback, rounds")
plt.ylabel("mistake rate, %")
plt.legend()
plt.savefig("delay.svg")
