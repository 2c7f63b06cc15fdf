"""A share of a policy's decisions is another policy's: marked, exact in its probabilities, compared at any time."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab import Policy
from banditlab.errors import LogError, UsageError
from banditlab.offpolicy import RunningBound
from banditlab.players import saved
from banditlab.policy import status_of_log
from banditlab.policy.container import Head, packed, unpacked
from banditlab.policy.holdback import Holdback, compared
from tests.policy.customers import new_rows, rows, write_table

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture(scope="module")
def old_file(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("old") / "old.policy"
    Policy.train(table, "offer", agent="banditron", settings={"gamma": 0.3}).save(file)
    return file


def play(policy: Policy, n: int, seed: int = 1, **how: Any) -> None:
    labels = [row["offer"] for row in rows(n, seed)]
    with policy.together():
        for row, label in zip(new_rows(n, seed), labels, strict=True):
            choice = policy.decide(row, **how)
            policy.feedback(choice.id, choice.action == label)


@pytest.mark.parametrize("other", ["uniform", "file"])
@pytest.mark.parametrize("allowed", [None, ["call", "gift"]])
def test_the_probabilities_are_those_of_both_policies_together(
    policy_file: Path, old_file: Path, other: str, allowed: Any
) -> None:
    named = "uniform" if other == "uniform" else old_file
    policy = Policy.load(policy_file, floor=0.05, holdback=0.3, holdback_policy=named)
    alone = Policy.load(policy_file, floor=0.05)
    for one in (policy, alone):
        one.add_class("gift")
        one._core.added[3] = 60
    x, held, counts, expected = policy._encoder.encode(ROW), 0, np.zeros(4), np.zeros(4)
    mask = policy._core.mask(allowed)
    for _ in range(1500):
        policy._core.added[3] = alone._core.added[3] = 60
        record, own = policy._core.choose(x, mask), alone._core.choose(x, mask)
        assert record.held is not None
        assert record.held.share == 0.3
        mixed = 0.7 * own.probabilities[record.action] + 0.3 * record.held.other
        assert record.probabilities[record.action] == pytest.approx(mixed, rel=1e-12)
        held += record.held.held
        counts[record.action] += 1
        expected += record.probabilities
    assert record.probabilities.sum() == pytest.approx(1.0)
    assert abs(held - 450) < 4.5 * np.sqrt(1500 * 0.21)
    assert (np.abs(counts - expected) <= 4.5 * np.sqrt(expected * (1 - expected / 1500)) + 1e-9).all()


def test_a_crash_changes_nothing_and_a_saved_policy_goes_on(policy_file: Path, old_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "e.db"
    policy = Policy.open(policy_file, log, snapshot_every=10**6, holdback=0.5, holdback_policy=old_file)
    play(policy, 60)
    before = packed(policy._parts())
    assert policy._log is not None
    policy._log.close()  # as a crash does: no snapshot
    with Policy.resume(log) as again:
        assert packed(again._parts()) == before
        assert (again.describe()["holdback"], again.describe()["holdback_policy"]) == (0.5, "banditron")
        again.save(tmp_path / "p")
        play(again, 20, 2)
        after = again._core.rng.bit_generator.state
    twin = Policy.load(tmp_path / "p")
    play(twin, 20, 2)
    assert twin._core.rng.bit_generator.state == after
    with Policy.open(policy_file, log, holdback=0.0) as again:
        play(again, 5)
        assert again.describe()["holdback"] == 0.0
    assert status_of_log(log).holdback is None


def test_the_status_says_whether_it_is_better_and_the_shares_are_right(policy_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "e.db"
    with Policy.open(policy_file, log) as policy:
        play(policy, 50)
    with Policy.open(policy_file, log, holdback=0.25) as policy:
        play(policy, 1500)
    status = status_of_log(log)
    found = status.holdback
    assert found is not None
    assert (found.decisions, found.answered, found.share) == (1500, 1500, 0.25)
    assert 0.1 < found.low < found.difference < found.high
    text = "\n".join(status.lines())
    assert "better than the held-back decisions: better; right more often by +" in text
    assert "25.0% are expected" in text
    assert "the number held back" not in text
    assert status.to_dict()["holdback"]["share"] == 0.25
    with sqlite3.connect(log) as db:
        assert db.execute("SELECT max(held) FROM events WHERE share = 0").fetchone() == (0,)
        db.execute("UPDATE events SET held = 1 WHERE share > 0 AND seq % 3 = 0")
    assert "warning: the number held back is further" in "\n".join(status_of_log(log).lines())
    db.close()


def test_the_difference_is_covered_at_all_times_at_once() -> None:
    rng, missed, widths, n = np.random.default_rng(0), 0, [], 400
    for run in range(90):
        h, reward = (0.5, 0.1, 0.02)[run % 3], np.array([0.9, 0.5, 0.2])
        own, other = rng.dirichlet(np.ones(3), n), np.tile([0.1, 0.1, 0.8], (n, 1))
        P = (1 - h) * own + h * other
        a = (rng.random((n, 1)) > np.cumsum(P, axis=1)).sum(axis=1)
        r, at = (rng.random(n) < reward[a]).astype(float), (np.arange(n), a)
        truth = np.cumsum((own - other) @ reward) / np.arange(1, n + 1)
        for m in range(40, n + 1, 40):
            found = compared([np.zeros(m), np.full(m, h), other[at][:m]], P[at][:m], np.arange(m), r[:m])
            assert found is not None
            if not found.low <= truth[m - 1] <= found.high:
                missed += 1
                break
        widths.append(found.high - found.low)
    assert missed <= 4
    assert min(widths) < 0.4


@pytest.mark.parametrize("h", [0.2, 0.8])
def test_the_difference_and_its_interval_are_those_of_the_formula(h: float) -> None:
    own, o = np.random.default_rng(0).uniform(0.1, 0.9, (2, 2000))
    P, r, n = (1 - h) * own + h * o, (own > o).astype(float), np.arange(2000)
    D = np.array([(r[i] - (0.5 + r[:i].sum()) / (i + 1)) * (1 - o[i] / P[i]) / (1 - h) for i in n])
    ends = []
    for sign in (1, -1):
        bound = RunningBound((max(1 / h, 1 / (1 - h)) - 1) / 2)
        bound.add((1 + sign * D) / 2)
        ends.append(sign * (2 * bound.bound(0.025) - 1))
    found = compared([np.zeros(2000), np.full(2000, h), o], P, n, r)
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx((D.mean(), *ends), rel=1e-9)
    assert -1.0 < found.low < found.high < 1.0


def test_what_is_said_of_the_share_and_of_the_difference() -> None:
    for held, warned in ((50, False), (51, True), (14, False), (13, True)):  # 4.5 standard deviations are 18
        assert (len(Holdback(64, held, 0.5, 0, math.nan, math.nan, math.nan).lines()) == 2) == warned
    words = {(0.1, 0.3): "better", (0.0, 0.3): "not shown yet", (-0.3, 0.0): "not shown yet", (-0.3, -0.1): "worse"}
    for ends, word in words.items():
        assert f"decisions: {word};" in Holdback(64, 32, 0.5, 1, 0.0, *ends).lines()[1]
    none = compared([np.zeros(3), np.array([0.5, 0.5, 0.2]), np.ones(3)], np.ones(3), np.arange(0), np.zeros(0))
    assert none == Holdback(1, 0, 0.2, 0, math.nan, math.nan, math.nan)  # since the share changed


@pytest.mark.slow  # a policy of newtron is trained
def test_what_cannot_be_held_back_is_refused(policy_file: Path, old_file: Path, table: Path, tmp_path: Path) -> None:
    for share in (0.001, 0.999):
        assert Policy.load(policy_file, holdback=share).describe()["holdback"] == share
    for odd in (1.0, -0.1, 1e-9, 0.0009, float("nan"), "half"):
        with pytest.raises(UsageError, match="holdback must"):
            Policy.load(policy_file, holdback=odd)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="holdback_policy requires holdback"):
        Policy.load(policy_file, holdback_policy=old_file)
    other = write_table(tmp_path / "other.csv", 50)
    Policy.train(other, "offer", agent="uniform").save(tmp_path / "other.policy")
    with pytest.raises(UsageError, match="must have the columns, encoding and classes"):
        Policy.load(policy_file, holdback=0.1, holdback_policy=tmp_path / "other.policy")
    Policy.train(table, "offer", agent="newtron", settings={"gamma": 0.1}).save(tmp_path / "newtron.policy")
    with pytest.raises(UsageError, match="holdback: newtron stores numbers about the class it chose"):
        Policy.load(tmp_path / "newtron.policy", holdback=0.1)
    policy = Policy.load(policy_file, holdback=0.1, holdback_policy=tmp_path / "newtron.policy")
    head, arrays = saved.unpacked(packed(policy._parts()), Head)
    for share in (2.0, -1.0):
        with pytest.raises(UsageError, match=r"bad: not a policy's file"):
            unpacked(saved.packed(head.model_dump() | {"holdback": share}, dict(arrays)), "bad")
    arrays["other"] = arrays["other"][:100]
    with pytest.raises(UsageError, match=r"bad: not a policy's file"):
        unpacked(saved.packed(head.model_dump(), arrays), "bad")


def test_a_log_of_another_format_is_named(policy_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "e.db"
    Policy.open(policy_file, log).close()
    with sqlite3.connect(log) as db:
        db.execute("UPDATE head SET format = 1")
    db.close()
    with pytest.raises(LogError, match="not a policy's log of format 2"):
        status_of_log(log)
