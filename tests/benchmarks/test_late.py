"""The study of late answers: what is late, what counts, what is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.result_pages import late_answers as told
from banditlab.policy.unanswered import Unanswered
from benchmarks.commands import late

MISTAKES = np.array([1.0, 0.0, 1.0, 0.0, 0.0])


def test_answers_are_late_as_they_are_said_to_be() -> None:
    rng = np.random.default_rng(0)
    assert late.lateness("none", MISTAKES, rng).tolist() == [0.0] * 5
    assert late.lateness("constant", MISTAKES, rng).tolist() == [300.0] * 5
    assert late.lateness("by outcome", MISTAKES, rng).tolist() == [300.0, 0.0, 300.0, 0.0, 0.0]
    assert late.lateness("lost by outcome", MISTAKES, rng).tolist() == [np.inf, 0.0, np.inf, 0.0, 0.0]
    assert late.lateness("geometric", np.zeros(20_000), rng).mean() == pytest.approx(299.0, rel=0.03)


def test_what_counts_after_so_many_decisions() -> None:
    assert late.looked(MISTAKES, np.array([0.0, 0.0, 3.0, 0.0, 0.0]), Unanswered(), 4)[0].tolist() == [1.0, 0.0]
    assert late.looked(MISTAKES, np.array([0.0, 0.0, 2.0, 0.0, 0.0]), Unanswered(), 5)[0].tolist() == MISTAKES.tolist()
    never = np.where(MISTAKES == 1.0, np.inf, 0.0)
    rule = Unanswered("wrong", "2 s")
    assert [len(late.looked(MISTAKES, never, rule, n)[0]) for n in range(1, 6)] == [0, 0, 0, 2, 2]


def test_late_misses_alarm_over_arrivals_only() -> None:
    line = late.drift_line("by outcome", Unanswered(), 3)
    assert (line.alarms, line.alarms_by_arrival, line.intervals_missed, line.left_out) == (0, 3, 0, 0)


def test_only_hits_are_learnt_where_silence_is_ignored() -> None:
    found = {mode: late.one_sided("fastcb", mode, 0, 1200) for mode in told.MODES}
    assert found[told.MODES[0]] < found[told.MODES[2]] < found[told.MODES[1]]
    assert found[told.MODES[1]] > 60.0


def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    drifts = [told.Drift("none", "ignored", 9, 1, 2, 3, 4, 5)]
    sides = [told.OneSided("a", mode, (1.0, 2.5)) for mode in told.MODES]
    told.write(tmp_path / "late-answers-drift.csv", told.Drift, drifts)
    told.write(tmp_path / "late-answers-one-sided.csv", told.OneSided, sides)
    parts = told.parts(tmp_path)
    assert parts["drift"].splitlines()[-1] == "| none | ignored | 9 | 1 | 2 | 3 | 4 | 5 |"
    assert parts["one-sided"].splitlines()[-1] == "| a | 1.8 | 1.8 | 1.8 |"
