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
# # What moves the boosting tables
#
# Reasons for differences to the tables of Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, tested one
# at a time: each variant changes one thing of what `boosting_tables.py` plays, on the same few orders of the rows. Plays
# everything itself; sets come from openml.org (`BANDITLAB_DATA_HOME` names another cache than scikit-learn's). The table goes
# to `results/` of the folder `BANDITLAB_FIGURES`, or of `docs`; `BANDITLAB_SETS` plays some sets only, `BANDITLAB_ROWS` only
# that many rows of each.

# %%
import os
import time
from itertools import product

import numpy as np
import pandas as pd
from jung_2017 import PAPER

from banditlab.analysis.places import kept
from banditlab.boosting._base import uniform_best, weight_scales
from banditlab.boosting.best_single import BestSingle
from banditlab.boosting.hoeffding import LOOSENESS
from banditlab.boosting.mbbm import OnlineMBBM
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.one_vs_all import AdaBoostOLOneVsAll, AdaOVA
from banditlab.boosting.oza import Oza
from banditlab.envs.openml import OpenML
from banditlab.problem import Problem

PLAIN = {"scaling": "none", "normalize": False, "intercept": False}
SETS = {
    "balance-scale": ({"data_id": 11}, {}, 3),
    "car": ({"data_id": 21}, {"one_hot": [4, 4, 4, 3, 3, 3], "ordered": [2, 3]}, 2),
    "mice": ({"data_id": 40966, "missing": "zero"}, {}, 1),
    "nursery": ({"data_id": 26}, {"one_hot": [3, 5, 4, 4, 3, 2, 3, 3], "ordered": [3]}, 1),
}
CODE = {"prior": 1.0, "largest_share": 1.0, "spread": "coded", "splits": "coded"}
TREE = {"weak_learner": "compiled-hoeffding-tree"} | CODE
RIVER = {"prior": 0.0, "largest_share": 0.99, "spread": "sample", "splits": "usual"}
USUAL = {"splits": "usual"}
SAME = {"same_trees": True}
MBBM = {"weight_bound": "trivial", "weight_scale": "random", "cost_rows": "raw", "potentials": "monte-carlo"}
RANDOM = {"weight_scale": "random"}
ROWS = int(os.environ.get("BANDITLAB_ROWS", "0"))
CHOSEN = os.environ.get("BANDITLAB_SETS", " ".join(SETS)).split()


# %% [markdown]
# ## Variants that no setting makes


# %%
class Uniform(BestSingle):
    """Trees whose split confidence and tie threshold are drawn uniform, not log-uniform, from the same range."""

    def _make(self, cls, streams):
        low, high = LOOSENESS
        self.learners = [
            cls(self.problem, stream, **self._written | dict(zip(("split_confidence", "tie_threshold"), drawn)))
            for stream in streams
            for drawn in [stream.uniform(low, high, size=2).tolist()]
        ]


class OzaOtherwise(Oza):
    """Oza's online boosting, other readings of it.

    A learner may be judged by its prediction before it trains; errors above 1/2 may count against its prediction; weights
    may be times a constant of [5, 200] for each learner.
    """

    def __init__(self, *args, before=False, against=False, scaled=False, **settings):
        super().__init__(*args, **settings)
        self.before, self.against = before, against
        self.scales = weight_scales("random" if scaled else 1.0, self.n_learners, self._ties).tolist()

    def _respond(self, view):
        eps = np.clip(self.errors(), self.least_error, 1.0 - self.least_error if self.against else 0.5)
        votes = np.log((1.0 - eps) / eps)
        self.said = [learner.predict(view) for learner in self.learners]
        return uniform_best(np.bincount(self.said, votes, self.problem.n_classes)), np.empty(0)

    def _absorb(self, view, payload, label):
        self.rounds += 1
        lam = 1.0
        for i, learner in enumerate(self.learners):
            weight = float(self._ties.poisson(lam)) if self.sampling == "poisson" else lam
            learner.update(view, label, weight * self.scales[i])
            said = self.said[i] if self.before else learner.predict(view)
            sums = self.right if said == label else self.wrong
            sums[i] += lam
            lam = min(self.largest_weight, lam * self.rounds / (2.0 * sums[i]))


class Remembered:
    """Potentials as the authors' code takes them: 100 draws for each state, remembered for good."""

    def __init__(self, k, edge, rng):
        self.p, self.rng, self.known = np.full(k, (1.0 - edge) / k), rng, {}
        self.p[0] += edge

    def potential(self, m, mine, others):
        key = (m, mine, *sorted(others))
        if key not in self.known:
            to_come = self.rng.multinomial(m, self.p, size=100) + np.array(key[1:])
            self.known[key] = float((to_come[:, 0] <= to_come[:, 1:].max(axis=1)).mean())
        return self.known[key]

    def costs(self, m, votes, label):
        votes, row = votes.tolist(), []
        for l in range(len(votes)):
            after = votes.copy()
            after[l] += 1
            mine = after.pop(label)
            row.append(self.potential(m + 1, mine, after))  # m + 1: the code counts the vote that is being cast
        return np.array(row) - row[label]


class OnlineMBBMRemembered(OnlineMBBM):
    """OnlineMBBM with the authors' potentials: costs may be negative, weights are at least 1e-10."""

    def _potentials(self):
        return Remembered(self.problem.n_classes, self.edge, np.random.default_rng(self.rng.integers(2**53)))

    def _absorb(self, view, payload, label):
        N, k = self.n_learners, self.problem.n_classes
        s = np.zeros(k, dtype=np.int64)
        for i, learner in enumerate(self.learners):
            w = float(self._phi.costs(N - i - 1, s, label).sum())
            s[int(payload[i])] += 1
            learner.update(view, label, float(self._scales[i]) * max(1e-10, w / (k - 1.0)))


# %% [markdown]
# ## Playing


# %%
def rows_of(name, four_classes=False):
    """Return the contexts and labels of a set; of nursery without the class of two rows, if so asked."""
    env = OpenML(**SETS[name][0], **PLAIN)
    X, y = np.array(env._table.X), np.array(env._table.y)
    if four_classes:
        rare = np.argmin(np.bincount(y))
        X, y = X[y != rare], y[y != rare]
        y = y - (y > rare)
    return X, y


def play(booster, X, y):
    """Return which rounds were right, (n,) bool; of `best-single` the trees' mistakes at 80 % and at the end."""
    U, right, cut, at_cut = booster.rng.random((len(y), 2)), np.zeros(len(y), dtype=bool), len(y) * 8 // 10, None
    for t, label in enumerate(y.tolist()):
        if t == cut and isinstance(booster, BestSingle):
            at_cut = booster.mistakes.copy()
        view = booster.view(X[t])
        decision = booster._decide(view, U[t])
        right[t] = decision.action == label
        booster._absorb(view, decision.payload, label)
    if at_cut is None:
        return right[cut:].mean(), right.mean()
    return 1.0 - (booster.mistakes - at_cut) / (len(y) - cut), 1.0 - booster.mistakes / len(y)


def measured(name, method, variant, cls, four_classes=False, same_trees=False, **settings):
    """Return one row: accuracy on the last fifth and on all rows, means over the orders, beside the paper's."""
    _, features, orders = SETS[name]
    X, y = rows_of(name, four_classes)
    problem = Problem(X.shape[1], int(y.max()) + 1, 1.01 * float(np.linalg.norm(X, axis=1).max()), len(y))
    settings = {key: value for key, value in (TREE | features | settings).items() if value is not None}
    results, began = [], time.process_time()
    for order in range(orders):
        turn = np.random.default_rng([7, order]).permutation(len(y))[: ROWS or None]
        booster = cls(problem, np.random.default_rng([8, 0 if same_trees else order]), **settings)
        results.append(play(booster, np.ascontiguousarray(X[turn]), y[turn]))
    parts = np.array(results, dtype=float)  # (orders, 2) or, of single trees, (orders, 2, trees)
    if parts.ndim == 3:
        parts = parts.mean(axis=0).max(axis=-1)[None] if same_trees else parts.max(axis=-1)
    last, everything = parts.mean(axis=0)
    theirs = [PAPER[measure].loc[name, method] for measure in ("last fifth", "all")]
    row = {"data": name, "method": method, "variant": variant, "orders": orders, "last fifth": last, "all": everything}
    row |= {"last fifth, difference": last - theirs[0], "all, difference": everything - theirs[1]}
    row["processor s"] = (time.process_time() - began) / orders
    print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()), flush=True)
    return row


def variants(name):
    """Yield (method, variant, class, settings) of a set; "" is what the tables have."""
    yield "DT", "", BestSingle, {}
    yield "DT", "same 100 trees in every order, best of the means", BestSingle, SAME
    heavy = {"weight_scale": "random"}
    yield "DT", "weights of [5, 200]", BestSingle, heavy
    yield "DT", "weights of [5, 200], same 100 trees in every order, best of the means", BestSingle, SAME | heavy
    yield "DT", "split confidence and tie threshold uniform", Uniform, {}
    yield "DT", "splits as usual", BestSingle, USUAL
    yield "DT", "river's tree", BestSingle, RIVER
    yield "OLB", "", Oza, {}
    yield "OLB", "splits as usual", Oza, USUAL
    for sampling, before, against, scaled in product(("poisson", "weight"), *[(False, True)] * 3):
        said = {"trained once, by weight": sampling == "weight", "judged before training": before}
        said |= {"errors above 1/2 count against": against, "weights times [5, 200]": scaled}
        how = {"sampling": sampling, "before": before, "against": against, "scaled": scaled}
        if any(said.values()):
            yield "OLB", ", ".join(words for words, holds in said.items() if holds), OzaOtherwise, how
    yield "AdaOLM", "", AdaBoostOLM, RANDOM | {"derivative": "coded"}
    yield "AdaOLM", "exact derivative", AdaBoostOLM, RANDOM
    yield "AdaOLM", "splits as usual", AdaBoostOLM, RANDOM | USUAL | {"derivative": "coded"}
    yield "AdaOLM", "river's tree", AdaBoostOLM, RANDOM | RIVER | {"derivative": "coded"}
    yield "AdaOLM", "sample variances in the trees", AdaBoostOLM, RANDOM | {"derivative": "coded", "spread": "sample"}
    yield "AdaOLM", "weights at most 1", AdaBoostOLM, {"derivative": "coded"}
    for edge in (0.3, 0.1, 0.01, 0.001) if name != "nursery" else (0.1,):
        method = f"MB {edge:g}".replace("0.", ".")
        yield method, "", OnlineMBBM, MBBM | {"edge": edge}
        if name in ("balance-scale", "car"):  # states of more classes hardly recur: minutes for each order
            yield method, "potentials remembered, as in the code", OnlineMBBMRemembered, MBBM | {"edge": edge}
            yield method, "exact potentials", OnlineMBBM, MBBM | {"edge": edge, "potentials": "exact"}
    yield "MB .1", "splits as usual", OnlineMBBM, MBBM | USUAL | {"edge": 0.1}
    yield "MB .1", "river's tree", OnlineMBBM, MBBM | RIVER | {"edge": 0.1}
    for method, cls in (("OvA", AdaBoostOLOneVsAll), ("AdaOVA", AdaOVA)):
        yield method, "", cls, RANDOM | {"derivative": "coded"}
        yield method, "exact derivative", cls, RANDOM
        yield method, "splits as usual", cls, RANDOM | USUAL | {"derivative": "coded"}
        yield method, "sample variances in the trees", cls, RANDOM | {"derivative": "coded", "spread": "sample"}
    if name in ("car", "nursery"):
        words = {"ordered": None}
        yield "DT", "every column nominal", BestSingle, words
        yield "OLB", "every column nominal", Oza, words
        yield "AdaOLM", "every column nominal", AdaBoostOLM, RANDOM | words | {"derivative": "coded"}
        yield "MB .1", "every column nominal", OnlineMBBM, MBBM | words | {"edge": 0.1}
        yield "OvA", "every column nominal", AdaBoostOLOneVsAll, RANDOM | words | {"derivative": "coded"}
        yield "AdaOVA", "every column nominal", AdaOVA, RANDOM | words | {"derivative": "coded"}
    if name == "nursery":
        four = {"four_classes": True}
        yield "AdaOLM", "without the class of two rows", AdaBoostOLM, RANDOM | four | {"derivative": "coded"}
        yield "MB .1", "without the class of two rows", OnlineMBBM, MBBM | four | {"edge": 0.1}


table = pd.DataFrame(
    measured(name, method, variant, cls, **settings)
    for name in CHOSEN
    for method, variant, cls, settings in variants(name)
)
path = kept("results/boosting-variants.csv")
if path.exists() and set(CHOSEN) != set(SETS):  # some sets anew, the others as they were
    before = pd.read_csv(path, keep_default_na=False)
    table = pd.concat([before[~before["data"].isin(CHOSEN)], table], ignore_index=True)
table.sort_values(["data", "method"], kind="stable").round(4).to_csv(path, index=False)
