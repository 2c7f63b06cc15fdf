"""Weak learners: what they predict under costs, what they make of weights, and how they are asked for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from banditlab.boosting.trees.hoeffding import HoeffdingTree
from banditlab.boosting.weak.forecasting import Forecasting
from banditlab.boosting.weak.weak_learner import least_costly, most_probable
from banditlab.errors import IncompatibleError, UsageError
from banditlab.problem import Problem

PROBLEM = Problem(4, 3, 2.0)


def learner(cls=HoeffdingTree, seed=0, problem=PROBLEM, **settings):
    if cls is HoeffdingTree:
        pytest.importorskip("river", reason='river is missing: pip install -e ".[boosting]"')
    return cls(problem, np.random.default_rng(seed), **settings)


def test_the_cheapest_class_in_the_mean():
    rng = np.random.default_rng(1)
    for _ in range(200):
        K = int(rng.integers(2, 7))
        q, costs = rng.dirichlet(np.ones(K)), rng.normal(size=(K, K))
        assert least_costly(q, costs, np.zeros(K), rng.random()) == np.argmin(q @ costs)
        assert least_costly(q, 1.0 - np.eye(K), np.zeros(K), rng.random()) == most_probable(q, rng.random())


def test_ties_are_drawn_evenly_among_the_tied():
    rng = np.random.default_rng(2)
    q = np.array([0.1, 0.4, 0.1, 0.4])
    drawn = np.bincount([most_probable(q, u) for u in rng.random(4000)], minlength=4)
    assert drawn[0] == drawn[2] == 0
    assert abs(drawn[1] - 2000) < 5 * np.sqrt(1000)
    assert most_probable(q, 1.0 - 1e-16) == 3


def test_one_uniform_a_prediction_tied_or_not():
    one = learner(Forecasting)
    before = np.random.default_rng()
    before.bit_generator.state = one.rng.bit_generator.state
    one.predict(np.ones(4))
    before.random()
    one.update(np.ones(4), 2, 1.0)
    before.random()
    one.predict(np.ones(4), np.eye(3))
    before.random()
    assert one.rng.bit_generator.state == before.bit_generator.state


def test_a_forecaster_gets_an_example_as_often_as_it_weighs():
    rng = np.random.default_rng(3)
    one = Forecasting(PROBLEM, np.random.default_rng(0))
    seen = []
    one._inner.update = lambda x, y: seen.append(y)
    weights = rng.uniform(0.0, 3.0, 2000)
    for w in weights:
        before = len(seen)
        one.update(np.ones(4), 1, w)
        assert len(seen) - before in (np.floor(w), np.floor(w) + 1)
    assert abs(len(seen) - weights.sum()) < 5 * np.sqrt(2000 / 4)
    one.update(np.ones(4), 1, 0.0)
    total = len(seen)
    one.update(np.ones(4), 1, 4.0)
    assert len(seen) == total + 4


def test_a_tree_draws_its_tuning_from_the_papers_ranges():
    trees = [learner(seed=seed) for seed in range(300)]
    periods = {tree.grace_period for tree in trees}
    assert periods == set(range(5, 21))
    for name in ("split_confidence", "tie_threshold"):
        logs = np.log([getattr(tree, name) for tree in trees])
        low, high = np.log(0.01), np.log(0.9)
        assert (logs > low).all()
        assert (logs < high).all()
        assert abs(logs.mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * 300)
    assert trees[0].params()["grace_period"] == trees[0].grace_period == trees[0]._tree.grace_period
    given = learner(grace_period=50, split_confidence=0.1, tie_threshold=0.2, leaf_prediction="nba")
    assert (given._tree.grace_period, given._tree.delta, given._tree.tau) == (50, 0.1, 0.2)


def test_a_tree_learns_and_weights_count():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4))
    y = np.argmax(X[:, :3], axis=1)
    full, light, none = learner(seed=8), learner(seed=8), learner(seed=8)
    hits = 0
    for x, label in zip(X, y):
        hits += full.predict(full.view(x)) == label
        full.update(x, label, 1.0)
        light.update(x, label, 1e-3)
        none.update(x, label, 0.0)
    assert hits > 180  # 3 classes: a guess has 100
    assert full._tree.n_nodes > 5
    assert light._tree.n_nodes == 1
    assert none._tree.n_nodes is None or none._tree.n_nodes == 0
    q = np.zeros(3)
    none.estimate(X[0], q)
    assert (q == q[0]).all()
    light.estimate(X[0], q)
    np.testing.assert_allclose(q, np.bincount(y) / 300, atol=1e-12)


def test_weights_of_any_size_leave_no_variance_below_zero():
    """A first example of weight 1e-20: rounding makes river's sum of squares negative, and its root complex."""
    settings = {"grace_period": 1, "split_confidence": 0.5, "tie_threshold": 0.5}
    one = learner(problem=Problem(1, 2, 10.0), **settings)
    import river.tree

    twin = river.tree.HoeffdingTreeClassifier(grace_period=1, delta=0.5, tau=0.5, leaf_prediction="mc")
    rows = [(-3.0, 0, 1e-20), (-0.9, 0, 2.0), (-0.9, 1, 3.0)]
    for x, label, weight in rows:
        one.update(np.array([x]), label, weight)
    for x, label, weight in rows[:2]:
        twin.learn_one({0: x}, label, w=weight)
    with pytest.raises(TypeError, match="not complex"):  # where river mends it, the splitter of ours can go
        twin.learn_one({0: -0.9}, 1, w=3.0)
    q = np.zeros(2)
    one.estimate(np.array([-3.0]), q)
    assert q.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(5)
    for _ in range(1500):
        one.update(np.array([rng.integers(-30, 31) / 10]), int(rng.integers(2)), 10.0 ** rng.uniform(-20, 2))


def test_weights_of_any_size_change_nothing_but_that():
    rng = np.random.default_rng(7)
    one = learner(problem=Problem(2, 2, 10.0), grace_period=5, split_confidence=0.5, tie_threshold=0.3)
    import river.tree

    twin = river.tree.HoeffdingTreeClassifier(grace_period=5, delta=0.5, tau=0.3, leaf_prediction="mc")
    q = np.zeros(2)
    for _ in range(400):
        x, weight = rng.standard_normal(2), float(rng.uniform(0.0, 20.0))
        label = int(x.sum() + 0.5 * rng.standard_normal() > 0)
        expected = twin.predict_proba_one(dict(enumerate(x.tolist())))
        one.estimate(x, q)
        if expected:
            assert q.tolist() == [expected.get(k, 0.0) for k in range(2)]
        one.update(x, label, weight)
        twin.learn_one(dict(enumerate(x.tolist())), label, w=weight)
    assert one._tree.n_nodes == twin.n_nodes > 3


def test_a_view_is_read_as_its_context():
    one, other = learner(seed=1), learner(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        x, label = rng.standard_normal(4), int(rng.integers(3))
        assert one.predict(x) == other.predict(other.view(x))
        one.update(x, label, 30.0)
        other.update(other.view(x), label, 30.0)


def test_nominal_features_are_counted_and_split_by_category():
    rng = np.random.default_rng(6)
    problem = Problem(8, 3, 2.0)  # 3 and 4 categories, one numeric column
    one = learner(seed=3, problem=problem, one_hot=[3, 4], grace_period=10, split_confidence=0.1, tie_threshold=0.5)
    import river.tree

    twin = river.tree.HoeffdingTreeClassifier(
        grace_period=10, delta=0.1, tau=0.5, leaf_prediction="mc", nominal_attributes=["a", "b"]
    )
    assert one.one_hot == [3, 4]
    q = np.zeros(3)
    for _ in range(300):
        a, b, z = int(rng.integers(3)), int(rng.integers(-1, 4)), float(rng.random())
        x = np.concatenate([np.eye(3)[a], np.eye(4)[b] if b >= 0 else np.zeros(4), [z]]) * 0.7
        label = (a + (b == 2)) % 3
        features = {"a": "xyz"[a], "b": "pqrst"[b], "z": z * 0.7}
        assert one.view(x) == pytest.approx({0: a, 3: b, 7: z * 0.7})
        one.estimate(x, q)
        expected = twin.predict_proba_one(features)
        if expected:
            assert q.tolist() == pytest.approx([expected.get(label, 0.0) for label in range(3)])
        one.update(x, label, 1.0)
        twin.learn_one(features, label)
    assert one._tree.n_branches == twin.n_branches > 0
    assert len(one._tree._root.children) == 3  # a category each, not two halves
    for sizes in ([0, 3], [3, 6]):
        with pytest.raises(UsageError, match="one_hot"):
            learner(problem=problem, one_hot=sizes)


@pytest.mark.parametrize("leaf_prediction", ["mc", "nb", "nba"])
def test_a_leaf_is_read_as_river_reads_it(leaf_prediction, monkeypatch):
    """Also where a category is new below a split, and at weights that are no whole numbers."""
    rng = np.random.default_rng(9)
    problem, given = Problem(8, 4, 2.0), {"grace_period": 8, "split_confidence": 0.3, "tie_threshold": 0.3}
    one = learner(seed=3, problem=problem, one_hot=[3, 3], leaf_prediction=leaf_prediction, **given)
    import river.tree
    from river.tree.nodes.branch import NominalMultiwayBranch as Nominal

    new = []
    lead_on = Nominal.most_common_path
    monkeypatch.setattr(Nominal, "most_common_path", lambda branch: new.append(1) or lead_on(branch))
    settings = {"grace_period": 8, "delta": 0.3, "tau": 0.3, "nominal_attributes": [0, 3]}
    twin = river.tree.HoeffdingTreeClassifier(**settings, leaf_prediction=leaf_prediction)
    q = np.zeros(4)
    for t in range(400):
        a, b = int(rng.integers(-1 if t % 20 == 19 else 0, 2)), int(rng.integers(3))
        x = np.concatenate([np.eye(3)[a] if a >= 0 else np.zeros(3), np.eye(3)[b], rng.standard_normal(2)])
        for context in (x, np.roll(x, 1)):  # the second one is not learnt
            view, before = one.view(context), len(new)
            one.estimate(context, q)
            led = len(new) - before
            found = twin.predict_proba_one(view)
            assert len(new) - before == 2 * led
            assert q.tolist() == ([found.get(k, 0.0) for k in range(4)] if t > 0 else [1.0] * 4)
        label, weight = int(a + b + (x[6] > 0.0)) % 4, float(rng.uniform(0.0, 3.0))
        one.update(x, label, weight)
        twin.learn_one(one.view(x), label, w=weight)
    assert one._tree.n_branches == twin.n_branches > 3
    assert len(new) > 50


def test_river_missing_is_one_line(monkeypatch):
    for name in ["river", *[name for name in sys.modules if name.startswith("river.")]]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as refusal:
        HoeffdingTree(PROBLEM, np.random.default_rng(0))
    assert str(refusal.value) == "hoeffding-tree needs river: pip install river"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grace_period": 0}, "grace_period must be at least 1"),
        ({"split_confidence": 1.0}, "split_confidence must lie strictly between 0 and 1"),
        ({"tie_threshold": 0.0}, "tie_threshold must lie strictly between 0 and 1"),
        ({"tie_threshold": "often"}, "tie_threshold must be a number or 'random'"),
        ({"leaf_prediction": "best"}, "leaf_prediction must be one of"),
    ],
)
def test_bad_settings_of_a_tree(settings, message):
    with pytest.raises(UsageError, match=message):
        learner(**settings)


def test_what_cannot_be():
    with pytest.raises(UsageError, match="rng must be a numpy Generator"):
        Forecasting(PROBLEM, None)
    with pytest.raises(IncompatibleError, match="AIOLI is binary"):
        learner(Forecasting, forecaster="aioli")
    with pytest.raises(UsageError, match="is not told the label"):
        learner(Forecasting).peek(1)
