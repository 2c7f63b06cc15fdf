"""What a tuning_seed draws: the numbers of the authors' code, the same in every run."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.boosting.best_single import BestSingle
from banditlab.boosting.mbbm import OnlineMBBM
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.olm_plus import AdaBoostOLMPlus
from banditlab.boosting.one_vs_all import AdaBoostOLOneVsAll, AdaOVA
from banditlab.boosting.oza import Oza
from banditlab.errors import UsageError
from banditlab.problem import Problem

BOOSTERS = [BestSingle, OnlineMBBM, AdaBoostOLM, AdaBoostOLMPlus, AdaBoostOLOneVsAll, AdaOVA, Oza]


def build(cls, rng=0, tuning_seed: int | None = 1, n_learners=4, **settings):
    if cls is not Oza:
        settings = {"weight_scale": "random"} | settings
    problem = Problem(3, 3, 4.0, horizon=60)
    return cls(problem, np.random.default_rng(rng), n_learners=n_learners, tuning_seed=tuning_seed, **settings)


def tunings(booster):
    """Return grace period, confidence and tie threshold of each tree, learner by learner."""
    learners = (
        [l for m in booster.members for l in m.learners]
        if isinstance(booster, AdaBoostOLOneVsAll)
        else booster.learners
    )
    return [[(t.grace_period, t.split_confidence, t.tie_threshold) for t in learner.trees()] for learner in learners]


def test_seed_1_begins_as_numpys_best_known_numbers():
    """0.417022, 0.720324, 0.000114, 0.302333 are the first of numpy's seed 1; one tree, then its weight's factor."""
    booster = build(OnlineMBBM, n_learners=1)
    (((grace, confidence, tie),),) = tunings(booster)
    assert confidence == pytest.approx(0.01 * 90**0.417022004702574, rel=1e-12)
    assert grace == pytest.approx(5 + 15 * 0.7203244934421581, rel=1e-12)
    assert tie == pytest.approx(0.01 * 90**0.00011437481734488664, rel=1e-12)
    assert booster._scales == pytest.approx([0.1 * (5 + 195 * 0.30233257263183977)], rel=1e-12)
    assert build(BestSingle, tuning_seed=2**32 - 1).tuning_seed == 2**32 - 1


@pytest.mark.parametrize("cls", BOOSTERS)
def test_every_run_has_the_same_trees(cls):
    one, other, free, second = build(cls), build(cls, 5), build(cls, tuning_seed=None), build(cls, tuning_seed=2)
    assert tunings(one) == tunings(other)
    assert tunings(one) != tunings(free)
    assert tunings(one) != tunings(second)
    assert len({tree for learner in tunings(one) for tree in learner}) == 4  # of one learner, or one place, alike
    for booster, twin in zip(getattr(one, "members", [one]), getattr(other, "members", [other]), strict=True):
        if cls is not Oza:
            np.testing.assert_array_equal(booster._scales, twin._scales)
    assert one.params()["tuning_seed"] == 1
    assert one.params()["grace_period"] == "random"


def test_all_boosters_draw_alike():
    trees = tunings(build(BestSingle))
    for cls in (OnlineMBBM, AdaBoostOLM, AdaBoostOLMPlus, Oza):
        assert tunings(build(cls)) == trees
    assert tunings(build(AdaOVA)) == [[tree] * 3 for (tree,) in trees]
    assert tunings(build(AdaBoostOLOneVsAll)) == trees * 3
    olm, mbbm = build(AdaBoostOLM)._scales, build(OnlineMBBM)._scales
    np.testing.assert_array_equal(mbbm[1:], 0.1 * olm[1:])
    assert olm[0] == 10.0


@pytest.mark.parametrize("cls", BOOSTERS)
def test_saved_it_continues(cls, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    booster = build(cls, n_learners=3)
    for x, label in zip(X[:30], y[:30], strict=True):
        booster.learn(x, booster.act(x), int(label))
    booster.save(tmp_path / "b.npz")
    again = cls.load(tmp_path / "b.npz")
    assert tunings(again) == tunings(booster)
    for x, label in zip(X[30:], y[30:], strict=True):
        mine, theirs = booster.act(x), again.act(x)
        assert mine.action == theirs.action
        booster.learn(x, mine, int(label))
        again.learn(x, theirs, int(label))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"tuning_seed": -1}, "tuning_seed must be at least 0"),
        ({"tuning_seed": 2**32}, r"tuning_seed must be at most 2\^32 - 1, got 4294967296"),
        ({"tuning_seed": 1.5}, "tuning_seed must be an integer"),
        ({"tuning_seed": None, "grace_period": float("nan")}, "grace_period must be at least 1 and finite, got nan"),
        ({"tuning_seed": None, "grace_period": float("inf")}, "grace_period must be at least 1 and finite, got inf"),
        ({"tie_threshold": 0.3}, "tuning_seed already draws tie_threshold: leave out one of the two"),
        ({"weak_learner": "forecaster"}, "tuning_seed applies to trees, and forecaster is not a tree"),
    ],
)
def test_what_does_not_go_together(settings, line):
    with pytest.raises(UsageError, match=line):
        build(AdaBoostOLM, **settings)
