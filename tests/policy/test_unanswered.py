"""Late, lost and one-sided answers: which decisions count, what silence means, and what the status says of it."""

from __future__ import annotations

import itertools
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from banditlab import Policy
from banditlab.errors import LogError, UnknownDecisionError, UsageError
from banditlab.policy import status_of_log, train, verify_log
from banditlab.policy.confidence import rise, sequence
from banditlab.policy.container import packed, read
from banditlab.policy.log import EventLog
from banditlab.policy.picture import draw_status
from banditlab.policy.unanswered import WINDOW, Counted, Unanswered, counted, unequal
from tests.policy.customers import new_rows
from tests.policy.test_log import drop, state, undisturbed

Floats = np.ndarray


def log_of(mistakes: Floats, late: Floats) -> tuple[Floats, Floats]:
    """Return the decisions' places, and those of the answers, each so many decisions late, NaN for never or after the end."""
    n = len(mistakes)
    events = sorted([(i, 0, i) for i in range(n)] + [(i + late[i], 1, i) for i in range(n) if i + late[i] < n])
    places = np.full((2, n), np.nan)
    for place, (_, is_answer, i) in enumerate(events, 1):
        places[is_answer, i] = place
    return places[0], places[1]


def counted_mistakes(mistakes: Floats, late: Floats) -> tuple[Floats, Counted]:
    seq, place = log_of(mistakes, late)
    which = counted(seq, seq, place, place, 0.0, Unanswered())
    return mistakes[which.places], which


def left_out(which: Counted) -> int:
    return int((~which.in_time).sum())


def test_late_misses_are_no_rise_and_move_no_interval() -> None:
    """Hits are answered at once and misses 300 decisions later: over arrivals every run alarms and misses the truth."""
    rng, alarms, missed, arrivals = np.random.default_rng(0), 0, 0, 0
    for _ in range(20):
        mistakes = (rng.random(1000) < 0.2).astype(float)
        late = np.where(mistakes == 1.0, 300.0, 0.0)
        for n in (250, 400, 700, 1000):
            x, which = counted_mistakes(mistakes[:n], late[:n])
            assert x.tolist() == mistakes[: len(x)].tolist()
            assert which.in_time.all()
            assert which.waiting == mistakes[max(0, n - 300) : n].sum()
            alarms += rise(x) is not None
            if len(x):
                _, low, high = sequence(x)
                missed += not low[-1] <= 0.2 <= high[-1]
        by_arrival = mistakes[np.argsort(np.arange(1000) + late, kind="stable")]
        arrivals += rise(by_arrival) is not None
    assert (alarms, missed) == (0, 0)
    assert arrivals == 20


def test_a_lost_answer_holds_the_count_until_its_deadline_only() -> None:
    mistakes, late = np.zeros(WINDOW + 20), np.zeros(WINDOW + 20)
    late[5] = np.nan
    x, which = counted_mistakes(mistakes[: WINDOW + 5], late[: WINDOW + 5])
    assert (len(x), which.waiting, left_out(which)) == (5, 1, 0)
    x, which = counted_mistakes(mistakes, late)
    assert (len(x), which.waiting, left_out(which)) == (WINDOW + 19, 0, 1)


@pytest.mark.parametrize(("late", "counts"), [(WINDOW - 1, True), (WINDOW, False)])
def test_an_answer_after_the_deadline_does_not_count(late: int, counts: bool) -> None:
    """Decision 0 is answered when so many decisions, and itself, were taken."""
    n = WINDOW + 5
    lateness = np.zeros(n)
    lateness[0] = late
    x, which = counted_mistakes(np.eye(1, n)[0], lateness)
    assert (len(x), left_out(which), x.sum()) == ((n, 0, 1.0) if counts else (n - 1, 1, 0.0))


def test_no_decision_and_no_answer() -> None:
    for n in (0, 1, WINDOW + 1):
        x, which = counted_mistakes(np.zeros(n), np.full(n, np.nan))
        assert (len(x), which.waiting, left_out(which)) == (0, min(n, WINDOW), max(0, n - WINDOW))


def test_the_status_counts_decisions_in_their_order(policy_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.db"
    with Policy.open(policy_file, log) as policy:
        ids = [policy.decide(row).id for row in new_rows(6)]
        for i, right in ((4, True), (1, False), (0, True), (2, False)):
            policy.feedback(ids[i], right)
        status = status_of_log(log)
        assert status.mistakes.tolist() == [0.0, 1.0, 1.0]
        assert (status.feedback, status.waiting, status.left_out) == (4, 2, 0)
        assert sum(b.n for b in status.bins) == 3
        line = "counted: 3 of 6 decisions, in their order up to the oldest whose answer may still arrive in time; 2 are waiting"
        assert line in status.lines()
        policy.feedback(ids[3], True)
        assert status_of_log(log).mistakes.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]
    with Policy.open(policy_file, log):  # and after a restart
        assert status_of_log(log).mistakes.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]


# ------------------------------------------------------------------------------------------------------ silence means wrong


class Clock:
    """Stands in for `time.time`."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    return clock


Opened = Callable[..., Policy]


@pytest.fixture(params=["memory", "log"])
def opened(request: pytest.FixtureRequest, policy_file: Path, tmp_path: Path) -> Opened:
    """Return what opens a policy, each time the same one with a log of its own, if it has one."""
    numbers = itertools.count()

    def open_(**rule: str) -> Policy:
        if request.param == "memory":
            return Policy.load(policy_file, **rule)
        return Policy.open(policy_file, tmp_path / f"{next(numbers)}.db", **rule)

    return open_


WRONG = {"unanswered": "wrong", "after": "30 min"}


def test_a_decision_without_an_answer_is_learnt_as_wrong_once(opened: Opened, clock: Clock) -> None:
    """The state is, bit for bit, that of a policy that was told so."""
    with opened(**WRONG) as silent, opened() as told:
        for policy in (silent, told):
            clock.now = 1e9
            first, second, third = [policy.decide(row).id for row in new_rows(3)]
            clock.now += 600
            policy.feedback(second, True)
            clock.now += 1200.5
            if policy is told:
                policy.feedback(first, False)
                policy.feedback(third, False)
            policy.decide(new_rows(4)[3])
            policy.decide(new_rows(5)[4])
        assert state(silent) == state(told)
        about = silent.describe()
        assert (about["feedback"], about["closed"], about["right"], about["decisions"]) == (1, 2, 1, 5)
        assert (told.describe()["feedback"], told.describe()["closed"]) == (3, 0)
        before = state(silent)
        silent.close_overdue()
        assert state(silent) == before


@pytest.mark.parametrize("beyond", [0.0, 0.5])
def test_an_answer_counts_until_its_deadline_and_is_refused_after(opened: Opened, clock: Clock, beyond: float) -> None:
    with opened(**WRONG) as policy:
        ids = [policy.decide(row).id for row in new_rows(2)]
        clock.now += 1800.0 + beyond
        if not beyond:
            policy.feedback(ids[0], True)
            assert policy.describe()["right"] == 1
            assert policy.describe()["late"] == 0
            return
        for _ in range(2):
            for bit in (True, False):
                with pytest.raises(
                    UnknownDecisionError, match="already closed as wrong, because there was no feedback within 30 min"
                ):
                    policy.feedback(ids[0], bit)
        assert policy.late == {"true": 2, "false": 2}
        [why] = policy.feedback_many([(ids[1], True)])
        assert "already closed as wrong" in str(why)
        assert (policy.describe()["right"], policy.describe()["closed"], policy.describe()["late"]) == (0, 2, 5)


def test_an_answer_finds_its_own_decision_overdue_inside_a_commit(opened: Opened, clock: Clock) -> None:
    """Closing comes at the start of a commit; a decision whose time ends after that is closed by its answer."""
    with opened(**WRONG) as policy:
        name = policy.decide(new_rows(1)[0]).id
        with policy.together():
            clock.now += 1801.0
            assert "already closed as wrong" in str(policy.feedback_many([(name, True)])[0])
            assert "already closed as wrong" in str(policy.feedback_many([(name, True)])[0])
        about = policy.describe()
        assert (about["closed"], about["feedback"], about["right"]) == (1, 0, 0)


def test_a_clock_set_back_reopens_nothing_and_closes_nothing_twice(opened: Opened, clock: Clock) -> None:
    with warnings.catch_warnings(), opened(**WRONG) as policy:
        warnings.simplefilter("ignore", RuntimeWarning)  # which says that the clock went back
        first = policy.decide(new_rows(1)[0]).id
        clock.now += 2000.0
        second = policy.decide(new_rows(1)[0]).id
        clock.now -= 3600.0
        third = policy.decide(new_rows(1)[0]).id
        with pytest.raises(UnknownDecisionError, match="already closed as wrong"):
            policy.feedback(first, True)
        policy.feedback(second, True)
        clock.now += 3600.0 + 1801.0
        policy.close_overdue()
        assert (policy.describe()["closed"], policy.describe()["feedback"]) == (2, 1)
        with pytest.raises(UnknownDecisionError, match="already closed as wrong"):
            policy.feedback(third, True)


def test_a_call_closes_a_bounded_number_and_the_next_goes_on(
    opened: Opened, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banditlab.policy.policy.CLOSED_AT_ONCE", 3)
    with opened(**WRONG) as policy:
        ids = [policy.decide(row).id for row in new_rows(8)]
        policy.feedback(ids[1], True)
        clock.now += 1801.0
        for expected in (3, 6, 7, 7):
            policy.close_overdue()
            assert policy.describe()["closed"] == expected


def test_a_kill_in_the_middle_of_closing_loses_and_doubles_nothing(
    policy_file: Path, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "events.db"
    monkeypatch.setattr("banditlab.policy.policy.CLOSED_AT_ONCE", 2)
    policy = Policy.open(policy_file, log, snapshot_every=4, **WRONG)
    ids = [policy.decide(row).id for row in new_rows(7)]
    policy.feedback(ids[2], True)
    clock.now += 1801.0
    policy.close_overdue()
    before = state(policy)
    drop(policy)
    for closed in (4, 6, 6):
        with monkeypatch.context() as broken:
            again = Policy.open(policy_file, log)  # the log says that silence is wrong
            assert state(again) == before
            broken.setattr(EventLog, "append", failing)
            if closed < 6 or again.describe()["closed"] < 6:
                with pytest.raises(LogError, match="no room"):
                    again.close_overdue()
        again.close_overdue()
        assert again.describe()["closed"] == closed
        before = state(again)
        drop(again)
    assert undisturbed(policy_file, log) == before
    with Policy.open(policy_file, log) as last:
        with pytest.raises(UnknownDecisionError, match="already closed as wrong"):
            last.feedback(ids[0], True)
        with pytest.raises(UnknownDecisionError, match="already has feedback"):
            last.feedback(ids[2], True)
    db = sqlite3.connect(log)
    kinds = db.execute(
        "SELECT kind, count(*), count(DISTINCT decision) FROM events GROUP BY kind ORDER BY kind"
    ).fetchall()
    db.close()
    assert kinds == [("closed", 6, 6), ("decision", 7, 0), ("feedback", 1, 1)]
    assert verify_log(log) == 14


def failing(*_: object) -> None:
    raise LogError("no room")


def test_an_answer_and_the_closing_of_its_decision_in_two_threads(
    policy_file: Path, tmp_path: Path, clock: Clock
) -> None:
    with Policy.open(policy_file, tmp_path / "events.db", **WRONG) as policy:
        ids = [policy.decide(row).id for row in new_rows(30)]
        refused: list[str | None] = []

        def answer() -> None:
            for name in ids:
                clock.now += 61.0
                refused.extend(policy.feedback_many([(name, True)]))

        threads = [
            threading.Thread(target=answer),
            threading.Thread(target=lambda: [policy.close_overdue() for _ in ids]),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        about = policy.describe()
        assert (about["feedback"], about["closed"]) == (refused.count(None), 30 - refused.count(None)) == (29, 1)
        assert status_of_log(tmp_path / "events.db").mistakes.tolist() == [0.0] * 29 + [1.0]


def test_nothing_is_looked_for_before_something_can_be_overdue(
    policy_file: Path, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of a million decisions is not read at every call."""
    asked: list[int] = []
    whole = EventLog.first_open
    monkeypatch.setattr(EventLog, "first_open", lambda log, after: (asked.append(after), whole(log, after))[1])
    with Policy.open(policy_file, tmp_path / "events.db", **WRONG) as policy:
        for i in range(40):
            clock.now += 60.0
            choice = policy.decide(new_rows(1)[0])
            if i % 2:
                policy.feedback(choice.id, True)
        assert policy.describe()["closed"] == 5
    assert len(asked) <= 1 + 2 * 5
    assert asked == sorted(asked)  # and never from the start again


def test_without_the_setting_nothing_is_closed(opened: Opened, clock: Clock) -> None:
    for rule in ({}, {"unanswered": "ignored"}, {"unanswered": "ignored", "after": "1 s"}):
        with opened(**rule) as policy:
            name = policy.decide(new_rows(1)[0]).id
            clock.now += 1e8
            policy.decide(new_rows(1)[0])
            policy.feedback(name, True)
            assert (policy.describe()["closed"], policy.describe()["feedback"]) == (0, 1)


# ------------------------------------------------------------------------------------------------------------- the setting


def test_the_setting_stands_in_the_file_and_in_the_log(table: Path, tmp_path: Path, clock: Clock) -> None:
    file, log = tmp_path / "my.policy", tmp_path / "events.db"
    policy = train(table, "offer", out=file, unanswered="wrong", after="2 days")
    assert (policy.describe()["unanswered"], policy.describe()["after"]) == ("wrong", "2 days")
    name = policy.decide(new_rows(1)[0]).id
    policy.save(tmp_path / "saved")
    clock.now += 2 * 86400.0 + 1.0
    saved = Policy.load(tmp_path / "saved")
    with pytest.raises(UnknownDecisionError, match="no feedback within 2 days"):
        saved.feedback(name, True)
    with Policy.open(file, log, unanswered="ignored") as opened:
        name = opened.decide(new_rows(1)[0]).id
    clock.now += 120.0
    with Policy.open(file, log) as opened:  # what the log says
        assert (opened.describe()["unanswered"], opened.describe()["after"]) == ("ignored", "")
    drop(Policy.open(file, log, unanswered="wrong", after="1.5min"))
    with Policy.resume(log) as opened:
        assert (opened.describe()["unanswered"], opened.describe()["after"]) == ("wrong", "1.5 min")
        with pytest.raises(UnknownDecisionError, match=r"no feedback within 1\.5 min"):
            opened.feedback(name, True)
    assert status_of_log(log).to_dict()["after"] == "1.5 min"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"after": "30 min"}, "unanswered must be one of 'ignored', 'wrong'"),
        ({"unanswered": "no"}, "unanswered must be one of 'ignored', 'wrong'"),
        ({"unanswered": "wrong"}, "after must be a duration above 0"),
        *(
            ({"unanswered": how, "after": after}, "after must be a duration above 0")
            for how in ("wrong", "ignored")
            for after in (
                "0 s",
                "0.0 days",
                "-1 s",
                "30",
                "soon",
                "1e9 s",
                "30 min ",
                "nan s",
                "9" * 400 + " s",
                "٣ s",
                30,
                [1],
            )
        ),
        ({"unanswered": "wrong", "after": ""}, "after must be a duration above 0"),
    ],
)
def test_a_setting_that_is_none_is_one_line(
    table: Path, policy_file: Path, tmp_path: Path, rule: Any, message: str
) -> None:
    for work in (
        lambda: Policy.load(policy_file, **rule),
        lambda: Policy.open(policy_file, tmp_path / "events.db", **rule),
        lambda: train(table, "offer", **rule),
    ):
        with pytest.raises(UsageError, match=message) as error:
            work()
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 250
    assert not (tmp_path / "events.db").exists()


def test_a_file_whose_setting_is_none_is_refused(policy_file: Path, tmp_path: Path) -> None:
    parts = read(policy_file)
    for rule in (("wrong", ""), ("wrong", "0 s"), ("no", "1 s"), ("wrong",), ("wrong", "1 s", "2 s")):
        (tmp_path / "bad").write_bytes(packed(parts._replace(rule=rule)))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="bad: not a policy's file"):
            Policy.load(tmp_path / "bad")


# ---------------------------------------------------------------------------------------------------------------- the status


def test_the_status_of_a_log_whose_silence_is_wrong(policy_file: Path, tmp_path: Path, clock: Clock) -> None:
    log = tmp_path / "events.db"
    with Policy.open(policy_file, log, **WRONG) as policy:
        ids = [policy.decide(row).id for row in new_rows(3)]
        policy.feedback(ids[1], True)
        assert status_of_log(log).mistakes.tolist() == []
        clock.now += 1801.0
        policy.decide(new_rows(1)[0])
        status = status_of_log(log)
        assert status.mistakes.tolist() == [1.0, 0.0, 1.0]
        assert (status.feedback, status.closed, status.waiting, status.left_out) == (1, 2, 1, 0)
        assert status.delays.tolist() == [0.0]
        assert "closed as wrong: 2 decisions without an answer within 30 min" in status.lines()
        draw_status(status, tmp_path / "status.svg")
    assert (status_of_log(log).feedback, status_of_log(log).closed) == (1, 2)


def test_the_status_leaves_out_what_was_not_answered_in_the_time_set(
    policy_file: Path, tmp_path: Path, clock: Clock
) -> None:
    log = tmp_path / "events.db"
    with Policy.open(policy_file, log, unanswered="ignored", after="30 min") as policy:
        ids = [policy.decide(row).id for row in new_rows(4)]
        policy.feedback(ids[3], False)
        clock.now += 1800.0
        policy.feedback(ids[0], True)  # at the deadline
        assert (status_of_log(log).mistakes.tolist(), status_of_log(log).waiting) == ([0.0], 2)
        clock.now += 1.0
        policy.feedback(ids[1], True)  # after it: learnt, and not counted
        status = status_of_log(log)
        assert (status.mistakes.tolist(), status.waiting, status.left_out) == ([0.0, 1.0], 0, 2)
        assert any(
            line.startswith("left out: 2 decisions without an answer within 30 min; ") for line in status.lines()
        )


# ------------------------------------------------------------------------------------------------------------ who is answered


def test_who_is_answered_is_found_where_it_depends_on_the_group_and_not_elsewhere() -> None:
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(1000):
        group = rng.choice(6, 400, p=[0.5, 0.2, 0.15, 0.1, 0.04, 0.01])
        alarms += bool(unequal(rng.random(400) < 0.3, group))
    assert alarms <= 5  # of 1,000 at 0.1 % each
    group = rng.integers(0, 3, 600)
    (most, high), (least, low) = unequal(rng.random(600) < np.array([0.5, 0.9, 0.1])[group], group)
    assert (most, least) == (1, 2)
    assert (high, low) == (pytest.approx(0.9, abs=0.07), pytest.approx(0.1, abs=0.07))


def test_the_statistic_is_pearson_s() -> None:
    """By scipy's own: two groups of one size, so that the shares' mean is the share of all; two degrees of freedom."""
    for hits in range(40, 90):
        group = np.concatenate([np.zeros(100), np.ones(100)]).astype(np.int64)
        answered = np.concatenate([np.arange(100) < 40, np.arange(100) < hits])
        pearson = chi2_contingency([[40, 60], [hits, 100 - hits]], correction=False).statistic
        assert bool(unequal(answered, group)) == bool(chi2.sf(pearson, 2) < 0.001)


def test_groups_too_small_to_say_anything() -> None:
    for answered, group in (
        ([], []),
        ([True], [0]),
        ([True, False] * 4, [0, 1] * 4),
        ([True] * 50, [0] * 25 + [1] * 25),
        ([True] * 9 + [False] * 9, [0] * 9 + [1] * 9),
        ([True] * 40 + [False] * 10, [0] * 40 + [1] * 10),
    ):
        assert unequal(np.array(answered, dtype=bool), np.array(group, dtype=np.int64)) == []
    assert unequal(np.arange(20) < 10, np.arange(20) // 10) == [(0, 1.0), (1, 0.0)]


def test_the_status_says_who_is_answered(policy_file: Path, tmp_path: Path, clock: Clock) -> None:
    log = tmp_path / "events.db"
    only = 'only answered decisions count; if no answer means a wrong action, set unanswered = "wrong"'
    with Policy.open(policy_file, log, unanswered="ignored", after="1 h") as policy, policy.together():
        for i, row in enumerate(new_rows(120)):
            choice = policy.decide(row, allowed=["call"] if i % 2 else ["upgrade"])
            if i % 2 or i % 20 == 0:
                policy.feedback(choice.id, True)
        clock.now += 3601.0
        policy.decide(row)
    status = status_of_log(log)
    lines = status.lines()
    assert f"warning: answers came for 100% of action 'call', 10% of action 'upgrade' (p < 0.001): {only}" in lines
    assert f"warning: all 66 answers are positive, and 54 decisions have none: {only}" in lines
    assert status.to_dict()["unequal"] == [
        "answers came for 100% of action 'call', 10% of action 'upgrade' (p < 0.001)"
    ]
    for more in ({"mistakes": np.eye(1, 66)[0]}, {"mistakes": np.zeros(29)}, {"left_out": 0}):
        assert not any("answers are positive" in line for line in replace(status, **more).lines())
    assert any("all 30 answers are positive" in line for line in replace(status, mistakes=np.zeros(30)).lines())
