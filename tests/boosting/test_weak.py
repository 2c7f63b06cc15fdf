"""Weak learners: what they predict under costs, what they make of weights, and how they are asked for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from banditlab.boosting.weak.forecasting import Forecasting
from banditlab.boosting.weak.weak_learner import least_costly, most_probable
from banditlab.errors import IncompatibleError, UsageError
from banditlab.problem import Problem

PROBLEM = Problem(4, 3, 2.0)


def learner(**settings):
    return Forecasting(PROBLEM, np.random.default_rng(0), **settings)


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


def test_a_choice_where_nothing_is_a_number_or_everything_is_as_bad():
    assert most_probable(np.full(3, np.nan), 0.9) == 0
    assert most_probable(np.full(3, -np.inf), 0.9) == 2
    assert most_probable(np.array([-np.inf, np.nan]), 0.9) == 0
    q, costs = np.array([0.5, 0.5]), 1e-20 * np.array([[3.0, 2.0], [2.0, 2.5]])
    assert least_costly(q, costs, np.ones(2), 0.0) == 1  # differences far below 1


def test_one_uniform_a_prediction_tied_or_not():
    one = learner()
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
    one = learner()
    seen = []
    one._inner.update = lambda x, y: seen.append(y)
    weights = rng.uniform(0.0, 3.0, 2000)
    for w in weights:
        before = len(seen)
        one.update(np.ones(4), 1, w)
        assert len(seen) - before in (np.floor(w), np.floor(w) + 1)
    assert abs(len(seen) - weights.sum()) < 5 * np.sqrt(2000 / 4)
    one.update(np.ones(4), 1, 0.0)
    total, one.rng = len(seen), SimpleNamespace(random=lambda: 0.0)
    one.update(np.ones(4), 1, 4.0)
    assert len(seen) == total + 4


def test_what_cannot_be():
    with pytest.raises(UsageError, match="rng must be a numpy Generator"):
        Forecasting(PROBLEM, None)
    with pytest.raises(IncompatibleError, match="AIOLI is binary"):
        learner(forecaster="aioli")
    with pytest.raises(UsageError, match="does not observe the label before"):
        learner().peek(1)
