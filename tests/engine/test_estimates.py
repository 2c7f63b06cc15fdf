"""What a dry run says a sweep takes, beside the core-seconds that it then took."""

from __future__ import annotations

import math
import time

import pytest

from banditlab.engine import Sweep
from banditlab.engine.spec import make_spec


def sweep(**changes: object) -> Sweep:
    spec = {
        "name": "timed",
        "rounds": 4000,
        "repetitions": 6,
        "norm_bounds": [3],
        "environment": [{"id": "banditlab/Digits-v0"}],
        "agent": [{"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}, {"id": "uniform"}],
    }
    return Sweep(make_spec(spec | changes, "timed"))


@pytest.mark.slow
def test_estimates_are_within_a_factor_of_the_core_seconds_a_sweep_takes(tmp_path):
    """The project's promise is 1.5 on a quiet machine; a machine that runs tests is allowed 3."""
    timed = sweep()
    play = sum(row.runs * row.seconds_per_run for row in timed.estimate())
    compared = timed.estimate_comparators()
    begin = time.process_time()
    assert not sweep(norm_bounds=[]).run(tmp_path / "out", jobs=1).failures
    played = time.process_time() - begin
    assert not timed.run(tmp_path / "out", jobs=1).failures  # the runs are there: comparators only
    whole = time.process_time() - begin
    assert played / 3 < play < played * 3 + 0.3
    assert (whole - played) / 3 < compared < (whole - played) * 3 + 0.3


def test_what_cannot_be_estimated():
    small = sweep(rounds=60, repetitions=2)
    assert [(row.label, row.runs) for row in small.estimate()] == [("banditron", 4), ("uniform", 2)]
    assert all(row.seconds_per_run > 0.0 for row in small.estimate())
    assert small.estimate_comparators() > 0.0
    assert sweep(norm_bounds=[], rounds=60).estimate_comparators() == 0.0
    adaptive = sweep(environment=[{"id": "banditlab/Adversary-v0"}], rounds=60, repetitions=1)
    assert math.isnan(adaptive.estimate_comparators())  # they come with the runs, whose actions they depend on
