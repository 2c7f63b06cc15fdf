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
# # What does one bit cost?
#
# The study compares agents with a model per class that observe one bit with their twins, which observe the bits of all K
# actions.
#
# The notebook reads the results of `runs/one-bit/*.toml` in the folder `BANDITLAB_RESULTS`, by default `runs/results`, as
# far as they exist. It writes the figure to `images/` and tables to `results/` of the folder `BANDITLAB_FIGURES`, by
# default `docs`.

# %%
import re

import numpy as np
import pandas as pd
import result_pages
from result_pages import one_bit as page

from banditlab.analysis.look import name_ticks, new_figure, save, shared_legend, styled
from banditlab.analysis.places import keep, kept, stored

STUDIES = {
    "one-bit-tables-small": page.TABLES,
    "one-bit-tables-middle": page.TABLES,
    "one-bit-tables-large": page.TABLES,
    "one-bit-tables-text": page.TABLES,
    "one-bit-merged": page.MERGED,
    "one-bit-planted": page.PLANTED,
    "one-bit-memory": page.MEMORY,
}
NAMES = {"Digits-v0": "digits", "data_id=36": "segment", "data_id=21": "car", "data_id=26": "nursery"}
ROUNDS = [100, 1_000, 4_000, 20_000]


def classes(results, environment):
    """Return K of an environment."""
    written = re.search(r"(?:n_classes|groups)=(\d+)", environment)
    return int(written[1]) if written else int(results.data[environment]["classes"])


def stream_of(environment):
    """Return a short name: the file's, or the settings."""
    file = re.search(r"path=([\w-]+)\.", environment)
    known = next((name for text, name in NAMES.items() if text in environment), None)
    return file[1] if file and "Merged" not in environment else known or environment.partition("/")[2]


def column_of(runs):
    """Return which of the four columns each run belongs to."""
    twin = runs["label"] == "lab-all-bits"
    written = {name: pd.to_numeric(runs[f"setting.{name}"], errors="coerce") for name in ("sharpness", "confidence")}
    sharpest = written["sharpness"].eq(1e12) | written["confidence"].eq(0.0)
    greedy = np.where(twin, runs["setting.greedy"].astype(str).eq("True"), sharpest)
    return np.where(twin, "all", "one") + np.where(greedy, " greedy", "").astype(object)


def cells_of(name, study):
    """Return the mean share of mistakes per stream, round and agent, a column for each way to play."""
    results = stored(name)
    if results is None:
        return pd.DataFrame()
    runs = results.runs[results.runs["round"].isin(ROUNDS)]
    noise = runs["environment"].str.extract(r"noise=([\d.]+)")[0].astype(float)
    table = pd.DataFrame(
        {
            "study": study,
            "stream": runs["environment"].map(stream_of),
            "K": runs["environment"].map({each: classes(results, each) for each in results.environments}),
            "noise": noise.fillna(0.0),
            "round": runs["round"],
            "agent": runs["setting.agent"].where(runs["label"] == "lab-all-bits", runs["label"]),
            "column": column_of(runs),
            "mistakes": 100.0 * runs["mistakes"] / runs["round"],
        }
    )
    keys = [*page.CELL, "agent"]
    wide = table.pivot_table(index=keys, columns="column", values="mistakes", aggfunc="mean", sort=False)
    return wide[page.COLUMNS].dropna().reset_index()


# %%
cells = pd.concat([cells_of(name, study) for name, study in STUDIES.items()], ignore_index=True)
keep(cells, "one-bit")

# %%
theory = stored("one-bit-theory")
if theory is not None:
    last = theory.runs[theory.runs["round"] == theory.last_round]
    K = last["environment"].map({each: classes(theory, each) for each in theory.environments})
    means = last.assign(K=K).groupby(["K", "label"], sort=False)["mistakes"].mean().reset_index()
    keep(means.rename(columns={"label": "player"}), "one-bit-theory")

# %% [markdown]
# ## The figure

# %%
LOOKS = {
    page.TABLES: ("tables", "#0173b2", "o", "none"),
    page.MERGED: ("letter, classes merged", "#de8f05", "s", "none"),
    page.MEMORY: ("nothing in common", "#d55e00", "D", "-"),
}


@styled
def figure():
    """Draw the price against K at the last round, and against rounds."""
    prices = page.with_prices(cells)
    drawn = new_figure(4.6)
    left, right = drawn.subplots(1, 2, squeeze=False)[0]
    for study, (name, colour, marker, dash) in LOOKS.items():
        rows = page.at_end(prices, study).sort_values("K")
        left.plot(rows["K"], np.exp(rows["price"]), ls=dash, marker=marker, ms=5, color=colour, label=name)
    planted = page.at_end(prices, page.PLANTED)
    for noise, dash in ((0.0, "-"), (0.3, ":")):
        rows = planted[planted["noise"] == noise].sort_values("K")
        left.plot(rows["K"], np.exp(rows["price"]), dash, color="#029e73", label=f"planted, noise {noise:g}")
    K = np.array([2.0, 77.0])
    left.plot(K, K / 2, color="#7c838c", lw=1.0, label="K/2, the floors' ratio")
    left.set(xscale="log", yscale="log", xlabel="K", ylabel="mistakes, one bit over K bits", title="Price of one bit")
    name_ticks(left, [2, 4, 8, 16, 32, 64], axis="x")
    name_ticks(left, [1, 2, 4, 8, 16, 32], axis="y")
    tables = prices[prices["study"] == page.TABLES]
    for _, rows in tables.groupby("stream"):
        right.plot(rows["round"], np.exp(rows["price"]), color="#0173b2", lw=1.0, alpha=0.6, marker="o", ms=3)
    right.set(xscale="log", xlabel="rounds", title="On tables, by rounds")
    name_ticks(right, [100, 1_000, 4_000, 20_000], axis="x")
    shared_legend(drawn, [left])
    return drawn


path = kept("images/one-bit.png")
save(figure(), path)
print(f"saved {path}")
result_pages.fill("one-bit")
