"""What a dry run says a sweep takes, beside the core-seconds that it then took."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from banditlab.comparison import comparison
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
    assert sweep(rounds=60, repetitions=1).estimate_comparators() > 0.0  # one stream
    assert sweep(norm_bounds=[], rounds=60).estimate_comparators() == 0.0
    adaptive = sweep(environment=[{"id": "banditlab/Adversary-v0"}], rounds=60, repetitions=1)
    assert math.isnan(adaptive.estimate_comparators())  # they come with the runs, whose actions they depend on


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "arff"])
def test_estimates_of_a_user_s_table_are_within_a_factor_too(tmp_path, ending):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12)).round(3)
    labels = np.array(["a", "b", "c"])[np.argmax(X @ rng.normal(size=(12, 3)) + rng.normal(size=(1500, 3)), axis=1)]
    head = ",".join([*(f"x{j}" for j in range(12)), "y"])
    if ending == "arff":
        names = "\n".join(f"@attribute x{j} numeric" for j in range(12))
        head = f"@relation r\n{names}\n@attribute y {{a,b,c}}\n@data"
    file = tmp_path / f"t.{ending}"
    rows = [",".join([*map(str, x), y]) for x, y in zip(X.tolist(), labels.tolist(), strict=True)]
    file.write_text("\n".join([head, *rows, ""]))
    timed = Sweep(comparison(file, "y", agents=["banditron", "uniform"], repetitions=4))
    said = sum(row.runs * row.seconds_per_run for row in timed.estimate()) + timed.estimate_comparators()
    begin = time.process_time()
    assert not timed.run(tmp_path / "out", jobs=1).failures
    took = time.process_time() - begin
    assert took / 3 < said < took * 3 + 0.3
