"""What a dry run says a sweep takes, beside the core-seconds that it then took."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

from banditlab.comparison import comparison
from banditlab.engine import Sweep, estimating
from banditlab.engine.spec import make_spec
from banditlab.results.store import Store


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


def test_a_single_run_is_estimated_by_its_own_measurement(monkeypatch):
    monkeypatch.setattr("banditlab.engine.sweep.seconds_of_rounds", lambda run: 40.0)
    monkeypatch.setattr("banditlab.engine.sweep.overhead_seconds", lambda runs, seconds: 2.0)
    single = sweep(rounds=60, repetitions=1)
    assert [(row.label, row.runs, row.seconds_per_run) for row in single.estimate()] == [
        ("banditron", 2, 42.0),
        ("uniform", 1, 42.0),
    ]


@pytest.fixture
def clock(monkeypatch):
    """Return core-seconds that only a test adds to; by the wall each takes two seconds."""
    made = SimpleNamespace(now=0.0)
    made.process_time, made.perf_counter = lambda: made.now, lambda: 2.0 * made.now
    monkeypatch.setattr(estimating, "time", made)
    return made


@pytest.mark.parametrize(("rounds", "asked"), [(4000, [2, 64, 128, 256]), (100, [2, 64, 100]), (1, [1, 1])])
def test_twice_as_many_rounds_are_played_until_they_take_long_enough(rounds, asked, clock, monkeypatch):
    played = []

    def play(env, player, *, rounds, **_):
        played.append(rounds)
        clock.now += rounds / 1024

    monkeypatch.setattr(estimating, "play", play)
    assert estimating.seconds_of_rounds(sweep(rounds=rounds).plan.runs[0]) == rounds / 1024
    assert played == asked


@pytest.mark.parametrize(("seconds", "together", "overhead"), [(0.0, 8, 0.5), (0.125, 4, 0.375), (9.0, 1, 0.0)])
def test_what_a_run_takes_beside_its_rounds_is_measured_over_a_few(seconds, together, overhead, clock, monkeypatch):
    executed = []

    def execute(task):
        executed.append(len(task.runs))
        clock.now += 0.5 * len(task.runs)

    monkeypatch.setattr(estimating, "execute", execute)
    assert estimating.overhead_seconds(sweep(repetitions=9).plan.runs, seconds) == overhead
    assert executed == [1, together]


@pytest.mark.parametrize(("speed", "last", "tried"), [(1e3, 3000, 1), (2e4, 3000, 4), (1e3, 60, 1)])
def test_comparators_are_computed_to_a_checkpoint_and_extrapolated(speed, last, tried, clock, monkeypatch):
    """Here each takes as long as its rounds, and reading them half as long."""
    computed = []

    def execute(task):
        [part] = task.runs
        computed.append((part.rounds, task.comparators))
        clock.now += (sum(part.checkpoints) + part.rounds / 2) / speed
        rows = {"round": list(part.checkpoints), "seconds": [2.0 * at / speed for at in part.checkpoints]}
        Store(task.folder).write_comparators(part.stream_id, rows, {})

    monkeypatch.setattr(estimating, "execute", execute)
    stops = [*(at for at in (10, 20, 100, 500, 700, 1000, 2000) if at < last), last]
    run = sweep(rounds=last, checkpoints=stops).plan.runs[0]
    assert estimating.seconds_of_comparators(run, [3.0]) == pytest.approx((sum(stops) + last / 2) / speed, rel=1e-12)
    assert computed == [(min(at, last), True) for at in (500, 1000, 2000, 3000)[:tried]]


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
