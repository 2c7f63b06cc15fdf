"""Checks of foreign environments by what a few rounds showed: rewards, entries of info, two episodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from banditlab.checks import CheckExcluded, CheckFailed, _gymnasium
from banditlab.checks._gymnasium import (
    ForeignProbe,
    _between,
    _looks_like_labels,
    foreign_probe,
    labels,
    one_bit,
    repeatable,
    something_to_learn,
)
from banditlab.errors import UsageError


def probe(rewards: list[Any], infos: list[Any] | None = None, actions: Any = None, **env: Any) -> Any:
    """Return a probe of an environment of three actions that showed this."""
    made = ForeignProbe(None, "name", {})
    there = {"labelled": False, "right_above": None, "problem": SimpleNamespace(n_classes=3)} | env
    actions = [t % 3 for t in range(len(rewards))] if actions is None else actions
    vars(made)["env"] = SimpleNamespace(**there)
    vars(made)["shown"] = list(zip(actions, rewards, infos or [{}] * len(rewards), strict=True))
    return made


def failure(check: Any, subject: Any) -> str:
    try:
        check(subject)
    except CheckFailed as error:
        return str(error)
    return ""


def test_an_environment_shows_400_rounds_of_one_seed() -> None:
    asked = []

    class Fake:
        def __init__(self, **keys: Any) -> None:
            asked.append(keys)

        def peek(self, rounds: int, seed: int) -> Any:
            asked.append({"rounds": rounds, "seed": seed})
            return iter([(0, 1.0, {}), (1, None, {}), (2, 0.5, {})])

    made = ForeignProbe(Fake, "x", {"label_key": "y"})
    assert made.rewards == made.rewards == [1.0, 0.5]
    assert asked == [{"name": "x", "horizon": 400, "label_key": "y"}, {"rounds": 400, "seed": 7}]
    assert foreign_probe("x", {"label_key": "y"}).settings == {"label_key": "y"}
    with pytest.raises(UsageError, match="--set name: must be one of label_key, options, right_above"):
        foreign_probe("x", {"name": "y"})


@pytest.mark.parametrize(
    ("rewards", "above", "message"),
    [
        ([0.0, 1.0, 0.0], None, ""),
        ([0.0, 0.0], None, ""),
        ([1.0, 1.0], None, ""),
        ([0.0, 3.5], 2.0, ""),
        ([0.0, None], None, "the reward of round 2 is not a finite number: it must be 0 or 1"),
        ([0.0, None], 0.5, "the reward of round 2 is not a finite number: it must be 0 or 1"),
        ([2.0, 0.0, 2.0], None, "rewards are 0, 2: they must be 0 and 1; otherwise set the number above which "
         "a reward means right: --set right_above=1"),
        ([2.0, 0.0, 1.0, 3.0, 8.0], None, "rewards are 0, 1, 2, 3, 8: they must be 0 and 1; otherwise set the number above "
         "which a reward means right: --set right_above=5.5"),
        ([5.0, 2.0, 1.0, 3.0, 4.0, 6.0], None, "rewards are 1, 2, 3, 4, 5 ...: they must be 0 and 1; otherwise set "),
        ([2.0, 2.0], None, "rewards are 2: they must be 0 and 1; otherwise set the number above which a "
         "reward means right: --set right_above=1"),
    ],
)  # fmt: skip
def test_rewards_are_bits_or_parted_by_a_number(rewards: Any, above: Any, message: str) -> None:
    found = failure(one_bit, probe(rewards, right_above=above))
    assert found.startswith(message)
    assert bool(found) == bool(message)


def test_where_rewards_are_parted() -> None:
    assert [_between(found) for found in ([3.0], [0.0, 1.0, 5.0], [-1.0, 4.0, 5.0])] == [2.0, 3.0, 1.5]


def test_what_has_labels_is_not_asked_for_bits() -> None:
    for check in (one_bit, something_to_learn):
        with pytest.raises(CheckExcluded):
            check(probe([3.0], labelled=True))


@pytest.mark.parametrize(
    ("rewards", "above", "message"),
    [
        ([0.0, 1.0], None, ""),
        ([2.0, 3.0], 2.0, ""),
        ([1.0, 1.0], None, "every one of 400 uniform actions was right (rewards 1)"),
        ([0.0, 0.0], None, "every one of 400 uniform actions was wrong (rewards 0)"),
        ([0.5, 0.5], None, "every one of 400 uniform actions was wrong (rewards 0.5)"),
        ([0.0, 1.0], 2.0, "every one of 400 uniform actions was wrong (rewards 0, 1)"),
        ([3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 2.0, "every one of 400 uniform actions was right (rewards 3, 4, 5, 6, 7)"),
    ],
)
def test_some_actions_are_right_and_some_are_wrong(rewards: Any, above: Any, message: str) -> None:
    found = failure(something_to_learn, probe(rewards, right_above=above))
    assert found.startswith(message)
    assert bool(found) == bool(message)


@pytest.mark.parametrize(
    ("infos", "name"),
    [
        ([{"t": 0}, {"t": 2}, {"t": 2}], "t"),
        ([{"t": 0}, {"t": 3}, {"t": 2}], ""),  # 3 is no action
        ([{"t": 0}, {"t": None}, {"t": 2}], ""),
        ([{"t": 0}, {}, {"t": 2}], ""),
        ([{"t": 0}, {"t": 2}, {"t": 1}], ""),  # not the action that was right
        ([{"u": 5, "t": 0}, {"u": 5, "t": 1}, {"u": 5, "t": 2}], "t"),
        ([{}, {}, {}], ""),
    ],
)
def test_an_entry_that_is_the_right_action_seems_to_be_the_label(infos: Any, name: str) -> None:
    subject = probe([1.0, 0.0, 1.0], infos)
    assert _looks_like_labels(subject) == name
    with pytest.raises(CheckExcluded) as caught:
        labels(subject)
    assert ("info['t'] may be one: --set label_key=t" in str(caught.value)) == bool(name)


def test_an_entry_that_is_always_the_same_is_no_label() -> None:
    subject = probe([1.0, 0.0, 1.0], [{"t": 1}] * 3, actions=[1, 0, 1])
    assert _looks_like_labels(subject) == ""


@pytest.mark.parametrize(
    ("x", "bit", "message"),
    [(2.0, 1.0, ""), (2.0, 0.0, "two episodes from one seed differ at round 1: "),
     (3.0, 1.0, "two episodes from one seed differ at round 1: ")],
)  # fmt: skip
def test_two_episodes_of_a_seed_are_the_same(x: float, bit: float, message: str, monkeypatch: Any) -> None:
    first = [(np.ones(2), 0.0), (np.full(2, 2.0), 1.0)]
    other = [(np.ones(2), 0.0), (np.full(2, x), bit)]
    played = iter([(first, ""), (other, "")])
    monkeypatch.setattr(_gymnasium, "_played", lambda probe: next(played))
    found = failure(repeatable, probe([]))
    assert found.startswith(message)
    assert bool(found) == bool(message)
