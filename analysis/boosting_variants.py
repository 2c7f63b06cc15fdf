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
# # What explains differences from the boosting tables
#
# This notebook tests, one at a time, possible reasons for the differences from the tables of Y. H. Jung, J. Goetz, A.
# Tewari (Online multiclass boosting, NIPS 2017). Each variant changes one detail of the runs of `boosting_tables.py`, on
# the same few orders of the rows. The notebook runs all variants itself. Data sets come from openml.org
# (`BANDITLAB_DATA_HOME` names a cache other than scikit-learn's). It writes the table to `results/` of the folder
# `BANDITLAB_FIGURES`, by default `docs`. `BANDITLAB_SETS` selects data sets, and `BANDITLAB_ROWS` limits the rows of each.
# On `movement` it tests only OLB and DT, and reads the file named by `BANDITLAB_MOVEMENT` (described in
# runs/boosting-tables-movement.toml).

# %%
import os
import time
from itertools import product

import numpy as np
import pandas as pd
from parts.jung_2017 import PAPER
from parts.python2_order import dictionary_order
from sklearn.datasets import fetch_openml

from banditlab.analysis.places import kept
from banditlab.boosting.best_single import BestSingle
from banditlab.boosting.booster import uniform_best
from banditlab.boosting.mbbm import LEAST_WEIGHT, OnlineMBBM
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.one_vs_all import AdaBoostOLOneVsAll, AdaOVA
from banditlab.boosting.oza import Oza
from banditlab.boosting.weak.tuning import GRACE_PERIODS, LOOSENESS
from banditlab.envs.openml import DATA_HOME_VARIABLE, OpenML
from banditlab.envs.table import Table
from banditlab.problem import Problem

PLAIN = {"scaling": "none", "normalize": False, "intercept": False}
SETS = {
    "balance-scale": ({"data_id": 11}, {}, 9),
    "car": ({"data_id": 21}, {"one_hot": [4, 4, 4, 3, 3, 3], "ordered": [2, 3]}, 2),
    "mice": ({"data_id": 40966, "missing": "zero"}, {}, 3),
    "nursery": ({"data_id": 26}, {"one_hot": [3, 5, 4, 4, 3, 2, 3, 3], "ordered": [3]}, 1),
}
if MOVEMENT := os.environ.get("BANDITLAB_MOVEMENT"):
    PEOPLE = ["user", "gender", "age", "how_tall_in_meters", "weight", "body_mass_index"]
    SETS["movement"] = (
        {"path": MOVEMENT, "label": "class", "decimal": ",", "drop_rows": [122076], "drop_columns": PEOPLE},
        {},
        1,
    )
CODE = {"prior": 1.0, "largest_share": 1.0, "spread": "coded", "splits": "coded"}
TREE = {"weak_learner": "hoeffding-tree", "tuning_seed": 1} | CODE
RIVER = {"prior": 0.0, "largest_share": 0.99, "spread": "sample", "splits": "usual"}
USUAL = {"splits": "usual"}
ANEW = {"tuning_seed": None}
RANDOM = {"weight_scale": "random"}
CODED = RANDOM | {"derivative": "coded"}
MBBM = RANDOM | {"weight_bound": "trivial", "cost_rows": "raw", "potentials": "remembered"}
EDGES = 0.3, 0.1, 0.05, 0.01, 0.001
ROWS = int(os.environ.get("BANDITLAB_ROWS", "0"))
CHOSEN = os.environ.get("BANDITLAB_SETS", " ".join(SETS)).split()


# %% [markdown]
# ## Variants for which there is no setting


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


class ConstantsFromTen(BestSingle):
    """Trees whose weights are constants of [10, 200], the default of the code's function, not of [5, 200]."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self._scales = 200.0 - (200.0 - self._tuning.drawn_scales(self._ties)) * 190.0 / 195.0  # the same numbers drawn


class GraceFirst(BestSingle):
    """Trees whose grace period is drawn before the split confidence, in the order of the paper's text, not of the code."""

    def _make(self, cls, streams):
        source = np.random.RandomState(self.tuning_seed)
        low, high = np.log10(LOOSENESS)
        for drawn in self._tuning.settings:
            drawn["grace_period"] = source.uniform(*GRACE_PERIODS)
            drawn["split_confidence"] = 10.0 ** source.uniform(low, high)
            drawn["tie_threshold"] = 10.0 ** source.uniform(low, high)
        super()._make(cls, streams)


class OzaOtherwise(Oza):
    """Oza's online boosting, other readings of it.

    A learner may be judged by its prediction before it trains; errors above 1/2 may count against its prediction; weights
    may be times `scaled` times a constant of [5, 200] for each learner.
    """

    def __init__(self, *args, before=False, against=False, scaled=0.0, **settings):
        super().__init__(*args, **settings)
        self.before, self.against = before, against
        constants = scaled * self._tuning.drawn_scales(self._ties) if scaled else np.ones(self.n_learners)
        self.scales = constants.tolist()

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


class OzaNearlyEqual(OzaOtherwise):
    """Learners are judged before they train and vote ln(1/eps), nearly equal votes: boosting keeps every eps near 1/2."""

    def __init__(self, *args, **settings):
        super().__init__(*args, before=True, **settings)

    def _respond(self, view):
        self.said = [learner.predict(view) for learner in self.learners]
        votes = -np.log(np.clip(self.errors(), self.least_error, 1.0))
        return uniform_best(np.bincount(self.said, votes, self.problem.n_classes)), np.empty(0)


class CodePotentials:
    """Potentials as the authors' code takes them, from its own generator: 100 draws for each state, remembered for good."""

    def __init__(self, k, edge, source):
        self.p, self.source, self.known = np.full(k, (1.0 - edge) / k), source, {}
        self.p[0] += edge

    def potential(self, m, mine, others):
        key = (m, mine, *sorted(others))
        if key not in self.known:
            to_come = self.source.multinomial(m, self.p, size=100) + np.array(key[1:])
            self.known[key] = float((to_come[:, 0] <= to_come[:, 1:].max(axis=1)).mean())
        return self.known[key]

    def matrix(self, m, votes):
        k = len(votes)
        C = np.empty((k, k))
        for r, l in product(range(k), repeat=2):
            after = votes.copy()
            after[l] += 1
            mine = after.pop(r)
            C[r, l] = self.potential(m, mine, after)
        return C


class OnlineMBBMOfTheCode(OnlineMBBM):
    """OnlineMBBM with the random numbers of the authors' code as well: trees, ties and potentials of one generator.

    It is set to the seed before the first row, so that the 27 orders of the paper share its beginning, and with it the
    potentials of the states that come first.
    """

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.source = np.random.RandomState(self.tuning_seed)
        self.source.uniform(size=4 * self.n_learners)  # spent on tuning and weights
        self.code = CodePotentials(self.problem.n_classes, self.edge, self.source)

    def _first(self, best):
        """Return one of the places (n,) where an array of truth values holds, at random."""
        places = np.flatnonzero(best)
        return int(places[self.source.randint(len(places))]) if len(places) > 1 else int(places[0])

    def _respond(self, view):
        k, N = self.problem.n_classes, self.n_learners
        s, q, p, self.sums = [0] * k, np.zeros(k), np.zeros(k), []
        for i, learner in enumerate(self.learners):
            C = self.code.matrix(N - i, s)  # the code counts the vote that is being cast
            self.sums.append(C.sum(axis=1) - k * C.diagonal())
            learner.estimate(view, q)
            costs = q / q.sum() @ C
            s[self._first(costs == costs.min())] += 1
            leader = self._first(np.array(s) == max(s))
        p[leader] = 1.0
        return p, np.empty(0)

    def _absorb(self, view, payload, label):
        for learner, sums, scale in zip(self.learners, self.sums, self._scales.tolist(), strict=True):
            learner.update(view, label, max(LEAST_WEIGHT, scale * float(sums[label]) / (self.problem.n_classes - 1.0)))


# %% [markdown]
# ## The runs


# %%
def rows_of(name, four_classes=False):
    """Return the contexts and labels of a set; of nursery without the class of two rows, if so asked."""
    env = (Table if name == "movement" else OpenML)(**SETS[name][0], **PLAIN)
    X, y = np.array(env._table.X), np.array(env._table.y)
    if four_classes:
        rare = np.argmin(np.bincount(y))
        X, y = X[y != rare], y[y != rare]
        y = y - (y > rare)
    return X, y


def of_dictionary(name):
    """Return the places of a set's columns in the order in which the authors' trees go through them.

    Of columns that split equally well those trees take the last, and they keep them in a dictionary. The names are the
    ones of openml.org, for mice those in the file that a later paper of the same group was published with.
    """
    number, home = SETS[name][0]["data_id"], os.environ.get(DATA_HOME_VARIABLE) or None
    names = list(fetch_openml(data_id=number, data_home=home, as_frame=True, parser="auto").data)
    return [names.index(column) for column in dictionary_order(names)]


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


def measured(name, method, variant, cls, four_classes=False, of_means=False, of_columns=None, orders=None, **settings):
    """Return one row: accuracy on the last fifth and on all rows, means over the orders, beside the paper's.

    `of_means` takes the single tree that is best over all orders, where else each order has its own; `of_columns` says in
    which order the columns come.
    """
    _, features, few = SETS[name]
    orders = orders or few
    X, y = rows_of(name, four_classes)
    X = X if of_columns is None else X[:, of_columns(name)]
    problem = Problem(X.shape[1], int(y.max()) + 1, 1.01 * float(np.linalg.norm(X, axis=1).max()), len(y))
    settings = {k: v for k, v in (TREE | features | settings).items() if v is not None}
    results, began = [], time.process_time()
    for order in range(orders):
        turn = np.random.default_rng([7, order]).permutation(len(y))[: ROWS or None]
        booster = cls(problem, np.random.default_rng([8, order]), **settings)
        results.append(play(booster, np.ascontiguousarray(X[turn]), y[turn]))
    parts = np.array(results, dtype=float)  # (orders, 2) or, of single trees, (orders, 2, trees)
    if parts.ndim == 3:
        parts = parts.mean(axis=0).max(axis=-1)[None] if of_means else parts.max(axis=-1)
    last, everything = parts.mean(axis=0)
    theirs = [PAPER[measure].loc[name, method] for measure in ("last fifth", "all")]
    row = {"data": name, "method": method, "variant": variant, "orders": orders, "last fifth": last, "all": everything}
    row |= {"last fifth, difference": last - theirs[0], "all, difference": everything - theirs[1]}
    row["processor s"] = (time.process_time() - began) / orders
    print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()), flush=True)
    return row


def variants(name):
    """Yield (method, variant, class, settings) of a set; "" is what the tables have."""
    if name == "movement":
        yield "DT", "", BestSingle, RANDOM
        yield "OLB", "", Oza, {}
        yield "OLB", "weights times [5, 200]", OzaOtherwise, {"scaled": 1.0}
        yield "OLB", NEAREST, OzaOtherwise, LIKE_ADABOOST_OLM
        yield "OLB", NEAREST.replace("[2.5, 100]", "[5, 200]"), OzaOtherwise, LIKE_ADABOOST_OLM | {"scaled": 1.0}
        return
    yield from of_single_trees()
    yield from of_oza()
    for method, cls, settings in (("AdaOLM", AdaBoostOLM, CODED), *OVA):
        yield method, "", cls, settings
        yield method, "trees drawn anew in every order", cls, settings | ANEW
        yield method, "exact derivative", cls, RANDOM
        yield method, "splits as usual", cls, settings | USUAL
        yield method, "sample variances in the trees", cls, settings | {"spread": "sample"}
    for seed in (2, 3, 4):
        yield "AdaOLM", f"trees of the seed {seed}", AdaBoostOLM, CODED | {"tuning_seed": seed}
    yield "AdaOLM", "river's tree", AdaBoostOLM, CODED | RIVER
    yield "AdaOLM", "weights at most 1", AdaBoostOLM, {"derivative": "coded"}
    if name == "mice":
        yield from of_mice()
    yield from of_majority(name)
    if name in ("car", "nursery"):
        words = {"ordered": None}
        yield "DT", "every column nominal", BestSingle, RANDOM | words
        yield "AdaOLM", "every column nominal", AdaBoostOLM, CODED | words
        yield "MB .1", "every column nominal", OnlineMBBM, MBBM | words | {"edge": 0.1}
        for method, cls, settings in OVA:
            yield method, "every column nominal", cls, settings | words
    if name == "nursery":
        four = {"four_classes": True}
        yield "AdaOLM", "without the class of two rows", AdaBoostOLM, CODED | four
        yield "MB .1", "without the class of two rows", OnlineMBBM, MBBM | four | {"edge": 0.1}


OVA = ("OvA", AdaBoostOLOneVsAll, CODED), ("AdaOVA", AdaOVA, CODED)


def of_single_trees():
    yield "DT", "", BestSingle, RANDOM
    yield "DT", "weight 1", BestSingle, {}
    yield "DT", "weight 5", BestSingle, {"weight_scale": 5.0}
    for variant, settings in {"": RANDOM, ", weight 1": {}}.items():
        yield "DT", f"best of the means over the orders{variant}", BestSingle, settings | {"of_means": True}
        yield "DT", f"trees drawn anew in every order{variant}", BestSingle, settings | ANEW
        yield "DT", f"split confidence and tie threshold uniform{variant}", Uniform, settings | ANEW
        yield "DT", f"splits as usual{variant}", BestSingle, settings | USUAL
        yield "DT", f"river's tree{variant}", BestSingle, settings | RIVER


NEAREST = "trained once, by weight, judged before training, errors above 1/2 count against, weights times [2.5, 100]"
LIKE_ADABOOST_OLM = {"sampling": "weight", "before": True, "against": True, "scaled": 0.5}
"""AdaBoost.OLM trains a tree once, by its constant times its cost, which begins at a half, and judges it by what it said."""


def of_mice():
    """What decides there: ties between columns, and which trees have a constant below their grace period."""
    columns = "27 orders, columns as in the authors' dictionaries"
    best, many, ties = RANDOM | {"of_means": True}, {"orders": 27}, {"of_columns": of_dictionary}
    for method, cls, settings in (("OLB", Oza, {}), ("AdaOLM", AdaBoostOLM, CODED), *OVA):
        yield method, "27 orders", cls, settings | many
        yield method, columns, cls, settings | many | ties
    yield "OLB", f"{columns}, {NEAREST}", OzaOtherwise, LIKE_ADABOOST_OLM | many | ties
    for edge in EDGES:
        settings = MBBM | {"edge": edge} | ties
        yield majority(edge), "columns as in the authors' dictionaries", OnlineMBBM, settings
    yield "DT", "27 orders, best of the means", BestSingle, best | many
    yield "DT", "27 orders, best of the means, columns as in the authors' dictionaries", BestSingle, best | many | ties
    yield "DT", "27 orders, best of the means, constants of [10, 200]", ConstantsFromTen, best | many
    yield "DT", "27 orders, best of the means, grace period drawn first", GraceFirst, best | many
    for seed in range(2, 16):
        drawn = {"orders": 9, "tuning_seed": seed}
        yield "DT", f"9 orders, best of the means, trees of the seed {seed}", BestSingle, best | drawn


def of_oza():
    yield "OLB", "", Oza, {}
    yield "OLB", "trees drawn anew in every order", Oza, ANEW
    yield "OLB", "splits as usual", Oza, USUAL
    for sampling, before, against, scaled in product(("poisson", "weight"), *[(False, True)] * 3):
        said = {"trained once, by weight": sampling == "weight", "judged before training": before}
        said |= {"errors above 1/2 count against": against, "weights times [5, 200]": scaled}
        how = {"sampling": sampling, "before": before, "against": against, "scaled": scaled}
        if any(said.values()):  # the others are Figure 2 itself
            yield "OLB", ", ".join(words for words, holds in said.items() if holds), OzaOtherwise, how
    yield "OLB", "judged before training, votes ln(1/eps)", OzaNearlyEqual, {}
    yield "OLB", NEAREST, OzaOtherwise, LIKE_ADABOOST_OLM


def majority(edge):
    return f"MB {edge:g}".replace("0.", ".")


def of_majority(name):
    for edge in EDGES if name != "nursery" else (0.1,):
        method, settings = majority(edge), MBBM | {"edge": edge}
        yield method, "", OnlineMBBM, settings
        yield method, "the code's random numbers", OnlineMBBMOfTheCode, settings
        yield method, "trees drawn anew in every order", OnlineMBBM, settings | ANEW
        yield method, "potentials drawn anew in every round", OnlineMBBM, settings | {"potentials": "monte-carlo"}
        if name in ("balance-scale", "car"):  # more classes take minutes for each order
            yield method, "exact potentials", OnlineMBBM, settings | {"potentials": "exact"}
    yield "MB .1", "splits as usual", OnlineMBBM, MBBM | USUAL | {"edge": 0.1}
    yield "MB .1", "river's tree", OnlineMBBM, MBBM | RIVER | {"edge": 0.1}


table = pd.DataFrame(
    measured(name, method, variant, cls, **settings)
    for name in CHOSEN
    for method, variant, cls, settings in variants(name)
)
path = kept("results/boosting-variants.csv")
if path.exists():  # some sets anew, the others as they were
    before = pd.read_csv(path, keep_default_na=False)
    table = pd.concat([before[~before["data"].isin(CHOSEN)], table], ignore_index=True)
table.sort_values(["data", "method"], kind="stable").round(4).to_csv(path, index=False)
