"""The forecasters' contract: which play blocks, and what a learner that makes room is told."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.errors import IncompatibleError
from banditlab.forecasters.ogd import OGD
from banditlab.players.forecaster import Forecaster
from banditlab.problem import Problem

PROBLEM = Problem(2, 3, 1.0, 50)


class Plain(Forecaster):
    """Zero, whatever it is shown."""

    id = "plain"

    def predict(self, context):
        return np.zeros(3) + context[0]

    def update(self, context, label):
        pass


def test_a_class_plays_blocks_if_it_can_and_does_not_deny_it():
    def forecast_block(self, X, y, logits):
        logits[:] = 0.0

    assert not Plain.plays_blocks
    assert type("Blocks", (Plain,), {"forecast_block": forecast_block}).plays_blocks is True
    assert type("Denied", (Plain,), {"forecast_block": forecast_block, "plays_blocks": False}).plays_blocks is False
    assert not type("Other", (Plain,), {}).plays_blocks
    assert OGD.plays_blocks


def test_many_contexts_one_by_one_and_soft_labels_refused():
    plain = Plain(PROBLEM, None)
    np.testing.assert_array_equal(plain.predict_many(np.array([[1.0, 0.0], [2.0, 0.0]])), [[1.0] * 3, [2.0] * 3])
    with pytest.raises(IncompatibleError, match="plain accepts classes, not distributions"):
        plain.update_soft(np.zeros(2), np.full(3, 1 / 3))
    assert Plain.settings_at(2.5, {"step": 1.0}) == {"norm_bound": 2.5, "step": 1.0}
    assert Plain.settings_at(2.5, {"norm_bound": 4.0}) == {"norm_bound": 4.0}


def test_rounds_that_may_be_updates_are_as_many_as_are_played():
    told = []

    class Grows(OGD):
        def play_in_parts(self, X, learns, play):
            told.append((X.shape, learns().tolist()))
            super().play_in_parts(X, learns, play)

    X = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 0.5]])
    grows, plain = Grows(PROBLEM, None), OGD(PROBLEM, None)
    grows.update(X[0], 1)
    plain.update(X[0], 1)
    assert told == [((1, 2), [True])]
    np.testing.assert_array_equal(grows.predict(X[1]), plain.predict(X[1]))
    np.testing.assert_array_equal(grows.predict_many(X), [plain.predict(x) for x in X])
