"""What would another policy have earned? Estimates from 2,000 decisions with 95 % intervals, and true values."""

import matplotlib.pyplot as plt
import numpy as np

from banditlab.offpolicy import Log, evaluate

rng = np.random.default_rng(0)
truth, propensities = np.array([0.2, 0.5, 0.3]), np.tile([0.6, 0.3, 0.1], (2_000, 1))
actions = rng.choice(3, size=2_000, p=propensities[0])
rewards = rng.random(2_000) < truth[actions]
for action in range(3):
    always = np.tile(np.eye(3)[action], (2_000, 1))
    found = evaluate(Log(actions, rewards, propensities, target=always))
    plt.errorbar(
        action, found.value, [[found.value - found.low], [found.high - found.value]], fmt="o", color="C0", capsize=4
    )
plt.plot(range(3), truth, "kx", label="true value")
plt.errorbar([], [], [], fmt="o", color="C0", capsize=4, label="estimate with its 95 % interval")
plt.xticks(range(3), [f"always action {a}\n(chosen in {100 * propensities[0, a]:.0f} %)" for a in range(3)])
plt.ylabel("share of right actions")
plt.margins(x=0.2)
plt.legend()
plt.savefig("evaluation.svg")
