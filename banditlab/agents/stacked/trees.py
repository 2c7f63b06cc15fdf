r"""StackCB's expert of boosted trees, which is fitted to the rounds in memory after 512, 1,024, 2,048, ... updates.

A tree has one split per level, so the number of a leaf has `DEPTH` bits ("oblivious" trees, Prokhorenkova et al.,
NeurIPS 2018). There is one model per class, or one for both of two classes. All models share the splits, and each has
its own values in the leaves. The margin of a model is a constant plus its values in the leaves into which a context
falls. A model is fitted to the rounds in which its class was chosen. The target is 1 if the class was right, else 0. A
model for two classes is fitted to all rounds.

Trees are fitted one after the other to the logistic loss (Friedman, Annals of Statistics 2001). Let s be the margin of a
round so far, :math:`p = \mathrm{sigmoid}(s)`, :math:`g = p - \text{target}` and :math:`h = p (1 - p)`. G and H are
their sums over the rounds of one model in one leaf. A split divides every leaf into parts L and R. Its gain is

.. math::

    \sum_{\text{leaves, models}} \frac{G_L^2}{H_L + 1} + \frac{G_R^2}{H_R + 1} - \frac{G^2}{H + 1}. \tag{1}

A leaf has the value :math:`-\text{STEP} \cdot G / (H + 1)`. Columns are split at quantiles. Each tree reads at most `COLUMNS`
columns, drawn at random. Between two fits the splits stay as they are, and every round updates the leaves of its context:

.. math::

    H \leftarrow H + p (1 - p), \qquad \text{value} \leftarrow \text{value} - \text{ONLINE} \cdot g / (H + 1). \tag{2}
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.stacked.views import sort
from banditlab.numerics.jit import borrow, inline, njit, read_only
from banditlab.numerics.limits import Limits
from banditlab.numerics.simd import WIDTH, eight, how_many_below

TREES, DEPTH, STEP, ONLINE = 16, 6, 0.25, 0.5
LEAVES = 2**DEPTH
COLUMNS = 12
CUTS, SAMPLE = 2 * WIDTH, 255
"""Number of quantiles of a column, and number of contexts from which they are estimated."""
LEAST_ROUNDS = 10
"""Least number of a model's rounds in a leaf with which they count in the gain of a split."""
FIRST_FIT = 512
"""Number of updates before the first fit; the fit is repeated whenever this number has doubled."""
SHRINK = 100.0
"""Number of a model's rounds at which the trees' margin and the other expert's margin have equal weights."""
CLIP = 3.0
"""Largest absolute value of the trees' margin."""
LEAST_GAIN = 1e-9
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Trees(NamedTuple):
    """The trees of M models: `columns` (TREES, C), which a tree may read; `column` and `cut` (TREES, DEPTH), its
    splits; `value` (TREES, LEAVES, M), the values of the leaves.

    `curvature` (TREES, LEAVES, M) is H + 1 of each leaf and model. `base` (M,) is the margin before the first tree, and
    `rounds` (M,) the number of rounds that a model was fitted to or updated with. `fits` (1,) counts the fits since the
    last reset.

    Work arrays for N rounds: `codes` (C, N), how many quantiles are below an entry; `quantiles` (C, CUTS); `sample`
    (SAMPLE,); `model`, `leaf` and `pair` (N,), the indices of a round's model, leaf and (leaf, model) pair, where -1 is
    no pair; `target`, `g`, `h` and `margin` (N,); `number` (LEAVES, M), the index of each pair; `sums`
    (pairs, CUTS + 1, 2), sums of g and h.
    """

    columns: Integers
    column: Integers
    cut: Floats
    value: Floats
    curvature: Floats
    base: Floats
    rounds: Floats
    fits: Integers
    codes: NDArray[np.uint8]
    quantiles: Floats
    sample: Floats
    model: Integers
    leaf: Integers
    pair: Integers
    target: Floats
    g: Floats
    h: Floats
    margin: Floats
    number: Integers
    sums: Floats

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        pairs = len(self.sums) - 1
        return {
            "fits": (0, 2**53), "codes": (0, CUTS), "model": (0, len(self.base) - 1), "leaf": (0, LEAVES - 1),
            "pair": (-1, pairs), "number": (-1, pairs),
        }  # fmt: skip


def empty_trees(rng: np.random.Generator, d: int, n_models: int, memory: int) -> Trees:
    """Return trees that have not been fitted, with margins of 0; rng draws the columns that each tree may read."""
    M, N, C = n_models, memory, min(COLUMNS, d)
    columns = np.array([rng.permutation(d)[:C] for _ in range(TREES)], np.int64)
    column, cut = np.zeros((TREES, DEPTH), np.int64), np.zeros((TREES, DEPTH))
    value, curvature = (np.zeros((TREES, LEAVES, M)) for _ in range(2))
    model, leaf, pair = (np.zeros(N, np.int64) for _ in range(3))
    target, g, h, margin = (np.zeros(N) for _ in range(4))
    return Trees(
        columns, column, cut, value, curvature, base=np.zeros(M), rounds=np.zeros(M), fits=np.zeros(1, np.int64),
        codes=np.zeros((C, N), np.uint8), quantiles=np.zeros((C, CUTS)), sample=np.zeros(SAMPLE), model=model, leaf=leaf,
        pair=pair, target=target, g=g, h=h, margin=margin, number=np.zeros((LEAVES, M), np.int64),
        sums=np.zeros((N // LEAST_ROUNDS, CUTS + 1, 2)),
    )  # fmt: skip


@njit
def read_trees(trees, x, like, z):
    """Write the margins of all models at x (d,) into z (M,); before the first fit they are 0.

    After n rounds of a model, its margin is the trees' margin with weight n/(n + SHRINK) plus that of another expert,
    `like` (M,), with the remaining weight.
    """
    if trees is None:  # known when a kernel is compiled
        return
    value, M = borrow(trees.value), z.shape[0]
    if trees.fits[0] == 0:
        z[:] = 0.0
        return
    for k in range(M):
        z[k] = trees.base[k]
    for tree in range(TREES):
        leaf = leaf_of(trees, tree, x)
        for k in range(M):
            z[k] += value[tree, leaf, k]
    for k in range(M):
        weight = trees.rounds[k] / (trees.rounds[k] + SHRINK)
        z[k] = like[k] + weight * (max(-CLIP, min(CLIP, z[k])) - like[k])


@inline
def leaf_of(trees, tree, x):
    """Return the number of the leaf that x (d,) falls into."""
    column, cut, leaf = borrow(trees.column), borrow(trees.cut), 0
    for level in range(DEPTH):
        leaf = 2 * leaf + (1 if x[column[tree, level]] > cut[tree, level] else 0)
    return leaf


@njit
def reset_trees(trees):
    """Reset all margins to 0."""
    if trees is None:
        return
    trees.fits[0] = 0


@njit
def update_trees(trees, memory, end, n, shared):
    """Fit the trees after n = 512, 1,024, 2,048, ... updates, and after a reset as soon as n is at least 512.
    Between two fits, update the leaves of the last round's context.

    The last round is row `end - 1` of the memory. `shared` says whether one model serves two classes.
    """
    if trees is None:
        return
    N = memory.hit.shape[0]
    if n >= FIRST_FIT and (n & (n - 1) == 0 or trees.fits[0] == 0):
        fit_trees(trees, memory, (end - min(n, N)) % N, min(n, N), shared)
    elif trees.fits[0] > 0:
        update_leaves(trees, memory, (end - 1) % N, shared)


@njit
def update_leaves(trees, memory, t, shared):
    """Update the leaves of the context of round t, by (2)."""
    x, (k, target) = read_only(memory.X[t]), model_and_target(memory, t, shared)
    leaf, value, curvature = borrow(trees.leaf), borrow(trees.value), borrow(trees.curvature)
    margin = trees.base[k]
    for tree in range(TREES):
        leaf[tree] = leaf_of(trees, tree, x)
        margin += value[tree, leaf[tree], k]
    p = sigmoid(margin)
    for tree in range(TREES):
        curvature[tree, leaf[tree], k] += p * (1.0 - p)
        value[tree, leaf[tree], k] -= ONLINE * (p - target) / curvature[tree, leaf[tree], k]
    trees.rounds[k] += 1.0


@inline
def model_and_target(memory, t, shared):
    """Return the model that round t updates, and its target."""
    action, hit = memory.action[t], memory.hit[t]
    return (0 if shared else action), (1.0 if (hit == (action == 0) if shared else hit) else 0.0)


@njit
def fit_trees(trees, memory, first, n, shared):
    """Fit the trees to n rounds of the memory (a ring), from row `first` on."""
    base, rounds = trees.base, trees.rounds
    base[:] = 0.0
    rounds[:] = 0.0
    for i in range(n):
        k, trees.target[i] = model_and_target(memory, (first + i) % memory.hit.shape[0], shared)
        trees.model[i] = k
        base[k] += trees.target[i]
        rounds[k] += 1.0
    for k in range(base.shape[0]):
        base[k] = math.log((base[k] + 0.5) / (rounds[k] - base[k] + 0.5))
    for i in range(n):
        trees.margin[i] = base[trees.model[i]]
    for tree in range(TREES):
        for i in range(n):
            p = sigmoid(trees.margin[i])
            trees.g[i], trees.h[i], trees.leaf[i] = p - trees.target[i], p * (1.0 - p), 0
        code_columns(trees, memory.X, first, n, tree)
        for level in range(DEPTH):
            split(trees, tree, level, n)
        set_values(trees, tree, n)
    trees.fits[0] += 1


@njit
def code_columns(trees, X, first, n, tree):
    """Estimate the quantiles of the columns that a tree may read, and write how many of them are below each entry."""
    N, X, sample = X.shape[0], borrow(X), borrow(trees.sample)
    quantiles, codes = borrow(trees.quantiles), borrow(trees.codes)
    for c in range(codes.shape[0]):
        j = trees.columns[tree, c]
        for i in range(SAMPLE):
            sample[i] = X[(first + i * n // SAMPLE) % N, j]
        sort(sample, SAMPLE)
        for b in range(CUTS):
            quantiles[c, b] = sample[(b + 1) * SAMPLE // (CUTS + 1)]
        low, high = eight(quantiles, c * CUTS), eight(quantiles, c * CUTS + WIDTH)
        for i in range(n):
            x = X[(first + i) % N, j]
            codes[c, i] = how_many_below(low, x) + how_many_below(high, x)


@njit
def split(trees, tree, level, n):
    """Split all leaves of a level at the column and cut of largest gain. Without a gain, all rounds go to the first
    child.
    """
    pairs, most, column, code = number_pairs(trees, n), LEAST_GAIN, 0, CUTS
    for c in range(trees.codes.shape[0]):
        sum_by_code(trees, c, pairs, n)
        for b in range(CUTS):
            gain = gain_of(trees.sums, pairs, b)
            if gain > most:
                most, column, code = gain, c, b
    trees.column[tree, level] = trees.columns[tree, column]
    trees.cut[tree, level] = trees.quantiles[column, code] if code < CUTS else math.inf
    codes, leaf = borrow(trees.codes), borrow(trees.leaf)
    for i in range(n):
        leaf[i] = 2 * leaf[i] + (1 if codes[column, i] > code else 0)


@njit
def number_pairs(trees, n):
    """Number the pairs (leaf, model) with enough rounds, and return how many there are. Every round gets the number of
    its pair, or -1.
    """
    number, pairs = borrow(trees.number), 0
    number[:] = 0
    for i in range(n):
        number[trees.leaf[i], trees.model[i]] += 1
    for l in range(LEAVES):
        for k in range(number.shape[1]):
            enough = number[l, k] >= LEAST_ROUNDS
            number[l, k] = pairs if enough else -1
            pairs += enough
    for i in range(n):
        trees.pair[i] = number[trees.leaf[i], trees.model[i]]
    return pairs


@njit
def sum_by_code(trees, c, pairs, n):
    """Write the sums of g and h of each pair over the rounds whose code in column c is at most 0, 1, ..., CUTS."""
    codes, pair, sums = borrow(trees.codes), borrow(trees.pair), borrow(trees.sums)
    g, h = borrow(trees.g), borrow(trees.h)
    sums[:pairs] = 0.0
    for i in range(n):
        if pair[i] >= 0:
            sums[pair[i], codes[c, i], 0] += g[i]
            sums[pair[i], codes[c, i], 1] += h[i]
    for j in range(pairs):
        for b in range(CUTS):
            sums[j, b + 1, 0] += sums[j, b, 0]
            sums[j, b + 1, 1] += sums[j, b, 1]


@njit
def gain_of(sums, pairs, b):
    """Return the gain (1) of the cut at quantile b."""
    sums, gain = borrow(sums), 0.0
    for j in range(pairs):
        g, h, g_all, h_all = sums[j, b, 0], sums[j, b, 1], sums[j, CUTS, 0], sums[j, CUTS, 1]
        gain += g * g / (h + 1.0) + (g_all - g) ** 2 / (h_all - h + 1.0) - g_all * g_all / (h_all + 1.0)
    return gain


@njit
def set_values(trees, tree, n):
    """Set the values of a tree's leaves, and add them to the margins of the rounds."""
    value, curvature = trees.value[tree], trees.curvature[tree]
    value[:] = 0.0
    curvature[:] = 1.0
    for i in range(n):
        value[trees.leaf[i], trees.model[i]] -= STEP * trees.g[i]
        curvature[trees.leaf[i], trees.model[i]] += trees.h[i]
    for l in range(LEAVES):
        for k in range(value.shape[1]):
            value[l, k] /= curvature[l, k]
    for i in range(n):
        trees.margin[i] += value[trees.leaf[i], trees.model[i]]
