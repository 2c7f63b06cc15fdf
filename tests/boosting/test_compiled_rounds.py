"""Rounds in one kernel: the numbers of the learners' protocol, bit for bit, and who owns the arrays."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.trees.hoeffding import HoeffdingTree
from banditlab.boosting.weak.weak_learner import ProbableLearner
from banditlab.errors import PlayerError, UsageError
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

D, K = 5, 3
PROBLEM = Problem(D, K, 10.0, 1000)


def stream(n, seed=0, whole=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    X = np.round(1.5 * X) if whole else X
    y = np.argmax(X[:, :K] + 0.3 * rng.standard_normal((n, K)), axis=1)
    return X, y


def build(id_="adaboost-olm", seed=3, problem=PROBLEM, **settings):
    return registry().load("boosters", id_)(problem, np.random.default_rng(seed), **{"n_learners": 6} | settings)


def play(booster, X, y):
    trace = Trace.empty(len(y))
    booster.play_block(X, y, trace)
    return trace


def flat(value, path=""):
    """Yield (path, array or number) of everything in a state."""
    if isinstance(value, np.random.Generator):
        yield from flat(value.bit_generator.state, path)
    elif hasattr(value, "get_state"):
        yield from flat(value.get_state(), path)
    elif hasattr(value, "_asdict"):
        yield from flat(value._asdict(), path)
    elif isinstance(value, dict):
        for name, item in value.items():
            if not name.startswith(("_scratch", "_q", "_gain", "_both", "_costs", "_w", "_v", "_g", "_seen")):
                yield from flat(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from flat(item, f"{path}.{i}")
    else:
        yield path, value


def same_state(one, other):
    left, right = dict(flat(one)), dict(flat(other))
    assert left.keys() == right.keys()
    assert len(left) > 30
    for path, value in left.items():
        np.testing.assert_array_equal(value, right[path], err_msg=path)


CASES = [
    ("adaboost-olm", {}),
    ("adaboost-olm", {"weight_scale": "random", "prior": 1.0, "spread": "coded", "largest_share": 1.0}),
    ("adaboost-olm", {"weight_scale": "random", "derivative": "printed"}),
    ("adaboost-olm", {"weight_scale": "random", "derivative": "coded"}),
    ("adaboost-olm", {"weight_scale": "random", "loss": "exponential"}),
    ("adaboost-olm", {"weight_scale": 30.0, "loss": "square-hinge"}),
    ("adaboost-olm", {"weight_scale": "random", "one_hot": [2, 2], "ordered": [1]}),
    ("adaboost-olm++", {"weight_scale": "random"}),
    ("adaboost-olm++", {"weight_scale": 20.0, "regression": "aioli"}),
    ("adaova", {"weight_scale": "random", "derivative": "coded"}),
    ("adaboost-ol-ova", {"weight_scale": "random", "n_learners": 3}),
]


@pytest.mark.parametrize(("id_", "settings"), CASES)
@pytest.mark.few(4)
def test_a_block_is_what_the_protocol_plays(id_, settings, any_way):
    X, y = stream(250)
    one, other = build(id_, **settings), any_way(build(id_, **settings))
    for rounds in (slice(0, 90), slice(90, 91), slice(91, 250)):
        left, right = play(one, X[rounds], y[rounds]), play(other, X[rounds], y[rounds])
        for name in Trace._fields:
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    same_state(one, other)
    assert left.correct.mean() > 0.4


@pytest.mark.parametrize("id_", ["adaboost-olm", "adaboost-olm++"])
@pytest.mark.parametrize(
    ("classes", "learners", "rounds"), [(2, 1, 60), (8, 5, 60), (9, 5, 60), (17, 4, 60), (3, 301, 12)]
)
@pytest.mark.few(3)
def test_any_number_of_classes_and_votes_too_far_for_their_odds(id_, classes, learners, rounds, way):
    """Votes of over 300 learners may lie outside what has an exponential."""
    rng = np.random.default_rng(classes)
    X, y = rng.standard_normal((rounds, D)), rng.integers(classes, size=rounds)
    X[:, 0] = y
    problem = Problem(D, classes, 100.0, 1000)
    settings = {"problem": problem, "n_learners": learners, "weight_scale": "random", "prior": 1.0}
    one, other = build(id_, **settings), way(build(id_, **settings))
    for part in (slice(0, rounds // 2), slice(rounds // 2, rounds)):
        left, right = play(one, X[part], y[part]), play(other, X[part], y[part])
        np.testing.assert_array_equal(left.action, right.action)
        np.testing.assert_array_equal(left.p_true, right.p_true)
    same_state(one, other)
    late = [(one.act(x), other.act(x)) for x in X[:3]]
    for x, label, (left, right) in zip(X, y, late):
        np.testing.assert_array_equal(left.payload, right.payload)
        one.learn(x, left, int(label))
        other.learn(x, right, int(label))
    same_state(one, other)


def test_trees_outgrow_their_arrays_in_the_middle_of_a_block(way):
    X, y = stream(1000, whole=False)
    y = np.where(X[:, 4] > 0.5, (y + 1) % K, y)
    settings = {"weight_scale": 80.0, "grace_period": 300, "tie_threshold": 0.9, "n_learners": 3}
    one, other = build(**settings), way(build(**settings))
    play(one, X, y)
    play(other, X, y)
    assert min(len(tree.state.nodes) for tree in one.learners) > 64
    assert min(len(tree.state.seen) for tree in one.learners) > 4
    same_state(one, other)


def test_groups_of_trees_outgrow_their_arrays_in_the_middle_of_a_block(way):
    """So a pass goes on at a tree within a learner's group."""
    X, y = stream(400, whole=False)
    y = np.where(X[:, 4] > 0.5, (y + 1) % K, y)
    settings = {"weight_scale": 80.0, "grace_period": 100, "tie_threshold": 0.9, "n_learners": 3}
    one, other = build("adaova", **settings), way(build("adaova", **settings))
    play(one, X, y)
    play(other, X, y)
    scratch = [len(tree.state.seen) for learner in one.learners for tree in learner.members]
    assert sum(seats > 4 for seats in scratch[3:]) > 3
    same_state(one, other)


def test_an_example_of_weight_0_changes_no_tree():
    booster, (X, y) = build(), stream(60)
    play(booster, X, y)
    twin = copy.deepcopy(booster)
    booster._grove.update_trees(booster._forest(), 100.0 * X[0], 0, np.zeros(6))
    booster.learners[0].update(-100.0 * X[0], 0, 0.0)
    same_state(booster, twin)


@pytest.mark.parametrize("step", ["_respond", "_absorb"])
def test_a_step_that_a_subclass_overrides_is_taken_in_a_block(step):
    taken = []

    def counted(self, *arguments):
        taken.append(step)
        return getattr(AdaBoostOLM, step)(self, *arguments)

    booster = type("Counted", (AdaBoostOLM,), {step: counted})(PROBLEM, np.random.default_rng(0), n_learners=2)
    play(booster, *stream(5))
    assert len(taken) == 5


@pytest.mark.slow
def test_what_copies_and_loads_own_is_theirs(tmp_path, way):
    X, y = stream(300)
    one = build("adaboost-olm++", weight_scale="random")
    play(one, X[:100], y[:100])
    one.save(tmp_path / "booster.npz")
    twin = build("adaboost-olm++", weight_scale="random")
    twin.set_state(copy.deepcopy(one.get_state()))
    others = [pickle.loads(pickle.dumps(one)), copy.deepcopy(one), type(one).load(tmp_path / "booster.npz"), twin]
    snapshot = copy.deepcopy(one.get_state())
    expected = play(one, X[100:], y[100:])
    for other in others:
        np.testing.assert_array_equal(play(other, X[100:], y[100:]).action, expected.action)
        same_state(one, other)
    one.set_state(snapshot)  # trees and generators of an earlier time, the same object
    np.testing.assert_array_equal(play(one, X[100:], y[100:]).action, expected.action)
    tree = one.learners[2]  # a learner goes on by itself between two blocks
    fresh = way(copy.deepcopy(one))
    for booster in (one, fresh):
        for x, label in zip(X[:40], y[:40]):
            booster.learners[2].predict(x)
            booster.learners[2].update(x, int(label), 50.0)
    assert one.learners[2] is tree
    np.testing.assert_array_equal(play(one, X[:50], y[:50]).action, play(fresh, X[:50], y[:50]).action)
    same_state(one, fresh)


class Odd(ProbableLearner):
    """Estimates out of a hat, some of which are no numbers; keeps the weights it is taught."""

    kinds = 5

    def __init__(self, problem, rng, renews=False):
        super().__init__(problem, rng)
        self.hat, self.taught, self.renews = np.random.default_rng(int(rng.integers(1000))), [], renews

    def estimate(self, context, q):
        q[:] = self.hat.random(len(q))
        at, kind = self.hat.integers(len(q)), self.hat.integers(self.kinds)
        if kind == 1:
            q[:] = 0.0
        elif kind > 1:
            q[at] = (np.nan, np.inf, 1e-320)[kind - 2]

    def update(self, context, label, weight):
        self.taught.append(weight)
        if self.renews and len(self.taught) % 7 == 0:
            self.rng = np.random.default_rng(len(self.taught))


def of(cls, booster, **settings):
    """Return the booster with learners of a class in place of its own."""
    booster.learners[:] = [
        cls(booster.problem, np.random.default_rng(i), **settings) for i in range(booster.n_learners)
    ]
    return booster


@pytest.mark.parametrize("id_", ["adaboost-olm", "adaboost-olm++"])
@pytest.mark.parametrize(("classes", "learners"), [(2, 4), (3, 1), (7, 4)])
def test_any_estimates_and_generators_that_are_replaced(id_, classes, learners, way):
    rng, problem = np.random.default_rng(1), Problem(D, classes, 100.0, 1000)
    X, y = rng.standard_normal((80, D)), rng.integers(classes, size=80)
    one, other = (of(Odd, build(id_, problem=problem, n_learners=learners), renews=True) for _ in range(2))
    way(other)
    with np.errstate(all="ignore"):
        left, right = play(one, X, y), play(other, X, y)
    np.testing.assert_array_equal(left.action, right.action)
    np.testing.assert_array_equal(left.p_true, right.p_true)
    for mine, its in zip(one.learners, other.learners):
        assert mine.taught == its.taught
        assert len(mine.taught) == 80
    np.testing.assert_array_equal(one.edges.got, other.edges.got)


def test_a_prediction_that_is_no_class_is_an_error_that_names_the_learner():
    booster = build(weak_learner="forecaster")
    booster.learners[2].predict = lambda context, costs=None: K
    with pytest.raises(UsageError, match=r"the prediction of weak learner 3 must be an integer in 0 \.\.\. 2, got 3"):
        booster.act(np.zeros(D))


def test_learners_that_may_differ_are_asked_themselves(way):
    X, y = stream(60)

    class Cautious(HoeffdingTree):
        """A tree that learns half as much."""

        def update(self, context, label, weight):
            super().update(context, label, 0.5 * weight)

    class Bold(HoeffdingTree):
        """A tree that predicts class 0 whatever it costs."""

        def predict(self, context, costs=None):
            return 0

    assert len(build()._forest().trees) == 6
    for cls, asked in ((Cautious, False), (Bold, True)):
        one, other = build(), way(build())
        for booster in (one, other):
            play(booster, X[:20], y[:20])
            booster.learners[1] = cls(PROBLEM, np.random.default_rng(5))
        forest = one._forest()
        assert (forest is None) == asked
        assert asked or len(forest.trees) == 0
        np.testing.assert_array_equal(play(one, X, y).action, play(other, X, y).action)
        same_state(one, other)

    class Recorded:
        """Draws that are no numpy Generator's."""

        def random(self):
            return 0.5

    wrapped, recorded = of(Odd, build()), of(Odd, build())
    wrapped.learners[2].predict = lambda context, costs=None: 1
    recorded.learners[2].rng = Recorded()
    for booster in (wrapped, recorded):
        assert booster._forest() is None
    np.testing.assert_array_equal(wrapped.act(X[0]).payload[2], 1)


@pytest.mark.parametrize("learner", ["hoeffding-tree", "forecaster"])
def test_no_distribution_is_an_error_that_names_the_booster(learner):
    X, y = stream(60)
    booster = build(weak_learner=learner)
    play(booster, X[:30], y[:30])
    booster.mistakes[:] = np.nan
    with pytest.raises(PlayerError, match="adaboost-olm"):
        play(booster, X[30:], y[30:])
