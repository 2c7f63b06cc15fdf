"""Deciding alone is a part of the round, and changes nothing that was learnt."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from benchmarks.measure import one_player, split
from benchmarks.measure.costs import Player
from benchmarks.measure.players import OURS


def of(id_: str) -> Player:
    """Return the first line of a player."""
    return next(player for player in OURS if player.id == id_)


def arrays(value: Any) -> list[np.ndarray]:
    """Return the arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        return [value]
    return [array for part in value for array in arrays(part)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("id_", ["banditron", "aioli"])
def test_deciding_alone_takes_time_and_leaves_the_state(id_: str) -> None:
    player = of(id_)
    one_player.warm(player)
    stream = one_player.logistic(player.classes or 4, 16)
    made = one_player.build(player, stream.problem)
    one_player.blocks(made)(stream.X[:500], stream.y[:500])
    before = copy.deepcopy(arrays(made.state))
    alone = split.nanoseconds(made, stream.X)
    assert alone is not None
    assert 1.0 < alone < 1e6
    weights = {array.shape for array in before if array.ndim == 2}
    assert weights
    for old, new in zip(before, arrays(made.state), strict=True):
        if old.ndim == 2:  # vectors may be scratch
            np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("id_", ["exploration", "gaf-fresh", "uniform"])
def test_rounds_that_are_not_played_one_by_one_in_a_kernel_are_not_divided(id_: str) -> None:
    made = one_player.build(of(id_), one_player.logistic(4, 16).problem)
    assert (split.deciding(made) is None) == (id_ != "uniform")


@pytest.mark.slow
def test_the_cell_at_which_rounds_are_divided_says_so_in_its_row() -> None:
    player = of("banditron")
    one_player.warm(player)
    effort = one_player.Effort(seconds=0.01, whole_pass=0.1, limit=60.0)
    divided = one_player.measure(player, one_player.logistic(10, 64), effort)
    assert divided.why == ""
    assert divided.deciding is not None
    assert divided.nanoseconds is not None
    assert 0.0 < divided.deciding < 3.0 * divided.nanoseconds
    assert one_player.measure(player, one_player.logistic(4, 16), effort).deciding is None
