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
# # Eight real data sets
#
# The study runs every bandit agent at its default settings and at the best of eight, under three scalings of the tables:
# rows divided to norm at most 1, standardised columns, and columns as given. The settings and the scaling of each agent,
# also of other libraries, are chosen on streams that are not reported. The ranking uses the mistakes of the first pass. The
# mistakes of all 5,000 rounds, which are up to eight passes over the smaller sets, are reported separately. The notebook
# reads results in the folder `BANDITLAB_RESULTS`, by default `runs/results`. Run, in this order:
#
# 1. `real-data`, `real-data-twins` and, with the extra `peers`, `real-data-peers` and `real-data-mabwiser`: defaults;
# 2. `real-data-choice`, `-choice-twins` and `-choice-peers`: eight settings of each (twelve of `vw`) under each scaling;
# 3. this notebook: it writes `real-data-tuned/SET-SCALING.toml` into the folder `BANDITLAB_SPECS` or `runs`;
# 4. those specs, into `real-data-tuned-SET-SCALING`, and this notebook again.
#
# The notebook writes the figure to `images/` and the tables to `results/` of the folder `BANDITLAB_FIGURES`, by default
# `docs`.

# %%
import re
from itertools import combinations, product

import numpy as np
import pandas as pd
import result_pages

from banditlab.analysis import load
from banditlab.analysis.arena import deviations
from banditlab.analysis.datasets import data_name
from banditlab.analysis.look import FAINT, INK, name_ticks, new_figure, save, styled, styles
from banditlab.analysis.places import kept, place, results_folder, stored
from banditlab.analysis.statistics import difference, holm, mean_interval, p_value

OURS = "fastcb"  # the agent we recommend
PEERS = ["vw", "river-logistic", "river-linucb", "mabwiser-linucb", "mabwiser-lints"]
TWINS = {"linucb": "mabwiser-linucb, twin", "lints": "mabwiser-lints, twin"}
MATRIX = [OURS, "squarecb", "linucb", "lints", "confidit", "epsilon-greedy-direct", *PEERS]
LEVEL = 0.05
SCALINGS = ["norm", "standard", "given"]
"""Rows divided to norm at most 1 (columns to [0, 1] where their ranges differ), standardised columns, the table as given."""


root = results_folder()


def scaling_of(environment):
    """Return which of the three scalings an environment's label names."""
    if "scaling=" in environment and "standard" in environment:
        return "standard"
    return "given" if "normalize=" in environment else "norm"


def final(name):
    """Return the last row of every run in a results folder, or None where there is none.

    `share` is what is ranked, the expected mistakes at the first showings of rows over their number; `all rounds` the
    mistakes of all rounds over theirs.
    """
    results = stored(name)
    if results is None:
        return None
    runs = results.runs[results.runs["round"] == results.last_round].copy()
    runs["label"] = runs["label"].str.replace("(folklore)", "", regex=False)
    runs["all rounds"] = runs["mistakes"] / runs["round"]
    where = runs["environment"]
    return runs.assign(data=where.map(data_name), scaling=where.map(scaling_of), share=runs["ranked"])


def together(names):
    """Return the runs of several folders in one table."""
    parts = [part for part in map(final, names) if part is not None]
    return pd.concat([part.dropna(axis=1, how="all") for part in parts], ignore_index=True)


def from_twins(runs, twins):
    """Return the runs with those of the twins, under the names of the methods that they stand for."""
    if twins is None:
        return runs
    return pd.concat([runs, twins.replace({"label": TWINS}).dropna(axis=1, how="all")], ignore_index=True)


# %% [markdown]
# ## The scaling of each agent at its defaults
#
# Each agent has the scaling with the fewest mistakes on the streams used for the choice. References, and agents without a
# choice, have "norm".

# %%
everywhere = from_twins(together(["real-data", "real-data-peers", "real-data-mabwiser"]), final("real-data-twins"))
eight = None
if (root / "real-data-choice").is_dir():
    eight = from_twins(together(["real-data-choice", "real-data-choice-peers"]), final("real-data-choice-twins"))
data = list(dict.fromkeys(everywhere["data"]))
references = set(everywhere.loc[everywhere["kind"] == "reference", "label"]) | {"uniform"}


def scalings_at_default(runs):
    """Return, by data set and agent, the scaling with the fewest mistakes at the default, the first setting of each."""
    found = {}
    for (name, label), mine in runs.groupby(["data", "label"], sort=False):
        at_first = mine[mine["settings"] == mine["settings"].iloc[0]]
        means = at_first.groupby("scaling", sort=False)["share"].mean()
        found[name, label] = means.reindex([s for s in SCALINGS if s in means]).idxmin()
    return found


best_scaling = scalings_at_default(eight) if eight is not None else {}
for (name, label), scaling in list(best_scaling.items()):
    for twin in TWINS.values():  # mabwiser itself is played where its twin is
        if label == twin:
            best_scaling[name, twin.removesuffix(", twin")] = scaling
wanted = [best_scaling.get(pair, "norm") for pair in zip(everywhere["data"], everywhere["label"], strict=True)]
defaults = everywhere[everywhere["scaling"] == wanted]

# %% [markdown]
# ## At the defaults


# %%
def series(runs, name, label, of="share"):
    """Return an agent's share of mistakes on a data set, one entry per stream."""
    mine = runs[(runs["data"] == name) & (runs["label"] == label)]
    return mine.set_index("stream_id")[of]


def rows_of(runs, name, label):
    """Return the deviations (streams, rows of the table) of an agent's runs, in the order of `series`."""
    return np.stack([deviations(losses) for losses in series(runs, name, label, "row_losses")])


def both(a, b, name, label, other):
    """Return what compares two agents, `label` of runs a and `other` of runs b: their series, and how they are paired.

    Under the same scaling they met the same streams. Otherwise the orders of the rows are others, and the rows the same.
    """
    x, y = series(a, name, label), series(b, name, other)
    there, here = rows_of(a, name, label), rows_of(b, name, other)
    shared = [stream for stream in x.index if stream in set(y.index)]
    if not shared:
        return x, y, {"rows": (there, here), "paired": False}
    i, j = x.index.get_indexer(shared), y.index.get_indexer(shared)
    return x.iloc[i], y.iloc[j], {"rows": (there[i], here[j]), "paired": True}


def percent(runs, name, label):
    """Return mean and interval in per cent, the scaling, the mistakes of all rounds, and the number of streams."""
    mean = mean_interval(series(runs, name, label), rows=rows_of(runs, name, label)).scaled(100.0).cut(0.0, 100.0)
    columns = {"data": name, "agent": label, "scaling": series(runs, name, label, "scaling").iloc[0]}
    columns |= {"mistakes %": mean.mean, "low": mean.low, "high": mean.high}
    every = 100 * series(runs, name, label, "all rounds").mean()
    return columns | {"all rounds %": every, "streams": mean.n, "interval": mean.method}


def table_of(runs):
    """Return one row per data set and agent, the fewest mistakes first."""
    pairs = runs[["data", "label"]].drop_duplicates().itertuples(index=False)
    table = pd.DataFrame([percent(runs, *pair) for pair in pairs])
    order = table["data"].map(data.index)
    return table.assign(_seat=order).sort_values(["_seat", "mistakes %"]).drop(columns="_seat").reset_index(drop=True)


at_default = table_of(defaults)
at_default.round(3).to_csv(kept("results/real-data-defaults.csv"), index=False)
print(at_default.pivot_table(index="agent", columns="data", values="mistakes %")[data].round(2).to_string())

# %% [markdown]
# The table shows mistakes in the first pass and in all rounds, under each of the three scalings.

# %%
means = everywhere.groupby(["data", "label", "scaling"], sort=False)[["share", "all rounds"]].mean().mul(100)
means = means.join(everywhere.groupby(["data", "label", "scaling"], sort=False)["stream_id"].nunique()).reset_index()
means.columns = ["data", "agent", "scaling", "mistakes %", "all rounds %", "streams"]
means.round(3).to_csv(kept("results/real-data-scalings.csv"), index=False)
print(means.pivot_table(index=["agent", "scaling"], columns="data", values="mistakes %")[data].round(1).to_string())

# %% [markdown]
# ## The recommended agent against the best peer, both at their defaults
#
# The best peer is the agent of another library with the fewest mistakes on the reported streams, which favours the peers
# over a choice made beforehand. mabwiser was run on few streams; elsewhere its twin, the same algorithm compiled, replaces
# it. The comparison is made once with the best scaling of each agent, and once with each scaling for both.


# %%
def against(name, rivals, runs, others):
    """Return the difference of our agent to the rival with the fewest mistakes, in points."""
    means = {rival: series(others, name, rival).mean() for rival in rivals if len(series(others, name, rival)) > 0}
    best = min(means, key=means.get)
    mine, theirs, how = both(runs, others, name, OURS, best)
    gap = difference(mine, theirs, **how).scaled(100.0)
    row = {"data": name, "rival": best, "ours %": 100 * mine.mean(), "theirs %": 100 * theirs.mean()}
    row |= {"ours scaling": series(runs, name, OURS, "scaling").iloc[0]}
    row |= {"their scaling": series(others, name, best, "scaling").iloc[0], "paired": how["paired"]}
    return row | {"difference": gap.mean, "low": gap.low, "high": gap.high, "streams": gap.n, "interval": gap.method}


def promise(table):
    """Say how many upper limits are at most 0.3 points, and how many below 0."""
    most, below = (table["high"] <= 0.3).sum(), (table["high"] < 0).sum()
    return f"upper limit at most 0.3 points on {most} of {len(table)}, below 0 on {below}"


there = set(defaults["label"])
stand_in = {real: twin for real, twin in zip(PEERS[3:], TWINS.values(), strict=True) if twin in there}
rivals = [label for label in (stand_in.get(peer, peer) for peer in PEERS) if label in there]
to_peers = pd.DataFrame([against(name, rivals, defaults, defaults) for name in data])
to_peers.round(3).to_csv(kept("results/real-data-best-peer.csv"), index=False)
print(to_peers.round(2).to_string(index=False))
print(promise(to_peers))
rows = []
for scaling in SCALINGS:
    same = everywhere[everywhere["scaling"] == scaling]
    rows += [against(name, rivals, same, same) for name in data if {OURS, *rivals} & set(same["label"]) > {OURS}]
if rows:
    same_scaling = pd.DataFrame(rows).drop(columns=["ours scaling"]).rename(columns={"their scaling": "scaling"})
    same_scaling.round(3).to_csv(kept("results/real-data-same-scaling.csv"), index=False)
    print(same_scaling.round(2).to_string(index=False))

# %% [markdown]
# The table compares the twins with mabwiser itself, on the streams on which both were run.

# %%
rows = []
for name, scaling, (ours, twin) in product(data, SCALINGS, zip(PEERS[3:], TWINS.values(), strict=True)):
    played = everywhere[everywhere["scaling"] == scaling]
    real, same = series(played, name, ours).align(series(played, name, twin), join="inner")
    if len(real):
        gap = difference(same, real).scaled(100.0)
        row = {"data": name, "scaling": scaling, "agent": ours, "streams": gap.n, "mabwiser %": 100 * real.mean()}
        rows.append(row | {"twin %": 100 * same.mean(), "twin less": gap.mean, "low": gap.low, "high": gap.high})
if rows:
    compared = pd.DataFrame(rows)
    compared.round(3).to_csv(kept("results/real-data-twins.csv"), index=False)
    print(compared.round(2).to_string(index=False))

# %% [markdown]
# ## The best of eight settings, and their specs


# %%
def written(run):
    """Return a run's settings as they were written, as TOML."""
    values = {c.removeprefix("setting."): v for c, v in run.items() if c.startswith("setting.") and not pd.isna(v)}
    numbers = {k: str(v) for k, v in values.items() if re.fullmatch(r"-?[\d.]+(e-?\d+)?", str(v))}
    return {k: numbers.get(k, f'"{v}"') for k, v in sorted(values.items())}


def resolved(run):
    """Return what a run was played with: words made numbers."""
    return {c: str(v) for c, v in run.items() if c.startswith("param.") and not pd.isna(v)}


def choices(runs):
    """Return, per data set and agent, the first run at the setting and scaling with the fewest mistakes."""
    rows = []
    for (name, label), mine in runs.groupby(["data", "label"], sort=False):
        first = mine["settings"].iloc[0]
        means = mine.groupby(["settings", "scaling"], sort=False)["share"].mean()
        setting, scaling = means.idxmin()
        run = mine[(mine["settings"] == setting) & (mine["scaling"] == scaling)].iloc[0]
        ours = everywhere[(everywhere["data"] == name) & (everywhere["label"] == label)]
        same = len(ours) > 0 and resolved(run) == resolved(ours[ours["scaling"] == scaling].iloc[0])
        row = {"data": name, "agent": label, "setting": setting, "scaling": scaling, "of": len(means)}
        row |= {"default": same, "streams": mine["stream_id"].nunique() // mine["scaling"].nunique()}
        row |= {"mistakes % there": 100 * means.min(), "default's there": 100 * means[first].min()}
        rows.append(row | {"environment": run["environment"], "player": run["player"], "written": written(run)})
    return pd.DataFrame(rows)


def environment_block(spec, environment):
    """Return the block of an environment's label, without the folder of its file."""
    lines = [[f"{key} = {value!r}" for key, value in block.items()] for block in spec]
    lines = [[line.replace("'", '"').replace("= False", "= false") for line in block] for block in lines]
    lines = [[re.sub(r'(?<=^path = ").*[/\\]', "", line) for line in block] for block in lines]
    known = {
        (data_name(text), scaling_of(text)): block for block in lines if (text := " ".join(block).replace(" = ", "="))
    }
    return "\n".join(known[data_name(environment), scaling_of(environment)])


def tuned_spec(name, block, chosen, likeness):
    """Return the spec that plays the settings chosen under a scaling of a data set where they are not the defaults."""
    path = " --set environment.0.path=PATH" if "path =" in block else ""
    head = (
        f"# Real data, {name}: the setting of each agent that real-data-choice, -choice-twins and -choice-peers chose\n"
    )
    head += "# under this scaling, where it is not the default, on the first ten streams of real-data.toml.\n"
    head += '#     pip install -e ".[peers]"\n'
    head += f"#     banditlab run runs/real-data-tuned/{name}.toml{path} -o runs/results/real-data-tuned-{name}\n"
    head += "# 0.05 core-hours at most. The same command resumes it. "
    head += "analysis/real_data.py writes this file and reads the results.\n\n"
    keys = f'name = "real-data-tuned-{name}"\nrounds = {likeness["rounds"]}\nrepetitions = {min(10, likeness["repetitions"])}\n'
    keys += f"base_seed = {likeness['base_seed']}\ncheckpoints = [{likeness['rounds']}]\nnorm_bounds = []\n"
    text = f"{head}{keys}\n[[environment]]\n{block}\n"
    blocks = [
        f'\n[[agent]]\nid = "{row.player}"\n' + "".join(f"{k} = {v}\n" for k, v in row.written.items())
        for row in chosen[~chosen["default"]].itertuples()
    ]
    return text + "".join(dict.fromkeys(blocks))  # a twin may have chosen what ours did


chosen = choices(eight) if eight is not None else pd.DataFrame({"data": [], "agent": [], "scaling": [], "default": []})
if eight is not None:
    shown = chosen.drop(columns=["environment", "player", "written"])
    shown.round(3).to_csv(kept("results/real-data-choices.csv"), index=False)
    spec = load(root / "real-data").spec
    folder = place("BANDITLAB_SPECS", "runs") / "real-data-tuned"
    folder.mkdir(exist_ok=True)
    for (name, scaling), mine in chosen[~chosen["default"].astype(bool)].groupby(["data", "scaling"], sort=False):
        block = environment_block(spec["environment"], mine["environment"].iloc[0])
        text = tuned_spec(f"{name}-{scaling}", block, mine, spec)
        (folder / f"{name}-{scaling}.toml").write_text(text, encoding="utf-8")
    print(shown.round(2).to_string(index=False))

# %% [markdown]
# ## At the chosen settings


# %%
def at_choice():
    """Return the runs at the chosen settings and scalings: those of the defaults where the default was chosen."""
    parts = []
    for (name, scaling), mine in chosen.groupby(["data", "scaling"], sort=False):
        played = None if mine["default"].all() else final(f"real-data-tuned-{name}-{scaling}")
        of_set = everywhere[(everywhere["data"] == name) & (everywhere["scaling"] == scaling)]
        for row in mine.itertuples():
            runs = of_set[of_set["label"] == row.agent]
            if not row.default:
                if played is None:
                    continue
                runs = played[played["player"] == row.player]
                runs = runs[[written(run) == row.written for run in runs.to_dict("records")]]
            if len(runs):
                parts.append(runs.assign(label=row.agent).dropna(axis=1, how="all"))
    return pd.concat(parts, ignore_index=True) if parts else everywhere.iloc[:0]


tuned = at_choice()
at_best = table_of(tuned) if len(tuned) else None
if at_best is not None:
    at_best.round(3).to_csv(kept("results/real-data-tuned.csv"), index=False)
    print(at_best.pivot_table(index="agent", columns="data", values="mistakes %").round(2).to_string())
    met = [name for name in data if {OURS, *rivals} & set(tuned.loc[tuned["data"] == name, "label"]) > {OURS}]
    rows = [against(name, rivals, tuned, tuned) for name in met]
    rows = [{"ours": "tuned"} | row for row in rows]
    rows += [{"ours": "default"} | against(name, rivals, defaults, tuned) for name in met]
    if rows:
        to_tuned = pd.DataFrame(rows)
        to_tuned.round(3).to_csv(kept("results/real-data-best-tuned-peer.csv"), index=False)
        print(to_tuned.round(2).to_string(index=False))

# %% [markdown]
# ## Wins, ties and losses
#
# The table shows the results of t tests at the defaults, with the best scaling of each agent, for every pair of agents and
# every data set. The standard errors include the sampling of a table's rows. All tests are corrected together by Holm's
# method, so the wins and losses are significant at 5 % for the whole table.


# %%
def tested(runs, labels):
    """Return one row per data set and pair: the difference and its adjusted p-value."""
    rows = []
    for name, (a, b) in product(data, combinations(labels, 2)):
        if min(len(series(runs, name, a)), len(series(runs, name, b))) < 2:
            continue
        x, y, how = both(runs, runs, name, a, b)
        row = {"data": name, "agent": a, "other": b, "streams": len(x), "paired": how["paired"]}
        rows.append(row | {"points": 100 * (x.mean() - y.mean()), "p": p_value(x, y, **how)})
    table = pd.DataFrame(rows)
    return table.assign(**{"adjusted p": holm(table["p"])})


def matrix(table, labels):
    """Return who wins, ties and loses how often against whom: "win/tie/loss", row against column."""
    text = pd.DataFrame("", index=labels, columns=labels)
    sure = table["adjusted p"] < LEVEL
    for (a, b), mine in table.assign(sure=sure).groupby(["agent", "other"]):
        wins, losses = (mine["sure"] & (mine["points"] < 0)).sum(), (mine["sure"] & (mine["points"] > 0)).sum()
        ties = len(mine) - wins - losses
        text.loc[a, b], text.loc[b, a] = f"{wins}/{ties}/{losses}", f"{losses}/{ties}/{wins}"
    return text


present = [label for label in (stand_in.get(label, label) for label in MATRIX) if label in there]
tests = tested(defaults, present)
tests.to_csv(kept("results/real-data-tests.csv"), index=False, float_format="%.4g")
score = matrix(tests, present)
score.to_csv(kept("results/real-data-win-tie-loss.csv"))
print(f"{len(tests)} tests\n{score.to_string()}")

# %% [markdown]
# ## The figure

# %%
# mabwiser's methods stand at their twins', which have all streams
wide = at_default.pivot_table(index="agent", columns="data", values="mistakes %")[data]
for real, twin in stand_in.items():
    wide.loc[real] = wide.loc[twin]
ranked = wide[~wide.index.isin([*references, *stand_in.values()])]
mean_rank = ranked.rank().mean(axis=1).sort_values()
mean_rank.round(2).to_csv(kept("results/real-data-mean-rank.csv"), header=["mean rank at the default"])


@styled
def figure():
    """Draw a panel per data set, a line per agent: filled at its default, open at its chosen setting."""
    picture = new_figure(1.2 + 0.2 * len(mean_rank) * -(-len(data) // 4))
    grid = picture.subplots(-(-len(data) // 4), 4, sharey=True, squeeze=False)
    rows = {label: -i for i, label in enumerate(mean_rank.index)}
    groups = styles(["ours", "recommended", "peer"])
    for ax, name in zip(grid.flat, data, strict=False):
        for label, y in rows.items():
            kind = "recommended" if label == OURS else "peer" if label in PEERS else "ours"
            colour, value = groups[kind].colour, wide.loc[label, name]
            best = np.nan if at_best is None else 100 * series(tuned, name, stand_in.get(label, label)).mean()
            ax.plot([best, value], [y, y], color=colour, lw=1.0, alpha=0.6, zorder=2)
            ax.plot(best, y, "o", ms=5, mfc="white", mec=colour, zorder=3)
            ax.plot(value, y, "o", ms=5, color=colour, zorder=4)
        seen = wide.loc["perceptron", name] if "perceptron" in wide.index else np.nan
        ax.axvline(seen, color=FAINT, lw=1.0, ls=(0, (4, 3)))
        ax.set(xscale="log", title=name)
        ticks = [t for t in (0.2, 0.5, 1, 2, 5, 10, 20, 40, 80) if ax.get_xlim()[0] <= t <= ax.get_xlim()[1]]
        name_ticks(ax, ticks)
        ax.set_yticks(list(rows.values()), list(rows), color=INK)
    for ax in grid.flat[len(data) :]:
        ax.set_visible(False)
    text = (
        "mistakes at first showings, % (filled: default, open: best of eight; dashed: the perceptron, full information)"
    )
    picture.supxlabel(text, fontsize="medium")
    for kind, text in (("recommended", "fastcb"), ("ours", "our other agents"), ("peer", "other libraries")):
        picture.axes[0].plot([], [], "o", ms=5, color=groups[kind].colour, label=text)
    picture.legend(loc="outside upper center", ncols=3)
    return picture


path = kept("images/real-data.png")
save(figure(), path)
print(f"saved {path}")

# %% [markdown]
# ## The pages

# %%
result_pages.fill("real-data")
result_pages.fill("which-agent")
