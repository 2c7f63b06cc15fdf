"""The Hoeffding tree: against river's, against gains by brute force, and against the authors' tree in dictionaries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from banditlab.boosting.trees.hoeffding import HoeffdingTree
from banditlab.boosting.trees.hoeffding_kernels import (
    ATTEMPT,
    CHILD,
    CLASS,
    FEATURE,
    KIND,
    LEAF,
    NOMINAL,
    NUMERIC,
    SCRATCH,
    SLOT,
    THRESHOLD,
    best_threshold,
    category_gain,
    coded_share,
    gaussian_share,
    learn,
)
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.problem import Problem

CODED = {"prior": 1.0, "largest_share": 1.0, "spread": "coded", "splits": "coded"}


def tree(problem, seed=0, **settings):
    return HoeffdingTree(problem, np.random.default_rng(seed), **settings)


def examples(seed, n, d, K, one_hot=(), whole=False):
    """Yield contexts that begin with one-hot columns, labels of a noisy linear rule, and weights.

    From the middle on, one context in ten has no category: its one-hot columns are 0.
    """
    rng = np.random.default_rng(seed)
    W, ends = rng.standard_normal((K, d)), np.cumsum([0, *one_hot])
    for t in range(n):
        x = rng.standard_normal(d)
        x = np.round(2.0 * x) if whole else x
        for first, size in zip(ends, one_hot):
            x[first : first + size] = np.eye(size)[rng.integers(size)] * (t < n // 2 or t % 10 > 0)
        yield as_contexts(x), int(np.argmax(W @ x + 0.3 * rng.standard_normal(K))), float(rng.uniform(0.0, 60.0))


def rivers_tree(ours):
    """Return river's tree of the same settings; it takes what `ours.read` returns, as a dictionary."""
    reason = "river, whose tree is the witness, is not installed: pip install river"
    river = pytest.importorskip("river.tree", reason=reason)
    return river.HoeffdingTreeClassifier(
        grace_period=ours.grace_period,
        delta=ours.split_confidence,
        tau=ours.tie_threshold,
        leaf_prediction="mc",
        nominal_attributes=list(range(len(ours.one_hot) - len(ours.ordered))),
    )


@pytest.mark.parametrize(
    ("seed", "n", "d", "K", "columns", "whole", "weighted"),
    [
        (0, 300, 4, 3, {}, False, True),
        (2, 500, 4, 3, {}, False, False),
        (5, 250, 3, 3, {}, True, True),
        (4, 300, 10, 3, {"one_hot": [4, 4, 2]}, False, True),
        (4, 300, 8, 2, {"one_hot": [4, 4]}, False, True),
        (4, 300, 8, 2, {"one_hot": [4, 3], "ordered": [0]}, False, True),
        (6, 100, 30, 8, {}, False, True),
    ],
)
@pytest.mark.few(3)
def test_it_is_rivers_tree(seed, n, d, K, columns, whole, weighted):
    ours = tree(Problem(d, K, 100.0), seed, **columns)
    theirs, q = rivers_tree(ours), np.zeros(K)
    for x, label, weight in examples(seed, n, d, K, columns.get("one_hot", ()), whole):
        features = dict(enumerate(ours.read(x).tolist()))
        shares = theirs.predict_proba_one(features)
        ours.estimate(x, q)
        np.testing.assert_allclose(q / q.sum(), [shares.get(k, 0.0 if shares else 1 / K) for k in range(K)], atol=1e-9)
        theirs.learn_one(features, label, w=weight if weighted else 1.0)
        ours.update(x, label, weight if weighted else 1.0)
    assert ours.state.sizes[0] == theirs.n_nodes >= 3


def test_gains_by_brute_force():
    def entropy(w):
        w = np.array([v for v in w if v > 0])
        return -(w / w.sum() * np.log2(w / w.sum())).sum()

    rng = np.random.default_rng(1)
    K, d, n = 3, 2, 60
    x, y, w = rng.standard_normal((n, d)), rng.integers(0, K, n), rng.uniform(0.5, 3.0, n)
    record = np.zeros(K + 5 * K * d)
    of = [y == k for k in range(K)]
    mean = [np.average(x[i], axis=0, weights=w[i]) for i in of]
    squares = [(w[i][:, None] * (x[i] - m) ** 2).sum(axis=0) for i, m in zip(of, mean)]
    record[:K] = [w[i].sum() for i in of]
    record[K : K + 4 * K * d] = np.concatenate(
        [mean, squares, [x[i].min(axis=0) for i in of], [x[i].max(axis=0) for i in of]]
    ).ravel()
    before = entropy(record[:K])
    for f in range(d):
        best = (-np.inf, 0.0, None)
        for at in np.linspace(x[:, f].min(), x[:, f].max(), 12)[1:-1]:
            share = [norm.cdf(at, m[f], np.sqrt(s[f] / (record[k] - 1))) for k, (m, s) in enumerate(zip(mean, squares))]
            share = [0.0 if at < x[i, f].min() else 1.0 if at >= x[i, f].max() else s for i, s in zip(of, share)]
            left = record[:K] * share
            right = record[:K] - left
            after = (left.sum() * entropy(left) + right.sum() * entropy(right)) / w.sum()
            best = max(best, (before - after, at, left), key=lambda found: found[0])
        kept = np.zeros(K)
        found = best_threshold(record, f, K, d, before, False, np.zeros(K), np.zeros(K), kept)
        assert found == pytest.approx(best[:2], rel=1e-9)
        np.testing.assert_allclose(kept, best[2], rtol=1e-9)
    table = rng.uniform(0.1, 5.0, (K, 4))
    nominal = np.concatenate([table.sum(axis=1), table.ravel()])
    before = entropy(table.sum(axis=1))
    expected = before - sum(c.sum() * entropy(c) for c in table.T) / table.sum()
    for scale in (1.0, 1e-3):  # weights count by their shares
        assert category_gain(scale * nominal, 0, 4, K, 0, 4, before, np.zeros(K)) == pytest.approx(expected)
    table[:, 1:] = 0.0
    nominal = np.concatenate([table.sum(axis=1), table.ravel()])
    assert category_gain(nominal, 0, 4, K, 0, 4, before, np.zeros(K)) == -np.inf


def test_the_spread_of_the_authors_code():
    """The first threshold inside a class's range takes the variance of the attempt before; in the first, half is left."""

    def share(at, x, variance):
        if at < x.min() or at >= x.max():
            return float(at >= x.max())
        return norm.cdf((at - x.mean()) / np.sqrt(variance)) if variance else 0.5

    rng = np.random.default_rng(5)
    of = [rng.normal(0.0, 1.0, 12), rng.normal(0.7, 0.5, 9)]
    points = np.linspace(min(x.min() for x in of), max(x.max() for x in of), 12)[1:-1]
    record = np.array([12, 9, *[f(x) for f in (np.mean, lambda x: x.size * x.var(), np.min, np.max) for x in of], 0, 0])
    stale = [0.0, 0.0]
    for _ in range(2):
        lefts = []
        met = [False, False]
        for at in points:
            lefts.append([])
            for k, x in enumerate(of):
                inside = x.min() <= at < x.max()
                lefts[-1].append(x.size * share(at, x, x.var() if met[k] or not inside else stale[k]))
                met[k] |= inside
        stale = [x.var() for x in of]

        def after(left):
            sides = [left, np.array([12, 9]) - left]
            return sum(-(w[w > 0] * np.log2(w[w > 0] / w.sum())).sum() for w in sides) / 21

        best = min(lefts, key=lambda left: after(np.array(left)))
        kept = np.zeros(2)
        gain, at = best_threshold(record, 0, 2, 1, 1.0, True, np.zeros(2), np.zeros(2), kept)
        np.testing.assert_allclose(kept, best, rtol=1e-9)
        assert gain == pytest.approx(1.0 - after(np.array(best)))
        assert at == pytest.approx(points[lefts.index(best)])
        np.testing.assert_allclose(record[-2:], stale, rtol=1e-9)


class CodedTree:
    """The tree of the authors' code in dictionaries, one node an object; x is a list, of `nominal` categories first."""

    def __init__(self, categories, grace, confidence, tie, classes):
        self.weights, self.stats, self.split, self.children = {}, [{} for _ in range(classes)], None, {}
        self.seen, self.closed, self.settings = 0.0, False, (categories, grace, confidence, tie, classes)

    def child(self, x):
        f, at = self.split
        return self.children.get(x[f] if at is None else x[f] > at)

    def estimate(self, x):
        node = self
        while node.split and node.child(x):
            node = node.child(x)
        return np.array([node.weights.get(k, 1.0) for k in range(self.settings[-1])])

    def update(self, x, y, weight):
        if self.split:
            f, at = self.split
            self.children.setdefault(x[f] if at is None else x[f] > at, CodedTree(*self.settings)).update(x, y, weight)
            return
        self.weights[y] = self.weights.get(y, 1.0) + weight
        if self.closed:
            return
        for f, value in enumerate(x):
            if f < len(self.settings[0]):
                counts = self.stats[y].setdefault(f, {})
                counts[value] = counts.get(value, 1.0) + weight
            else:
                self.stats[y].setdefault(f, {"w": [], "x": [], "variance": np.inf})
                self.stats[y][f]["w"].append(weight)
                self.stats[y][f]["x"].append(value)
        total = sum(self.weights.values())
        if total - self.seen >= self.settings[1]:
            if len(self.weights) > 1:
                self.attempt(total, len(x))
            self.seen = total

    def attempt(self, total, d):
        categories, _, confidence, tie, _ = self.settings
        found = [s for f in range(d) if (s := self.nominal(f) if f < len(categories) else self.numeric(f))]
        if not found:
            self.weights, self.closed = {}, True
            return
        found.sort(key=lambda s: s[0])
        lead = float(found[-1][0]) - (float(found[-2][0]) if len(found) > 1 else -np.inf)  # nan if none sends two ways
        bound = np.log2(max(2, len(self.weights))) * np.sqrt(np.log(1 / confidence) / (2 * total))
        if lead > bound or bound < tie:
            _, self.split, parts = found[-1]
            for name, weights in parts:
                self.children[name] = child = CodedTree(*self.settings)
                child.weights, child.seen = dict(weights), sum(weights.values())

    def gain(self, parts):
        def entropy(weights):
            w = np.array([v for v in weights.values() if v > 0.0])
            return float(-(w / w.sum() * np.log2(w / w.sum())).sum()) if len(w) else 0.0

        sizes = np.array([sum(p.values()) for p in parts])
        if (sizes > 0.01 * sizes.sum()).sum() < 2:
            return -np.inf
        return entropy(self.weights) - sum(size * entropy(p) for size, p in zip(sizes, parts)) / sizes.sum()

    def nominal(self, f):
        met = sorted({v for of in self.stats for v in of.get(f, {})})
        parts = [{k: of[f][v] for k, of in enumerate(self.stats) if v in of.get(f, {})} for v in met]
        return self.gain(parts), (f, None), list(enumerate(parts))

    def numeric(self, f):
        known = {k: of[f] for k, of in enumerate(self.stats) if f in of}
        low, high = min(min(s["x"]) for s in known.values()), max(max(s["x"]) for s in known.values())
        best = None
        for at in [low + (high - low) / 11.0 * (i + 1) for i in range(10)] if low < high else []:
            left, right = {}, {}
            for k, s in known.items():
                w, values = np.array(s["w"]), np.array(s["x"])
                if at < values.min():
                    right[k] = w.sum()
                elif at >= values.max():
                    left[k] = w.sum()
                else:
                    mean, before = np.average(values, weights=w), s["variance"]
                    s["variance"] = max(1e-12, np.average((values - mean) ** 2, weights=w))
                    left[k] = w.sum() * norm.cdf((at - mean) / np.sqrt(before))
                    right[k] = w.sum() - left[k]
            gain = self.gain([left, right])
            if best is None or gain > best[0]:
                best = gain, (f, at), [(False, left), (True, right)]
        return best


@pytest.mark.parametrize(
    ("seed", "d", "K", "one_hot", "most"),
    [(0, 4, 3, [], 1.0), (1, 4, 3, [], 50.0), (2, 12, 4, [4, 3, 3], 1.0), (3, 12, 4, [4, 3, 3], 50.0)],
)
def test_it_is_the_authors_tree(seed, d, K, one_hot, most):
    problem = Problem(d, K, 100.0)
    ours = tree(problem, seed, grace_period=7, split_confidence=0.3, tie_threshold=0.4, one_hot=one_hot, **CODED)
    theirs, q = CodedTree(one_hot, 7, 0.3, 0.4, K), np.zeros(K)
    for x, label, weight in itertools.islice(examples(seed, 500, d, K, one_hot), 250):
        weight *= most / 60.0
        view = ours.view(x)
        ours.estimate(view, q)
        expected = theirs.estimate((view.values if one_hot else view).tolist())
        np.testing.assert_allclose(q, expected / expected.sum(), rtol=1e-7)
        ours.update(view, label, weight)
        theirs.update((view.values if one_hot else view).tolist(), label, weight)
    assert ours.state.sizes[0] >= 5


def test_a_leaf_of_one_point_closes_for_good_in_the_authors_tree():
    one, q, x = (
        tree(Problem(2, 2, 4.0), grace_period=5, **CODED | {"prior": 2.0}),
        np.zeros(2),
        as_contexts([0.5, -1.0]),
    )
    one.update(x, 0, 9.0)
    one.update(x, 1, 9.0)  # two classes at one point: nothing to split by
    one.estimate(x, q)
    assert q.tolist() == [0.5, 0.5]  # nothing counted
    rng = np.random.default_rng(0)
    for i in range(100):
        one.update(as_contexts([i % 2 + 0.1 * rng.random(), 0.0]), i % 2, 9.0)
    assert one.state.sizes[0] == 1
    one.update(x, 0, 90.0)
    one.estimate(x, q)
    np.testing.assert_allclose(q, [542 / 994, 452 / 994])


def test_a_leaf_of_one_point_begins_anew():
    one, x = tree(Problem(1, 2, 4.0), **GROWING), as_contexts([0.5])
    one.update(x, 0, 9.0)
    one.update(x, 1, 9.0)
    assert one.state.sizes.tolist() == [1, 1, 0]  # not split, and without statistics
    assert one.state.nodes[0, SLOT] == -1


def test_a_class_that_ends_at_the_threshold_is_all_below_and_one_that_begins_there_is_not_all_above():
    one = tree(Problem(1, 2, 20.0), **GROWING)
    for value, label in ((0.0, 0), (5.0, 0), (5.0, 1), (11.0, 1)):
        one.update(as_contexts([value]), label, 3.0)
    assert one.state.values[0, THRESHOLD] == 5.0  # of 1, 2, ..., 10
    below = 6.0 * norm.cdf(-3.0 / math.sqrt(54.0 / 5.0))
    leaves = [[6.0 + below, 6.0, below], [6.0 - below, -1.0, 6.0 - below]]
    np.testing.assert_allclose(one.state.values[1:3, ATTEMPT:], leaves)
    assert one.state.sizes.tolist() == [3, 1, 0]
    one.update(as_contexts([4.0]), 0, 1.0)
    assert one.state.sizes.tolist() == [3, 1, -1]  # the slot that was free is taken


@pytest.mark.parametrize(("weight", "share"), [(0.4, [1.0, 0.0]), (0.5, [0.0, 1.0])])
def test_a_category_without_a_branch_is_read_at_the_heaviest(weight, share):
    """Below the root: a split at 0 with two leaves of this weight, and two leaves of 0.9; of equals the first."""
    one, q = tree(Problem(5, 2, 4.0), one_hot=[4], prior=0.1), np.zeros(2)
    nodes, values = one.state.nodes, one.state.values
    nodes[0, : CHILD + 3] = NOMINAL, 0, -1, 1, 2, 3
    nodes[1, : CHILD + 2] = NUMERIC, 1, -1, 4, 5
    nodes[2:6, KIND], values[1, THRESHOLD] = LEAF, 0.0
    values[2:6, CLASS:] = [0.9, 0.0], [0.0, 0.9], [0.0, weight], [weight, 0.0]
    one.estimate(as_contexts([0.0, 0.0, 0.0, 1.0, 0.0]), q)
    assert q.tolist() == share


def test_a_class_of_weight_0_was_seen_but_is_none_to_split_off():
    """Rounding may leave all of a class on one side of a split."""

    def leaf(*weights, **settings):
        given = {"grace_period": 5, "split_confidence": 0.5, "tie_threshold": 0.3} | settings
        one = tree(Problem(2, len(weights), 4.0), **given)
        one.state.values[0, CLASS:] = weights
        for value, label in ((0.0, 1), (1.0, len(weights) - 1)):
            one.update(as_contexts([value, value]), label, 3.0)
        return one

    assert leaf(0.0, -1.0).state.nodes[0, SLOT] == 0  # one class is no reason to reset a leaf
    assert leaf(0.0, -1.0, **CODED).state.sizes[0] == 3
    assert leaf(0.0, -1.0, -1.0).state.sizes[0] == 1  # at three classes the bound is above the tie
    assert leaf(-1.0, 0.0, prior=1.0).state.values[0, CLASS:].tolist() == [-1.0, 6.0]


@pytest.mark.parametrize(("rows", "slots"), [(5, 1), (4, 1), (5, 0), (6, 2)])
def test_an_example_is_learnt_only_where_what_may_come_has_room(rows, slots):
    """A node has 3 + 2 columns, and so many nodes may come at most; a leaf that learns has a slot."""
    one, x = tree(Problem(1, 2, 4.0), grace_period=5), as_contexts([0.5])
    nodes, values, seen, sizes, tuning = one.state
    sizes[0] = 64 - rows
    seen, sizes[1] = np.zeros((4, seen.shape[1])), 4 - slots
    before = [array.copy() for array in (nodes, values, seen, sizes)]
    enough = rows >= 5 and slots >= 1
    assert learn(x, 1, 2.0, one.starts, nodes, values, seen, sizes, tuning, np.zeros((SCRATCH, 2))) is enough
    if enough:
        assert values[0, CLASS:].tolist() == [-1.0, 2.0]
        assert sizes[1] == 5 - slots
    else:
        assert all(np.array_equal(old, new) for old, new in zip(before, (nodes, values, seen, sizes)))
    grown = one.state._replace(seen=seen).grown()
    assert len(grown.nodes) == len(grown.values) == 64 * (1 + (rows < 5))
    assert len(grown.seen) == (8 if sizes[1] >= 4 else 4)
    assert (grown.nodes[64:] == -1).all()
    assert (grown.values[64:] == -1.0).all()
    assert not grown.seen[4:].any()


def test_a_prior_for_classes_not_seen():
    problem, x, q = Problem(2, 3, 2.0), as_contexts([0.3, -0.4]), np.zeros(3)
    without, with_one = tree(problem), tree(problem, prior=1.0)
    for one in (without, with_one):
        one.estimate(x, q)
        assert q.tolist() == [1.0 if one is without else 1.0 / 3.0] * 3
        one.update(x, 1, 4.0)
    without.estimate(x, q)
    assert q.tolist() == [0.0, 1.0, 0.0]
    with_one.estimate(x, q)
    np.testing.assert_allclose(q, [1 / 7, 5 / 7, 1 / 7])  # 1 at first, and its example's weight
    assert with_one.state.values[0, CLASS:].tolist() == [-1.0, 5.0, -1.0]


def test_one_class_with_nearly_all_the_weight_keeps_a_leaf_whole():
    rng = np.random.default_rng(2)
    trees = [tree(Problem(1, 2, 2.0), **GROWING, largest_share=share) for share in (0.9, 0.95, 1.0)]

    def feed(one, every):
        for i in range(400):
            label = int(i % every == every - 1)
            one.update(as_contexts([label + 0.1 * rng.standard_normal()]), label, 1.0)

    for one in trees:
        feed(one, 20)
    assert [bool(one.state.sizes[0] > 1) for one in trees] == [False, True, True]
    feed(trees[0], 2)
    assert trees[0].state.sizes[0] > 1  # it began anew each time


def test_refusals():
    problem = Problem(4, 3, 2.0)
    for settings, word in [
        ({"prior": -1.0}, "prior"),
        ({"largest_share": 0.0}, "largest_share"),
        ({"largest_share": 1.5}, "largest_share"),
        ({"splits": "river"}, "splits"),
        ({"one_hot": [3, 2]}, "one_hot"),
        ({"one_hot": [3, 0]}, "one_hot must be at least 1, got 0"),
        ({"one_hot": [3], "ordered": [1]}, "ordered"),
        ({"one_hot": [2, 2], "ordered": [1, 1]}, "ordered"),
        ({"grace_period": 0}, "grace_period must be at least 1"),
        ({"split_confidence": 1.0}, "split_confidence must lie strictly between 0 and 1"),
        ({"tie_threshold": 0.0}, "tie_threshold must lie strictly between 0 and 1"),
        ({"tie_threshold": "often"}, "tie_threshold must be a number or 'random'"),
        ({"one_hot": 3}, "one_hot must be a list of integers, got 3"),
        ({"one_hot": "2,2"}, "one_hot must be a list of integers, got '2,2'"),
        ({"one_hot": [2, 2.0]}, "one_hot must be an integer"),
        ({"one_hot": [2, 2], "ordered": 0}, "ordered must be a list of integers, got 0"),
    ]:
        with pytest.raises(UsageError, match=word):
            tree(problem, **settings)


def two_classes(one, other, lows, highs):
    """Return the record of two classes of these weights on one numeric column, each with mean and sum of squares 0.1."""
    return np.array([one, other, 0.1, 0.1, 0.1, 0.1, *lows, *highs, 0.0, 0.0])


@pytest.mark.parametrize(("other", "splits"), [(1.0, False), (2.0, True)])
def test_more_than_a_hundredth_goes_two_ways(other, splits):
    one = 100.0 - other
    record, kept = two_classes(one, other, (0.0, 10.0), (0.5, 10.0)), np.zeros(2)
    before = -sum(w / 100.0 * math.log2(w / 100.0) for w in (one, other))
    gain, at = best_threshold(record, 0, 2, 1, before, False, np.zeros(2), np.zeros(2), kept)
    assert gain == (pytest.approx(before) if splits else -np.inf)
    assert at == pytest.approx(10.0 / 11.0)  # of equals the first
    if splits:
        assert kept.tolist() == [one, 0.0]
    for scale in (1.0, 1e-3):  # weights count by their shares
        table = scale * np.array([100.0 - other, other, 100.0 - other, 0.0, 0.0, other])
        gain = category_gain(table, 0, 2, 2, 0, 2, before, np.zeros(2))
        assert gain == (pytest.approx(before) if splits else -np.inf)


def test_values_too_near_for_a_threshold_between_them_are_one():
    near = np.nextafter(1.0, 2.0)
    record = two_classes(5.0, 5.0, (1.0, near), (1.0, near))
    gain, at = best_threshold(record, 0, 2, 1, 1.0, False, *np.zeros((3, 2)))
    assert gain == -np.inf
    assert math.isnan(at)


GROWING = {"grace_period": 5, "split_confidence": 0.9, "tie_threshold": 0.9}


@pytest.mark.parametrize("settings", [{}, {"prior": 0.5}, CODED], ids=["usual", "prior", "coded"])
@pytest.mark.parametrize("one_hot", [[], [3, 2]])
def test_what_is_learnt_is_a_tree_that_a_file_may_bring(settings, one_hot):
    one, other = (tree(Problem(7, 3, 100.0), 1, one_hot=one_hot, **GROWING, **settings) for _ in range(2))
    assert one.state.nodes.shape[0] == 64
    for t, (x, label, _) in enumerate(examples(7, 900, 7, 3, one_hot)):
        one.update(x, label, 2.0 if t % 3 else 0.0)
        if t % 60 == 59:
            other.set_state(one.get_state())
            np.testing.assert_array_equal(other.state.nodes, one.state.nodes)
    assert one.state.sizes[0] > 5
    if not settings and not one_hot:
        assert one.state.nodes.shape[0] > 64  # the arrays it began with have grown


def test_blocks_are_read_as_single_contexts():
    """Of two nominal features of 3 and 4 categories, and an ordered one of 2; none of them is a category, or -1."""
    one = tree(Problem(11, 2, 10.0), one_hot=[3, 2, 4], ordered=[1])
    X = np.array([list(map(float, bits)) for bits in ("00000000012", "01001001000", "10010000101")])
    read = [[3.0, 4.0, -1.0, 1.0, 2.0], [1.0, 2.0, 1.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(one.views(X), read)
    assert [one.view(x).values.tolist() for x in X] == read
    assert one.starts.tolist() == [0, 4, 9]  # three and four categories, and none of them
    assert one.state.seen.shape == (4, 2 + 5 * 2 * 3 + 2 * 9)  # three columns of numbers, one of them ordered


@pytest.mark.parametrize("column", range(5))
def test_a_tree_that_is_saved_may_split_the_columns_there_are(column):
    """One nominal column, an ordered one and two numeric ones."""
    one, other = (tree(Problem(7, 2, 10.0), one_hot=[3, 2], ordered=[1]) for _ in range(2))
    nodes = one.state.nodes
    nodes[0, [KIND, FEATURE]], nodes[0, CHILD : CHILD + 2] = (NUMERIC if column else NOMINAL, column), (1, 2)
    nodes[1:3, KIND], one.state.sizes[:] = LEAF, (3, 0, -1)
    if column < 4:
        other.set_state(one.get_state())
        assert other.state.nodes[0].tolist() == nodes[0].tolist()
    else:
        with pytest.raises(UsageError, match="a split uses a column that does not exist"):
            other.set_state(one.get_state())


def test_a_trees_tuning_is_three_draws_whether_used_or_not():
    """An integer and two uniforms; what follows, for ties, is the generator's next."""
    for settings in ({}, GROWING):
        rng, twin = np.random.default_rng(5), np.random.default_rng(5)
        one = HoeffdingTree(Problem(2, 2, 1.0), rng, **settings)
        drawn = int(twin.integers(5, 20, endpoint=True)), *twin.uniform(math.log(0.01), math.log(0.9), 2)
        assert rng.random() == twin.random()
        if not settings:
            assert one.grace_period == drawn[0]
            assert (one.split_confidence, one.tie_threshold) == pytest.approx(np.exp(drawn[1:]), rel=1e-12)
    assert tree(Problem(2, 2, 1.0), grace_period=1).grace_period == 1


@pytest.mark.parametrize(("at", "share"), [(0.9, 0.0), (1.0, norm.cdf(-1.0)), (2.5, norm.cdf(0.5)), (3.0, 1.0)])
def test_a_threshold_at_the_least_value_is_within_a_classs_range(at, share):
    """Weight 5, mean 2, variance 1, values from 1 to 3."""
    usual, coded = (getattr(kernel, "py_func", kernel) for kernel in (gaussian_share, coded_share))
    assert usual(at, 5.0, 2.0, 4.0, 1.0, 3.0) == pytest.approx(share, rel=1e-12)
    assert coded(at, 5.0, 2.0, 5.0, 1.0, 3.0, True, np.zeros(1), 0) == pytest.approx(share, rel=1e-12)


def test_values_whose_variance_underflows_are_all_above_a_threshold_below_the_largest():
    usual = getattr(gaussian_share, "py_func", gaussian_share)
    assert [usual(at * 1e-200, 5.0, 2e-200, 0.0, 1e-200, 3e-200) for at in (1.0, 2.0, 3.0)] == [0.0, 0.0, 1.0]
    assert usual(2.0, 1.0, 2.0, 4.0, 1.0, 3.0) == 0.0  # nor has a weight of 1 a variance


def test_the_authors_variance_is_at_least_1e_12_and_a_single_value_is_not_above_itself():
    coded = getattr(coded_share, "py_func", coded_share)
    assert coded(2.0, 5.0, 2.0, 0.0, 2.0, 2.0, True, np.zeros(1), 0) == 1.0
    assert coded(2.0 + 1e-6, 5.0, 2.0, 0.0, 1.0, 3.0, True, np.zeros(1), 0) == pytest.approx(norm.cdf(1.0), rel=1e-9)


@pytest.mark.parametrize(("tie", "nodes"), [(0.0, 1), (1e-9, 3)])
def test_a_lead_must_exceed_the_bound_or_the_bound_be_below_the_tie(tie, nodes):
    """Two columns that say the same have a lead of 0; at confidence 1 the bound is 0."""
    one = tree(Problem(2, 2, 4.0), grace_period=5)
    one.state.tuning[1:3] = 1.0, tie
    one.update(as_contexts([0.0, 0.0]), 0, 3.0)
    one.update(as_contexts([1.0, 1.0]), 1, 5.0)
    assert one.state.sizes[0] == nodes
    assert one.state.nodes[0, FEATURE] == (1 if nodes == 3 else -1)  # of equals the last
