"""Actions that are added to a policy: their least probability, how it fades, and the floor of all actions."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab import Policy, Problem, make_agent
from banditlab.errors import UsageError
from banditlab.players import saved
from banditlab.policy.container import Head, packed, unpacked
from banditlab.policy.core import CHOSEN_READ_AGAIN, Core
from tests.policy.customers import new_rows

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture
def policy(policy_file: Path) -> Policy:
    return Policy.load(policy_file)


def answered(policy: Policy, n: int, right: str = "gift", **how: Any) -> list[Any]:
    """Decide n rows, of which one class is right, and return the choices."""
    choices = []
    for row in new_rows(n, seed=2):
        choices.append(policy.decide(row, **how))
        policy.feedback(choices[-1].id, choices[-1].action == right)
    return choices


# ------------------------------------------------------------------------------------------------------- a new action


def test_a_new_action_that_is_wrong_is_chosen_less_and_less(policy: Policy) -> None:
    policy.add_class("gift")
    chosen = 0
    for n in range(120):
        choice = policy.decide(ROW, allowed=["gift", "none"] if n % 2 else None)
        chosen += choice.action == "gift"
        policy.feedback(choice.id, choice.action != "gift")
    assert policy._core.added == {3: chosen}
    assert 30 < chosen < 60
    assert choice.scores["gift"] < 0.25


@pytest.mark.parametrize("floor", [0.0, 0.05])
@pytest.mark.parametrize("chosen", [(0,), (30,), (31,), (60,), (0, 40, 90)])
def test_probabilities_are_those_of_the_formula(floor: float, chosen: tuple[int, ...]) -> None:
    """For an agent to which all actions are equal; the first one is not allowed."""
    core = Core(make_agent("uniform", Problem(2, 3, 1.0), seed=0), ["a", "b", "c"], np.random.default_rng(0))
    core.set_floor(floor)
    for name in "def"[: len(chosen)]:
        core.add(name)
    core.added, K, able = dict(enumerate(chosen, 3)), 2 + len(chosen), np.arange(3 + len(chosen)) > 0
    f = np.array([0, 0, 0, *(min(1, 30 / max(n, 1)) ** 2 * min(1 / 4, 1 / (2 * len(chosen))) for n in chosen)])
    expected = np.where(able, floor + (1 - K * floor) * (f + (1 - f.sum()) / K), 0.0)
    assert core.choose(np.zeros(2), able).probabilities == pytest.approx(expected, rel=1e-12)


def test_new_actions_are_chosen_only_where_they_are_allowed(policy: Policy) -> None:
    names = ["a", "b", "c"]
    for name in names:
        policy.add_class(name)
    counts = dict(policy._core.added)
    without = policy.decide(ROW, allowed=["none", "call"]).scores
    assert [without[name] for name in names] == [0.0] * 3
    assert policy._core.added == counts
    assert policy.decide(ROW, allowed=["b"]).probability == pytest.approx(1.0)
    policy.retire_class("a")
    assert policy.decide(ROW).scores["a"] == 0.0


def test_decisions_with_new_actions_and_a_floor_are_played_again_to_the_last_bit(
    policy_file: Path, tmp_path: Path
) -> None:
    log = tmp_path / "e.db"
    policy = Policy.open(policy_file, log, snapshot_every=10**6, floor=0.02)
    policy.add_class("gift")
    answered(policy, 30)
    policy.add_class("voucher")
    answered(policy, 30, allowed=["gift", "call", "voucher"])
    before = packed(policy._parts())
    policy._log.close()  # as a crash does: no snapshot
    with Policy.resume(log) as again:
        assert packed(again._parts()) == before
        assert again.describe()["floor"] == 0.02
    with Policy.open(policy_file, log, floor=0.1) as again:
        answered(again, 3)
    with Policy.open(policy_file, log) as again:
        assert again.describe()["floor"] == 0.1
        assert min(again.decide(ROW).scores.values()) >= 0.1


def test_a_saved_policy_goes_on_with_its_new_action(policy: Policy, tmp_path: Path) -> None:
    policy.add_class("gift")
    policy._core.set_floor(0.01)
    answered(policy, 20)
    policy.save(tmp_path / "p")
    again = Policy.load(tmp_path / "p")
    for one, other in zip(answered(policy, 20), answered(again, 20), strict=True):
        assert (one.action, one.scores) == (other.action, other.scores)


def test_a_file_without_newer_fields_has_their_defaults(policy: Policy) -> None:
    policy.decide(ROW)
    head, arrays = saved.unpacked(policy._snapshot(), Head)
    left_out = {"floor", "added", "holdback", "closed", "unanswered"}
    fields = {name: value for name, value in head.model_dump().items() if name not in left_out}
    del fields["trained"]["several_right"], fields["waiting"][0]["at"]
    old = unpacked(saved.packed(fields, dict(arrays)), "old")
    assert (old.core.floor, old.core.added, old.core.holdback, old.core.closed) == (0.0, {}, 0.0, 0)
    assert (old.rule.treated_as, old.trained["several_right"]) == ("ignored", False)
    assert [at for at, _ in old.pending.values()] == [0.0]
    for crafted in (
        {"floor": 0.4},
        {"floor": -1.0},
        {"added": [[3, 0]]},
        {"added": [[0, -1]]},
        {"added": [[0, 1], [0, 2]]},
    ):
        with pytest.raises(UsageError, match=r"bad: not a policy's file"):
            unpacked(saved.packed(fields | crafted, dict(arrays)), "bad")


def test_an_action_that_is_surely_better_is_found_by_its_least_probability_only(policy: Policy) -> None:
    answered(policy, 150, right="none")
    twin = copy.deepcopy(policy._core)
    policy.add_class("gift")
    twin.add("gift")
    twin.added.clear()
    x, rng, found = policy._encoder.encode(ROW), np.random.default_rng(0), []
    for core in (policy._core, twin):
        for _ in range(300):
            record = core.choose(x, None)
            core.learn_own(record, bool(rng.random() < (0.95 if record.action == 3 else 0.7 * (record.action == 1))))
        found.append(record.probabilities[3])
    assert found[0] > 0.9
    assert found[1] < 0.01


# ------------------------------------------------------------------------------------------------------------- the floor


def test_without_a_floor_nothing_changes(policy: Policy) -> None:
    twin = copy.deepcopy(policy._core)
    policy._core.set_floor(0.0)
    for row in new_rows(20):
        x = policy._encoder.encode(row)
        one, other = policy._core.choose(x, None), twin.choose(x, None)
        assert (one.action, one.probabilities.tobytes()) == (other.action, other.probabilities.tobytes())
    assert policy._core.rng.bit_generator.state == twin.rng.bit_generator.state


def test_a_floor_leaves_room_for_all_actions(policy_file: Path) -> None:
    with pytest.raises(UsageError, match=r"at most 1/3 because 3 classes may be chosen, got 0\.34"):
        Policy.load(policy_file, floor=0.34)
    for odd in (-0.1, 1.1, float("nan"), "half"):
        with pytest.raises(UsageError, match="floor must"):
            Policy.load(policy_file, floor=odd)  # type: ignore[arg-type]
    policy = Policy.load(policy_file, floor=1 / 3)
    assert list(policy.decide(ROW).scores.values()) == pytest.approx([1 / 3] * 3)
    before = packed(policy._parts())
    with pytest.raises(UsageError, match=r"at most 1/4 because 4 classes may be chosen, got 0\.333333"):
        policy.add_class("gift")
    assert packed(policy._parts()) == before
    policy.retire_class("none")
    policy.add_class("gift")
    with pytest.raises(UsageError, match="at most 1/4"):
        policy.add_class("none")


def test_a_coin_of_the_agent_s_own_did_not_draw_what_a_floor_drew() -> None:
    core = Core(
        make_agent("epsilon-greedy", Problem(2, 2, 1.0), seed=0, gamma=1.0), ["a", "b"], np.random.default_rng(0)
    )
    core.set_floor(0.5)
    assert {core.choose(np.full(2, 0.1), None).explored for _ in range(10)} == {False}


# --------------------------------------------------------------------------- an action in the place of the agent's own


@pytest.mark.parametrize("id_", CHOSEN_READ_AGAIN)
def test_an_action_in_the_place_of_another_is_learnt_at_its_own_margins(id_: str) -> None:
    """As if the agent had drawn it itself: what the payload says of the other one is not learnt."""
    agent = make_agent(id_, Problem(3, 3, 1.0), seed=0)
    core, rng = Core(agent, ["a", "b", "c"], np.random.default_rng(0)), np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (8, 3))
    for x in X:
        record = core.choose(x, None)
        core.learn_own(record, record.action == int(x[0] > 0))
    x = X[0]
    drawn = core.choose(x, None)
    only = np.arange(3) == drawn.action
    while not np.isnan((put := core.choose(x, only)).payload).all():
        assert put.payload.tobytes() == drawn.payload.tobytes()  # the agent drew it
    after = []
    for record in (drawn, put):
        twin = core.copy()
        twin.learn(record, True)
        after.append(twin.choose(X[1], None).probabilities)
    assert not np.array_equal(after[0], core.choose(X[1], None).probabilities)
    np.testing.assert_allclose(*after, rtol=1e-9)
