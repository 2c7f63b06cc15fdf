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
# You have a table with the right action in each row. In this example, the action is an offer to a customer, and the right
# action is the offer that the customer takes.

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
# `compare` runs several agents over the rows, in a new random order in each repetition. An agent observes only whether its
# action was right.

# %%
names = ["fastcb", "linucb", "uniform"]
results = compare(table, "offer", agents=names, repetitions=4, jobs=1, out=folder / "comparison")
for row in standings(arenas(results)[0]):
    share = row.mistakes.scaled(100)
    print(f"{row.rank:>3}  {row.name:10} {share.mean:5.1f} %  ({share.low:.1f} to {share.high:.1f})")

# %% [markdown]
# `train` runs the agent once over the rows and writes a policy. With a log, `decide` returns only after the decision is on
# disk, and feedback may come at any time.

# %%
train(table, "offer", agent="fastcb", out=folder / "offers.policy")
with Policy.open(folder / "offers.policy", log=folder / "events.db") as policy:
    choice = policy.decide({"plan": "pro", "age": 31})
    print(f"{choice.action} with probability {choice.probability:.2f}")
    policy.feedback(choice.id, choice.action == "nothing")

# %% [markdown]
# `status_of_log` counts decisions and feedback, and estimates the mistake rate with an anytime-valid interval. `banditlab
# serve` serves the same policy over HTTP.

# %%
status = status_of_log(folder / "events.db")
print(f"{status.decisions} decision, {status.feedback} answer")
