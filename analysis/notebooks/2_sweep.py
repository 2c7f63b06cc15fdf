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
# # Run a sweep and read its results
#
# A sweep runs every agent at every setting on the same streams, with several repetitions. If a sweep is run again in the same
# folder, it computes only the missing runs.

# %%
import tempfile
from pathlib import Path

from IPython.display import Image

from banditlab import Sweep, load, make_spec, write_report
from banditlab.analysis import look, plots
from banditlab.analysis.curves import mistake_curves
from banditlab.analysis.summary import arenas, standings

folder = Path(tempfile.mkdtemp()) / "digits"
spec = make_spec(
    {
        "name": "digits",
        "rounds": 1_000,
        "repetitions": 4,
        "norm_bounds": [10],
        "environment": [{"id": "banditlab/Digits-v0"}],
        "agent": [
            {"id": "fastcb"},
            {"id": "epsilon-greedy-direct"},
            {"id": "banditron", "grid": {"gamma": [0.05, 0.2]}},
            {"id": "uniform"},
        ],
    },
    "digits",
)
result = Sweep(spec).run(folder, jobs=1)
print(f"{len(result.plan.runs)} runs, {len(result.failures)} failed")

# %% [markdown]
# ## Who made the fewest mistakes
#
# The cell prints mistake rates in %, with 95 % intervals over the repetitions. Each agent has its best setting. With enough
# repetitions, a setting is chosen on one half of them and evaluated on the other.

# %%
results = load(folder)
first = arenas(results)[0]
for row in standings(first):
    share = row.mistakes.scaled(100)
    print(f"{row.rank:>3}  {row.name:24} {share.mean:5.1f} %  ({share.low:.1f} to {share.high:.1f})")

# %% [markdown]
# ## Mistakes against rounds

# %%
figure = plots.mistakes_against_rounds(mistake_curves(first), look.styles(results.labels()))
figure.savefig(folder / "curves.png", dpi=70)
Image(folder / "curves.png")

# %% [markdown]
# `write_report` writes one self-contained page with every table and figure, `report.html`. Open it in a browser.

# %%
print(write_report(folder).name)
