"""Late, lost and one-sided answers: which decisions count, what silence means, and what the status says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from banditlab import Policy
from banditlab.policy import status_of_log
from banditlab.policy.confidence import rise, sequence
from banditlab.policy.unanswered import WINDOW, Answers, Counted, counted, matched
from tests.policy.customers import new_rows

Floats = np.ndarray


def log_of(mistakes: Floats, late: Floats) -> tuple[Floats, Answers]:
    """Return the decisions' places, and the answers, each so many decisions late, NaN for never, as they came by the end."""
    n = len(mistakes)
    events = sorted([(i, 0, i) for i in range(n)] + [(i + late[i], 1, i) for i in range(n) if i + late[i] < n])
    seq, rows = np.zeros(n), []
    for place, (_, is_answer, i) in enumerate(events, 1):
        if is_answer:
            rows.append((place, float(place), seq[i], 1.0 - mistakes[i]))
        else:
            seq[i] = place
    return seq, matched(seq, np.array(rows).reshape(-1, 4).T)


def counted_mistakes(mistakes: Floats, late: Floats) -> tuple[Floats, Counted]:
    seq, answers = log_of(mistakes, late)
    which = counted(seq, answers)
    return 1.0 - answers.correct[which.places], which


def test_late_misses_are_no_rise_and_move_no_interval() -> None:
    """Hits are answered at once and misses 300 decisions later: over arrivals every run alarms and misses the truth."""
    rng, alarms, missed, arrivals = np.random.default_rng(0), 0, 0, 0
    for _ in range(20):
        mistakes = (rng.random(1000) < 0.2).astype(float)
        late = np.where(mistakes == 1.0, 300.0, 0.0)
        for n in (250, 400, 700, 1000):
            x, which = counted_mistakes(mistakes[:n], late[:n])
            assert x.tolist() == mistakes[: len(x)].tolist()
            assert which.left_out == 0
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
    assert (len(x), which.waiting, which.left_out) == (5, 1, 0)
    x, which = counted_mistakes(mistakes, late)
    assert (len(x), which.waiting, which.left_out) == (WINDOW + 19, 0, 1)


@pytest.mark.parametrize(("late", "counts"), [(WINDOW - 1, True), (WINDOW, False)])
def test_an_answer_after_the_deadline_does_not_count(late: int, counts: bool) -> None:
    """Decision 0 is answered when so many decisions, and itself, were taken."""
    n = WINDOW + 5
    lateness = np.zeros(n)
    lateness[0] = late
    x, which = counted_mistakes(np.eye(1, n)[0], lateness)
    assert (len(x), which.left_out, x.sum()) == ((n, 0, 1.0) if counts else (n - 1, 1, 0.0))


def test_no_decision_and_no_answer() -> None:
    for n in (0, 1, WINDOW + 1):
        x, which = counted_mistakes(np.zeros(n), np.full(n, np.nan))
        assert (len(x), which.waiting, which.left_out) == (0, min(n, WINDOW), max(0, n - WINDOW))


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
        line = "counted: 3 of 6 decisions, in their order up to the oldest that may still be answered; 2 wait"
        assert line in status.lines()
        policy.feedback(ids[3], True)
        assert status_of_log(log).mistakes.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]
    with Policy.open(policy_file, log):  # and after a restart
        assert status_of_log(log).mistakes.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]
