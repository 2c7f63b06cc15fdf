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
# # From a table to a policy
#
# You have rows, each labelled with the action that would have been right. Here is a table to try with: which offer does a
# customer take?

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from banditlab import Policy, compare
from banditlab.analysis.summary import arenas, standings
from banditlab.policy import status_of_log, train

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
takes = {"free": "upgrade", "pro": "nothing", "team": "call"}
plans = rng.choice(list(takes), size=400)
table = pd.DataFrame(
    {
        "plan": plans,
        "age": rng.integers(18, 80, size=400),
        "offer": [takes[plan] if rng.random() < 0.8 else rng.choice(list(takes.values())) for plan in plans],
    }
)
print(table.head(3).to_string(index=False))

# %% [markdown]
# `compare` plays several agents over the rows, in a fresh order each repetition. Each observes only whether its action was
# right.

# %%
names = ["fastcb", "linucb", "uniform"]
results = compare(table, "offer", agents=names, repetitions=4, jobs=1, out=folder / "comparison")
for row in standings(arenas(results)[0]):
    share = row.mistakes.scaled(100)
    print(f"{row.rank:>3}  {row.name:10} {share.mean:5.1f} %  ({share.low:.1f} to {share.high:.1f})")

# %% [markdown]
# `train` plays the rows once and returns a policy. With a log, every decision is on disk before it returns, and answers
# may come at any time.

# %%
train(table, "offer", agent="fastcb", out=folder / "offers.policy")
with Policy.open(folder / "offers.policy", log=folder / "events.db") as policy:
    choice = policy.decide({"plan": "pro", "age": 31})
    print(f"{choice.action} with probability {choice.probability:.2f}")
    policy.feedback(choice.id, choice.action == "nothing")

# %% [markdown]
# The log says how many decisions were taken and answered, and estimates the share of mistakes with an interval that holds at
# every time at once. `banditlab serve` offers the same policy over HTTP.

# %%
status = status_of_log(folder / "events.db")
print(f"{status.decisions} decision, {status.feedback} answer")
