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
# # Reading a results folder
#
# This notebook is a Python script (jupytext's percent format). It reads the folder named by the environment variable
# `BANDITLAB_RESULTS`, by default `runs/results/quickstart`, which `banditlab run runs/quickstart.toml` writes.

# %%
import os
from pathlib import Path

import pandas as pd

from banditlab.analysis import load, look, plots
from banditlab.analysis.curves import mistake_curves
from banditlab.analysis.summary import arenas, differences, standings

folder = Path(os.environ.get("BANDITLAB_RESULTS", "runs/results/quickstart"))
if not folder.is_dir() and (Path("..") / folder).is_dir():
    folder = Path("..") / folder  # a notebook server starts in the notebook's folder
results = load(folder)
print(f"{results.planned - results.missing} of {results.planned} runs, {results.last_round} rounds each")

# %% [markdown]
# ## Who made the fewest mistakes
#
# Each agent has its best setting. With enough repetitions, a setting is chosen on one half of them and evaluated on the
# other. Agents, which observe one bit, and forecasters, which observe the label, are ranked separately.


# %%
def ranked(arena):
    """Return an arena's ranked table, mistakes in per cent with their 95 % interval."""
    return pd.DataFrame(
        {
            "rank": row.rank,
            arena.noun: row.name,
            "mistakes %": round(100 * row.mistakes.mean, 2),
            "low": round(100 * row.mistakes.low, 2),
            "high": round(100 * row.mistakes.high, 2),
            "to the best model, nats": round(row.relative.mean, 1) if row.relative else float("nan"),
        }
        for row in standings(arena)
    )


for arena in arenas(results):
    print(f"\n{arena.environment}, feedback: {arena.kind}")
    print(ranked(arena).to_string(index=False))

# %% [markdown]
# ## Mistakes against rounds
#
# The figure shows expected mistakes so far as a share of the rounds, in the first environment.


# %%
class Picture:
    """A figure saved as SVG, which a notebook shows."""

    def __init__(self, figure, path):
        path.parent.mkdir(exist_ok=True)
        look.save(figure, path)
        self.path = path

    def __repr__(self):
        return f"saved {self.path}"

    def _repr_svg_(self):
        return self.path.read_text(encoding="utf-8")


first = arenas(results)[0]
picture = Picture(
    plots.mistakes_against_rounds(mistake_curves(first), look.styles(results.labels())),
    results.out / "figures" / "notebook-mistakes.svg",
)
print(picture)

# %%
picture  # noqa: B018 - a cell shows its last expression

# %% [markdown]
# ## The first against the others
#
# All agents run on the same streams, so differences are computed stream by stream. Two agents differ significantly if the
# interval of their difference does not contain 0.

# %%
leader = standings(first)[0]
pairs = pd.DataFrame(
    {
        first.noun: other,
        "behind, pp": round(-100 * gap.mean, 2),
        "low": round(-100 * gap.high, 2),
        "high": round(-100 * gap.low, 2),
        "differs": not gap.contains(0.0),
    }
    for one, other, gap in differences(first)
    if one == leader.name
)
print(f"against {leader.name} in {first.environment}, {leader.mistakes.n} streams")
print(pairs.to_string(index=False))
