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
# # What would another policy have earned?
#
# A log has actions, the probabilities with which they were drawn (propensities), and rewards of 0 or 1. From these,
# `banditlab.offpolicy.evaluate` estimates what another policy would have earned, with a 95 % interval.

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from banditlab.offpolicy import Log, evaluate
from banditlab.policy import evaluate_log

rng = np.random.default_rng(0)
rates = np.array([0.2, 0.5, 0.3])
propensities = np.tile([0.6, 0.2, 0.2], (2000, 1))
actions = rng.choice(3, size=2000, p=propensities[0])
rewards = rng.random(2000) < rates[actions]
print(f"the logging policy earned {rewards.mean():.2f} per decision")

# %% [markdown]
# The true value of a policy that always chooses action a is the action's rate: 0.2, 0.5 and 0.3. The interval is wider for
# actions that are rarer in the log.

# %%
for action in range(3):
    target = np.zeros_like(propensities)
    target[:, action] = 1.0
    found = evaluate(Log(actions, rewards, propensities, target=target))
    print(
        f"always {action}: {found.value:.2f}, 95 % interval {found.low:.2f} to {found.high:.2f}, "
        f"effective sample size {found.effective_sample_size:.0f}"
    )

# %% [markdown]
# `evaluate_log` does the same for a CSV or Parquet file, or for the log of a banditlab policy.

# %%
file = Path(tempfile.mkdtemp()) / "log.csv"
log = {"action": actions, "reward": rewards.astype(int), "propensity": propensities[0, actions], "planned": 1}
pd.DataFrame(log).to_csv(file, index=False)
found = evaluate_log(file, "column:planned").evaluation
print(f"always 1: {found.value:.2f}, 95 % interval {found.low:.2f} to {found.high:.2f}")
